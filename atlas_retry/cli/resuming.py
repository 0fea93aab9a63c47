"""`atlas resume`: continues an interrupted run or a paused batch."""

import os
import sys
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from atlas_retry import config, process
from atlas_retry.cli import options, output, places, run_output
from atlas_retry.cli.app import app, examples
from atlas_retry.cli.history import follow
from atlas_retry.cli.output import print_commands
from atlas_retry.errors import AtlasError, ExitCode, Interrupted
from atlas_retry.events import Emit, Notice
from atlas_retry.history import archive, database, entries, overview, rescue, texts
from atlas_retry.history.states import RunState
from atlas_retry.history.values import Order, RunRow
from atlas_retry.model import Level
from atlas_retry.reports.documents import Cascade, batch_document, encode
from atlas_retry.reports.screen.gate_lines import failure_lines
from atlas_retry.reports.screen.lines import harmless
from atlas_retry.run import folders, many
from atlas_retry.run.folders import left_to_do
from atlas_retry.run.one import Finished, RunOptions, opened_with, run_one
from atlas_retry.run.resume import resume as continued
from atlas_retry.text.commands import quoted
from atlas_retry.text.units import usd
from atlas_retry.workspace.discovery import put_back_gitfile_around

QUESTION = "[a] retry with AI fix  [s] show the errors  [f] fix by hand  [d] discard  [q] quit"


@app.command(epilog=examples("atlas resume", "atlas resume --ai-fix"))
def resume(
    workspace: options.Workspace = ".",
    *,
    ai_fix: options.AiFix = False,
    every: Annotated[bool, typer.Option("--all", help="Continue every interrupted run.")] = False,
    json: options.Json = False,
    report: options.Report = None,
    quiet: options.Quiet = 0,
    verbose: options.Verbose = 0,
    plain: options.Plain = False,
) -> ExitCode:
    """Continue an interrupted run with what is left of its budget.

    With --all, also start what a paused batch has not started.
    """
    targets = output.targets(report)
    (folder,) = folders.find([workspace], Path.cwd(), os.environ)
    rows = interrupted() if every else _newest(folder)
    waiting = left_to_do(places.home()) if every else ()
    if not rows and not waiting:
        return _nothing(as_json=json)
    may_cost = not every and (rows[0].with_agent or not rows[0].is_open)
    if may_cost and not ai_fix:
        ai_fix = _is_allowed(rows[0], as_json=json)
        if not ai_fix:
            return ExitCode.FAILED
    level = output.verbosity(quiet, verbose)
    with output.screen(
        os.environ, plain=plain, verbosity=level, to_stderr=json, named=every
    ) as shown:
        finished, worst = _continue_all(rows, shown, ai_fix=ai_fix)
        done = many.go_on(waiting, os.environ, shown, ai_fix=ai_fix)
        done = replace(done, finished=(*finished, *done.finished))
        if done.finished:
            shown.write(run_output.last_lines(done, verbosity=level))
    run_output.publish_runs(done, targets, as_json=json)
    return max(worst, run_output.exit_code(done, asks=not (json or plain or quiet)))


def _nothing(*, as_json: bool) -> ExitCode:
    print("nothing to resume", file=sys.stderr if as_json else sys.stdout)
    if as_json:
        print(encode(batch_document((), not_started=(), cascade=Cascade())), end="")
    return ExitCode.OK


def _newest(workspace: Path) -> tuple[RunRow, ...]:
    """The workspace's newest run, if it is interrupted or failed."""
    put_back_gitfile_around(workspace.resolve(), places.home())
    root = config.root_of(workspace.resolve())
    follow(root)
    with places.journal() as connection:
        row = archive.find(connection, None, str(root))
    is_left = row.is_open or row.state is RunState.VALIDATION_FAILED
    return (row,) if is_left else ()


def interrupted() -> tuple[RunRow, ...]:
    """Interrupted runs of all workspaces."""
    with places.journal() as connection:
        return overview.interrupted_runs(connection, places.home(), os.environ)


def _continue_all(
    rows: Sequence[RunRow], emit: Emit, *, ai_fix: bool
) -> "tuple[tuple[Finished, ...], ExitCode]":
    """Continue each run, and return the worst exit code of those that cannot be continued.

    Raises AtlasError if it is the only one.
    """
    finished, worst = [], ExitCode.OK
    for row in rows:
        try:
            finished.append(_one(row, emit, ai_fix=ai_fix))
        except AtlasError as error:
            if len(rows) == 1:
                raise
            worst = max(worst, error.exit_code)
            emit(Notice(level=Level.ERROR, text=f"{error}; {error.remedy or ''}"))
    return tuple(finished), worst


def _one(row: RunRow, emit: Emit, *, ai_fix: bool) -> "Finished":
    """Continue an interrupted run, or start a new one after a run that has ended."""
    if row.is_open:
        return continued(row, os.environ, emit, ai_fix=ai_fix)
    asked = RunOptions(order=Order(ai_fix=ai_fix))
    opened = opened_with(Path(row.root), asked, os.environ)
    outcome = run_one(opened, asked, emit)
    return Finished(opened=opened, outcome=outcome)


def _is_allowed(row: RunRow, *, as_json: bool) -> bool:
    """Ask the user whether the agent may continue; without a terminal print the command."""
    to = sys.stderr if as_json else sys.stdout
    print(f"run {row.id} in {row.root}: {texts.state_of(row)}", file=to)
    if places.can_ask(sys.stdout) and not as_json:
        try:
            return _answer(row)
        except (Interrupted, typer.Abort) as end:
            print()
            _say_it_stays(row)
            if isinstance(end, Interrupted):
                raise
            return False
    print_commands("next", f"atlas resume {quoted(row.root)} --ai-fix", to=to)
    print(*rescue.how_to_undo(places.workspace_at(row.root), row.id, "undo"), sep="\n", file=to)
    return False


def _answer(row: RunRow) -> bool:
    """Ask until the user decides; True if the agent may continue."""
    while True:
        with process.interruptible():
            answer = str(typer.prompt(QUESTION, default="s")).strip().lower()[:1]
        match answer:
            case "a":
                return True
            case "s":
                _show_errors(row)
            case "f":
                label = f"fix it in {row.root}, then"
                print_commands(label, f"atlas validate {quoted(row.root)}", to=sys.stdout)
                return False
            case "d":
                reason = "discarded at the prompt of atlas resume"
                with database.opened(places.home()) as connection:
                    entries.record(connection, row, RunState.ABANDONED, reason)
                label = "discarded; to restore what was there before"
                print_commands(label, f"atlas undo {row.id}", to=sys.stdout)
                return False
            case "q":
                _say_it_stays(row)
                return False


def _say_it_stays(row: RunRow) -> None:
    print_commands("the run stays; to continue", f"atlas resume {quoted(row.root)}", to=sys.stdout)


def may_replace(roots: Collection[Path]) -> bool:
    """Whether a new run may drop interrupted runs in these workspaces; a terminal is asked."""
    if not places.can_ask(sys.stderr):
        return True
    paid = (row for row in interrupted() if row.with_agent)
    rows = [row for row in paid if Path(row.root) in roots]
    if not rows:
        return True
    for row in rows:
        cost = usd(row.cost_usd, at_least=row.unpaid)
        text = f"run {row.id}, interrupted in {row.root}, can be resumed (cost: {cost})"
        print(harmless(text), file=sys.stderr)
    with process.interruptible(), suppress(typer.Abort):
        if typer.confirm("Drop it and start a new run?", err=True):
            return True
    print_commands("to continue it", *(f"atlas resume {quoted(row.root)} --ai-fix" for row in rows))
    return False


def _show_errors(row: RunRow) -> None:
    with places.journal() as connection:
        final = archive.final_of(connection, row.id)
    if final is None:
        print(f"run {row.id} has no complete validation")
        return
    for text, _ in failure_lines(final):
        print(harmless(text))
