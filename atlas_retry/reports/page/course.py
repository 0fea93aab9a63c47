"""How a run went: a curve of its problems, a strip of its gates, and where its time went."""

from collections.abc import Iterator

from atlas_retry.diagnostics.counting import counts_of, course_of
from atlas_retry.model import GateResult, Outcome, Validation
from atlas_retry.reports.page.elements import Node, bar, table, tag
from atlas_retry.reports.page.gates import weight
from atlas_retry.reports.phrases import fraction, strip_of
from atlas_retry.reports.problems import SIGNS
from atlas_retry.text.units import seconds

STEP, HEIGHT, MARGIN = 60, 120, 20
"""Of the picture, in its own units."""


def course(run: Outcome) -> Node:
    """The curve where problems were counted, the strip and the timeline."""
    columns = ("gate", "start", *(str(a.number) for a in run.attempts if a.validation))
    rows = ((tag("th", name), *map(_cell, results)) for name, results in strip_of(run))
    strip = table("Gates by attempt", columns, rows, class_="strip")
    return tag(
        "section",
        tag("h2", "Course"),
        tag("div", _curve(run), strip, class_="progress"),
        _timeline(run),
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


def _phases(run: Outcome) -> Iterator[tuple[str, str, int, str]]:
    """The baseline, then each agent turn and the validation after it.

    What it is, the section that says more, how long it took, and the class of its colour.
    """
    yield _validated("Baseline", "baseline", run.baseline)
    for attempt in run.attempts:
        name, section = f"Attempt {attempt.number}", f"attempt-{attempt.number}"
        yield f"{name}: agent", section, attempt.duration_ms, "agent"
        if attempt.validation:
            yield _validated(name, section, attempt.validation)


def _validated(name: str, section: str, validation: Validation) -> tuple[str, str, int, str]:
    style = "good" if validation.success else "bad"
    return f"{name}: {fraction(validation)}", section, validation.duration_ms, style
