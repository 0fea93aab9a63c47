"""`atlas demo`: a run on a temporary project with three planted faults."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry import agents
from atlas_retry.cli import options
from atlas_retry.cli.app import app, examples
from atlas_retry.cli.run_output import exit_code_of
from atlas_retry.errors import AgentError, ExitCode
from atlas_retry.history.values import Order
from atlas_retry.model import Outcome
from atlas_retry.reports.screen.console import Printer, screen
from atlas_retry.reports.screen.lines import Line, command_lines
from atlas_retry.reports.screen.run_lines import outcome_summary
from atlas_retry.run.one import RunOptions, opened_with, run_one
from atlas_retry.settings import AgentSettings
from atlas_retry.text.own_environment import installing
from atlas_retry.workspace.git import git, user_environment

REPLAY = "scripted"
TOOLS = ("ruff", "mypy", "pytest")
PYTHON_ALONE = 'version: 1\nvalidation: {test: ["python -m unittest"]}\n'
"""Configuration if one of the tools is missing, as in an installation without the extra `demo`."""


@app.command(epilog=examples("atlas demo"))
def demo(
    *,
    agent: Annotated[
        str,
        typer.Option(metavar="BACKEND", help="scripted costs nothing; claude-code spends money."),
    ] = "scripted",
    plain: options.Plain = False,
) -> ExitCode:
    """Show a whole run on a scratch project in a few seconds, without key or network."""
    return show(agent, os.environ, screen(os.environ, plain=plain))


def show(agent: str, environ: Mapping[str, str], on: Printer) -> ExitCode:
    """Run the demo and show it on a screen; 0 if the project ended green.

    Raises AgentError before anything runs if the agent, whose work is shown, is missing.
    """
    if agent != REPLAY and (why := agents.check(AgentSettings(backend=agent), environ)):
        raise AgentError(f"{why.error}: nothing was tried", remedy=why.remedy)
    with tempfile.TemporaryDirectory(prefix="atlas-demo-") as scratch:
        folder = Path(scratch)
        beside = str(Path(sys.executable).parent)
        path = f"{beside}:{environ.get('PATH', '/usr/bin:/bin')}"
        own = {**environ, "PATH": path, "ATLAS_HOME": str(folder / "state")}
        missing = [name for name in TOOLS if shutil.which(name, path=own["PATH"]) is None]
        root = project(folder, own, gates=PYTHON_ALONE if missing else None)
        with on as shown:
            shown.write(_opening(root, missing, agent))
            outcome = play(root, own, agent, shown)
            shown.write(_last_lines(outcome, missing, environ, agent))
    return exit_code_of(outcome.verdict)


def play(root: Path, environ: Mapping[str, str], agent: str, shown: Printer) -> Outcome:
    """Retry the scratch project, shown up to the summary."""
    with as_file(files("atlas_retry.cli") / "demo_project" / "script") as script:
        overrides: dict[str, object] = {"agent.backend": agent}
        if agent == REPLAY:
            overrides["agent.path"] = str(script)
        asked = RunOptions(order=Order(ai_fix=True, overrides=overrides))
        outcome = run_one(opened_with(root, asked, environ), asked, shown)
    shown.write(outcome_summary(outcome, with_commands=False))
    return outcome


def project(folder: Path, environ: Mapping[str, str], *, gates: str | None) -> Path:
    """Make the scratch project; `gates` replaces its configuration."""
    root = folder / "ledger"
    with as_file(files("atlas_retry.cli") / "demo_project" / "project") as source:
        shutil.copytree(source, root, ignore=shutil.ignore_patterns("__pycache__"))
    if gates:
        (root / ".atlas" / "config.yaml").write_text(gates, encoding="utf-8")
    identity = ("-c", "user.name=demo", "-c", "user.email=demo@example.invalid")
    env = user_environment(environ)
    git("init", "-q", "--template=", cwd=root, env=env)
    git("add", "-A", cwd=root, env=env)
    git(*identity, "commit", "-q", "-m", "A ledger", cwd=root, env=env)
    return root


def _opening(root: Path, missing: Sequence[str], agent: str) -> Iterator[Line]:
    yield f"A scratch project in {root}: two functions, an unused import, a wrong type, a bug.", ""
    if missing:
        yield f"{', '.join(missing)} not found: the tests are its only gate.", ""
        yield from command_lines("for all of its gates", installing(*missing))
    is_replay = agent == REPLAY
    who = "its agent replays two recorded attempts" if is_replay else f"its agent is {agent}"
    yield from command_lines(who, "atlas retry . --ai-fix")
    yield "", ""


ALL_GATES = """\
What happened: the formatter and ruff's own fixer cost nothing; the first
attempt changed the test instead of the code, so the test was put back; the
second was told so, and fixed the code."""
ONLY_TESTS = """\
What happened: the first attempt changed the test instead of the code, so the
test was put back; the second was told so, and fixed the code."""


def _last_lines(
    outcome: Outcome, missing: Sequence[str], environ: Mapping[str, str], agent: str
) -> Iterator[Line]:
    if not outcome.verdict.is_green:
        if outcome.remedy:
            yield from command_lines("next", outcome.remedy)
        return
    yield "", ""
    if agent == REPLAY:
        yield from ((line, "") for line in (ONLY_TESTS if missing else ALL_GATES).splitlines())
        yield "Spent: $0.00.", ""
    yield "", ""
    own = ("atlas init", "atlas validate", "atlas retry . --ai-fix")
    yield from command_lines("on your own project", *own)

    if agents.check(AgentSettings(), environ) is None:
        yield from command_lines(
            "with Claude Code and a real model", "atlas demo --agent claude-code"
        )
    else:
        yield "with Claude Code: install its CLI, and log in or set ANTHROPIC_API_KEY", ""
