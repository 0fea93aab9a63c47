"""Gates and their complaints as HTML."""

from collections.abc import Iterable

from atlas_retry.model import Diagnostic, GateResult, Status, Validation
from atlas_retry.reports.page.elements import Node, foldable, scrollable, tag
from atlas_retry.reports.phrases import listed, more, place, plain, position
from atlas_retry.text.units import counted, seconds

SIGNS = {
    Status.PASSED: "✓",
    Status.FAILED: "✗",
    Status.TIMED_OUT: "⏱",
    Status.BROKEN: "!",
    Status.VACUOUS: "∅",
    Status.FLAKY: "~",
    Status.SKIPPED: "–",  # noqa: RUF001 - a dash for nothing
}
MAX_COMPLAINTS = 200
MAX_OUTPUT_CHARS = 20_000


def gates(validation: Validation, *, unfolded: bool = False) -> Node:
    """A row per gate, which opens to what it said."""
    longest = max((result.duration_ms for result in validation.results), default=0)
    rows = [_gate(result, longest, unfolded=unfolded) for result in validation.results]
    return tag("div", *rows, class_="gates") if rows else tag("p", "No gate ran.", class_="dim")


def _gate(result: GateResult, longest_ms: int, *, unfolded: bool) -> Node:
    weight = "bad" if result.blocks else "good" if result.status is Status.PASSED else "warn"
    optional = "" if result.required else " (optional)"
    title = tag(
        "span",
        tag("span", f"{SIGNS[result.status]} {result.status.replace('_', ' ')}", class_="status"),
        tag("span", result.name + optional, class_="name"),
        bar(result.duration_ms, longest_ms),
        tag("span", seconds(result.duration_ms), class_="time"),
        class_="row",
    )
    return foldable(
        title, *_told(result), class_=f"gate {weight}", unfolded=unfolded and result.blocks
    )


def bar(value: int, longest: int) -> Node:
    """A bar without inline style, which the page's policy forbids."""
    width = str(max(round(1000 * value / longest), 4) if longest else 4)
    rectangle = tag("rect", width=width, height="10", rx="2")
    return tag(
        "svg",
        rectangle,
        viewBox="0 0 1000 10",
        preserveAspectRatio="none",
        class_="bar",
        aria_hidden="true",
    )


def _told(result: GateResult) -> Iterable[Node | None]:
    yield tag("p", tag("code", f"$ {result.command}"))
    yield tag("p", result.error) if result.error else None
    yield _complaints(result) if result.diagnostics else None
    if result.changed:
        yield tag(
            "p", f"Changed {counted(len(result.changed), 'file')}: ", ", ".join(result.changed)
        )
    for name, text in (("standard output", result.stdout), ("standard error", result.stderr)):
        yield _output(f"{result.name}: {name}", text) if text.strip() else None
    yield tag("p", f"Whole output: {result.log_path}", class_="dim") if result.log_path else None


def _output(label: str, text: str) -> Node:
    shown = plain(text.strip("\n"))
    left_out = len(shown) - MAX_OUTPUT_CHARS
    if left_out > 0:
        half = MAX_OUTPUT_CHARS // 2
        shown = f"{shown[:half]}\n... {left_out} characters left out ...\n{shown[-half:]}"
    return foldable(label, scrollable(label, tag("pre", shown)), class_="output")


def _complaints(result: GateResult) -> Node:
    shown = listed(result)[:MAX_COMPLAINTS]
    return complaint_list(shown, more(result, shown))


def complaint_list(told: Iterable[Diagnostic], left_out: str = "") -> Node:
    """Place, rule and message of each, and how many there are more."""
    items = [_complaint(complaint) for complaint in told]
    if left_out:
        items.append(tag("li", f"and {left_out}", class_="dim"))
    return tag("ul", *items, class_="complaints")


def _complaint(complaint: Diagnostic) -> Node:
    where = place(complaint)
    return tag(
        "li",
        tag("code", where) if where else None,
        " " if where else None,
        tag("code", complaint.rule_id, class_="rule") if complaint.rule_id else None,
        " ",
        tag("span", complaint.message.strip(), class_="message"),
        tag("span", f" ({position(complaint)})", class_="dim")
        if complaint.test_id and complaint.path
        else None,
    )
