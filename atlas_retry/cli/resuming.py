"""`atlas resume` and `atlas status`: where each workspace stands, and how it goes on."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from atlas_retry.cli import options
from atlas_retry.errors import AtlasError
from atlas_retry.text.commands import copyable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TextIO

    from atlas_retry.events import Emit
    from atlas_retry.history import RunRow
    from atlas_retry.run.one import Finished

OK, FAILED = 0, 1
QUESTION = "[a] retry with AI fix  [s] show the errors  [f] fix by hand  [q] abandon"


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("resume")(resume)
    app.command("status")(status)


def resume(
    workspace: options.WorkspaceArgument = ".",
    *,
    ai_fix: options.AiFix = False,
    every: Annotated[
        bool, typer.Option("--all", help="Continue every run that was cut off.")
    ] = False,
    json: options.Json = False,
    report: options.Reports = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    plain: options.Plain = False,
) -> int:
    """Continue a run that was cut off, with what is left of its budget.

    With --all also what a batch that paused has not started.
    """
    from atlas_retry import state_dir
    from atlas_retry.cli import output, run_output
    from atlas_retry.run import folders, many
    from atlas_retry.run.waiting import left_to_do

    targets = output.targets(report or [])
    (folder,) = folders.find([workspace], Path.cwd(), os.environ)
    rows = _cut_off() if every else _newest(folder)
    waiting = left_to_do(state_dir.locate(os.environ)) if every else ()
    if not rows and not waiting:
        print("there is nothing to resume", file=sys.stderr if json else sys.stdout)
        return OK
    if not (ai_fix or every) and _needs_leave(rows[0]):
        ai_fix = _is_allowed(rows[0], as_json=json)
        if not ai_fix:
            return FAILED
    level = options.verbosity(quiet, verbose)
    with output.screen(
        os.environ, plain=plain, verbosity=level, to_stderr=json, named=every
    ) as shown:
        finished, worst = _go_on(rows, shown, ai_fix=ai_fix)
        done = many.go_on(waiting, os.environ, shown, ai_fix=ai_fix)
        done = replace(done, finished=(*finished, *done.finished))
        if done.finished:
            shown.write(run_output.last_lines(done, verbosity=level))
    run_output.publish_runs(done, targets, as_json=json)
    return max(worst, run_output.ended(done, asks=not (json or plain or quiet)))


def status(*, json: options.Json = False) -> int:
    """Show every workspace's state, its last verdict, how long ago, and what it has cost."""
    from datetime import UTC, datetime

    from atlas_retry import history, state_dir, workspace
    from atlas_retry.history import overview
    from atlas_retry.reports.documents import encode
    from atlas_retry.run.waiting import left_to_do

    home = state_dir.locate(os.environ)
    waiting = [one.root for one in left_to_do(home)]
    names = workspace.names_around(Path.cwd(), environ=os.environ)
    with history.reading(home) as connection:
        entries = overview.entries(connection, home, os.environ, names, waiting)
    if json:
        sys.stdout.write(encode(overview.StatusDocument(workspaces=entries)))
    else:
        sys.stdout.write(overview.table(entries, datetime.now(UTC)))
    return OK


def _newest(workspace: Path) -> "tuple[RunRow, ...]":
    """The workspace's newest run, where there is something left to do about it."""
    from atlas_retry import config, history, state_dir
    from atlas_retry.cli.moving import follow
    from atlas_retry.history import archive

    root = config.root_of(workspace.resolve())
    follow(root)
    with history.reading(state_dir.locate(os.environ)) as connection:
        row = archive.find(connection, None, str(root))
    is_left = row.is_open or row.state is history.RunState.VALIDATION_FAILED
    return (row,) if is_left else ()


def _cut_off() -> "tuple[RunRow, ...]":
    from atlas_retry import history, state_dir
    from atlas_retry.history import overview

    home = state_dir.locate(os.environ)
    with history.reading(home) as connection:
        return overview.cut_off(connection, home, os.environ)


def _go_on(
    rows: "Sequence[RunRow]", emit: "Emit", *, ai_fix: bool
) -> "tuple[tuple[Finished, ...], int]":
    """Let each run go on; one that cannot stops no other. The worst code of those that could not.

    Raises AtlasError where there is only one.
    """
    from atlas_retry.events import Notice
    from atlas_retry.model import Level

    finished, worst = [], OK
    for row in rows:
        try:
            finished.append(_one(row, emit, ai_fix=ai_fix))
        except AtlasError as error:
            if len(rows) == 1:
                raise
            worst = max(worst, error.exit_code)
            emit(Notice(level=Level.ERROR, text=f"{error}; {error.remedy or ''}"))
    return tuple(finished), worst


def _one(row: "RunRow", emit: "Emit", *, ai_fix: bool) -> "Finished":
    """A run that was cut off goes on; after one that has ended, a new one begins."""
    from atlas_retry.history import Order
    from atlas_retry.run.one import Asked, Finished, opened_with, run_one
    from atlas_retry.run.resume import resume as continued

    if row.is_open:
        return continued(row, os.environ, emit, ai_fix=ai_fix)
    asked = Asked(order=Order(ai_fix=ai_fix))
    opened = opened_with(Path(row.root), asked, os.environ)
    outcome = run_one(opened, asked, emit)
    return Finished(opened=opened, outcome=outcome)


def _needs_leave(row: "RunRow") -> bool:
    """Whether going on may spend money, so that somebody has to say so."""
    return row.with_agent or not row.is_open


def _is_asked_by_a_person() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and not os.environ.get("CI")


def _is_allowed(row: "RunRow", *, as_json: bool) -> bool:
    """Ask a person whether the agent may go on; say how, where nobody can answer."""
    if not as_json and _is_asked_by_a_person():
        return _answer(row)
    _say_how(row, sys.stderr if as_json else sys.stdout)
    return False


def _say_how(row: "RunRow", to: "TextIO") -> None:
    from atlas_retry.history import telling

    print(f"run {row.id} in {row.root}: {telling.state_of(row)}", file=to)
    print(*copyable("next", f"atlas resume {row.root} --ai-fix"), sep="\n", file=to)
    print(*copyable("undo", f"atlas undo {row.id}"), sep="\n", file=to)


def _answer(row: "RunRow") -> bool:
    """Ask what to do until it is decided; True for the agent."""
    from atlas_retry.history import telling

    print(f"run {row.id} in {row.root}: {telling.state_of(row)}")
    while True:
        match typer.prompt(QUESTION, default="s").strip().lower()[:1]:
            case "a":
                return True
            case "s":
                _show_errors(row)
            case "f":
                print(
                    *copyable(f"fix it in {row.root}, then", f"atlas validate {row.root}"), sep="\n"
                )
                return False
            case "q":
                return _abandon(row)


def _show_errors(row: "RunRow") -> None:
    from atlas_retry import history, state_dir
    from atlas_retry.history import archive
    from atlas_retry.reports.screen.gate_lines import failure_lines
    from atlas_retry.reports.screen.lines import harmless

    with history.reading(state_dir.locate(os.environ)) as connection:
        final = archive.final_of(connection, row.id)
    if final is None:
        print(f"no validation of run {row.id} had come to its end")
        return
    for text, _ in failure_lines(final):
        print(harmless(text))


def _abandon(row: "RunRow") -> bool:
    from atlas_retry import history, state_dir
    from atlas_retry.history import keeping

    with history.opened(state_dir.locate(os.environ)) as connection:
        reason = "given up at the prompt of atlas resume"
        keeping.record(connection, row, history.RunState.ABANDONED, reason)
    print(
        *copyable("abandoned; to restore what was there before", f"atlas undo {row.id}"), sep="\n"
    )
    return False
