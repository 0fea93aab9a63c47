"""`atlas retry`: the run itself; what happened before is `history`'s."""

import os
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import completing, options
from atlas_retry.errors import UsageError

Workspaces = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="WORKSPACE...",
        help="Names or directories; by default this one.",
        autocompletion=completing.workspaces,
    ),
]
MaxAttempts = Annotated[
    int | None,
    typer.Option("--max-attempts", min=0, help="Attempts per run; by default 3."),
]
MaxCost = Annotated[
    float | None,
    typer.Option("--max-cost-usd", min=0, help="US dollars per run; by default 5."),
]
MaxMinutes = Annotated[
    float | None,
    typer.Option("--max-minutes", min=0, help="Minutes per run; by default 60."),
]
Backend = Annotated[
    str | None,
    typer.Option(
        "--agent",
        metavar="BACKEND",
        help="The agent to ask; by default agent.backend.",
        autocompletion=completing.agents,
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The model of every attempt.")
]
Every = Annotated[bool, typer.Option("--all", help="Run every named workspace.")]
SideBySide = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, help="Workspaces to run at once.")
]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Print the prompt and stop; spend nothing.")
]
Record = Annotated[
    Path | None,
    typer.Option("--record", metavar="DIR", help="Save prompts, replies and edits there."),
]
Force = Annotated[
    bool, typer.Option("--force", help="Run even in the middle of a merge or rebase.")
]

Isolate = Annotated[
    bool | None,
    typer.Option(
        "--isolate/--no-isolate",
        help="Work in a layer over the workspace, or in the workspace itself.",
    ),
]
Since = Annotated[
    str | None,
    typer.Option(
        "--since", metavar="REV", help="Fix only problems that are new since this revision."
    ),
]
RunId = Annotated[
    str | None,
    typer.Option(
        "--run-id",
        metavar="ID",
        help="Name the run; the same name again continues it, or reports it.",
    ),
]


_ISOLATION = {None: None, True: "overlay", False: "none"}


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("retry")(retry)


def retry(
    workspaces: Workspaces = None,
    *,
    ai_fix: options.AiFix = False,
    max_attempts: MaxAttempts = None,
    max_cost_usd: MaxCost = None,
    max_minutes: MaxMinutes = None,
    agent: Backend = None,
    model: Model = None,
    start_from: options.From = None,
    allow: options.Allow = None,
    every: Every = False,
    jobs: SideBySide = None,
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
    """Validate; on failure fix what fails, with --ai-fix by asking the agent."""
    from atlas_retry.cli import output, run_output
    from atlas_retry.history import Order
    from atlas_retry.run import folders, many
    from atlas_retry.run.one import Asked, Done

    if dry_run and (json or report):
        raise UsageError(
            "--dry-run shows prompts: there is nothing to report",
            remedy="leave out --json and --report",
        )
    targets = output.targets(report or [])
    order = Order(
        ai_fix=ai_fix,
        overrides=overrides(
            {
                "retry.max_ai_retry_attempts": max_attempts,
                "retry.max_cost_usd": max_cost_usd,
                "retry.max_minutes": max_minutes,
                "agent.backend": agent,
                "agent.models": [model] if model else None,
                "agent.isolation": _ISOLATION[isolate],
                "triage.baseline": since,
                "triage.accept": "baseline" if since else None,
            }
        ),
        attempts_flag=max_attempts,
        allow=tuple(allow or ()),
        force=force,
    )
    asked = Asked(order=order, recorded=output.recorded(start_from), record=record)
    level = options.verbosity(quiet, verbose)
    roots = folders.find(workspaces or [], Path.cwd(), os.environ, every=every)
    is_whole = not dry_run and not start_from
    if run_id and (len(roots) > 1 or not is_whole):
        raise UsageError("--run-id is of one workspace, and of a whole run")
    if dry_run:
        return run_output.write_prompts(roots, os.environ, asked)
    with output.screen(
        os.environ, plain=plain, verbosity=level, to_stderr=json, named=len(roots) > 1
    ) as shown:
        if run_id:
            from atlas_retry.run.resume import run_once

            done = Done(finished=(run_once(roots[0], run_id, asked, os.environ, shown),))
        else:
            done = many.run(roots, asked, os.environ, shown, jobs=jobs)
        shown.write(run_output.last_lines(done, verbosity=level))
    run_output.publish_runs(done, targets, as_json=json)
    return run_output.ended(done, asks=not (json or plain or quiet))


def overrides(flags: dict[str, object]) -> dict[str, object]:
    """The flags that were given, by the key they override."""
    return {key: value for key, value in flags.items() if value is not None}
