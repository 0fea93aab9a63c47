"""Arguments, settings and environment of a call of Claude Code. Pure.

Measured on 2.1.330, with the reason for each flag:
- `--setting-sources=user`: with `project`, hooks of `.claude/settings.json` run unasked, and its
  `env` can send the key to another server. Without it CLAUDE.md is not read either, so it is
  passed as text (`notes.py`). The user's own settings are kept for login, provider and proxy.
- `--strict-mcp-config`: servers of the project's `.mcp.json` are not started.
- `--disable-slash-commands`: no skills and commands, neither built-in nor the user's.
- `--tools`: no tools that leave the workspace, schedule or delegate. With the flag above, a
  request has 22 kB instead of 40.
- `--include-partial-messages`: a sign of life while the model thinks, and the usage of an
  interrupted run.
- `--fallback-model`: used after three answers of 529, and if the model is unknown.
- File mentions are off: `@path` in the prompt would be read without a permission check.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Final

import msgspec
from msgspec import Struct

from atlas_retry.agents.unavailable import agent_environment
from atlas_retry.diagnostics.selecting import runners_of
from atlas_retry.model import AgentRequest, Session
from atlas_retry.patterns import regex
from atlas_retry.settings import AgentSettings, for_attempt

TOOLS: Final = "Bash,Edit,Glob,Grep,NotebookEdit,Read,Write"
READING_TOOLS: Final = "Glob,Grep,Read"
"""Tools of a reviewer."""
LEAST_USD: Final = 0.0001
MAX_RETRIES: Final = "CLAUDE_CODE_MAX_RETRIES"
RETRIES: Final = "7"
"""About 70 s of back-off; the CLI's default of 10 takes more than 3 minutes."""

_FORCED: Final = {
    "CLAUDE_CODE_DISABLE_FILE_MENTIONS": "1",
    "CLAUDE_CODE_DISABLE_BACKGROUND_TASKS": "1",
    "DISABLE_AUTOUPDATER": "1",
}
_DEFAULTS: Final = {MAX_RETRIES: RETRIES}
_SPECIAL_IN_RULES: Final = regex(r"([\\*?\[\]()!])")


class Permissions(Struct, frozen=True, kw_only=True):
    """The `permissions` section of Claude Code's settings."""

    deny: tuple[str, ...]
    allow: tuple[str, ...]


class CliSettings(Struct, frozen=True, kw_only=True):
    """Content of `--settings`.

    The CLI silently drops schema-invalid parts, such as a deny list; these types prevent
    that.
    """

    permissions: Permissions


def argv(
    cli: str, request: AgentRequest, settings: AgentSettings, *, session_id: str, settings_path: str
) -> tuple[str, ...]:
    """The command line; the prompt goes to stdin.

    Every value is joined by `=`, so that none is read as an option. The user's `extra_args`
    come last and override the others.
    """
    resumes = request.session is Session.RESUME
    # another model that the user has configured, if this one is overloaded
    others = (other for other in settings.models if other != request.model)
    fallback = next(others, None) if request.model else None
    # the CLI refuses 0, and without money it is not called
    budget_usd = None if request.cost_usd is None else f"{max(request.cost_usd, LEAST_USD):.4f}"
    optional = {
        "--model": request.model,
        "--fallback-model": fallback,
        "--effort": for_attempt(settings.effort, request.attempt),
        "--max-turns": settings.max_turns,
        "--max-budget-usd": budget_usd,
        "--json-schema": request.schema.decode() if request.schema else None,
    }
    return (
        cli,
        "--print",
        "--output-format=stream-json",
        "--verbose",
        "--include-partial-messages",
        "--setting-sources=user",
        "--strict-mcp-config",
        "--disable-slash-commands",
        f"--tools={READING_TOOLS if request.schema else TOOLS}",
        f"--permission-mode={'default' if request.schema else settings.permission_mode}",
        f"--settings={settings_path}",
        f"--resume={session_id}" if resumes else f"--session-id={session_id}",
        *(f"{flag}={value}" for flag, value in optional.items() if value is not None),
        *settings.extra_args,
    )


def settings_json(request: AgentRequest) -> bytes:
    """The agent's permissions, for `--settings`."""
    programs = dict(chain.from_iterable(map(runners_of, request.commands)))
    named = filter(str.strip, request.commands)
    exact = (line for line in named if "*" not in line)  # a wildcard, which cannot be escaped
    denied: list[str] = []
    for start, options in programs.items():
        for option in options:  # in every way to give it to the program
            if len(option) > len("-x"):
                denied.append(f"{start} *{option}*")
                continue
            for given in (f"{start} {option}", f"{start} * {option}"):
                denied += (given, f"{given} *", f"{given}=*")
    # The CLI's rules work like .gitignore: without a slash they match at any depth. With one they
    # are relative to the root, which must be absolute: `Edit(/tests/**)` matches nothing, and
    # `Edit(tests/**)` also matches `sub/tests/`.
    root = _escaped(request.workspace.rstrip("/"))
    globs = (glob.removeprefix("./").lstrip("/") for glob in request.protected)
    permissions = Permissions(
        deny=(
            *(f"Edit(/{root}/{glob})" if "/" in glob else f"Edit({glob})" for glob in globs),
            *(f"Bash({rule})" for rule in denied),
        ),
        allow=(
            *(f"Bash({line})" for line in exact),
            *(f"Bash({start} *)" for start in programs),
            *(f"Read(/{_escaped(folder.rstrip('/'))}/**)" for folder in request.readable),
        ),
    )
    return msgspec.json.encode(CliSettings(permissions=permissions))


def environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment of the CLI, based on the user's."""
    return agent_environment(environ, forced=_FORCED, defaults=_DEFAULTS)


def _escaped(path: str) -> str:
    return _SPECIAL_IN_RULES.sub(r"\\\1", path)
