"""No gate passes because of ignored files that others wrote after it had failed."""

import json
import time
from pathlib import Path

import pytest

from tests.projects import Project, atlas

MADE = "build/made.txt"
WRITES = f"sleep 0.3; mkdir -p build; echo made > {MADE}"
SETTLED_S = 0.15


class Gates:
    """A test that needs an ignored file, and a later gate that writes it."""

    def __init__(self, project: Project) -> None:
        self.project, self.ran = project, project.root.parent / "ran"
        self.file = project.root / MADE

    def configure(self, test: str = f"test -e {MADE}", **more: object) -> None:
        test = f"echo x >> {self.ran}; {test}"
        self.project.configure(
            validation={
                "test": [test],
                "custom": [{"name": "makes", "run": WRITES, "max_retries": 0}],
            },
            retry={"flake_reruns": 0},
            **more,
        )
        (self.project.root / ".gitignore").write_text("/build/\n")
        self.project.commit()

    def runs(self) -> int:
        """How often the test has run since the last time."""
        count = len(self.ran.read_text().split()) if self.ran.exists() else 0
        self.ran.unlink(missing_ok=True)
        return count


@pytest.fixture
def gates(project: Project) -> Gates:
    made = Gates(project)
    made.configure()
    return made


def first_error(out: str) -> str:
    return str(json.loads(out)["test_results"][0]["error"])


@pytest.mark.parametrize("again", [[], ["--reuse"]])
def test_a_gate_that_passes_by_what_a_later_gate_left_fails(gates: Gates, again: list[str]) -> None:
    assert atlas(gates.project, "validate").code == 1
    for _ in range(2):
        ended = atlas(gates.project, "validate", "--json", *again)
        assert ended.code == 1, ended.out
        assert "which a gate wrote later: list that gate before" in first_error(ended.out)
        assert f"running again without {MADE}" in ended.err
        assert gates.file.read_text() == "made\n"


def test_a_run_does_not_begin_clean_by_what_a_later_gate_left(gates: Gates) -> None:
    assert atlas(gates.project, "validate").code == 1
    ended = atlas(gates.project, "retry", ".")
    assert ended.code == 1, ended.out
    assert f"passes only with {MADE}" in ended.out


def test_a_run_does_not_end_fixed_by_what_a_later_gate_left(gates: Gates) -> None:
    gates.configure(agent={"backend": "command", "command": "echo '# looked at' >> calc.py"})
    assert atlas(gates.project, "validate").code == 1
    ended = atlas(gates.project, "retry", ".", "--ai-fix", "--max-attempts", "1")
    assert ended.code == 1, ended.out
    assert ended.out.count(f"running again without {MADE}") == 2


def test_a_gate_that_passes_without_what_was_left_is_green(gates: Gates, tmp_path: Path) -> None:
    switch = tmp_path / "switch"
    gates.configure(f"test -e {switch}")
    assert atlas(gates.project, "validate").code == 1
    switch.touch()
    gates.runs()
    ended = atlas(gates.project, "validate")
    assert (ended.code, gates.runs()) == (0, 2), ended.out
    assert gates.file.read_text() == "made\n"
    assert (atlas(gates.project, "validate").code, gates.runs()) == (0, 1)


def test_a_file_that_a_person_has_made_since_is_no_leftover(gates: Gates) -> None:
    assert atlas(gates.project, "validate").code == 1
    time.sleep(SETTLED_S)
    gates.file.write_text("by hand\n")
    time.sleep(SETTLED_S)
    ended = atlas(gates.project, "validate", "--only", "test")
    assert ended.code == 0, ended.out


def test_what_is_left_costs_no_second_run_once_a_source_was_edited(gates: Gates) -> None:
    assert atlas(gates.project, "validate").code == 1
    (gates.project.root / "calc.py").write_text("edited = True\n")
    gates.runs()
    assert (atlas(gates.project, "validate").code, gates.runs()) == (0, 1)
