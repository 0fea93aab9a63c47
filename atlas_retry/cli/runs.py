"""`atlas retry`: turns flags into an order for the `run` package."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_retry.cli import options
from atlas_retry.errors import UsageError
from atlas_retry.events import Emit

if TYPE_CHECKING:
    from atlas_retry.history.values import Order
    from atlas_retry.run.one import Asked, Done

_ISOLATION = {None: None, True: "overlay", False: "none"}


Workspaces = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORKSPACE...",
        help="Names or directories; by default this one.",
        autocompletion=options.complete_workspaces,
    ),
]
AgentName = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="BACKEND",
        help="The agent to ask; by default agent.backend.",
        autocompletion=options.complete_agents,
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The model of every attempt.")
]
Every = Annotated[bool, typer.Option("--all", help="Run every named workspace.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Workspaces to run at once.")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the prompt and stop; spends nothing.")
]
Record = Annotated[
    Path | None,
    typer.Option("--record", metavar="DIR", help="Save prompts, replies and edits in this folder."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Run even in the middle of a merge or rebase.")
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="REV", help="Fix only problems that did not exist at this revision."
    ),
]
Isolate = Annotated[
    bool | None,
    typer.Option(
        "--isolate/--no-isolate",
        help="Work in an overlay of the workspace, or in the workspace itself.",
    ),
]
RunId = Annotated[
    str | None,
    typer.Option(
        "--run-id",
        metavar="ID",
        help="Name the run; used again, the name continues or reports it.",
    ),
]


def retry(
    workspaces: Workspaces = None,
    *,
    ai_fix: options.AiFix = False,
    max_attempts: options.MaxAttempts = None,
    max_cost_usd: options.MaxCost = None,
    max_minutes: options.MaxMinutes = None,
    agent: AgentName = None,
    model: Model = None,
    start_from: options.From = None,
    allow: options.Allow = None,
    every: Every = False,
    jobs: Jobs = None,
    dry_run: DryRun = False,
    record: Record = None,
    force: Force = False,
    since: Since = None,
    isolate: Isolate = None,
    run_id: RunId = None,
    json: options.Json = False,
    report: options.Reports = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    plain: options.Plain = False,
) -> int:
    """Validate and fix what fails; with --ai-fix by asking the agent."""
    from atlas_retry.cli import output, run_output
    from atlas_retry.run import folders
    from atlas_retry.run.one import Asked

    targets = output.targets(report)
    flags = {
        "retry.max_ai_retry_attempts": max_attempts,
        "retry.max_cost_usd": max_cost_usd,
        "retry.max_minutes": max_minutes,
        "agent.backend": agent,
        "agent.models": [model] if model else None,
        "agent.isolation": _ISOLATION[isolate],
        "triage.baseline": since,
        "triage.accept": "baseline" if since else None,
    }
    order = _order(flags, allow, attempts=max_attempts, ai_fix=ai_fix, force=force)
    asked = Asked(order=order, recorded=output.recorded(start_from), record=record)
    roots = folders.find(workspaces or [], Path.cwd(), os.environ, every=every)
    is_one_whole = len(roots) == 1 and not (dry_run or start_from)
    if run_id and not is_one_whole:
        raise UsageError("--run-id needs one workspace and a whole run")
    if dry_run:
        return _print_prompts(roots, asked, reports=json or bool(report))
    level = options.verbosity(quiet, verbose)
    with output.screen(
        os.environ, plain=plain, verbosity=level, to_stderr=json, named=len(roots) > 1
    ) as shown:
        done = _done(roots, asked, shown, run_id=run_id, jobs=jobs)
        shown.write(run_output.last_lines(done, verbosity=level))
    run_output.publish_runs(done, targets, as_json=json)
    return run_output.exit_code(done, asks=not (json or plain or quiet))


def _order(
    flags: Mapping[str, object],
    allow: Sequence[str] | None,
    *,
    attempts: int | None,
    ai_fix: bool,
    force: bool,
) -> "Order":
    """The order; `flags` maps configuration keys to values, None if the flag is not given."""
    from atlas_retry.history.values import Order

    return Order(
        ai_fix=ai_fix,
        overrides={key: value for key, value in flags.items() if value is not None},
        attempts_flag=attempts,
        allow=tuple(allow or ()),
        force=force,
    )


def _done(
    roots: Sequence[Path], asked: "Asked", shown: Emit, *, run_id: str | None, jobs: int | None
) -> "Done":
    """The finished runs; a run with an id is continued, or reported if it has ended."""
    if run_id:
        from atlas_retry.run.one import Done
        from atlas_retry.run.resume import run_once

        return Done(finished=(run_once(roots[0], run_id, asked, os.environ, shown),))
    from atlas_retry.run import many

    return many.run(roots, asked, os.environ, shown, jobs=jobs)


def _print_prompts(roots: Sequence[Path], asked: "Asked", *, reports: bool) -> int:
    from atlas_retry.run.briefing import preview

    if reports:
        raise UsageError(
            "--dry-run shows prompts: there is nothing to report",
            remedy="leave out --json and --report",
        )
    for root in roots:
        overrides = asked.order.overrides
        text = preview(root, os.environ, overrides, recorded=asked.recorded, max_chars=None)
        print(text, end="")
    return 0
