"""How Claude Code is called: what it may do, and what never reaches its command line."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.agents import models
from atlas_retry.agents.answers import gave_up, one_line
from atlas_retry.agents.claude_code import binary, invocation
from atlas_retry.agents.notes import MAX_CHARS, project_notes
from atlas_retry.agents.unavailable import INSIDE_AGENT, Unavailable, agent_environment
from atlas_retry.model import AgentRequest, Session, Tokens
from atlas_retry.settings import AgentSettings

REQUEST = AgentRequest(prompt="p", workspace="/w", scratch="/s")


def arguments(
    request: AgentRequest = REQUEST, settings: AgentSettings | None = None
) -> tuple[str, ...]:
    return invocation.argv(
        "/bin/claude",
        request,
        settings or AgentSettings(),
        session_id="id-1",
        settings_path="/s/x.json",
    )


def permissions(request: AgentRequest) -> Mapping[str, list[str]]:
    loaded: Mapping[str, Mapping[str, list[str]]] = json.loads(invocation.settings_json(request))
    return loaded["permissions"]


@pytest.mark.parametrize(
    ("request_", "settings", "expected"),
    [
        (REQUEST, AgentSettings(), "--permission-mode=acceptEdits"),
        (REQUEST, AgentSettings(permission_mode="plan"), "--permission-mode=plan"),
        (REQUEST, AgentSettings(max_turns=7), "--max-turns=7"),
        (REQUEST, AgentSettings(effort=("low", "high")), "--effort=low"),
        (REQUEST, AgentSettings(), "--session-id=id-1"),
        (REQUEST, AgentSettings(), "--setting-sources=user"),
    ],
)
def test_each_setting_becomes_one_argument(
    request_: AgentRequest, settings: AgentSettings, expected: str
) -> None:
    assert expected in arguments(request_, settings)


def test_a_reviewer_gets_only_reading_tools() -> None:
    given = arguments(replace(REQUEST, schema=b"{}"), AgentSettings(permission_mode="acceptEdits"))
    assert {"--json-schema={}", "--tools=Glob,Grep,Read", "--permission-mode=default"} <= set(given)


@pytest.mark.parametrize(
    ("models_", "model", "expected"),
    [
        (("sonnet", "sonnet", "opus"), "sonnet", ("--fallback-model=opus",)),
        (("sonnet", "sonnet", "opus"), "opus", ("--fallback-model=sonnet",)),
        (("sonnet",), "sonnet", ()),
        ((), None, ()),
    ],
)
def test_the_next_listed_model_is_passed_as_fallback(
    models_: tuple[str, ...], model: str | None, expected: tuple[str, ...]
) -> None:
    given = arguments(replace(REQUEST, model=model), AgentSettings(models=models_))
    assert tuple(a for a in given if a.startswith("--fallback-model")) == expected


def test_limits_of_a_request_are_passed_on() -> None:
    request = AgentRequest(
        prompt="p", workspace="/w", scratch="/s", model="opus", cost_usd=0.5, attempt=3
    )
    given = arguments(request, AgentSettings(effort=("low", "high")))
    assert {"--model=opus", "--max-budget-usd=0.5000", "--effort=high"} <= set(given)


def test_a_resumed_session_gets_no_new_id() -> None:
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", session=Session.RESUME)
    given = arguments(request)
    assert "--resume=id-1" in given
    assert not any(argument.startswith("--session-id") for argument in given)


def test_without_limits_no_limiting_argument_is_passed() -> None:
    given = " ".join(arguments())
    assert not any(flag in given for flag in ("--max-turns", "--max-budget", "--model", "--effort"))


def test_extra_arguments_of_the_user_come_last() -> None:
    assert arguments(settings=AgentSettings(extra_args=("--tools=Read",)))[-1] == "--tools=Read"


@pytest.mark.parametrize(
    ("glob", "workspace", "rule"),
    [
        ("tests/**", "/w", "Edit(//w/tests/**)"),
        ("./tests/*.py", "/w/", "Edit(//w/tests/*.py)"),
        ("conftest.py", "/w", "Edit(conftest.py)"),
        ("*.toml", "/w", "Edit(*.toml)"),
        ("a/**", "/w (1)/[x]*", r"Edit(//w \(1\)/\[x\]\*/a/**)"),
    ],
)
def test_a_protected_glob_becomes_a_deny_rule(glob: str, workspace: str, rule: str) -> None:
    request = AgentRequest(prompt="p", workspace=workspace, scratch="/s", protected=(glob,))
    assert permissions(request)["deny"] == [rule]


def test_gate_commands_and_log_folders_are_allowed() -> None:
    request = AgentRequest(
        prompt="p",
        workspace="/w",
        scratch="/s",
        commands=("pytest -q", "cd web && npm test"),
        readable=("/state/logs/",),
    )
    assert permissions(request)["allow"] == [
        "Bash(pytest -q)",
        "Bash(cd web && npm test)",
        "Bash(pytest *)",
        "Bash(python -m pytest *)",
        "Bash(npm test *)",
        "Read(//state/logs/**)",
    ]


@pytest.mark.parametrize(
    ("command", "start", "denied"),
    [
        ("python -m pytest", "python -m pytest", "*--snapshot-update*"),
        ("uv run pytest -q", "uv run pytest", "* -p *"),
        ("go test ./...", "go test", "*-exec*"),
        ("make lint && cargo test", "cargo test", "*--config*"),
        ("npx jest", "npx jest", "-u"),
        ("npx ava", "npx ava", "*--update-snapshots*"),
        ("pre-commit run --all-files", "pre-commit run", "*--config*"),
        ("gofmt -l . && go test ./...", "gofmt -l", "-w"),
        ("gofmt -l . && go test ./...", "go test", "*-exec*"),
        ("pytest --cov=shop", "pytest", "-c"),
        ("pnpm exec jest --ci", "npx jest", "-u"),
    ],
)
def test_test_runners_allow_selectors_but_deny_options_that_write(
    command: str, start: str, denied: str
) -> None:
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", commands=(command,))
    assert f"Bash({start} *)" in permissions(request)["allow"]
    assert f"Bash({start} {denied})" in permissions(request)["deny"]


@pytest.mark.parametrize(
    ("command", "other"),
    [
        ("pytest -q", "python -m pytest"),
        ("python3 -m pytest -q", "pytest"),
        (".venv/bin/python -m pytest", ".venv/bin/pytest"),
        ("uv run pytest", "uv run python -m pytest"),
    ],
)
def test_pytest_is_allowed_by_name_and_by_module(command: str, other: str) -> None:
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", commands=(command,))
    assert f"Bash({other} *)" in permissions(request)["allow"]
    assert f"Bash({other} * -p *)" in permissions(request)["deny"]


def test_a_module_that_another_program_starts_is_allowed_only_there() -> None:
    commands = ("coverage run -m pytest",)
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", commands=commands)
    assert permissions(request)["allow"][1:] == ["Bash(coverage run -m pytest *)"]


@pytest.mark.parametrize(
    "command",
    ["./check.sh", "black --check .", "sh -c 'pytest -q'", "pip install pytest", "$PY -m pytest"],
)
def test_other_gates_are_allowed_only_exactly(command: str) -> None:
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", commands=(command,))
    assert permissions(request)["allow"] == [f"Bash({command})"]
    assert permissions(request)["deny"] == []


def test_an_option_used_by_the_gate_is_not_denied() -> None:
    command = "pytest -q -p no:cacheprovider"
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", commands=(command,))
    assert not [rule for rule in permissions(request)["deny"] if " -p" in rule]


def test_a_command_with_a_wildcard_is_not_allowed() -> None:
    request = AgentRequest(
        prompt="p", workspace="/w", scratch="/s", commands=("shellcheck *.sh", "")
    )
    assert permissions(request)["allow"] == []


def test_the_environment_disables_file_mentions_background_tasks_and_updates() -> None:
    env = invocation.environment({"HOME": "/h", "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "0"})
    assert env["CLAUDE_CODE_DISABLE_FILE_MENTIONS"] == "1"
    assert env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    assert env["DISABLE_AUTOUPDATER"] == "1"
    assert env["HOME"] == "/h"


@pytest.mark.parametrize(
    ("environ", "retries"), [({}, "7"), ({"CLAUDE_CODE_MAX_RETRIES": "0"}, "0")]
)
def test_the_users_number_of_retries_is_kept(environ: dict[str, str], retries: str) -> None:
    assert invocation.environment(environ)["CLAUDE_CODE_MAX_RETRIES"] == retries


def test_variables_of_an_outer_git_or_agent_are_removed() -> None:
    env = agent_environment({"GIT_INDEX_FILE": "x", "GIT_DIR": "y", "CLAUDECODE": "1", "A": "b"})
    assert env == {"A": "b", INSIDE_AGENT: "1"}


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_configured_path_is_preferred_to_path(tmp_path: Path) -> None:
    configured = program(tmp_path / "a" / "my-claude", "true")
    on_path = program(tmp_path / "b" / "claude", "true")
    environ = {"PATH": str(on_path.parent), "HOME": str(tmp_path)}
    assert binary.locate(str(configured), environ) == str(configured)
    assert binary.locate("~/a/my-claude", environ) == str(configured)
    assert binary.locate(None, environ) == str(on_path)


def test_a_wrong_configured_path_is_an_error(tmp_path: Path) -> None:
    on_path = program(tmp_path / "claude", "true")
    unavailable = binary.locate("/nowhere/claude", {"PATH": str(on_path.parent)})
    assert isinstance(unavailable, Unavailable)


def test_a_configured_file_that_is_not_executable_is_no_missing_program(tmp_path: Path) -> None:
    file = program(tmp_path / "claude", "true")
    file.chmod(0o644)
    unavailable = binary.locate(str(file), {"PATH": "/usr/bin:/bin"})
    assert isinstance(unavailable, Unavailable)
    assert unavailable.error == f"agent.path: {file} is a file that cannot be executed"
    assert f"chmod +x {file}" in (unavailable.remedy or "")


def test_a_relative_path_entry_is_ignored(tmp_path: Path) -> None:
    inside = program(tmp_path / "bin" / "claude", "true")
    relative = os.path.relpath(inside.parent)
    located = binary.locate(None, {"PATH": f"{relative}:.:"})
    assert located != str(inside)
    assert isinstance(located, Unavailable) or "claude_agent_sdk" in located


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("echo 'claude, the French recipe book 3.1'", "French recipe book"),
        ("echo nonsense >&2; exit 3", "nonsense"),
        ("exit 0", "nothing"),
    ],
)
def test_a_different_program_named_claude_is_refused(tmp_path: Path, body: str, error: str) -> None:
    unavailable = binary.identify(
        str(program(tmp_path / "claude", body)), {"PATH": "/usr/bin:/bin"}
    )
    assert isinstance(unavailable, Unavailable)
    assert "not Claude Code" in unavailable.error
    assert error in unavailable.error
    assert "npm install -g @anthropic-ai/claude-code" in str(unavailable.remedy)


@pytest.mark.parametrize(
    ("version", "warned"), [("1.0.60", True), ("2.1.197", False), ("3.0.0", False)]
)
def test_only_an_older_version_is_warned_about(
    tmp_path: Path, version: str, *, warned: bool
) -> None:
    path = program(tmp_path / "claude", f"echo '{version} (Claude Code)'")
    cli = binary.identify(str(path), {"PATH": "/usr/bin:/bin"})
    assert isinstance(cli, binary.Cli)
    assert (cli.warning is not None) is warned


def test_project_notes_are_the_first_file_claude_code_reads(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("agents")
    assert "agents" in project_notes(tmp_path)
    (tmp_path / "CLAUDE.md").write_text("claude")
    assert "claude" in project_notes(tmp_path)
    assert "agents\n" not in project_notes(tmp_path)


def test_notes_outside_the_project_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    (root / "CLAUDE.md").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "AGENTS.md")
    assert project_notes(root) == ""


def test_long_notes_are_cut_with_a_note(tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("ä" * (MAX_CHARS + 1))
    notes = project_notes(tmp_path)
    assert notes.count("ä") == MAX_CHARS
    assert "left out" in notes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("ATLAS-CANNOT-FIX: the test is wrong", "the test is wrong"),
        ("Sorry.\n**ATLAS-CANNOT-FIX: no network**", "no network"),
        ("`ATLAS-CANNOT-FIX: a\nb`\n\nmore", "a b"),
        ("ATLAS-CANNOT-FIX:", "no reason given"),
        ("I did not need ATLAS-CANNOT-FIX: all is well", None),
        ("done", None),
        ("", None),
    ],
)
def test_giving_up_is_recognised_only_at_the_start_of_a_line(text: str, reason: str | None) -> None:
    assert gave_up(text) == reason


def test_one_line_has_no_control_characters_and_a_limited_length() -> None:
    assert one_line("a\tb\n\x1b[1mc") == "a b [1mc"
    assert len(one_line("x" * 100_000)) == 200


@pytest.mark.parametrize(
    ("name", "tokens", "usd"),
    [
        ("sonnet", Tokens(input=1_000_000, output=100_000), 3.0),
        ("claude-opus-5-5", Tokens(cache_read=1_000_000, cache_write=1_000_000), 5.2),
        ("haiku", Tokens(input=100_000), 0.01),
        ("haiku", Tokens(input=100_001), 0.0500005),
        ("unheard-of", Tokens(input=1), None),
    ],
)
def test_a_request_costs_its_list_price(name: str, tokens: Tokens, usd: float | None) -> None:
    assert models.cost_usd(name, tokens) == (usd if usd is None else pytest.approx(usd))
