"""`atlas retry`: turns flags into an order for the `run` package."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from atlas_retry.errors import UsageError
from atlas_retry.events import Emit, Notice

if TYPE_CHECKING:
    from atlas_retry.run.one import Asked, Done

_ISOLATION = {None: None, True: "overlay", False: "none"}


def retry(
    workspaces: list[str] | None = None,
    *,
    config_file: Path | None = None,
    ai_fix: bool = False,
    max_attempts: int | None = None,
    max_cost_usd: float | None = None,
    max_minutes: float | None = None,
    agent: str | None = None,
    model: str | None = None,
    start_from: Path | None = None,
    only: list[str] | None = None,
    allow: list[str] | None = None,
    every: bool = False,
    jobs: int | None = None,
    dry_run: bool = False,
    record: Path | None = None,
    force: bool = False,
    since: str | None = None,
    isolate: bool | None = None,
    run_id: str | None = None,
    json: bool = False,
    report: list[str] | None = None,
    quiet: bool = False,
    verbose: int = 0,
    plain: bool = False,
) -> int:
    """Validate and fix what fails; with --ai-fix by asking the agent."""
    from atlas_retry import config
    from atlas_retry.cli import output, resuming, run_output
    from atlas_retry.history.values import Order
    from atlas_retry.run import folders
    from atlas_retry.run.one import Asked

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
    asked = Asked(order=order, recorded=output.recorded(start_from), record=record)
    roots = folders.find(workspaces or [], Path.cwd(), os.environ, every=every)
    is_one_whole = len(roots) == 1 and not (dry_run or start_from)
    if run_id and not is_one_whole:
        raise UsageError("--run-id needs one workspace and a whole run")
    if dry_run:
        return _print_prompts(roots, asked, reports=json or bool(report))
    if not run_id and not resuming.may_replace(roots):
        return 1
    level = output.verbosity(quiet, verbose)
    with output.screen(
        os.environ, plain=plain, verbosity=level, to_stderr=json, named=len(roots) > 1
    ) as shown:
        if only:
            shown(Notice(text=f"only {' and '.join(only)}: no other gate runs"))
        done = _done(roots, asked, shown, run_id=run_id, jobs=jobs)
        shown.write(run_output.last_lines(done, verbosity=level))
        shown.write(run_output.only_here_lines(done, verbosity=level))
    run_output.publish_runs(done, targets, as_json=json)
    return run_output.exit_code(done, asks=not (json or plain or quiet))


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
