"""The HTML report: one self-contained file without scripts."""

from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from atlas_retry import __version__
from atlas_retry.diagnostics.counting import counts_of, course_of
from atlas_retry.model import ExtraRun, GateResult, Outcome, Validation, Verdict
from atlas_retry.reports.page.attempts import attempts
from atlas_retry.reports.page.elements import Node, bar, document, table, tag
from atlas_retry.reports.page.gates import gates, weight
from atlas_retry.reports.phrases import headline, next_steps, strip_of
from atlas_retry.reports.problems import SIGNS
from atlas_retry.reports.subject import Subject
from atlas_retry.text.units import counted, seconds, spent

STEP, HEIGHT, MARGIN = 60, 120, 20
"""Sizes in the curve, in SVG units."""


def report(subject: Subject) -> str:
    """Verdict, course, present gates, attempts, and the state before the first one."""
    sign = "✓" if subject.success else "✗"
    title = f"{sign} {subject.workspace.name}: {headline(subject)}"
    return document(title, _body(subject, sign))


def _body(subject: Subject, sign: str) -> Element:
    run = subject.run
    return tag(
        "body",
        tag("a", "Skip to the gates", href="#gates", class_="skip"),
        _verdict(subject, sign),
        tag(
            "main",
            _course(run) if run and run.attempts else None,
            tag(
                "section",
                tag("h2", "Gates now" if run else "Gates"),
                gates(subject.validation, unfolded=True),
                id="gates",
            ),
            *(attempts(subject, run) if run else ()),
        ),
        tag("footer", f"atlas {__version__}"),
    )


def _verdict(subject: Subject, sign: str) -> Node:
    style = "good" if subject.success else "bad"
    if subject.run and subject.run.verdict in (Verdict.INTERRUPTED, Verdict.BROKEN):
        sign, style = "!", "warn"
    where = subject.workspace
    dirty = " with uncommitted changes" if where.dirty else ""
    head = f"{where.head[:12]}{dirty}" if where.head else None
    return tag(
        "header",
        tag("p", where.name, class_="workspace"),
        tag("h1", tag("span", sign, class_="sign", aria_hidden="true"), headline(subject)),
        *(_outcome(subject.run) if subject.run else ()),
        tag(
            "p",
            *(tag("span", fact) for fact in _facts(subject)),
            tag("span", tag("code", head)) if head else None,
            class_="facts",
        ),
        class_=style,
    )


def _outcome(run: Outcome) -> Iterable[Node]:
    if run.final_error:
        yield tag("p", run.final_error)
    if problems := course_of(run):
        yield tag("p", f"Problems: {problems}")
    yield from (tag("p", f"{text}: ", tag("code", command)) for text, command in next_steps(run))
    if run.learning_record_id:
        yield tag("p", "Recorded as ", tag("code", run.learning_record_id))


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


def _course(run: Outcome) -> Node:
    """The curve of problem counts, the table of gates by attempt and the timeline."""
    columns = ("gate", "start", *(str(a.number) for a in run.attempts if a.validation))
    rows = ((tag("th", name), *map(_cell, results)) for name, results in strip_of(run))
    strip = table("Gates by attempt", columns, rows, class_="strip")
    return tag(
        "section",
        tag("h2", "Course"),
        tag("div", _curve(run), strip, class_="progress"),
        _timeline(run),
        _extra(run.extra_runs),
    )


def _curve(run: Outcome) -> Node | None:
    counted = [(n, count) for n, count in enumerate(counts_of(run)) if count is not None]
    if len(counted) < 2:  # noqa: PLR2004 - a line needs two points
        return None
    most = max(count for _, count in counted) or 1
    points, marks = [], []
    for n, count in counted:
        x, y = MARGIN + n * STEP, MARGIN + (HEIGHT - 2 * MARGIN) * (1 - count / most)
        points.append(f"{x},{y:.1f}")
        marks.append(tag("circle", cx=str(x), cy=f"{y:.1f}", r="4"))
        top = f"{max(y - 8, 12):.1f}"
        marks.append(tag("text", str(count), x=str(x), y=top, text_anchor="middle"))
    return tag(
        "svg",
        tag("polyline", points=" ".join(points)),
        *marks,
        viewBox=f"0 0 {2 * MARGIN + counted[-1][0] * STEP} {HEIGHT}",
        role="img",
        class_="curve",
        aria_label=f"Problems: {course_of(run)}",
    )


def _cell(result: GateResult | None) -> Node:
    if result is None:
        return ""
    title = result.status.replace("_", " ")
    return tag("td", SIGNS[result.status], class_=weight(result), title=title)


def _timeline(run: Outcome) -> Node:
    phases = [*_phases(run)]
    longest = max(duration_ms for _, _, duration_ms, _ in phases)
    items = (
        tag(
            "li",
            tag("a", label, href=f"#{section}"),
            bar(duration_ms, longest),
            tag("span", seconds(duration_ms), class_="time"),
            class_=style,
        )
        for label, section, duration_ms, style in phases
    )
    return tag("ol", *items, class_="phases")


def _extra(runs: tuple[ExtraRun, ...]) -> Node | None:
    """What ran besides the validations, and why."""
    if not runs:
        return None
    rows = (
        (
            run.gate,
            f"attempt {run.attempt}" if run.attempt else "before",
            run.reason,
            seconds(run.duration_ms),
        )
        for run in runs
    )
    return table("Gates ran again", ("gate", "when", "why", "time"), rows)


def _phases(run: Outcome) -> Iterator[tuple[str, str, int, str]]:
    """The baseline, then each agent turn and the validation after it.

    Yields title, id of its section, duration in ms, and CSS class.
    """
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
