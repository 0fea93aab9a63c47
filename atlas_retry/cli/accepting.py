"""`atlas accept`: a person accepts changes that a run held or left for review."""

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated

import typer

from atlas_retry.agents.unavailable import INSIDE_AGENT
from atlas_retry.cli import history, options, places
from atlas_retry.cli.app import app, examples
from atlas_retry.cli.documents import AcceptDocument, write
from atlas_retry.errors import ExitCode, UsageError
from atlas_retry.history import archive, reviews
from atlas_retry.reports.screen.lines import printable
from atlas_retry.run.held import is_pickable

_INSIDE = (INSIDE_AGENT, "CLAUDECODE", "CURSOR_AGENT", "GEMINI_CLI", "CODEX_SANDBOX")
"""Variables that atlas and agents set for the processes that an agent starts."""


@app.command(epilog=examples("atlas accept 20260131", "atlas accept 20260131 src/api.py"))
def accept(
    run: options.NamedRun,
    path: Annotated[
        str | None, typer.Argument(metavar="[PATH]", help="Only changes of this file or folder.")
    ] = None,
    *,
    json: options.Json = False,
) -> ExitCode:
    """Accept the changes that a run held or left for review; only a person can."""
    words = shlex.join((run, path) if path else (run,))
    only_a_person(f"atlas accept {words}", os.environ, has_terminal=sys.stdin.isatty())
    left = reviews.kept(places.home(), places.root())
    if not any(one.review.run_id.startswith(run) for one in left) and (number := _held(run)):
        return history.pick(run, number, held=not path, path=[path] if path else None, json=json)
    done = reviews.accept(places.home(), places.root(), run, path)
    if json:
        write(AcceptDocument(accepted=tuple(one.review for one in done)))
        return ExitCode.OK
    for line in hunk_lines(done, "accepted: "):
        print(printable(line))
    return ExitCode.OK


def _held(run: str) -> str | None:
    """The number of the run's last attempt of which something is held that can be taken."""
    row = history.run_of(run)
    with places.journal() as connection:
        attempts = archive.attempts(connection, row.id)
    return next((str(one.number) for one in reversed(attempts) if is_pickable(one)), None)


def is_inside_agent(environ: Mapping[str, str]) -> bool:
    """Whether an agent started this process."""
    return any(environ.get(name) for name in _INSIDE)


def only_a_person(command: str, environ: Mapping[str, str], *, has_terminal: bool) -> None:
    """Raise UsageError unless a person at a terminal, and no agent, has typed this command."""
    if not has_terminal or is_inside_agent(environ):
        raise UsageError(
            "only a person can allow it, at a terminal",
            remedy=f"in a terminal of your own: {command}",
        )


def hunk_lines(questions: Iterable[reviews.Question], label: str) -> Iterator[str]:
    """Each place after a label, and its hunks as a diff shows them."""
    for question in questions:
        yield f"{label}{question.review.place}: {question.review.detail}"
        for hunk in question.hunks:
            yield from (f"-{line}" for line in hunk.removed)
            yield from (f"+{line}" for line in hunk.added)
