"""Gates and their problems as HTML."""

from collections.abc import Iterable

from atlas_retry.model import GateResult, Status, Validation
from atlas_retry.reports.page.elements import Node, foldable, scrollable, tag
from atlas_retry.reports.page.problems import MAX_LISTED, problems
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import listed, more
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
MAX_OUTPUT_CHARS = 20_000


def weight(result: GateResult) -> str:
    """`bad`, `good` or `warn`."""
    return "bad" if result.blocks else "good" if result.status is Status.PASSED else "warn"


def gates(validation: Validation, *, unfolded: bool = False) -> Node:
    """A row per gate, which opens to what it said: those that block first, the first one open."""
    results = sorted(validation.results, key=lambda result: not result.blocks)
    longest = max((result.duration_ms for result in results), default=0)
    rows = [
        _gate(result, longest, unfolded=unfolded and result.blocks and not number)
        for number, result in enumerate(results)
    ]
    return tag("div", *rows, class_="gates") if rows else tag("p", "No gate ran.", class_="dim")


def _gate(result: GateResult, longest_ms: int, *, unfolded: bool) -> Node:
    optional = "" if result.required else " (optional)"
    title = tag(
        "span",
        tag("span", f"{SIGNS[result.status]} {result.status.replace('_', ' ')}", class_="status"),
        tag("span", result.name + optional, class_="name"),
        bar(result.duration_ms, longest_ms),
        tag("span", seconds(result.duration_ms), class_="time"),
        class_="row",
    )
    return foldable(title, *_details(result), class_=f"gate {weight(result)}", unfolded=unfolded)


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


def _details(result: GateResult) -> Iterable[Node | None]:
    yield tag("p", tag("code", f"$ {result.command}"))
    yield tag("p", result.error) if result.error else None
    if result.diagnostics:
        shown = listed(result)[:MAX_LISTED]
        yield problems(shown, more(result, shown))
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
