"""Phrases and escaping that all formats for people share."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain

from atlas_retry.model import GateResult, Outcome, Status, Validation, Verdict
from atlas_retry.reports.subject import Subject
from atlas_retry.text.json_text import encodable
from atlas_retry.text.redaction import ESCAPES
from atlas_retry.text.units import counted

# XML 1.0 §2.2: these cannot be written, not even as character references.
_FORBIDDEN = "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"

BARS = "▁▂▃▄▅▆▇█"

VERDICTS = {
    Verdict.CLEAN: "Everything passes",
    Verdict.FIXED: "Fixed",
    Verdict.FAILED: "Gates fail",
    Verdict.NEEDS_REVIEW: "Needs review: a person must accept a change",
    Verdict.EXHAUSTED: "Not fixed: the budget is spent",
    Verdict.STALLED: "Not fixed: no more progress",
    Verdict.REJECTED: "Not fixed: the guard refused the changes",
    Verdict.GAVE_UP: "Not fixed: the agent says it cannot be done within the rules",
    Verdict.BROKEN: "Could not run",
    Verdict.INTERRUPTED: "Interrupted",
}


def plain(text: str) -> str:
    """`text` without escape sequences and characters that XML forbids; lone surrogates escaped."""
    return re.sub(_FORBIDDEN, "", ESCAPES.sub("", encodable(text)))


def headline(subject: Subject) -> str:
    """The verdict in one sentence."""
    run = subject.run
    if run is None:
        text, waiting = _of_validation(subject.validation), len(subject.open_reviews)
        asks = f", but a person must review {counted(waiting, 'change')}"
        return f"{text}{asks}" if waiting and subject.validation.success else text
    if run.verdict is Verdict.FIXED:
        kept = [attempt.number for attempt in run.attempts if attempt.kept]
        return f"Fixed on attempt {kept[-1]}" if kept else "Fixed by the gates' own fixers"
    return VERDICTS[run.verdict]


def _of_validation(validation: Validation) -> str:
    results = validation.results
    if not results:
        return "No gate ran"
    has_skipped = any(result.status is Status.SKIPPED for result in results)
    if validation.success:
        flaky = sum(result.status is Status.FLAKY for result in results)
        if not all(result.success for result in results) or has_skipped:
            return f"No required gate failed: {validation.counts}"
        passed = f"All {len(results)} gates pass" if results[1:] else "The gate passes"
        return passed + (f", {flaky} flaky" if flaky else "")
    if not validation.failures:
        return f"Not checked: {validation.unchecked}"
    if has_skipped:
        return validation.counts.capitalize()
    return f"{len(validation.failures)} of {counted(len(results), 'gate')} failed"


def next_steps(run: Outcome) -> Iterator[tuple[str, str]]:
    """Next steps after a run, each with its command."""
    if run.better is not None:
        text = f"Attempt {run.better} came closest, but is not in the workspace. To take it"
        yield text, f"atlas pick {run.run_id} {run.better}"
    for lost in run.lost:
        names = lost.path + (f": {', '.join(lost.names)}" if lost.names else "")
        yield f"Lost, and not committed: {names}. To restore it", lost.command
    if run.remedy:
        yield "Next", run.remedy


def gate_history(run: Outcome) -> tuple[tuple[str, tuple[GateResult | None, ...]], ...]:
    """Each gate with its result at the start and after each attempt; None if it did not run."""
    seen = [run.baseline, *(a.validation for a in run.attempts if a.validation)]
    columns = [{result.name: result for result in one.results} for one in seen]
    names = dict.fromkeys(chain.from_iterable(columns))
    return tuple((name, tuple(column.get(name) for column in columns)) for name in names)


def sparkline(counts: Iterable[int | None]) -> str:
    """Counts as bars of one character each; a space for None."""
    every = [*counts]
    most = max((count for count in every if count is not None), default=0) or 1
    return "".join(" " if n is None else BARS[-(-n * (len(BARS) - 1) // most)] for n in every)
