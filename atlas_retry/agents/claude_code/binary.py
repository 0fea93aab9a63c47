"""Finds the Claude Code CLI, and checks its version and login."""

import importlib.util
import os
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from atlas_retry import process
from atlas_retry.agents.answers import decoded, last_lines
from atlas_retry.agents.unavailable import Unavailable
from atlas_retry.patterns import regex
from atlas_retry.text.commands import quoted
from atlas_retry.text.own_environment import installing

PROBE_S: Final = 15.0
OLDEST_MEASURED: Final = (2, 1, 197)
_VERSION: Final = regex(r"(\d+)\.(\d+)\.(\d+)\S* \(Claude Code\)")

NPM_INSTALL: Final = "npm install -g @anthropic-ai/claude-code@latest"
CARRIER: Final = "claude-agent-sdk"
"""A package that includes the CLI."""
LOG_IN: Final = "claude /login, or: export ANTHROPIC_API_KEY=KEY"


class Cli(Struct, frozen=True, kw_only=True):
    """A program that identifies itself as Claude Code."""

    path: str
    version: tuple[int, ...]

    @property
    def warning(self) -> str | None:
        """Warning about an untested version; None for a tested one."""
        if self.version >= OLDEST_MEASURED:
            return None
        version, oldest = (".".join(map(str, v)) for v in (self.version, OLDEST_MEASURED))
        return f"Claude Code {version} is older than {oldest}, the oldest one tested"


def find(path: str | None, environ: Mapping[str, str], env: Mapping[str, str]) -> Cli | Unavailable:
    """The CLI, with its version in the environment that it will have."""
    place = locate(path, environ)
    return place if isinstance(place, Unavailable) else identify(place, env)


def locate(path: str | None, environ: Mapping[str, str]) -> str | Unavailable:
    """Absolute path of the CLI: the configured one, else PATH, else the `claude` extra."""
    searched = _search_path(environ)
    if path:
        home = environ.get("HOME", "")
        wanted = f"{home}{path[1:]}" if path.startswith("~/") else path
        if program := shutil.which(wanted, path=searched):
            return str(Path(program).absolute())
        if Path(wanted).is_file():
            error = f"agent.path: {path} is a file that cannot be executed"
            return Unavailable(
                error=error, remedy=f"set agent.path to the program, or: chmod +x {quoted(path)}"
            )
        remedy = "correct agent.path, or leave it out: then claude is searched on PATH"
        return Unavailable(error=f"agent.path: no program at {path}", remedy=remedy)
    if program := shutil.which("claude", path=searched):
        return program
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec and spec.origin:
        bundled = shutil.which(str(Path(spec.origin).parent / "_bundled" / "claude"))
        if bundled:
            return bundled
    # a command that works here: by npm if there is one, else into the environment of atlas
    has_npm = shutil.which("npm", path=searched) is not None
    return Unavailable(
        error="the Claude Code CLI (claude) is not installed",
        remedy=NPM_INSTALL if has_npm else installing(CARRIER),
    )


def log_in(path: str, environ: Mapping[str, str]) -> str:
    """How to log in, with the path of a CLI that is not on PATH."""
    is_on_path = shutil.which("claude", path=_search_path(environ)) == path
    return LOG_IN if is_on_path else f"{shlex.quote(path)}{LOG_IN.removeprefix('claude')}"


def _search_path(environ: Mapping[str, str]) -> str:
    """PATH without relative entries, which could find programs of the workspace."""
    entries = environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if entry.startswith("/"))


def identify(path: str, env: Mapping[str, str]) -> Cli | Unavailable:
    """Ask a program for its version; a Unavailable if it is not Claude Code or does not answer."""
    done = _ask((path, "--version"), env)
    version = _VERSION.search(done.stdout.text)
    if version:
        return Cli(path=path, version=tuple(map(int, version.groups())))
    printed = done.error or last_lines(done.stdout.text or done.stderr.text, 1) or "nothing"
    return Unavailable(
        error=f"{path} is not Claude Code: --version says {printed}", remedy=NPM_INSTALL
    )


class _Login(msgspec.Struct):
    loggedIn: bool = True  # noqa: N815 (as the CLI spells it)


def why_not_logged_in(cli: Cli, env: Mapping[str, str]) -> Unavailable | None:
    """`Unavailable` if the CLI reports that nobody is logged in, else None.

    `claude auth status` reads settings and environment and makes no request.
    """
    done = _ask((cli.path, "auth", "status"), env)
    login = decoded(done.stdout.text, _Login)
    if login is None or login.loggedIn:
        return None
    return Unavailable(error="Claude Code is not logged in", remedy=log_in(cli.path, env))


def _ask(argv: tuple[str, ...], env: Mapping[str, str]) -> process.Completed:
    """Run the CLI in `/`, outside any project's settings."""
    return process.run(
        process.Command(argv=argv, cwd=Path("/"), env=env, timeout_s=PROBE_S, log_dir=None)
    )
