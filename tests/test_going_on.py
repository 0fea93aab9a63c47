"""A run that spent its budget asks at a terminal whether to go on."""

import pytest

from tests.projects import Project, atlas, on_a_terminal

GATE = "! grep -n BAD a.py b.py | sed 's/:BAD$/: error: bad/' | grep ."
QUESTION = "1 of 2 left to fix, $0.50 spent: go on with $1.00?"


@pytest.fixture
def halfway(project: Project) -> Project:
    """Two problems, of which the one attempt that there may be fixes one."""
    project.configure(
        validation={"lint": [{"name": "plus", "run": GATE}]},
        retry={"max_ai_retry_attempts": 1, "flake_reruns": 0},
    )
    for name in ("a.py", "b.py"):
        (project.root / name).write_text("BAD\n")
    project.commit()
    project.attempt(1, {"a.py": "GOOD = 1\n"}, cost_usd=0.5)
    return project


@pytest.mark.parametrize(("typed", "runs"), [(b"n\n", 1), (b"y\n", 2)])
def test_at_a_terminal_it_asks_and_goes_on_if_told(
    typed: bytes, runs: int, halfway: Project
) -> None:
    code, shown = on_a_terminal(halfway, "retry", ".", "--ai-fix", typed=typed)
    assert code == 1
    assert shown.count(QUESTION) == 1, shown
    assert atlas(halfway, "log").out.count("exhausted") == runs


def test_elsewhere_it_does_not_ask(halfway: Project) -> None:
    ended = atlas(halfway, "retry", ".", "--ai-fix", stdin="y\n")
    assert ended.code == 1
    assert "go on with" not in ended.out + ended.err
