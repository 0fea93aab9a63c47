"""Where a run's result goes, of one workspace or of several."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from atlas_retry.batch import Done
from atlas_retry.cli.output import publish, recorded
from atlas_retry.model import Outcome
from atlas_retry.preview import preview
from atlas_retry.report_files import Destination
from atlas_retry.reports import Subject
from atlas_retry.reports.documents import batch_document, encode
from atlas_retry.wording import Line, failure_lines, outcome_summary


def told_run(outcome: Outcome, *, verbosity: int) -> Iterator[Line]:
    """What still fails, and how the run ended."""
    if verbosity >= 0 and not outcome.verdict.is_green:
        yield from failure_lines(outcome.final, verbosity=verbosity)
    yield from outcome_summary(outcome)


def write_prompts(roots: Sequence[Path], environ: Mapping[str, str], start: Path | None) -> int:
    """What `--dry-run` shows: the first prompt of each workspace."""
    for root in roots:
        print(preview(root, environ, recorded=recorded(start), max_chars=None), end="")
    return 0


def publish_runs(done: Done, wanted: Sequence[Destination], *, as_json: bool) -> None:
    """Write what a run or a batch became: one document, one report a run."""
    subjects = [finished.subject for finished in done.finished]
    if len(subjects) == 1 and not done.not_started:
        publish(subjects[0], wanted, as_json=as_json)
        return
    if as_json:
        outcomes = [finished.outcome for finished in done.finished]
        print(encode(batch_document(outcomes, not_started=done.not_started)))
    for subject in subjects:
        publish(subject, [_of(subject, target) for target in wanted], as_json=False)


def _of(subject: Subject, target: Destination) -> Destination:
    """The file of one workspace of several: `report.html` becomes `report-api.html`."""
    name, path = target
    return name, path.with_stem(f"{path.stem}-{subject.workspace.name}")
