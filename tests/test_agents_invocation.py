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
from atlas_retry.agents.lack import INSIDE_AGENT, Lack, agent_environment, nested
from atlas_retry.agents.notes import MAX_CHARS, project_notes
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
def test_a_setting_becomes_one_bound_argument(
    request_: AgentRequest, settings: AgentSettings, expected: str
) -> None:
    assert expected in arguments(request_, settings)


def test_who_is_asked_for_an_opinion_may_only_read() -> None:
    told = arguments(replace(REQUEST, schema=b"{}"), AgentSettings(permission_mode="acceptEdits"))
    assert {"--json-schema={}", "--tools=Glob,Grep,Read", "--permission-mode=default"} <= set(told)


@pytest.mark.parametrize(
    ("models_", "model", "expected"),
    [
        (("sonnet", "sonnet", "opus"), "sonnet", ("--fallback-model=opus",)),
        (("sonnet", "sonnet", "opus"), "opus", ("--fallback-model=sonnet",)),
        (("sonnet",), "sonnet", ()),
        ((), None, ()),
    ],
)
def test_an_overloaded_model_gives_way_to_another_that_the_user_named(
    models_: tuple[str, ...], model: str | None, expected: tuple[str, ...]
) -> None:
    told = arguments(replace(REQUEST, model=model), AgentSettings(models=models_))
    assert tuple(a for a in told if a.startswith("--fallback-model")) == expected


def test_what_a_request_limits_is_passed_on() -> None:
    request = AgentRequest(
        prompt="p", workspace="/w", scratch="/s", model="opus", cost_usd=0.5, attempt=3
    )
    told = arguments(request, AgentSettings(effort=("low", "high")))
    assert {"--model=opus", "--max-budget-usd=0.5000", "--effort=high"} <= set(told)


def test_a_resumed_session_has_no_new_id() -> None:
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", session=Session.RESUME)
    told = arguments(request)
    assert "--resume=id-1" in told
    assert not any(argument.startswith("--session-id") for argument in told)


def test_nothing_unlimited_is_limited() -> None:
    told = " ".join(arguments())
    assert not any(flag in told for flag in ("--max-turns", "--max-budget", "--model", "--effort"))


def test_the_users_extra_arguments_come_last() -> None:
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
def test_a_protected_glob_is_denied_where_it_is_meant(glob: str, workspace: str, rule: str) -> None:
    request = AgentRequest(prompt="p", workspace=workspace, scratch="/s", protected=(glob,))
    assert permissions(request)["deny"] == [rule]


def test_gates_may_be_run_as_they_are_and_logs_be_read() -> None:
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
    ],
)
def test_known_test_runners_may_be_given_selectors_and_nothing_that_changes_files(
    command: str, start: str, denied: str
) -> None:
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", commands=(command,))
    assert f"Bash({start} *)" in permissions(request)["allow"]
    assert f"Bash({start} {denied})" in permissions(request)["deny"]


@pytest.mark.parametrize(
    "command",
    ["./check.sh", "ruff check .", "sh -c 'pytest -q'", "pip install pytest", "$PY -m pytest"],
)
def test_other_gates_may_be_run_as_they_are_only(command: str) -> None:
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", commands=(command,))
    assert permissions(request)["allow"] == [f"Bash({command})"]
    assert permissions(request)["deny"] == []


def test_an_option_that_the_gate_itself_has_is_not_denied() -> None:
    command = "pytest -q -p no:cacheprovider"
    request = AgentRequest(prompt="p", workspace="/w", scratch="/s", commands=(command,))
    assert not [rule for rule in permissions(request)["deny"] if " -p" in rule]


def test_a_command_with_a_star_is_not_allowed_since_the_rule_would_match_others() -> None:
    request = AgentRequest(
        prompt="p", workspace="/w", scratch="/s", commands=("shellcheck *.sh", "")
    )
    assert permissions(request)["allow"] == []


def test_the_environment_turns_off_what_would_read_files_or_outlive_the_run() -> None:
    env = invocation.environment({"HOME": "/h", "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "0"})
    assert env["CLAUDE_CODE_DISABLE_FILE_MENTIONS"] == "1"
    assert env["CLAUDE_CODE_DISABLE_BACKGROUND_TASKS"] == "1"
    assert env["DISABLE_AUTOUPDATER"] == "1"
    assert env["HOME"] == "/h"


@pytest.mark.parametrize(
    ("environ", "retries"), [({}, "7"), ({"CLAUDE_CODE_MAX_RETRIES": "0"}, "0")]
)
def test_the_users_own_number_of_retries_wins(environ: dict[str, str], retries: str) -> None:
    assert invocation.environment(environ)["CLAUDE_CODE_MAX_RETRIES"] == retries


def test_an_outer_git_call_or_agent_does_not_reach_the_agent() -> None:
    env = agent_environment({"GIT_INDEX_FILE": "x", "GIT_DIR": "y", "CLAUDECODE": "1", "A": "b"})
    assert env == {"A": "b", INSIDE_AGENT: "1"}


def test_an_agent_inside_an_agent_is_refused() -> None:
    assert nested({}) is None
    lack = nested(agent_environment({}))
    assert lack
    assert "validate" in str(lack.remedy)


def program(path: Path, body: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return path


def test_the_configured_path_comes_before_path_and_path_before_the_extra(tmp_path: Path) -> None:
    configured = program(tmp_path / "a" / "my-claude", "true")
    on_path = program(tmp_path / "b" / "claude", "true")
    environ = {"PATH": str(on_path.parent), "HOME": str(tmp_path)}
    assert binary.locate(str(configured), environ) == str(configured)
    assert binary.locate("~/a/my-claude", environ) == str(configured)
    assert binary.locate(None, environ) == str(on_path)


def test_a_configured_path_that_is_not_there_is_not_replaced_by_another(tmp_path: Path) -> None:
    on_path = program(tmp_path / "claude", "true")
    lack = binary.locate("/nowhere/claude", {"PATH": str(on_path.parent)})
    assert isinstance(lack, Lack)
    assert "/nowhere/claude" in lack.error


def test_a_claude_in_a_relative_entry_of_path_is_not_run(tmp_path: Path) -> None:
    inside = program(tmp_path / "bin" / "claude", "true")
    relative = os.path.relpath(inside.parent)
    found = binary.locate(None, {"PATH": f"{relative}:.:"})
    assert found != str(inside)
    assert isinstance(found, Lack) or "claude_agent_sdk" in found


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("echo 'claude, the French recipe book 3.1'", "French recipe book"),
        ("echo nonsense >&2; exit 3", "nonsense"),
        ("exit 0", "nothing"),
    ],
)
def test_another_program_of_that_name_is_told_apart(tmp_path: Path, body: str, error: str) -> None:
    found = binary.identify(str(program(tmp_path / "claude", body)), {"PATH": "/usr/bin:/bin"})
    assert isinstance(found, Lack)
    assert "not Claude Code" in found.error
    assert error in found.error
    assert "pip install" in str(found.remedy)


@pytest.mark.parametrize(
    ("version", "warned"), [("1.0.60", True), ("2.1.197", False), ("3.0.0", False)]
)
def test_only_an_older_version_draws_a_warning(
    tmp_path: Path, version: str, *, warned: bool
) -> None:
    path = program(tmp_path / "claude", f"echo '{version} (Claude Code)'")
    found = binary.identify(str(path), {"PATH": "/usr/bin:/bin"})
    assert isinstance(found, binary.Cli)
    assert (found.warning is not None) is warned


def test_notes_are_the_first_file_that_claude_code_would_read(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("agents")
    assert "agents" in project_notes(tmp_path)
    (tmp_path / "CLAUDE.md").write_text("claude")
    assert "claude" in project_notes(tmp_path)
    assert "agents\n" not in project_notes(tmp_path)


def test_notes_that_lead_out_of_the_project_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    (tmp_path / "secret").write_text("secret")
    (root / "CLAUDE.md").symlink_to(tmp_path / "secret")
    os.mkfifo(root / "AGENTS.md")
    assert project_notes(root) == ""


def test_long_notes_are_cut_and_say_so(tmp_path: Path) -> None:
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
def test_giving_up_counts_at_the_start_of_a_line_only(text: str, reason: str | None) -> None:
    assert gave_up(text) == reason


def test_one_line_is_one_line_of_bounded_length() -> None:
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
def test_the_price_of_a_request_is_the_list_price(
    name: str, tokens: Tokens, usd: float | None
) -> None:
    assert models.cost_usd(name, tokens) == (usd if usd is None else pytest.approx(usd))
