"""Gates that may check nothing are named by `config check` and `init`, and by no run."""

import json
from pathlib import Path

import pytest

from atlas_retry.cli.idle import idle_gates, silent_tests
from atlas_retry.model import Gate, GateResult, Kind, Status
from tests.projects import Project, atlas

SCRIPTS = {"test": "echo ok && exit 0", "types": "tsc --noEmit", "unit": "jest"}
FILES = {
    "package.json": json.dumps({"scripts": SCRIPTS}),
    "tsconfig.json": '{"files": [], "references": [{"path": "a"}] /* the root */}',
    "a/tsconfig.json": '{"include": ["src"]}',
    "Makefile": "test:\n\t@echo no tests yet\n\nlint:\n\truff check .\n",
    "run.sh": "# later\ntrue\n",
}
PRINTS, NO_FILES = "it only runs ", "lists no files, and only tsc -b"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("npm test", PRINTS + "echo and exit"),
        ("make test", PRINTS + "echo"),
        ("true", PRINTS + "true"),
        ("sh run.sh", PRINTS + "true"),
        ("npm run types", NO_FILES),
        ("npx tsc -p .", NO_FILES),
        ("tsc --project ./tsconfig.json", NO_FILES),
        ("tsc -b", None),
        ("tsc -p a", None),
        ("npm run unit", None),
        ("make lint", None),
        ("test -f run.sh && echo ok", None),
        ("", None),
    ],
)
def test_a_gate_that_only_prints_or_has_no_files_is_named(
    command: str, why: str | None, tmp_path: Path
) -> None:
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    gate = Gate(name="g", kind=Kind.TEST, run=command)
    named = [*idle_gates([gate], tmp_path, {})]
    assert len(named) == bool(why)
    assert not why or why in named[0]


@pytest.mark.parametrize(
    ("kind", "status", "stdout", "is_named"),
    [
        (Kind.TEST, Status.PASSED, "all good\n", True),
        (Kind.TEST, Status.PASSED, "3 passed in 0.01s\n", False),
        (Kind.TEST, Status.FAILED, "all bad\n", False),
        (Kind.LINT, Status.PASSED, "all good\n", False),
    ],
)
def test_a_test_gate_that_passed_without_a_known_summary_is_named(
    kind: Kind, status: Status, stdout: str, *, is_named: bool
) -> None:
    success = status is Status.PASSED
    result = GateResult(
        name="g", kind=kind, command="x", status=status, success=success, stdout=stdout
    )
    assert len([*silent_tests([result])]) == is_named


def test_config_check_names_them_and_a_run_does_not(project: Project) -> None:
    (project.root / ".atlas").mkdir(exist_ok=True)
    configuration = project.root / ".atlas/config.yaml"
    configuration.write_text("validation: {test: [\"sh -c 'grep -c . calc.py'\", 'echo ok']}\n")
    ran = atlas(project, "validate")
    checked = atlas(project, "config", "check")
    assert (ran.code, checked.code) == (0, 0)
    assert "nothing" not in ran.out + ran.err
    assert "the gate echo ok checks nothing: it only runs echo" in checked.err
    assert "the gate sh passed without the summary of a runner" in checked.err
    listed = json.loads(atlas(project, "config", "check", "--json").out)["warnings"]
    assert [line.split()[2] for line in listed] == ["echo", "sh", "echo"]


def test_init_names_a_placeholder_and_a_runner_that_it_does_not_know(project: Project) -> None:
    package = {"name": "p", "scripts": {"test": 'echo "Error: no test specified" && exit 1'}}
    (project.root / "package.json").write_text(json.dumps(package))
    (project.root / "Makefile").write_text("test:\n\tgrep -c . calc.py\n")
    (project.root / ".atlas/config.yaml").unlink(missing_ok=True)
    made = atlas(project, "init", "--plain")
    assert made.code == 0
    assert "the script `test` of package.json is a placeholder" in made.err
    assert "the gate make test passed without the summary of a runner" in made.err
