"""The command as a person or a CI job calls it: a process, its streams and its exit code."""

import json
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from typer._click import Command
from typer.core import TyperGroup
from typer.main import get_command

from atlas_retry.cli import command_line
from atlas_retry.cli.app import HEADINGS, app
from tests.crashes import PACKAGE
from tests.projects import (
    CALC,
    FIXED,
    LIMIT_S,
    UNITTEST,
    Project,
    atlas,
    gates,
    git,
    on_a_terminal,
    shell,
)


@pytest.mark.parametrize(
    ("line", "code"), [("true", 0), ("exit 1", 1), ("no-such-tool-anywhere", 3)]
)
@pytest.mark.parametrize("form", [(), ("--json",), ("-q",), ("-v",), ("--plain",)])
def test_every_output_form_has_the_same_exit_code(
    line: str, code: int, form: tuple[str, ...], project: Project
) -> None:
    gates(project, line)
    assert atlas(project, "validate", *form).code == code


def test_a_gate_for_ci_runs_there_and_when_it_is_named(project: Project) -> None:
    gates(project, "true")
    configuration = project.root / ".atlas/config.yaml"
    rows = ", {name: slow, run: exit 1, when: ci}]"
    configuration.write_text("validation: {lint: ['true'" + rows + "}\n")
    assert atlas(project, "validate").code == 0
    assert atlas(project, "retry", ".").code == 0
    assert atlas(project, "validate", "--only", "slow").code == 1
    assert atlas(project, "validate", CI="true").code == 1


def test_what_did_not_run_has_not_passed(project: Project) -> None:
    configuration = project.root / ".atlas/config.yaml"
    configuration.write_text(
        "validation: {lint: ['exit 1'], test: ['true', 'echo'], parallel: false}\n"
    )
    assert "failed: exit (1 failed, 2 not run)" in atlas(project, "validate", "--fail-fast").out
    report = json.loads(atlas(project, "validate", "--fail-fast", "--json").out)
    assert [result["success"] for result in report["test_results"]] == [False, False]
    assert "(2 of 3 gates passed)" in atlas(project, "validate").out


def test_no_module_is_imported_from_the_workspace(project: Project) -> None:
    gates(project, "exit 1")
    named = ("typer", "msgspec", "yaml", "rich", "json", "sqlite3", "tomllib", "shutil", "IPython")
    for name in named:
        (project.root / f"{name}.py").write_text(f"open('{name}-was-imported', 'w')\n")
    for arguments in (("validate", "--json"), ("retry", "."), ("log",), ("config", "show")):
        atlas(project, *arguments)
    assert list(project.root.glob("*-was-imported")) == []


def test_stdout_holds_one_json_document_only(project: Project) -> None:
    gates(project, "echo loud; exit 1")
    ended = atlas(project, "validate", "--json")
    report = json.loads(ended.out)
    assert report["schema"] == "atlas.report/1"
    assert report["success"] is False
    assert report["failed_step"] == "lint"
    assert report["lint_results"][0]["stdout"] == "loud\n"
    assert "FAILED" in ended.err


def test_long_output_keeps_its_end_and_reports_the_cut(project: Project) -> None:
    gates(project, "seq 1000; echo the summary; exit 1")
    ended = atlas(project, "validate")
    assert "the summary" in ended.out
    assert "lines left out" in ended.out
    assert "\n    500\n" not in ended.out


def test_piped_output_has_no_control_codes(project: Project) -> None:
    gates(project, "printf '\\033[31mred\\033[0m\\n'; exit 1")
    ended = atlas(project, "validate")
    assert "\x1b" not in ended.out
    assert "\r" not in ended.out


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202ename"


@pytest.mark.parametrize("form", ["validate", "validate --plain -v", "retry .", "log", "log RUN"])
def test_a_gate_name_cannot_control_the_terminal(form: str, project: Project) -> None:
    project.configure(validation={"lint": [{"name": HOSTILE, "run": "exit 1 # \x1b[2J"}]})
    if form.startswith("log"):
        atlas(project, "retry", ".")
    ended = atlas(project, *form.replace("RUN", "2").split())
    output = ended.out + ended.err
    assert not {"\x1b", "\x07", "\u202e"} & set(output)
    assert "name" in output


def test_the_live_view_shows_gate_names_without_control_codes(project: Project) -> None:
    loud = f"printf '\\033[32mgreen {HOSTILE}\\033[0m\\n'; sleep 1; exit 1"
    project.configure(validation={"lint": [{"name": HOSTILE, "run": loud}]})
    _, shown = on_a_terminal(project, "validate")
    assert "\\x1b]0;owned" in shown
    assert " green name" in shown
    assert "\\x1b[32m" not in shown
    assert not [code for code in ("\x1b]0;", "\x1b[2J", "\u202e") if code in shown]


@pytest.mark.parametrize("columns", ["", "0", "20", "abc"])
def test_a_terminal_gets_a_live_view_with_the_verdict(columns: str, project: Project) -> None:
    gates(project, "sleep 0.5; exit 1")
    code, shown = on_a_terminal(project, "validate", COLUMNS=columns)
    assert code == 1
    assert "\x1b[" in shown
    assert "failed: sleep" in shown


@pytest.mark.parametrize(
    "arguments",
    [
        *(("nope",), ("validate", "--nope"), ("validate", "--only", "nope"), ("retry", "a/b/c")),
        *(("prune", "--days", "nan"), ("prune", "--days", "1e300"), ("prune", "--days", "-1")),
    ],
)
def test_a_usage_error_exits_2_with_empty_stdout(
    arguments: tuple[str, ...], project: Project
) -> None:
    ended = atlas(project, *arguments)
    assert ended.code == 2
    assert ended.out == ""
    assert "Traceback" not in ended.err


def test_a_named_configuration_is_read_instead(project: Project, tmp_path: Path) -> None:
    project.configure()
    shared = tmp_path / "strict.yaml"
    shared.write_text("validation: {lint: ['echo strict; exit 1']}")
    named = ("--config", "../strict.yaml")
    validated = atlas(project, "validate", *named)
    assert validated.code == 1
    assert "atlas retry . --config ../strict.yaml --ai-fix" in validated.out
    retried = atlas(project, "retry", *named, "--json")
    final = json.loads(retried.out)["final"]
    assert [gate["name"] for gate in final["lint_results"]] == ["echo strict"]
    assert "echo strict" in atlas(project, "prompt", *named).out
    assert f"({shared}:1)" in atlas(project, "config", "show", *named).out
    assert f"read from {shared}" in atlas(project, "config", "check", *named).out


def test_a_run_is_written_as_one_json_document(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, cost_usd=0.5)
    run = json.loads(atlas(project, "retry", ".", "--ai-fix", "--json").out)
    assert run["schema"] == "atlas.run/1"
    assert run["verdict"] == "fixed"
    assert run["attempts"][0]["changes"][0]["path"] == "calc.py"
    assert run["final"]["success"] is True


def test_a_run_starts_from_a_recorded_failure(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    report = atlas(project, "validate", "--json").out
    (project.root.parent / "report.json").write_text(report)
    ended = atlas(project, "retry", ".", "--ai-fix", "--from", "../report.json")
    assert ended.code == 0


def test_a_prompt_needs_neither_git_nor_configuration(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "anywhere"
    folder.mkdir()
    (folder / "calc.py").write_text("def add(a, b):\n    return a - b\n")
    result = {
        "command": "ruff check .",
        "kind": "lint",
        "exit_code": 1,
        "stdout": "calc.py:2:5: E1 bad minus\n",
        "stderr": "",
    }
    (folder / "report.json").write_text(json.dumps({"results": [result]}))
    ended = atlas(project, "prompt", str(folder), "--from", str(folder / "report.json"))
    assert ended.code == 0
    assert "return a - b" in ended.out


def test_dry_run_shows_the_prompt_and_starts_no_agent(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    ended = atlas(project, "retry", ".", "--ai-fix", "--dry-run")
    assert "Previous validation failed" in ended.out
    assert (project.root / "calc.py").read_text() != FIXED


def test_dry_run_accepts_flags_and_a_report_from_stdin(project: Project) -> None:
    report = atlas(project, "validate", "--json").out
    words = ("retry", ".", "--dry-run", "--max-attempts", "5", "--from", "-")
    ended = atlas(project, *words, stdin=report)
    assert ended.code == 0, ended.err
    assert "Previous validation failed" in ended.out
    assert ended.out.rstrip().endswith("Attempt 1 of 5.")


def test_resume_that_needs_a_person_writes_the_document_of_an_error(project: Project) -> None:
    assert atlas(project, "retry", ".").code == 1
    ended = atlas(project, "resume", "--json")
    assert (ended.code, json.loads(ended.out)["schema"]) == (1, "atlas.error/1")
    assert "next:\n  atlas resume" in ended.err


def test_only_selects_gates_by_name_and_kind(project: Project) -> None:
    project.configure(validation={"lint": ["exit 1"], "test": [UNITTEST, {"run": "true"}]})
    assert atlas(project, "validate", "--only", "true").code == 0
    assert atlas(project, "lint").code == 1


def test_a_run_of_chosen_gates_names_them_and_runs_no_other(project: Project) -> None:
    project.configure(validation={"lint": ["exit 1"], "test": [UNITTEST]})
    project.attempt(1, {"calc.py": FIXED})
    ended = atlas(project, "retry", ".", "--ai-fix", "--only", "test", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["final"]["lint_results"] == []
    assert "only test: no other gate runs" in ended.err


def test_a_short_form_has_the_few_options_that_its_gates_need(project: Project) -> None:
    shown = atlas(project, "lint", "--help").out
    assert "--fix" in shown
    assert "--receipt" not in shown


def test_a_folder_without_git_can_be_validated_but_not_retried(
    project: Project, tmp_path: Path
) -> None:
    folder = tmp_path / "plain"
    (folder / ".atlas").mkdir(parents=True)
    config = "version: 1\nvalidation: {format: ['true'], lint: ['true']}\n"
    (folder / ".atlas" / "config.yaml").write_text(config)
    assert atlas(project, "validate", str(folder)).code == 0
    ended = atlas(project, "retry", str(folder))
    assert ended.code == 3
    assert "git init" in ended.err


def test_a_locked_workspace_is_refused_at_once(project: Project) -> None:
    project.configure(validation={"test": ["touch started; sleep 30"]})
    first = subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", "retry", "."),
        cwd=project.root,
        env=project.environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        while not (project.root / "started").exists():
            assert first.poll() is None
        ended = atlas(project, "retry", ".")
        assert ended.code == 3
        assert str(first.pid) in ended.err
    finally:
        first.terminate()
        first.wait(LIMIT_S)


def test_the_junit_report_holds_the_tests_of_a_gates_own_junit(project: Project) -> None:
    write = 'printf \'<testsuite><testcase name="test_add" time="0.5"/></testsuite>\' > own.xml'
    report = {"format": "junit", "path": "own.xml"}
    project.configure(validation={"test": [{"run": f"{write}; echo ok", "report": report}]})
    atlas(project, "validate", "--report", "junit=out.xml")
    text = (project.root / "out.xml").read_text()
    assert '<testcase name="test_add" time="0.5"' in text
    assert 'tests="1"' in text


def test_reports_are_written_to_the_given_paths(project: Project) -> None:
    gates(project, "exit 1")
    atlas(project, "validate", "--report", "junit=out/j.xml", "--report", "sarif=out/s.json")
    assert (project.root / "out" / "j.xml").read_text().startswith("<?xml")
    assert json.loads((project.root / "out" / "s.json").read_text())["version"] == "2.1.0"


def test_github_gets_annotations_and_a_step_summary(project: Project, tmp_path: Path) -> None:
    gates(project, "echo calc.py:2:5: E1 bad minus; exit 1")
    summary = tmp_path / "summary.md"
    ended = atlas(project, "validate", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(summary))
    assert "::error file=calc.py,line=2" in ended.out
    assert "echo" in summary.read_text()


@pytest.mark.parametrize("arguments", [(), ("--json",)])
def test_guard_findings_are_annotated_and_summarised_on_github(
    arguments: tuple[str, ...], project: Project, tmp_path: Path
) -> None:
    (project.root / "test_calc.py").write_text("")
    (project.root / "atlas.yaml").write_text("version: 1\n")
    summary = tmp_path / "summary.md"
    variables = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    ended = atlas(project, "guard", "--base", "HEAD", *arguments, cwd=None, **variables)
    annotated = ended.err if arguments else ended.out
    assert "::warning file=test_calc.py," in annotated
    assert "title=atlas guard test-changed::held for a person" in annotated
    assert "| <code>test&#95;calc.py</code> | held for a person |" in summary.read_text()
    if arguments:
        assert json.loads(ended.out)["schema"] == "atlas.guard/1"


def test_a_file_name_cannot_inject_a_github_command(project: Project) -> None:
    name = "::add-mask::x.py"
    (project.root / name).write_text("")
    project.commit()
    (project.root / name).write_text("import os\nif 'PYTEST_CURRENT_TEST' in os.environ: pass\n")
    ended = atlas(project, "guard", "--base", "HEAD", GITHUB_ACTIONS="true")
    before, named, _ = ended.out.partition(name)
    assert named
    assert before.startswith("::stop-commands::")


def test_tool_output_cannot_inject_a_github_command(project: Project) -> None:
    gates(project, "echo '::add-mask::x'; echo '##[error]no'; echo '::endgroup::'; exit 1")
    ended = atlas(project, "validate", GITHUB_ACTIONS="true")
    heeded, token = [], ""
    for line in ended.out.splitlines():
        if token:
            token = "" if line == f"::{token}::" else token
        elif line.startswith("::stop-commands::"):
            token = line.removeprefix("::stop-commands::")
        else:
            heeded.append(line)
    commands = [line.split("::")[1].split(" ")[0] for line in heeded]
    assert token == ""
    assert commands == ["group", "endgroup", "error"]


def test_every_event_names_its_run_and_attempt(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    atlas(project, "retry", ".", "--ai-fix")
    (log,) = Path(project.environ["ATLAS_HOME"]).glob("runs/*/events.jsonl")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert {event["run"] for event in events} == {log.parent.name}
    gates_of = [event["attempt"] for event in events if event["event"] == "gate_finished"]
    assert gates_of == [None, 1]


def commands(group: TyperGroup, above: str = "") -> dict[str, Command]:
    by_name: dict[str, Command] = {}
    for name, command in group.commands.items():
        if isinstance(command, TyperGroup):
            by_name |= commands(command, f"{name} ")
        else:
            by_name[above + name] = command
    return by_name


def test_every_command_has_a_group_and_a_valid_example() -> None:
    command_line.register()
    top = get_command(app)
    assert isinstance(top, TyperGroup)
    assert set(top.commands) == {name for names in HEADINGS.values() for name in names}
    for name, command in commands(top).items():
        for example in (command.epilog or "").splitlines()[2:]:
            words = shlex.split(re.split(" [<>] ", example)[0])
            called = ["atlas", *name.split()]
            assert words[: len(called)] == called
            command.make_context(name, words[len(called) :])
        assert "Example" in (command.epilog or ""), name


def test_help_shows_groups_full_sentences_and_examples(project: Project) -> None:
    whole = atlas(project, "--help").out
    assert [line for line in whole.splitlines() if line.endswith(":")][1:] == [
        f"{heading}:" for heading in HEADINGS
    ]
    assert "..." not in whole.partition("Begin:")[2]
    shown = atlas(project, "guard", "--help").out
    assert "  Examples:\n    atlas guard . --base origin/main\n" in shown


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion_is_available(shell: str, project: Project) -> None:
    script = atlas(
        project,
        "--show-completion",
        shell,
        # Typer would ask which shell the tests were started from.
        _TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION="1",
    )
    assert script.code == 0
    assert f"_ATLAS_COMPLETE=complete_{shell}" in script.out


def test_an_ascii_terminal_shows_the_verdict(project: Project) -> None:
    gates(project, "printf 'gr\\303\\274n\\n'; exit 1")
    ended = atlas(project, "validate", PYTHONIOENCODING="ascii", LANG="C", LC_ALL="C")
    assert ended.code == 1
    assert "gr\\u00fcn" in ended.out


def test_the_slowest_gate_of_the_last_run_starts_first(project: Project) -> None:
    gates(project, "sleep 0.1", "sleep 0.6")
    atlas(project, "validate", "--jobs", "1")
    ended = atlas(project, "validate", "--jobs", "1", "-v")
    assert ended.out.index("sleep 0.6") < ended.out.index("sleep 0.1")


def test_one_job_is_one_gate_at_a_time_also_for_gates_that_wait(project: Project) -> None:
    alone = "mkdir ../busy && sleep 0.4 && rmdir ../busy"
    gates(project, alone, f"{alone} && true")
    atlas(project, "validate", "--jobs", "1")
    assert atlas(project, "validate", "--jobs", "1").code == 0


def test_a_bare_repository_is_reported_as_one(project: Project, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    git(tmp_path, "init", "-q", "--bare", str(bare), environ=project.environ)
    (bare / "atlas.yaml").write_text("validation: {test: ['exit 1']}\n")
    ended = atlas(project, "retry", str(bare))
    assert ended.code == 3
    assert "is a bare repository" in ended.err
    assert f"git -C {bare} worktree add ../work" in ended.err


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("ulimit -n 9; atlas retry . --ai-fix", 3),
        ("atlas retry . --ai-fix <&- >&- 2>&-", 0),
        ("atlas retry . --ai-fix >/dev/full", 3),
        ("atlas retry . --ai-fix --json 2>/dev/full >/dev/null", 0),
        ("{ atlas retry . --ai-fix; echo $? >code; } | head -1; read code <code; exit $code", 0),
    ],
)
def test_a_run_survives_closed_output(line: str, code: int, project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    script = f'atlas() {{ {shlex.quote(sys.executable)} -m atlas_retry "$@"; }}; {line}'
    ended = shell(project, script)
    assert ended.code == code
    assert (project.root / "calc.py").read_text() == (CALC if "ulimit" in line else FIXED)
    assert "atlas_retry/" not in ended.err


def test_json_is_valid_in_any_stdout_encoding(project: Project) -> None:
    project.configure(validation={"lint": [{"name": "t\u00e9st \u2713 \U0001f600", "run": "true"}]})
    ended = atlas(project, "validate", "--json", PYTHONIOENCODING="ascii")
    assert json.loads(ended.out)["lint_results"][0]["name"] == "t\u00e9st \u2713 \U0001f600"


STYLE = {"name": "style", "run": "true", "required": False}
OPINION = {"name": "opinion", "prompt": "Is it plain?"}


@pytest.mark.parametrize(
    ("validation", "why"),
    [
        ({"lint": [STYLE]}, "no gate is required"),
        ({"lint": [STYLE], "review": [OPINION]}, "every required gate was skipped"),
    ],
)
@pytest.mark.parametrize("command", ["validate", "retry"])
def test_a_run_without_a_required_gate_is_not_clean(
    command: str, validation: dict[str, object], why: str, project: Project
) -> None:
    project.configure(validation=validation)
    ended = atlas(project, command)
    assert ended.code == 1
    assert why in ended.out


@pytest.mark.parametrize(("line", "code"), [("true", 0), ("exit 1", 1)])
def test_an_optional_gate_selected_by_name_decides(line: str, code: int, project: Project) -> None:
    project.configure(validation={"lint": [STYLE | {"run": line}], "test": ["true"]})
    assert atlas(project, "validate", "--only", "style").code == code
    assert atlas(project, "validate").code == 0


def test_guard_without_a_base_judges_what_is_not_committed(project: Project) -> None:
    (project.root / "test_calc.py").unlink()
    ended = atlas(project, "guard", "--strict")
    assert ended.code == 1
    assert "test_calc.py: held" in ended.out


def test_an_interrupted_validation_names_what_was_stopped(project: Project) -> None:
    project.configure(validation={"format": ["true"], "test": ["kill -INT $PPID; sleep 60"]})
    ended = atlas(project, "validate")
    assert ended.code == 130
    assert ended.out.splitlines()[-1] == "interrupted: 1 of 2 gates had ended; stopped: kill"


def test_an_interrupted_init_writes_what_it_has(project: Project) -> None:
    (project.root / ".atlas" / "config.yaml").unlink()
    (project.root / "Makefile").write_text("test:\n\tsleep 60\n")
    with subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", "init"),
        cwd=project.root,
        env=project.environ | {"PYTHONPATH": str(PACKAGE)},
        stderr=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stderr
        assert child.stderr.readline() == "trying make test\n"
        child.send_signal(signal.SIGINT)
        said = child.communicate(timeout=LIMIT_S)[1]
    assert child.returncode == 130
    assert said.startswith("interrupted: the other gates are not tried\nwrote .atlas/config.yaml")
    assert "make test" in (project.root / ".atlas" / "config.yaml").read_text()


@pytest.mark.parametrize("arguments", [("validate",), ("retry", ".")])
@pytest.mark.parametrize("line", ["true", "exit 1"])
def test_quiet_output_is_the_verdict_and_twice_quiet_output_nothing(
    line: str, arguments: tuple[str, ...], project: Project
) -> None:
    gates(project, line)
    (verdict,) = atlas(project, *arguments, "-q").out.splitlines()
    assert verdict.startswith(("clean", "failed"))
    assert atlas(project, *arguments, "-qq").out == ""


def test_one_gate_is_counted_as_one(project: Project) -> None:
    gates(project, "true")
    assert atlas(project, "config", "check").out.startswith("1 gate, read from ")
    assert "1 of 1 gate passed" in atlas(project, "validate").out
