"""`atlas retry`: turns flags into an order for the `run` package."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.cli import options, output, resuming, run_output
from atlas_retry.cli.app import app, examples
from atlas_retry.errors import ExitCode, UsageError
from atlas_retry.events import Notice
from atlas_retry.history.values import Order
from atlas_retry.run import folders, many
from atlas_retry.run.briefing import preview
from atlas_retry.run.one import BatchResult, RunOptions
from atlas_retry.run.resume import run_once

_ISOLATION = {None: None, True: "overlay", False: "none"}


@app.command(
    epilog=examples(
        "atlas retry .",
        "atlas retry . --ai-fix --max-cost-usd 1",
        "atlas retry . --ai-fix --since origin/main",
    )
)
def retry(
    workspaces: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="WORKSPACE...",
            help="Names or directories; by default this one.",
            autocompletion=options.complete_workspaces,
        ),
    ] = None,
    *,
    config_file: options.ConfigFile = None,
    ai_fix: options.AiFix = False,
    max_attempts: options.MaxAttempts = None,
    max_cost_usd: options.MaxCostUsd = None,
    max_minutes: options.MaxMinutes = None,
    agent: Annotated[
        str | None,
        typer.Option(
            metavar="BACKEND",
            help="The agent; by default agent.backend.",
            autocompletion=options.complete_agents,
        ),
    ] = None,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="The model of every attempt.")
    ] = None,
    start_from: options.StartFrom = None,
    only: options.Only = None,
    allow: options.Allow = None,
    every: Annotated[bool, typer.Option("--all", help="Run every named workspace.")] = False,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", help="Workspaces to run at once; 1: gates one at a time, too.", min=1
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option(help="Print the prompt and stop, at no cost.")] = False,
    record: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Save prompts, replies and edits in this folder."),
    ] = None,
    force: Annotated[
        bool, typer.Option(help="Run even in the middle of a merge or rebase.")
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(metavar="REV", help="Fix only problems that did not exist at this revision."),
    ] = None,
    isolate: Annotated[
        bool | None,
        typer.Option(
            "--isolate/--no-isolate",
            help="Work in an overlay of the workspace, or in the workspace itself.",
        ),
    ] = None,
    run_id: Annotated[
        str | None,
        typer.Option(
            metavar="ID",
            help="Name the run; the same id again resumes it, or prints its result: "
            "nothing is paid twice.",
        ),
    ] = None,
    json: options.Json = False,
    report: options.Report = None,
    quiet: options.Quiet = 0,
    verbose: options.Verbose = 0,
    plain: options.Plain = False,
) -> ExitCode:
    """Validate and fix what fails; with --ai-fix by asking the agent."""
    targets = output.targets(report)
    flags = {
        **config.naming(config_file),
        "retry.max_ai_retry_attempts": max_attempts,
        "retry.max_cost_usd": max_cost_usd,
        "retry.max_minutes": max_minutes,
        "agent.backend": agent,
        "agent.models": [model] if model else None,
        "agent.isolation": _ISOLATION[isolate],
        "validation.jobs": 1 if jobs == 1 else None,
        "triage.baseline": since,
        "triage.accept": "baseline" if since else None,
    }
    order = Order(
        ai_fix=ai_fix,
        overrides={key: value for key, value in flags.items() if value is not None},
        attempts_flag=max_attempts,
        allow=tuple(allow or ()),
        only=tuple(only or ()),
        force=force,
    )
    asked = RunOptions(order=order, recorded=output.recorded(start_from), record=record)
    roots = folders.find(workspaces or [], Path.cwd(), os.environ, every=every)
    if run_id:
        _refuse_parts(roots, is_whole=not (dry_run or start_from))
    if dry_run:
        _print_prompts(roots, asked, reports=json or bool(report))
        return ExitCode.OK
    if not run_id and not resuming.may_replace(roots):
        return ExitCode.FAILED
    level = output.verbosity(quiet, verbose)
    with output.screen(
        os.environ, plain=plain, verbosity=level, to_stderr=json, named=len(roots) > 1
    ) as shown:
        if only:
            shown(Notice(text=f"only {' and '.join(only)}: no other gate runs"))
        if run_id:  # continued, or reported if it has ended
            done = BatchResult(finished=(run_once(roots[0], run_id, asked, os.environ, shown),))
        else:
            done = many.run(roots, asked, os.environ, shown, jobs=jobs)
        shown.write(run_output.last_lines(done, verbosity=level, only=only or ()))
        shown.write(run_output.only_here_lines(done, verbosity=level))
    asks = not (json or plain or quiet)
    done = _gone_on(done, asked, level, asks=asks)
    run_output.publish_runs(done, targets, as_json=json)
    return run_output.exit_code(done, asks=asks)


def _gone_on(done: BatchResult, asked: RunOptions, level: int, *, asks: bool) -> BatchResult:
    """The last of the runs that a person added money for; `done` if they added none."""
    while asks and (more := run_output.more_usd(done)) is not None:
        overrides = {**asked.order.overrides, "retry.max_cost_usd": more}
        asked = replace(asked, order=replace(asked.order, overrides=overrides))
        with output.screen(os.environ, plain=False, verbosity=level) as shown:
            done = many.run([done.finished[0].root], asked, os.environ, shown)
            shown.write(run_output.last_lines(done, verbosity=level))
            shown.write(run_output.only_here_lines(done, verbosity=level))
    return done


def _refuse_parts(roots: Sequence[Path], *, is_whole: bool) -> None:
    if len(roots) > 1 or not is_whole:
        raise UsageError("--run-id needs one workspace and a whole run")


def _print_prompts(roots: Sequence[Path], asked: "RunOptions", *, reports: bool) -> None:
    if reports:
        raise UsageError(
            "--dry-run shows prompts: there is nothing to report",
            remedy="leave out --json and --report",
        )
    for root in roots:
        overrides = asked.order.overrides
        text = preview(root, os.environ, overrides, recorded=asked.recorded, max_chars=None)
        print(text, end="")
