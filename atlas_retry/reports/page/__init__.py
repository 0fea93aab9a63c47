"""The HTML report: one self-contained file without scripts. The words are in `templates/`."""

from collections.abc import Iterable, Iterator

from atlas_retry.diagnostics.counting import counts_of, problem_trend
from atlas_retry.model import Outcome, Validation, Verdict
from atlas_retry.reports.page import attempts, gates
from atlas_retry.reports.page.rendering import render
from atlas_retry.reports.phrases import gate_history, headline, next_steps
from atlas_retry.reports.subject import Subject
from atlas_retry.text.units import counted, seconds, spent

STEP, HEIGHT, MARGIN = 60, 120, 20
"""Sizes in the curve, in SVG units."""


def report(subject: Subject) -> str:
    """Verdict, course, present gates, attempts, and the state before the first one."""
    run, where = subject.run, subject.workspace
    sign, style = ("✓", "good") if subject.success else ("✗", "bad")
    title = f"{sign} {where.name}: {headline(subject)}"
    if run and run.verdict in (Verdict.INTERRUPTED, Verdict.BROKEN):
        sign, style = "!", "warn"
    dirty = " with uncommitted changes" if where.dirty else ""
    course: dict[str, object] = {}
    if run:
        course = attempts.values(run) | {
            "course": problem_trend(run),
            "curve": _curve(run),
            "height": HEIGHT,
            "margin": MARGIN,
            "next_steps": [*next_steps(run)],
            "phases": [*_phases(run)],
            "strip": gate_history(run),
        }
    return render(
        "run.html",
        title=title,
        subject=subject,
        run=run,
        sign=sign,
        style_of_verdict=style,
        headline=headline(subject),
        facts=[*_facts(subject)],
        head=f"{where.head[:12]}{dirty}" if where.head else None,
        **gates.VALUES,
        **course,
    )


def _facts(subject: Subject) -> Iterable[str]:
    run, validation = subject.run, subject.validation
    yield validation.counts
    if run:
        yield counted(len(run.attempts), "attempt")
        yield spent(run)
    yield seconds(run.duration_ms if run else validation.duration_ms)
    if validation.completed_at or validation.started_at:
        yield (validation.completed_at or validation.started_at)[:19].replace("T", " ") + " UTC"
    if run:
        yield f"run {run.run_id}"


def _curve(run: Outcome) -> list[tuple[int, int, float]]:
    """Each known count, and where it is; empty unless there are two: a line needs two points."""
    known = [(n, count) for n, count in enumerate(counts_of(run)) if count is not None]
    most = max((count for _, count in known), default=0) or 1
    points = []
    for n, count in known:
        y = round(MARGIN + (HEIGHT - 2 * MARGIN) * (1 - count / most), 1)
        points.append((count, MARGIN + n * STEP, y))
    return points if points[1:] else []


def _phases(run: Outcome) -> Iterator[tuple[str, str, int, str]]:
    """The baseline, each turn and each validation: label, id on the page, time in ms, style."""
    yield _validated("Baseline", "baseline", run.baseline)
    for attempt in run.attempts:
        name, section = f"Attempt {attempt.number}", f"attempt-{attempt.number}"
        after_ms = attempt.validation.duration_ms if attempt.validation else 0
        yield f"{name}: agent", section, max(0, attempt.duration_ms - after_ms), "agent"
        if attempt.validation:
            yield _validated(name, section, attempt.validation)


def _validated(name: str, section: str, validation: Validation) -> tuple[str, str, int, str]:
    style = "good" if validation.success else "bad"
    return f"{name}: {validation.counts}", section, validation.duration_ms, style
