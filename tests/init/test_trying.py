"""Each proposal runs once before it is written, aside: no file of the project changes."""

import os
import sys
from pathlib import Path

import pytest

from atlas_retry.cli.proposing import How, checking, initialise
from atlas_retry.config.init import propose
from atlas_retry.errors import AtlasError, UsageError
from atlas_retry.events import unseen
from atlas_retry.run.trying import try_all
from tests.repositories import commit, entries, git, write

UGLY = "x = {  'a':1 }\n"
CI = "on: push\njobs: {{a: {{steps: [{{run: {line}}}]}}}}\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    at = tmp_path / "project"
    at.mkdir()
    git(at, "init", "-q")
    return at


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    """The tools of this environment, with their own state."""
    tools = str(Path(sys.executable).parent)
    path = f"{tools}:{os.environ['PATH']}"
    return {"PATH": path, "HOME": str(tmp_path), "ATLAS_HOME": str(tmp_path / "state")}


def outcomes(root: Path, environ: dict[str, str]) -> dict[str, str]:
    commit(root)
    tried = try_all(root, propose(root, environ).choices, environ, unseen)
    return {one.choice.run: one.outcome for one in tried}


def written(root: Path, environ: dict[str, str]) -> str:
    commit(root)
    initialise(root, environ, How(print_only=False, tries=True, plain=True))
    return (root / ".atlas/config.yaml").read_text()


def test_a_passing_gate_is_kept(root: Path, environ: dict[str, str]) -> None:
    write(root, "Makefile", "test:\n\ttrue\n")
    assert outcomes(root, environ) == {"make test": "passes"}


def test_a_failing_gate_stays_required(root: Path, environ: dict[str, str]) -> None:
    write(root, "Makefile", "test:\n\t@echo two of three failed; exit 1\n")
    assert outcomes(root, environ) == {"make test": "fails today"}
    text = written(root, environ)
    assert "fails today" not in text
    assert 'run: "make test"' in text
    assert "required" not in text


def test_a_failing_gate_that_ci_does_not_run_is_optional(
    root: Path, environ: dict[str, str]
) -> None:
    write(root, "Makefile", "lint:\n\tfalse\ntest:\n\ttrue\n")
    write(root, ".github/workflows/ci.yml", CI.format(line="make test"))
    text = written(root, environ)
    assert "required: false" in text
    assert "CI does not run it" in text


@pytest.mark.parametrize("lines", ["uvx --with x tox -e py", "make lint && tox -e py"])
def test_a_failing_gate_in_place_of_a_line_of_ci_that_cannot_start_stays_required(
    root: Path, environ: dict[str, str], lines: str
) -> None:
    write(root, "Makefile", "lint:\n\ttrue\n")
    write(root, "test_a.py", "def test_a():\n    assert False\n")
    write(root, "pyproject.toml", "[tool.pytest]\n")
    write(root, "tox.ini", "[testenv]\ncommands = true pytest\n")
    write(root, ".github/workflows/ci.yml", CI.format(line=lines))
    text = written(root, environ | {"PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"})
    assert 'run: "pytest"' in text
    assert "required: false" not in text


def test_a_formatter_that_changes_files_is_written_as_its_check(
    root: Path, environ: dict[str, str]
) -> None:
    write(root, "a.py", UGLY)
    write(root, "pyproject.toml", "[tool.ruff.format]\n")
    text = written(root, environ)
    assert 'run: "ruff format --check ."' in text
    assert 'fix: "ruff format ."' in text
    assert "fails today" not in text
    assert (root / "a.py").read_text() == UGLY


def test_a_target_that_changes_files_is_left_out_with_the_reason(
    root: Path, environ: dict[str, str]
) -> None:
    write(root, "a.py", UGLY)
    write(root, "Makefile", "fmt:\n\truff format .\ntest:\n\ttrue\n")
    before = entries(root)
    assert outcomes(root, environ) == {"make fmt": "left out", "make test": "passes"}
    cache = ".ruff_cache"  # ignored by git; without an overlay it stays
    assert {p: there for p, there in entries(root).items() if not p.startswith(cache)} == before


def test_a_gate_that_turns_out_unable_to_start_does_not_stop_the_others(
    root: Path, environ: dict[str, str]
) -> None:
    write(root, "Makefile", "test:\n\ttrue\nlint:\n\tno-such-linter\n")
    write(root, ".github/workflows/ci.yml", CI.format(line="no-such-linter"))
    assert outcomes(root, environ)["make test"] == "passes"


INSTALLING = {
    "make test": {
        "Makefile": "test:\n\t@python -m pip install --upgrade -r x.txt\n\ttouch $(RAN)\n"
    },
    "make tests": {"Makefile": "tests: ready\n\ttouch $(RAN)\nready:\n\tuv sync\n"},
    "just test": {"justfile": "test: ready\n  touch $RAN\nready:\n  cargo install nextest\n"},
    "make lint": {
        "Makefile": "lint: $(TOOL)\n\t$(TOOL) run\n$(TOOL):\n\tcurl -s a.b/c | sh -s -- -b d\n"
    },
    "npm test": {"package.json": '{"scripts": {"test": "npm run x && jest", "x": "npm ci"}}'},
}


@pytest.mark.parametrize(("line", "files"), INSTALLING.items())
def test_a_gate_that_installs_something_is_never_tried(
    root: Path, environ: dict[str, str], line: str, files: dict[str, str]
) -> None:
    for path, text in files.items():
        write(root, path, text)
    commit(root)
    write(root, ".github/workflows/ci.yml", CI.format(line=line))
    (one,) = try_all(root, propose(root, environ).choices, environ, unseen)
    assert (one.choice.run, one.outcome, one.duration_s) == (line, "left out", None)
    assert f"{one.choice.obstacle}".startswith("it installs something: ")


def test_a_target_that_installs_nothing_replaces_one_that_does(
    root: Path, environ: dict[str, str]
) -> None:
    target = "pip install coverage\n\tcoverage run -m unittest"
    write(root, "Makefile", f"cov:\n\t{target}\ntest:\n\ttrue unittest\n")
    write(root, ".github/workflows/ci.yml", CI.format(line="make cov"))
    text = written(root, environ)
    assert "    # Left out here: it installs something: pip install coverage" in text
    assert '    - run: "make test"' in text


def test_a_run_without_a_configuration_installs_nothing(
    root: Path, environ: dict[str, str]
) -> None:
    write(root, "Makefile", "test:\n\ttrue\ncov:\n\tpip install coverage\n")
    write(root, ".github/workflows/ci.yml", CI.format(line="make cov"))
    with pytest.raises(AtlasError, match="nothing of CI can run here:\n  make cov: it installs"):
        checking(root, environ)
    checks = checking(root, environ, local=True)
    assert "make cov" not in checks.text
    assert [line.partition(": ")[2] for line in checks.absent] == [
        "make cov: it installs something: pip install coverage"
    ]


def test_without_git_no_gate_is_tried(tmp_path: Path, environ: dict[str, str]) -> None:
    root = tmp_path / "plain"
    write(root, "Makefile", "test:\n\ttouch ran\n")
    tried = try_all(root, propose(root, environ).choices, environ, unseen)
    assert [one.outcome for one in tried] == ["not tried"]
    assert not (root / "ran").exists()


def test_without_a_configuration_only_checking_gates_run(
    root: Path, environ: dict[str, str]
) -> None:
    write(root, "a.py", UGLY)
    write(root, "pyproject.toml", "[tool.ruff.format]\n")
    checks = checking(root, environ)
    assert 'run: "ruff format --check ."' in checks.text
    assert checks.notice == "no configuration: running the 2 gates that atlas init proposes"
    assert checks.absent == ()


def test_without_a_configuration_two_formatters_of_ci_both_check(
    root: Path, environ: dict[str, str]
) -> None:
    write(root, "Makefile", "test:\n\ttrue\n")
    write(root, "setup.py", "")
    both = "ruff format . && black ."
    write(root, "bin/black", "#!/bin/sh\n")
    (root / "bin" / "black").chmod(0o755)
    write(root, ".github/workflows/ci.yml", CI.format(line=both))
    with_black = environ | {"PATH": f"{root / 'bin'}:{environ['PATH']}"}
    checks = checking(root, with_black)
    assert 'run: "ruff format --check ."' in checks.text
    assert 'run: "black --check ."' in checks.text
    assert checks.absent == ()


def test_a_package_that_is_not_installed_is_named_by_the_command_to_type_first(
    root: Path, environ: dict[str, str]
) -> None:
    write(
        root,
        "pyproject.toml",
        '[project]\nname = "ownpack"\nversion = "1"\n[tool.pytest.ini_options]\n',
    )
    write(root, "src/ownpack/__init__.py", "")
    write(root, "tests/test_a.py", "import ownpack\n\ndef test_a():\n    pass\n")
    commit(root)
    with pytest.raises(UsageError) as caught:
        initialise(root, environ, How(print_only=False, tries=True, plain=True))
    assert f"{caught.value.remedy}".startswith("python -m pip install -e . && atlas init")
