"""How a run went: a curve of its problems and a strip of its gates, one column a validation."""

from collections.abc import Iterator, Sequence

from atlas_retry.diagnostics.counting import counts_of, course_of
from atlas_retry.model import GateResult, Outcome
from atlas_retry.reports.page.elements import Node, scrollable, tag
from atlas_retry.reports.page.gates import SIGNS, weight
from atlas_retry.reports.phrases import strip_of

STEP, HEIGHT, MARGIN = 60, 120, 20
"""Of the picture, in its own units."""


def progress(run: Outcome) -> Node:
    """The curve where problems were counted, and the strip."""
    return tag("div", _curve(run), _strip(run), class_="progress")


def _curve(run: Outcome) -> Node | None:
    counted = [(n, count) for n, count in enumerate(counts_of(run)) if count is not None]
    if len(counted) < 2:  # noqa: PLR2004 - a line needs two points
        return None
    most = max(count for _, count in counted) or 1
    points = [
        (MARGIN + n * STEP, MARGIN + (HEIGHT - 2 * MARGIN) * (1 - count / most), str(count))
        for n, count in counted
    ]
    width = 2 * MARGIN + counted[-1][0] * STEP
    return tag(
        "svg",
        tag("polyline", points=" ".join(f"{x},{y:.1f}" for x, y, _ in points)),
        *_marks(points),
        viewBox=f"0 0 {width} {HEIGHT}",
        role="img",
        class_="curve",
        aria_label=f"Problems: {course_of(run)}",
    )


def _marks(points: Sequence[tuple[int, float, str]]) -> Iterator[Node]:
    for x, y, count in points:
        yield tag("circle", cx=str(x), cy=f"{y:.1f}", r="4")
        yield tag("text", count, x=str(x), y=f"{max(y - 8, 12):.1f}", text_anchor="middle")


def _strip(run: Outcome) -> Node:
    columns = ("start", *(str(a.number) for a in run.attempts if a.validation))
    head = tag("tr", tag("th", "gate"), *(tag("th", column) for column in columns))
    rows = [tag("tr", tag("th", name), *map(_cell, results)) for name, results in strip_of(run)]
    return scrollable("Gates by attempt", tag("table", head, *rows), class_="strip")


def _cell(result: GateResult | None) -> Node:
    if result is None:
        return tag("td", "")
    title = result.status.replace("_", " ")
    return tag("td", SIGNS[result.status], class_=weight(result), title=title)
