"""What gates found is the answer again on the very same files, and never where anything moved."""

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.projects import FIXED, Project, atlas, git

Change = Callable[[Project], object]
SETTLED_S = 0.15
"""An ignored file that is younger when gates begin may have moved beside them."""


class Gates:
    """Gates that write down each of their runs, outside the workspace."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.log = project.root.parent / "ran"

    def line(self, name: str, rest: str = "true") -> str:
        return f"echo {name} >> {self.log}; {rest}"

    def ran(self) -> Sequence[str]:
        """The gates that have run since the last time."""
        names = self.log.read_text().split() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return sorted(names)


@pytest.fixture
def gates(project: Project) -> Gates:
    made = Gates(project)
    test = {"name": "tests", "run": made.line("whole", "grep -q ' + ' calc.py")}
    project.configure(validation={"lint": [made.line("lint")], "test": [test]})
    (project.root / ".gitignore").write_text("/.env\n/out/\n/.cache/\n")
    (project.root / ".env").write_text("a=1\n")
    project.commit()
    time.sleep(SETTLED_S)
    return made


def test_a_passed_gate_is_reused_and_says_from_when(gates: Gates) -> None:
    first = atlas(gates.project, "validate", "--json")
    assert gates.ran() == ["lint", "whole"]
    again = atlas(gates.project, "validate", "--reuse", "--json")
    assert (again.code, gates.ran()) == (1, ["whole"])
    (was,), (now,) = (json.loads(out.out)["lint_results"] for out in (first, again))
    assert (was["reused"], now["reused"]) == (None, was["completed_at"])
    assert "(reused, from 20" in again.err


def test_without_reuse_every_gate_runs(gates: Gates) -> None:
    for _ in range(2):
        atlas(gates.project, "validate")
        assert gates.ran() == ["lint", "whole"]


def _write(path: str, text: str) -> Change:
    def change(project: Project) -> None:
        (project.root / path).parent.mkdir(exist_ok=True)
        (project.root / path).write_text(text)

    return change


MOVES: dict[str, Change] = {
    "a source": _write("calc.py", "x = 2\n"),
    "a new file": _write("new.txt", ""),
    "an ignored file": _write(".env", "a=2\n"),
    "an empty folder": lambda project: (project.root / "cache.d").mkdir(),
    "a deleted file": lambda project: (project.root / "test_calc.py").unlink(),
    "a mode": lambda project: (project.root / "calc.py").chmod(0o755),
    "an installed package": _write("node_modules/left-pad", ""),
    "a variable": lambda project: project.environ.update(DATABASE_URL="x"),
    "a program": _write("../bin/grep2", ""),
    "the commit": lambda project: git(
        project.root, "commit", "--allow-empty", "-qm", "WIP", environ=project.environ
    ),
}


@pytest.mark.parametrize("what", MOVES)
def test_any_change_runs_the_gate_again(gates: Gates, what: str) -> None:
    project = gates.project
    (project.root.parent / "bin").mkdir()
    project.environ["PATH"] = f"{project.root.parent / 'bin'}:{os.environ['PATH']}"
    atlas(project, "validate")
    gates.ran()
    MOVES[what](project)
    atlas(project, "validate", "--reuse")
    assert gates.ran() == ["lint", "whole"]


def test_a_change_of_equal_size_and_time_is_detected(gates: Gates) -> None:
    project = gates.project
    line = gates.line("late", "printf a > late.txt")
    project.configure(validation={"format": [line], "lint": [gates.line("lint")]})
    (project.root / "late.txt").write_text("a")
    project.commit()
    atlas(project, "validate")
    gates.ran()
    seen = (project.root / "late.txt").stat()
    (project.root / "late.txt").write_text("b")
    os.utime(project.root / "late.txt", ns=(seen.st_atime_ns, seen.st_mtime_ns))
    atlas(project, "validate", "--reuse")
    assert "lint" in gates.ran()


def test_a_variable_set_by_the_terminal_is_ignored(gates: Gates) -> None:
    atlas(gates.project, "validate")
    gates.ran()
    atlas(gates.project, "validate", "--reuse", COLUMNS="93")
    assert gates.ran() == ["whole"]


def test_a_result_with_a_missing_program_is_not_reused(gates: Gates) -> None:
    line = gates.line("odd", "test -e calc.py || no-such-program")
    gates.project.configure(validation={"lint": [line]})
    atlas(gates.project, "validate")
    atlas(gates.project, "validate", "--reuse")
    assert gates.ran() == ["odd", "odd"]


def test_with_a_link_to_a_file_outside_nothing_is_reused(gates: Gates) -> None:
    (gates.project.root / "want.txt").symlink_to(gates.project.root.parent / "shared.txt")
    atlas(gates.project, "validate")
    gates.ran()
    atlas(gates.project, "validate", "--reuse")
    assert gates.ran() == ["lint", "whole"]


def test_a_gate_that_changed_files_is_not_reused(gates: Gates) -> None:
    line = gates.line("writer", "test -e made.txt || touch made.txt")
    gates.project.configure(validation={"format": [line], "lint": [gates.line("lint")]})
    atlas(gates.project, "validate")
    gates.ran()
    atlas(gates.project, "validate", "--reuse")
    assert gates.ran() == ["writer"]


def test_a_gate_that_changed_an_ignored_file_is_not_reused(gates: Gates) -> None:
    line = gates.line("lint", "echo a=3 > .env")
    gates.project.configure(validation={"lint": [line]})
    atlas(gates.project, "validate")
    atlas(gates.project, "validate", "--reuse")
    assert gates.ran() == ["lint", "lint"]


def test_a_gate_that_rewrites_its_outputs_each_time_is_reused(gates: Gates) -> None:
    line = gates.line("build", "mkdir -p out; date > out/made; date > .coverage")
    gates.project.configure(validation={"build": [line]})
    _write(".gitignore", "/out/\n.coverage\n")(gates.project)
    atlas(gates.project, "validate")
    atlas(gates.project, "validate", "--reuse")
    assert gates.ran() == ["build"]


def test_a_run_starts_from_a_stored_failure_and_confirms_it(gates: Gates) -> None:
    gates.project.attempt(1, {"calc.py": FIXED})
    atlas(gates.project, "validate")
    gates.ran()
    assert atlas(gates.project, "retry", "--ai-fix").code == 0
    assert gates.ran() == ["lint", "whole", "whole"]


def test_a_stored_failure_is_confirmed_by_its_recheck(gates: Gates) -> None:
    project = gates.project
    recheck = gates.line("narrow", "grep -q ' + ' calc.py")
    test = {"run": gates.line("whole", "grep -q ' + ' calc.py"), "recheck": recheck}
    project.configure(validation={"lint": [gates.line("lint")], "test": [test]})
    project.attempt(1, {"calc.py": FIXED})
    atlas(project, "validate")
    gates.ran()
    assert atlas(project, "retry", "--ai-fix").code == 0
    assert gates.ran() == ["lint", "narrow", "narrow", "whole"]


def test_a_stored_failure_that_passes_now_counts_no_attempt(gates: Gates) -> None:
    project = gates.project
    outside = project.root.parent / "up"
    test = {"name": "tests", "run": gates.line("whole", f"test -e {outside}")}
    project.configure(validation={"lint": [gates.line("lint")], "test": [test]})
    atlas(project, "validate")
    outside.touch()
    gates.ran()
    done = atlas(project, "retry", "--ai-fix")
    assert (done.code, "attempt 1" in done.out) == (0, False)
    assert gates.ran() == ["lint", "whole"]


def test_a_passing_run_is_never_taken_from_stored_results(gates: Gates) -> None:
    gates.project.configure(validation={"lint": [gates.line("lint")]})
    atlas(gates.project, "validate")
    gates.ran()
    assert atlas(gates.project, "retry").code == 0
    assert gates.ran() == ["lint"]


def test_prune_deletes_stored_results(gates: Gates) -> None:
    atlas(gates.project, "validate")
    assert atlas(gates.project, "prune").code == 0
    gates.ran()
    atlas(gates.project, "validate", "--reuse")
    assert gates.ran() == ["lint", "whole"]


def test_results_are_stored_in_one_file_per_workspace(gates: Gates) -> None:
    for _ in range(3):
        atlas(gates.project, "validate")
    assert len([*Path(gates.project.environ["ATLAS_HOME"], "answers").iterdir()]) == 1


def _inputs(gates: Gates, *lint: str) -> None:
    """A linter of some files, and a test of `calc.py`."""
    test = {"name": "tests", "run": gates.line("whole", "grep -q ' + ' calc.py")}
    run = {"name": "style", "run": gates.line("lint"), "inputs": [*lint]}
    gates.project.configure(validation={"lint": [run], "test": [test]}, retry={"flake_reruns": 0})


@pytest.mark.parametrize(
    ("inputs", "between"),
    [(("*.md",), ["whole"]), (("*.py",), ["lint", "whole"]), ((), ["lint", "whole"])],
)
def test_a_passed_gate_runs_between_attempts_only_if_its_inputs_changed(
    gates: Gates, inputs: Sequence[str], between: Sequence[str]
) -> None:
    _inputs(gates, *inputs)
    gates.project.attempt(1, {"calc.py": "x = 1\n"})
    assert atlas(gates.project, "retry", "--ai-fix", "--max-attempts", "1").code == 1
    assert gates.ran() == sorted(["lint", "whole", *between])


def test_the_final_validation_runs_all_gates(gates: Gates) -> None:
    _inputs(gates, "*.md")
    gates.project.attempt(1, {"calc.py": FIXED})
    done = atlas(gates.project, "retry", "--ai-fix", "--json")
    assert (done.code, gates.ran()) == (0, ["lint", "lint", "whole", "whole"])
    final = json.loads(done.out)["final"]
    assert final["lint_results"][0]["reused"] is None


def test_a_gate_with_inputs_is_reused_after_other_files_changed(gates: Gates) -> None:
    _inputs(gates, "*.py")
    atlas(gates.project, "validate")
    gates.ran()
    (gates.project.root / "notes.md").write_text("moved\n")
    gates.project.commit()
    atlas(gates.project, "validate", "--reuse")
    assert gates.ran() == ["whole"]
    (gates.project.root / "new.py").write_text("")
    atlas(gates.project, "validate", "--reuse")
    assert gates.ran() == ["lint", "whole"]
