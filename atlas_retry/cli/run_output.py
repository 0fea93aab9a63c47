"""Where a run's result goes, of one workspace or of several."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from atlas_retry.cli.batch_screen import batch_lines
from atlas_retry.cli.output import on_github, publish
from atlas_retry.cli.report_files import Destination
from atlas_retry.model import Outcome, Verdict
from atlas_retry.reports.documents import batch_document, encode
from atlas_retry.reports.screen.gate_lines import failure_lines
from atlas_retry.reports.screen.lines import Line
from atlas_retry.reports.screen.run_lines import outcome_summary
from atlas_retry.run.briefing import preview
from atlas_retry.run.folders import labels
from atlas_retry.run.one import Asked, Done

EXIT_CODES = {
    Verdict.CLEAN: 0,
    Verdict.FIXED: 0,
    Verdict.FAILED: 1,
    Verdict.NEEDS_REVIEW: 1,
    Verdict.EXHAUSTED: 1,
    Verdict.STALLED: 1,
    Verdict.REJECTED: 1,
    Verdict.GAVE_UP: 1,
    Verdict.BROKEN: 3,
}


def run_lines(outcome: Outcome, *, verbosity: int) -> Iterator[Line]:
    """What still fails, and how the run ended."""
    if verbosity >= 0 and not outcome.verdict.is_green:
        yield from failure_lines(outcome.final, verbosity=verbosity)
    yield from outcome_summary(outcome)


def write_prompts(roots: Sequence[Path], environ: Mapping[str, str], asked: Asked) -> int:
    """What `--dry-run` shows: the first prompt of each workspace."""
    for root in roots:
        text = preview(
            root, environ, asked.order.overrides, recorded=asked.recorded, max_chars=None
        )
        print(text, end="")
    return 0


def last_lines(done: Done, *, verbosity: int) -> Iterator[Line]:
    """The last lines of `atlas retry`, of one workspace or of several."""
    if is_one(done):
        return run_lines(done.finished[0].outcome, verbosity=verbosity)
    return batch_lines(done, verbosity=verbosity)


def is_one(done: Done) -> bool:
    """Whether there was but one workspace, so that no batch is spoken of."""
    return len(done.finished) == 1 and not done.not_started


def publish_runs(done: Done, wanted: Sequence[Destination], *, as_json: bool) -> None:
    """Write what a run or a batch became: one document, one report a run."""
    if is_one(done):
        publish(done.finished[0].subject, wanted, as_json=as_json)
        return
    outcomes = [one.outcome for one in done.finished]
    if as_json:
        document = batch_document(outcomes, not_started=done.not_started, cascade=done.cascade)
        print(encode(document), end="")
    names = labels([one.root for one in done.finished])
    for one in done.finished if wanted or on_github() else ():
        targets = [_of(names[one.root], target) for target in wanted]
        publish(one.subject, targets, as_json=False, to_stderr=as_json)


def exit_code(done: Done) -> int:
    """The worst of the workspaces; one that was not started is not green."""
    codes = [EXIT_CODES[one.outcome.verdict] for one in done.finished]
    return max([*codes, 1 if done.not_started else 0])


def ended(done: Done, *, asks: bool) -> int:
    """The exit code, once a person could say what becomes of what was held."""
    if asks and is_one(done) and done.finished[0].outcome.verdict is Verdict.NEEDS_REVIEW:
        from atlas_retry.cli.reviewing import accepted

        if accepted(done.finished[0].outcome):
            return EXIT_CODES[Verdict.FIXED]
    return exit_code(done)


def _of(name: str, target: Destination) -> Destination:
    """The file of one workspace of several: `report.html` becomes `report-api.html`."""
    format_name, path = target
    return format_name, path.with_stem(f"{path.stem}-{name.replace('/', '-')}")
