"""What a green stands for: each result is about the tree that is left, whatever the gates write."""

import pytest
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Status, Validation
from atlas_retry.run.open import open_configured, plan, validation_logs
from tests.processes import PYTHON
from tests.projects import CALC, FIXED, Project, atlas

RUFF = f"{PYTHON} -m ruff"
TESTED = "for i in $(seq 200); do test -e ../tested && break; sleep 0.05; done"
"""Waits for the tests, so that what follows comes after them."""
UNITTEST = "python3 -S -m unittest -q || exit 1"
ANNOUNCED = "python3 -S -m unittest -q; code=$?; touch ../tested; exit $code"
AGENT = f"printf '{FIXED.replace(chr(10), chr(92) + 'n')}' > calc.py"
COVERED = "date +%N > tests/coverage.xml; date +%N > .coverage"
DATABASE = (
    'import sqlite3; sqlite3.connect("tests/t.db").executescript("create table if not exists a(a)")'
)
FAILING = (
    "import unittest\\nclass T(unittest.TestCase):\\n    def test(self):\\n        self.fail()\\n"
)

CANONICAL = "! grep -q ' ' table.json"
SERVER = """
trap 'echo "[ ]" > table.json; exit' TERM
touch ../ready
for i in $(seq 200); do sleep 0.05; done
"""
READY = "for i in $(seq 200); do test -e ../ready && exit; sleep 0.05; done"


class Scenario(Struct, frozen=True, kw_only=True):
    """Gates, and what they come to."""

    name: str
    gates: dict[str, str]
    """One line a kind."""
    files: dict[str, str] = {}
    is_green: bool
    under_check: bool | None = None
    """None: the same."""
    tests_run: int = 1
    """How often, where the validation is green."""


NOT_GREEN = (
    Scenario(
        name="a lint that fixes what the tests need, after them",
        files={
            "app.py": "import os\n",
            "test_app.py": (
                "import unittest\n\nimport app\n\n\nclass AppTest(unittest.TestCase):\n"
                "    def test_os(self):\n        self.assertTrue(app.os.sep)\n"
            ),
        },
        gates={
            "lint": f"{TESTED}; {RUFF} check -q --fix .",
            "test": ANNOUNCED,
        },
        is_green=False,
    ),
    Scenario(
        name="a reader that adds a failing test after the tests",
        gates={
            "build": f"{TESTED}; printf '{FAILING}' > test_new.py",
            "test": ANNOUNCED,
        },
        is_green=False,
    ),
    Scenario(
        name="a product that is source and another one each time",
        gates={"build": "echo PID = $$ > version.py", "test": UNITTEST},
        is_green=False,
    ),
    Scenario(
        name="code that a reader exchanges while the tests run, and restores",
        files={"app.py": "wrong\n"},
        gates={
            "lint": f"cp -p app.py ../kept; echo right > app.py; {TESTED}; cp -p ../kept app.py",
            "test": "sleep 0.5; grep -q right app.py; code=$?; touch ../tested; exit $code",
        },
        is_green=False,
    ),
    Scenario(
        name="tracked data that tests write after a lint has checked it",
        files={"table.json": "[]\n"},
        gates={
            "lint": CANONICAL,
            "test": f"{UNITTEST}; sleep 0.5; echo '[ ]' > table.json",
        },
        is_green=False,
    ),
    Scenario(
        name="tracked data that a process of the tests writes when it is ended",
        files={"table.json": "[]\n", "server.sh": SERVER},
        gates={"lint": CANONICAL, "test": f"{UNITTEST}; rm -f ../ready; sh server.sh & {READY}"},
        is_green=False,
    ),
    Scenario(
        name="a snapshot that is written wrong and then found as expected",
        gates={"test": f"{UNITTEST}; test -e shot || {{ echo wrong > shot; exit 1; }}"},
        is_green=False,
    ),
    Scenario(
        name="a tracked snapshot that is overwritten and then found as expected",
        files={"shot": "right\n"},
        gates={"test": f"{UNITTEST}; grep -q wrong shot || {{ echo wrong > shot; exit 1; }}"},
        is_green=False,
    ),
)
GREEN = (
    Scenario(
        name="a tracked log that grows",
        files={"run.log": "begun\n"},
        gates={"lint": "true", "test": f"echo again >> run.log; {UNITTEST}"},
        is_green=True,
    ),
    Scenario(
        name="coverage, reports and a database among the tests",
        files={"tests/data.txt": "1\n"},
        gates={
            "lint": "date +%N > tests/junit.xml",
            "test": f"{COVERED}; python3 -S -c '{DATABASE}'; {UNITTEST}",
        },
        is_green=True,
    ),
    Scenario(
        name="a formatter that is configured as lint",
        files={"loose.py": "def  f( ):\n  return 1\n"},
        gates={"lint": f"{RUFF} format -q .", "test": UNITTEST},
        is_green=True,
        under_check=False,
        tests_run=2,
    ),
)
IN_A_RUN = [s for s in (*NOT_GREEN, *GREEN) if "tests/data.txt" not in s.files]
"""What gates write among the tests is charged to the agent by the guard, not by a validation."""
ALL = pytest.mark.parametrize("scenario", [*NOT_GREEN, *GREEN], ids=lambda s: s.name)


def prepared(project: Project, scenario: Scenario, calc: str) -> Project:
    for path, text in {**scenario.files, "calc.py": calc}.items():
        target = project.root / path
        target.parent.mkdir(exist_ok=True)
        target.write_text(text)
    project.configure(
        validation={
            kind: [f"echo {kind} >> ../runs; {line}"] for kind, line in scenario.gates.items()
        },
        agent={"backend": "command", "path": None, "command": AGENT},
        retry={"max_ai_retry_attempts": 2},
    )
    project.commit()
    return project


def runs(project: Project, kind: str) -> int:
    return (project.root.parent / "runs").read_text().split().count(kind)


@ALL
def test_validate_passes_only_for_the_final_tree(scenario: Scenario, project: Project) -> None:
    done = atlas(prepared(project, scenario, FIXED), "validate", "--flake-reruns", "1")
    assert (done.code == 0) is scenario.is_green, done.out
    if scenario.is_green:
        assert runs(project, "test") == scenario.tests_run


@ALL
def test_check_passes_only_for_the_final_tree(scenario: Scenario, project: Project) -> None:
    done = atlas(prepared(project, scenario, FIXED), "validate", "--check", "--flake-reruns", "1")
    is_green = scenario.is_green if scenario.under_check is None else scenario.under_check
    assert (done.code == 0) is is_green, done.out


@pytest.mark.parametrize("scenario", IN_A_RUN, ids=lambda s: s.name)
def test_a_run_passes_only_for_the_final_tree(scenario: Scenario, project: Project) -> None:
    outcome = prepared(project, scenario, CALC).retry()
    assert outcome.verdict.is_green is scenario.is_green, outcome.final_error


def validated(project: Project, *, flake_reruns: int = 0) -> Validation:
    opened = open_configured(project.root, project.environ)
    how = replace(plan(opened, validation_logs(opened)), jobs=4, flake_reruns=flake_reruns)
    return run_gates(opened.settings.gates, how)


def test_a_reader_that_changes_code_is_reported_and_runs_alone_later(project: Project) -> None:
    fixing = "echo lint >> ../runs; test -e new.py || touch new.py"
    project.configure(validation={"lint": [fixing]})
    opened = open_configured(project.root, project.environ)
    first = plan(opened, validation_logs(opened))
    (result,) = run_gates(opened.settings.gates, first).results
    assert result.changed == ("new.py",)
    assert "runs alone" in result.notes[0]
    assert runs(project, "lint") == 2
    assert plan(opened, validation_logs(opened)).learned.movers == {opened.settings.gates[0]}


def test_a_gate_that_changes_files_every_time_fails(project: Project) -> None:
    project.configure(validation={"build": ["echo PID = $$ > version.py"]})
    (result,) = validated(project).results
    assert result.status is Status.FAILED
    assert result.error == "it changed 1 file again: version.py"


def test_only_outdated_gates_run_again(project: Project) -> None:
    project.configure(
        validation={
            "lint": ["echo lint >> ../runs"],
            "pre_commit": ["echo hooks >> ../runs; test -e new.py || touch new.py"],
            "custom": [{"run": "echo custom >> ../runs", "max_retries": 1}],
        }
    )
    assert validated(project).success
    assert [runs(project, kind) for kind in ("lint", "hooks", "custom")] == [2, 1, 1]


def test_stale_bytecode_is_not_run_again_after_a_gate_changed_code(project: Project) -> None:
    (project.root / "calc.py").write_text(FIXED)
    # as long as before, and in the same second
    breaks = "touch -r calc.py ../time; sed -i 's/a + b/a - b/' calc.py; touch -r ../time calc.py"
    gates = {
        "test": ["PYTHONDONTWRITEBYTECODE= python3 -S -c 'import calc; assert calc.add(1, 2) == 3'"]
    }
    project.configure(validation=gates | {"pre_commit": [breaks]})
    tests, hooks = validated(project).results
    assert (tests.success, hooks.success) == (False, True)


def test_a_failure_is_not_replaced_by_a_pass_after_the_gate_changed_files(
    project: Project,
) -> None:
    healing = "test -e healed.py || { touch healed.py; exit 1; }"
    project.configure(validation={"lint": ["true"], "test": [healing]})
    validation = validated(project, flake_reruns=1)
    assert validation.results[1].status is Status.FAILED
    assert not validation.success


def test_data_written_by_a_flaky_test_is_restored_before_its_rerun(
    project: Project,
) -> None:
    shaky = "echo ran >> log; test -e ../seen || { touch ../seen; exit 1; }"
    project.configure(validation={"test": [shaky]})
    (result,) = validated(project, flake_reruns=1).results
    assert result.status is Status.FLAKY
    assert (project.root / "log").read_text() == "ran\n"


def test_what_a_failing_gate_wrote_stays_if_only_a_part_of_it_runs_again(project: Project) -> None:
    gate = {"run": "echo whole > log; exit 1", "recheck": "echo part > log; exit 1"}
    project.configure(validation={"test": [gate]})
    (result,) = validated(project, flake_reruns=1).results
    assert result.status is Status.FAILED
    assert (project.root / "log").read_text() == "whole\n"


def test_ignored_files_do_not_count_as_changed(project: Project) -> None:
    (project.root / ".gitignore").write_text("build/\n__pycache__/\n")
    line = "mkdir -p build; echo PID = $$ > build/made.py; echo build >> ../runs"
    project.configure(validation={"build": [line], "test": ["true"]})
    assert validated(project).success
    assert runs(project, "build") == 1


@pytest.mark.parametrize("path", ["build/rules.cmake", "dist/app.js"])
def test_build_output_that_git_does_not_know_is_no_code_of_the_project(
    project: Project, path: str
) -> None:
    line = f"mkdir -p $(dirname {path}); date +%N > {path}; echo build >> ../runs"
    project.configure(validation={"build": [line], "test": ["true"]})
    assert validated(project).success
    assert runs(project, "build") == 1


def test_a_validation_without_a_required_gate_fails(project: Project) -> None:
    project.configure(validation={"lint": [{"run": "true", "required": False}]})
    done = atlas(project, "validate")
    assert done.code == 1
    assert "no gate is required" in done.out


def test_processes_left_by_a_gate_are_ended_before_the_last_snapshot(project: Project) -> None:
    late = "(setsid sh -c 'sleep 30; touch late.py' &); true"
    project.configure(validation={"lint": [late]})
    validation = validated(project)
    assert validation.success
    assert "still running" in validation.results[0].notes[0]


@pytest.mark.parametrize("kind", ["format", "pre_commit", "custom"])
@pytest.mark.parametrize("file", ["calc.py", "README.md", "data.json"])
def test_writers_that_undo_each_other_fail_whatever_the_file(
    project: Project, kind: str, file: str
) -> None:
    (project.root / file).write_text("x = 1\n")
    more = {"max_retries": 1, "writes": True} if kind == "custom" else {}
    lines = {"one": f"echo a=1 > {file}", "two": f"echo b=1 > {file}"}
    gates = [{"name": name, "run": run, **more} for name, run in lines.items()]
    project.configure(validation={kind: gates})
    project.commit()
    done = atlas(project, "validate", "--no-check")
    assert done.code == 1, done
    assert "again, after other gates had run on them" in done.out
    assert "failed: one, two (0 of 2 gates passed)" in done.out


@pytest.mark.parametrize(
    "second", ["echo b >> README.md", "grep -q b README.md || echo b >> README.md"]
)
def test_writers_that_agree_in_the_end_pass(project: Project, second: str) -> None:
    (project.root / "README.md").write_text("x\n")
    project.configure(validation={"format": ["grep -q a README.md || echo a >> README.md", second]})
    project.commit()
    assert atlas(project, "validate", "--no-check").code == 0


@pytest.mark.parametrize(
    ("words", "jobs"),
    [(("validate", "-j", "1"), "auto"), (("validate",), 1), (("retry", "-j", "1"), "auto")],
)
def test_one_job_is_one_gate_at_a_time(
    project: Project, words: tuple[str, ...], jobs: str | int
) -> None:
    """Also those that mostly waited before, which run in addition to others."""
    alone = "mkdir ../busy && sleep 0.4 && rmdir ../busy"
    tests = [{"name": name, "run": f": {name}; {alone}"} for name in "abc"]
    waits = [{"name": name, "run": f": {name}; sleep 0.4"} for name in "abc"]
    project.configure(validation={"lint": waits})
    assert atlas(project, "validate").code == 0
    project.configure(validation={"lint": tests, "jobs": jobs})
    done = atlas(project, *words)
    assert done.code == 0, done
