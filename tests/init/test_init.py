"""`atlas init` on true folders: what it writes is a configuration that atlas takes."""

import json
from pathlib import Path

import pytest

from atlas_retry import config
from atlas_retry.cli.proposing import How, initialise
from atlas_retry.config.init import paste, propose, text_of
from atlas_retry.config.init.detect import choose, detect
from atlas_retry.config.init.values import Proposal, Proposed, Slot
from atlas_retry.errors import UsageError
from atlas_retry.settings import CONFIGURATION_FILES
from tests.init.test_detect import PROJECTS, Layout, startable


def laid_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def machine(root: Path, *programs: str) -> dict[str, str]:
    """An environment in which exactly these programs are on PATH."""
    folder = root.with_name(f"{root.name}-bin")
    folder.mkdir(exist_ok=True)
    for program in programs:
        (folder / program).write_text("#!/bin/sh\n")
        (folder / program).chmod(0o755)
    return {"PATH": str(folder)}


@pytest.mark.parametrize("files", [files for files, _ in PROJECTS.values()], ids=PROJECTS.keys())
def test_written_configuration_holds_the_proposed_gates(files: dict[str, str]) -> None:
    choices = choose(detect(Layout(files)), startable)
    if not choices:
        return
    gates = config.load_text(text_of(Proposal(choices=choices)).encode(), "config.yaml").gates
    assert sorted((g.kind, g.run, g.fix, g.recheck, g.cwd, g.env) for g in gates) == sorted(
        (p.slot.kind, p.run, p.fix, p.recheck, p.cwd, p.env) for p in choices
    )


ODD = 'a: "b" \\ #{}[]&*!|>%@` é \U0001f600 $HOME'


def test_a_command_with_odd_characters_survives_writing_and_loading() -> None:
    odd = Proposed(slot=Slot.TEST, run=ODD, reason=f"{ODD}\nsecond line\x00", env=(("A", ODD),))
    text = text_of(Proposal(choices=(odd,), notes=(f"{ODD}\nnote",)))
    (gate,) = config.load_text(text.encode(), "config.yaml").gates
    assert (gate.run, gate.env) == (ODD, (("A", ODD),))


def test_a_gate_that_cannot_start_is_written_as_comment_with_the_reason(tmp_path: Path) -> None:
    files = {
        "go.mod": "module m\n",
        ".golangci.yml": "",
        "package.json": '{"scripts":{"test":"x"}}',
    }
    root = laid_out(tmp_path / "project", files)
    proposal = propose(root, machine(root, "go"))
    assert [gate.run for gate in proposal.gates] == ["go fmt ./...", "go test ./..."]
    assert {c.run: c.obstacle for c in proposal.idle} == {
        "golangci-lint run": "golangci-lint is not on PATH (install golangci-lint)",
        "npm test": "npm is not on PATH (install npm)",
    }
    assert '    # - run: "golangci-lint run"' in text_of(proposal)
    assert "Left out here: golangci-lint is not on PATH" in text_of(proposal)
    assert len(config.load_text(text_of(proposal).encode(), "config.yaml").gates) == 2


def test_a_package_that_is_not_installed_cannot_start(tmp_path: Path) -> None:
    files = {"package.json": '{"scripts": {"test": "jest"}, "devDependencies": {"jest": "*"}}'}
    root = laid_out(tmp_path / "project", files)
    environ = machine(root, "npm")
    (idle,) = propose(root, environ).idle
    assert idle.obstacle == "node_modules does not exist (npm install)"
    (root / "node_modules").mkdir()
    assert propose(root, environ).idle == ()


def test_a_wrapper_without_execute_permission_cannot_start(tmp_path: Path) -> None:
    root = laid_out(tmp_path / "project", {"pom.xml": "<project/>", "mvnw": ""})
    environ = machine(root, "java")
    (idle,) = propose(root, environ).idle
    assert idle.obstacle == "mvnw is not executable (chmod +x mvnw)"
    (root / "mvnw").chmod(0o755)
    assert propose(root, environ).idle == ()


def test_the_projects_virtual_environment_is_preferred(tmp_path: Path) -> None:
    files = {"setup.py": "", "pytest.ini": "", ".venv/bin/pytest": ""}
    root = laid_out(tmp_path / "project", files)
    (root / ".venv/bin/pytest").chmod(0o755)
    (gate,) = propose(root, machine(root, "pytest")).gates
    assert (gate.run, gate.recheck) == (".venv/bin/pytest", ".venv/bin/pytest --lf")


def test_an_unreadable_manifest_is_reported(tmp_path: Path) -> None:
    root = laid_out(tmp_path / "project", {"pyproject.toml": "[tool", "Makefile": "test:\n\tx\n"})
    proposal = propose(root, machine(root, "make"))
    assert proposal.notes == ("pyproject.toml cannot be read and was left out.",)
    assert "# pyproject.toml cannot be read" in text_of(proposal)
    assert [gate.run for gate in proposal.gates] == ["make test"]


def test_odd_files_do_not_stop_detection(tmp_path: Path) -> None:
    root = laid_out(tmp_path / "project", {"Makefile": "test:\n\tx\n"})
    (root / "pyproject.toml").mkdir()
    (root / "package.json").symlink_to("package.json")
    (root / "loop").symlink_to(".")
    (root / b"caf\xe9".decode(errors="surrogateescape")).write_text("")
    assert [gate.run for gate in propose(root, machine(root, "make")).gates] == ["make test"]


# the command


def test_the_configuration_is_written_and_names_the_next_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = laid_out(tmp_path / "project", {"Makefile": "test:\n\tx\n"})
    initialise(root, machine(root, "make"), How(print_only=False, tries=False, plain=True))
    text = (root / ".atlas" / "config.yaml").read_text(encoding="utf-8")
    assert config.load_text(text.encode(), "config.yaml").gates[0].run == "make test"
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "test: make test" in captured.err
    assert captured.err.endswith("next:\n  atlas validate\n")


@pytest.mark.parametrize("there", CONFIGURATION_FILES)
def test_an_existing_configuration_is_never_overwritten(tmp_path: Path, there: str) -> None:
    root = laid_out(tmp_path / "project", {"Makefile": "test:\n\tx\n", there: "mine"})
    with pytest.raises(UsageError, match="never overwritten"):
        initialise(root, machine(root, "make"), How(print_only=False, tries=False, plain=True))
    assert (root / there).read_text() == "mine"


def test_print_writes_nothing_even_beside_a_configuration(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = laid_out(tmp_path / "project", {"Makefile": "test:\n\tx\n", "atlas.yaml": "mine"})
    initialise(root, machine(root, "make"), How(print_only=True, tries=False, plain=True))
    assert 'run: "make test"' in capsys.readouterr().out
    assert not (root / ".atlas").exists()


@pytest.mark.parametrize(
    ("files", "why"),
    [({"README.md": ""}, "says how to check it"), ({"go.mod": ""}, "go is not on PATH")],
)
def test_no_configuration_is_written_without_a_gate(
    tmp_path: Path, files: dict[str, str], why: str
) -> None:
    root = laid_out(tmp_path / "project", files)
    with pytest.raises(UsageError, match=why):
        initialise(root, machine(root), How(print_only=False, tries=False, plain=True))
    assert not (root / ".atlas").exists()


@pytest.mark.parametrize(
    "files",
    [
        {"tox.ini": "[testenv]\ncommands =\n  {envpython} -m unittest \\\n {posargs:t}\n"},
        {"tox.toml": "[env_run_base]\ncommands = [['python', '-m', 'unittest', 't']]\n"},
    ],
    ids=["ini", "toml"],
)
def test_without_tox_its_test_command_is_proposed(tmp_path: Path, files: dict[str, str]) -> None:
    root = laid_out(tmp_path / "project", files)
    (gate,) = propose(root, machine(root, "python", "python3")).gates
    assert gate.run == "python -m unittest t"


def test_the_suggestion_for_c_needs_no_makefile_that_is_not_there(tmp_path: Path) -> None:
    root = laid_out(tmp_path / "project", {"a.c": "", "b.c": ""})
    assert "make" not in paste(root)
    laid_out(root, {"tests/unittest.sh": ""})
    assert "sh tests/unittest.sh" in paste(root)


@pytest.mark.parametrize(
    ("makefile", "command"),
    [
        ("all:\n\tcc a.c\n", "make"),
        ("test:\n\t./t\n", "make test"),
        ("check:\n\tx\n", "make check"),
    ],
)
def test_the_suggestion_for_c_names_a_target_that_is_there(
    tmp_path: Path, makefile: str, command: str
) -> None:
    root = laid_out(tmp_path / "project", {"a.c": "", "Makefile": makefile})
    assert f'test: ["{command}"]' in paste(root)


def test_npm_runs_the_scripts_of_a_missing_package_manager(tmp_path: Path) -> None:
    steps = "on: push\njobs: {a: {steps: [{run: pnpm lint}, {run: pnpm build}]}}\n"
    scripts = {"lint": "eslint .", "lint:fix": "eslint --fix .", "build": "unbuild"}
    files = {
        ".github/workflows/ci.yml": steps,
        "package.json": json.dumps({"scripts": scripts, "packageManager": "pnpm@10.1.0"}),
        "node_modules/x": "",
    }
    root = laid_out(tmp_path / "project", files)
    lint, build = propose(root, machine(root, "npm")).gates
    assert (lint.run, lint.fix) == ("npm run lint", "npm run lint:fix")
    assert (build.run, build.slot) == ("npm run build", Slot.BUILD)


def test_npm_runs_programs_and_options_of_a_missing_package_manager(tmp_path: Path) -> None:
    files = {
        ".github/workflows/ci.yml": "on: push\njobs: {a: {steps: [{run: yarn unit --bail}]}}\n",
        "package.json": json.dumps(
            {"scripts": {"unit": "jest"}, "devDependencies": {"typescript": "5"}}
        ),
        "tsconfig.json": "{}",
        "yarn.lock": "",
        "node_modules/x": "",
    }
    root = laid_out(tmp_path / "project", files)
    types, unit = propose(root, machine(root, "npm")).gates
    assert types.run == "npx tsc --noEmit"
    assert unit.run == "npm run unit -- --bail"


@pytest.mark.parametrize(
    ("line", "there", "expected"),
    [
        ("uv run pytest tests", ".venv/bin/pytest", ".venv/bin/pytest tests"),
        ("pnpm exec vitest run", "node_modules/.bin/vitest", "npx vitest run"),
    ],
)
def test_the_command_inside_a_missing_runner_is_proposed(
    tmp_path: Path, line: str, there: str, expected: str
) -> None:
    steps = f"on: push\njobs: {{a: {{steps: [{{run: {line}}}]}}}}\n"
    files = {".github/workflows/ci.yml": steps, there: "", "package.json": "{}"}
    root = laid_out(tmp_path / "project", files)
    (root / there).chmod(0o755)
    (gate,) = propose(root, machine(root, "python3", "npm")).gates
    runner, *_ = line.split()
    assert gate.run == expected
    assert gate.reason == f"ci.yml runs this line; without {runner}, which is not on PATH"
