"""The everyday projects of test_honest once more, fixed by the real Claude Code CLI."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.commands import run_atlas
from tests.messages_server import Step, call, edit, say, serving
from tests.miniatures import CALC, PYTEST, TEST_ADD, miniature
from tests.projects import Project, atlas
from tests.test_claude_loop import ARGUMENTS, LIMIT_S, claude, environment
from tests.test_honest import RECORDS, WRITTEN

pytestmark = pytest.mark.claude
OTHER = "def test_other():\n    assert 1 == 1\n"
IGNORED = {".gitignore": "__pycache__/\n.pytest_cache/\n"}
RECORDING = CALC | {"tests/test_calc.py": RECORDS}
WRITES = "python tests/all.py"


def as_it_is(_: Project) -> None:
    """Nothing runs before."""


def edits_another_test(project: Project) -> None:
    """The gates ran, then the user edited a line of a test that has nothing to do with it."""
    assert atlas(project, "validate").code == 1
    file = project.root / "tests/test_other.py"
    file.write_text(OTHER.replace("1 == 1", "2 == 2"))


def tracks_the_log(project: Project) -> None:
    """What the tests write is committed."""
    assert atlas(project, "validate").code == 1
    project.commit()


PROJECTS: dict[str, tuple[Mapping[str, str], str, Callable[[Project], None]]] = {
    "nothing ignored": (CALC, PYTEST, as_it_is),
    "another test edited": (
        CALC | IGNORED | {"tests/test_other.py": OTHER},
        PYTEST,
        edits_another_test,
    ),
    "log untracked": (RECORDING | IGNORED, PYTEST, as_it_is),
    "log tracked": (RECORDING | IGNORED, PYTEST, tracks_the_log),
    "log ignored": (
        RECORDING | {".gitignore": IGNORED[".gitignore"] + "tests/run.log\ntests/test.db\n"},
        PYTEST,
        as_it_is,
    ),
    "reports and snapshots": (
        {"calc.py": CALC["calc.py"], "tests/all.py": WRITTEN},
        WRITES,
        as_it_is,
    ),
}


def besides(root: Path) -> tuple[Step, ...]:
    """What an agent does besides: it runs the gate, adds a test and documents."""
    added = TEST_ADD.replace("1, 2) == 3", "4, 4) == 8")
    return (
        call("Bash", command=PYTEST),
        call("Write", file_path=str(root / "tests/test_more.py"), content=added),
        call("Write", file_path=str(root / "docs/add.md"), content="# add\n"),
    )


def fixed_by_claude(project: Project, gate: str, *more: Step) -> dict[str, object]:
    """The run's document, once the scripted model has read, fixed and done what is besides."""
    path = claude(project.root.parent)
    agent = {"backend": "claude-code", "path": path, "idle_timeout": 20}
    project.configure(validation={"test": [gate]}, agent=agent)
    project.commit()
    calc = str(project.root / "calc.py")
    fix = edit(calc, "return a - b", "return sum((a, b))")
    script = (call("Read", file_path=calc), fix, *more, say("plus, not minus"))
    with serving(*script) as server:
        done = run_atlas(
            ARGUMENTS,
            cwd=project.root,
            environ=environment(project, server),
            limit_s=LIMIT_S,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert isinstance(document, dict)
    return document


def answers(document: dict[str, object]) -> list[object]:
    """What was refused and held of all attempts."""
    attempts = document["attempts"]
    assert isinstance(attempts, list)
    return [answer for a in attempts for answer in (*a["violations"], *a["held"])]


@pytest.mark.parametrize("kind", PROJECTS)
def test_an_everyday_project_is_fixed(tmp_path: Path, environ: dict[str, str], kind: str) -> None:
    files, gate, before = PROJECTS[kind]
    project = miniature(tmp_path, environ, files, [], validation={"test": [gate]})
    before(project)
    document = fixed_by_claude(project, gate)
    assert document["verdict"] == "fixed"
    assert answers(document) == []


def test_harmless_edits_of_the_agent_are_kept(tmp_path: Path, environ: dict[str, str]) -> None:
    project = miniature(tmp_path, environ, CALC | IGNORED, [])
    document = fixed_by_claude(project, PYTEST, *besides(project.root))
    assert document["verdict"] == "fixed"
    assert answers(document) == []
