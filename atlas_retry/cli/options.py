"""Help and flags of every parameter of a command, and shell completion of their values."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from msgspec import Struct

from atlas_retry.errors import AtlasError

# --- completion: never fails, never prints ---------------------------------------------------


def _beginning(incomplete: str, values: Iterable[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value.startswith(incomplete)]


def _gates(incomplete: str) -> list[str]:
    from atlas_retry import config

    with suppress(AtlasError):
        gates = config.load(Path.cwd(), environ=os.environ, overrides={}).gates
        return _beginning(incomplete, [*(gate.kind for gate in gates), *(g.name for g in gates)])
    return []


def _agents(incomplete: str) -> list[str]:
    from atlas_retry.agents import AGENTS

    return _beginning(incomplete, AGENTS)


def _formats(incomplete: str) -> list[str]:
    from atlas_retry.reports.formats import REPORTS

    return _beginning(incomplete, [f"{name}=" for name in REPORTS])


def _runs(incomplete: str) -> list[str]:
    from atlas_retry.cli import here
    from atlas_retry.history import archive

    with suppress(AtlasError), here.journal() as connection:
        rows = archive.runs(connection, str(here.root()))
        return _beginning(incomplete, [row.id for row in rows])
    return []


def _workspaces(incomplete: str) -> list[str]:
    """Named workspaces and folders that start with this text."""
    from atlas_retry.cli import here
    from atlas_retry.workspace import worktrees

    names: list[str] = []
    with suppress(AtlasError):
        names += [one.name for one in worktrees.list_worktrees(here.workspace_at().common_dir)]
    folder = Path(incomplete).parent if incomplete else Path()
    with suppress(OSError):
        names += [str(path) for path in sorted(folder.iterdir()) if path.is_dir()]
    return _beginning(incomplete, names)


# --- parameters ------------------------------------------------------------------------------


class Parameter(Struct, frozen=True):
    """A parameter of one or more commands."""

    help: str
    metavar: str | None = None
    flags: str = ""
    """Flags, separated by spaces; by default from the name of the parameter."""
    completes: Callable[[str], list[str]] | None = None
    """Returns the values that start with a text."""
    least: int | None = None
    """Smallest number allowed."""
    more: Mapping[str, Any] = {}
    """Extra arguments for Typer."""


ARGUMENTS = {
    "path": Parameter("A directory in the workspace.", "PATH"),
    "workspace": Parameter("A name or a directory.", "WORKSPACE", completes=_workspaces),
    "workspaces": Parameter(
        "Names or directories; by default this one.", "WORKSPACE...", completes=_workspaces
    ),
    "run": Parameter("An id or its start; by default the newest here.", "RUN", completes=_runs),
    "log run": Parameter(
        "Run to show, by its id or its start; without it, all runs here are listed.",
        "RUN",
        completes=_runs,
    ),
    "accept run": Parameter("An id or its start.", "RUN", completes=_runs),
    "accept path": Parameter("Only changes of this file or folder.", "[PATH]"),
    "pick run": Parameter("An id or its start.", "RUN", completes=_runs),
    "revision": Parameter("A revision of git.", "REV"),
    "diff attempt": Parameter("An attempt.", "[N]"),
    "pick attempt": Parameter("An attempt, or a held snapshot.", "N"),
    "verify receipt": Parameter("The receipt that atlas validate wrote.", "RECEIPT"),
    "record_id": Parameter("For example lr-2026-01-31-001.", "ID"),
    "text": Parameter("The note, in your words.", "TEXT"),
    "name": Parameter("Letters, digits, - and _.", "NAME"),
    "hook allow path": Parameter("A file or folder, as in the message.", "PATH"),
    "manifest": Parameter("The repositories and the budget.", "MANIFEST.yaml"),
    "batch": Parameter("The batch.", "ID"),
}
"""Rows by parameter, or by command and parameter if a command differs."""
OPTIONS = {
    # what to check
    "config_file": Parameter("Read this configuration instead.", "FILE", "--config"),
    "only": Parameter("Run only these gates; repeatable.", "KIND_OR_NAME", completes=_gates),
    "fix": Parameter("Run the gates' own fixers first."),
    "check": Parameter(
        "A gate that changes files fails (default in CI).", None, "--check/--no-check"
    ),
    "fail_fast": Parameter("Stop at the first failure."),
    "flake_reruns": Parameter("Re-run a failing test gate up to N times.", least=0),
    "jobs": Parameter(
        "Gates to run at once; by default one per processor.", None, "--jobs -j", least=1
    ),
    "review": Parameter("Ask review gates, too; this may cost money."),
    "as_committed": Parameter("Run on HEAD and index, as a fresh clone: without ignored files."),
    "reuse": Parameter("Skip gates that passed on the same files."),
    "changed": Parameter(
        "Run only what files concern that changed since the branch left REV, by default the main"
        " branch.",
        "[REV]",
    ),
    "staged": Parameter("Run only what staged files concern."),
    "local": Parameter("Without a configuration, run gates although CI runs none of them."),
    "list_only": Parameter(
        "List the gates and their commands without running them.", None, "--list"
    ),
    "faults": Parameter("Functions that get a fault, for test gates.", least=1),
    "prove max_minutes": Parameter("Plant no further fault after this time.", least=0),
    "receipt": Parameter("Write a receipt for atlas verify.", "FILE"),
    "sign": Parameter("An SSH key to sign the receipt with.", "KEY"),
    "base": Parameter("The revision to compare with in the receipt.", "REV"),
    "signers": Parameter("Allowed signers, in the format of ssh-keygen.", "FILE"),
    "guard base": Parameter("The state before the change.", "REV_OR_DIR"),
    "outside": Parameter("Also judge a folder outside the workspace; repeatable.", "BEFORE:AFTER"),
    "strict": Parameter("Also exit with 1 for held changes."),
    "why": Parameter("Explain how a path is judged.", "PATH"),
    "replay": Parameter("Re-run the failed gates without the held changes."),
    # what is shown
    "json": Parameter("Print one JSON document on stdout."),
    "report": Parameter("Write a report; repeatable.", "FORMAT=PATH", completes=_formats),
    "quiet": Parameter("Print only the summary.", None, "--quiet -q"),
    "verbose": Parameter(
        "Show commands as they start, and all problems.",
        None,
        "--verbose -v",
        more={"count": True, "show_default": False},
    ),
    "plain": Parameter("Print lines without control codes."),
    "config schema report": Parameter("Print the schema of atlas's JSON documents instead."),
    "print_only": Parameter("Print the configuration without writing it.", None, "--print"),
    "no_try": Parameter("Do not run each gate once."),
    # fixing, agents and limits
    "ai_fix": Parameter("Let the agent fix what fails; this may cost money."),
    "max_attempts": Parameter(
        "Stop a run after this many attempts (default: 3, from config).", least=0
    ),
    "max_cost_usd": Parameter(
        "Stop a run at this cost in dollars (default: 5, from config).", least=0
    ),
    "max_minutes": Parameter(
        "Stop a run after this many minutes (default: 60, from config).", least=0
    ),
    "agent": Parameter("The agent; by default agent.backend.", "BACKEND", completes=_agents),
    "model": Parameter("The model of every attempt.", "NAME"),
    "start_from": Parameter(
        "Start from a recorded failure: a report, JUnit, SARIF or log; - is stdin.",
        "FILE",
        "--from",
    ),
    "allow": Parameter(
        "Files that may change although they look like tests or settings; repeatable.", "GLOB"
    ),
    "every": Parameter("Run every named workspace.", None, "--all"),
    "retry jobs": Parameter(
        "Workspaces to run at once; 1: gates one at a time, too.", None, "--jobs -j", least=1
    ),
    "dry_run": Parameter("Print the prompt and stop, at no cost."),
    "record": Parameter("Save prompts, replies and edits in this folder.", "DIR"),
    "force": Parameter("Run even in the middle of a merge or rebase."),
    "since": Parameter("Fix only problems that did not exist at this revision.", "REV"),
    "isolate": Parameter(
        "Work in an overlay of the workspace, or in the workspace itself.",
        None,
        "--isolate/--no-isolate",
    ),
    "run_id": Parameter(
        "Name the run; the same id again resumes it, or prints its result: nothing is paid twice.",
        "ID",
    ),
    "resume every": Parameter("Continue every interrupted run.", None, "--all"),
    "max_chars": Parameter("Limit of the whole prompt, in characters.", least=200),
    "demo agent": Parameter("scripted costs nothing; claude-code spends money.", "BACKEND"),
    # earlier runs
    "held": Parameter("Include its held changes; refused ones stay out."),
    "pick path": Parameter("Only this file or folder; repeatable.", "PATH"),
    "merge": Parameter("Merge into what the file is now; refuse where both changed a place."),
    "keep": Parameter("Keep the newest N runs of each workspace.", least=1),
    "days": Parameter("Drop runs older than N days.", least=0),
    "prune dry_run": Parameter("List the runs that would be dropped."),
    "stats since": Parameter("Only runs since then: 7d, 12h, 2w or a date.", "TIME"),
    "export": Parameter("Print every run as one row."),
    "apply": Parameter("Deliver a patch from another job instead of a run.", "FILE"),
    "patch": Parameter("Write a patch for git am or git apply.", "FILE"),
    "branch": Parameter("Commit to this branch.", "NAME"),
    "push": Parameter("Push the branch, never by force."),
    "pr": Parameter("Push, and open or update the pull request with gh."),
    "remote": Parameter("The remote to push to.", "NAME"),
    "deliver force": Parameter("Deliver a run that was undone."),
    "max_pushes": Parameter("Consecutive deliveries without a person's commit.", least=0),
    # hooks, named workspaces, fleets
    "timeout": Parameter("Time limit of the hook itself, in seconds.", least=1),
    "host": Parameter("The agent.", None, "--for"),
    "hook install print_only": Parameter(
        "Print the settings without writing them.", None, "--print"
    ),
    "start": Parameter("Where its branch starts; by default HEAD.", "REV", "--from"),
    "workspace remove force": Parameter(
        "Remove it even if its changes or commits exist nowhere else."
    ),
    "server": Parameter("Address of Temporal; by default $TEMPORAL_ADDRESS.", "HOST:PORT"),
    "queue": Parameter("The task queue that workers and batches share.", "NAME"),
    "store": Parameter(
        "A folder or s3://BUCKET/PREFIX that all machines can access.",
        "URL",
        more={"envvar": "ATLAS_FLEET_STORE"},
    ),
    "slots": Parameter("Runs at once.", least=1),
    "agents": Parameter("An agent that runs may use; repeatable.", "BACKEND", "--agent"),
    "fleet start batch": Parameter("Id of the batch; by default file name and time.", None, "--id"),
    "wait": Parameter("Wait until the batch has ended."),
    "fleet pause why": Parameter("The reason, shown in the status.", "TEXT"),
    "html": Parameter("Also write a self-contained page.", "FILE"),
}
"""Like `ARGUMENTS`."""


def with_values(words: Sequence[str]) -> list[str]:
    """The words with the value that `--changed` has without REV, which Typer cannot express.

    The next word is its REV unless it is an option or a folder.
    """
    line = list(words)
    for at, word in enumerate(words):
        if word == "--changed":
            value = "".join(words[at + 1 : at + 2])
            has_none = not value or value.startswith("-") or Path(value).is_dir()
            line[at] += "=" if has_none else ""
    return line


def described(function: Callable[..., int], command: str) -> Callable[..., int]:
    """The function of a command, with its parameters annotated for Typer."""
    for name, kind in get_type_hints(function).items():
        for key in (f"{command} {name}", name):
            if found := _described(key, name):
                function.__annotations__[name] = Annotated[kind, found]
                break
    return function


def _described(key: str, name: str) -> object:
    """The annotation of a parameter; None if no table has the key."""
    row = OPTIONS.get(key) or ARGUMENTS.get(key)
    if row is None:
        return None
    given: dict[str, Any] = {"metavar": row.metavar, "help": row.help, "min": row.least}
    given |= {"autocompletion": row.completes, **row.more}
    if key in ARGUMENTS:
        return typer.Argument(**given)
    flags = row.flags.split() or [f"--{name.replace('_', '-')}"]
    return typer.Option(*flags, **given)
