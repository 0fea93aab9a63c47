"""Gates and their problems as HTML.

Tests are listed by name, other problems by file and rule; after the first ones they are folded.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from atlas_retry.model import Diagnostic, GateResult, Status, Validation
from atlas_retry.reports.page.elements import Node, bar, foldable, scrollable, tag
from atlas_retry.reports.phrases import plain
from atlas_retry.reports.problems import SIGNS, listed, more, place, position
from atlas_retry.text.units import bounded, counted, seconds

MAX_OUTPUT_CHARS = 20_000
UNFOLDED, MAX_LISTED = 20, 200
MAX_MESSAGE_CHARS = 240


def weight(result: GateResult) -> str:
    """`bad`, `good` or `warn`."""
    return "bad" if result.blocks else "good" if result.status is Status.PASSED else "warn"


def gates(validation: Validation, *, unfolded: bool = False) -> Node:
    """One row per gate, which unfolds to its output; blocking gates first, the first unfolded."""
    results = sorted(validation.results, key=lambda result: not result.blocks)
    longest = max((result.duration_ms for result in results), default=0)
    rows = []
    for number, result in enumerate(results):
        status = f"{SIGNS[result.status]} {result.status.replace('_', ' ')}"
        title = tag(
            "span",
            tag("span", status, class_="status"),
            tag("span", result.name + ("" if result.required else " (optional)"), class_="name"),
            bar(result.duration_ms, longest),
            tag("span", seconds(result.duration_ms), class_="time"),
            class_="row",
        )
        is_open = unfolded and result.blocks and not number
        style = f"gate {weight(result)}"
        rows.append(foldable(title, *_details(result), class_=style, unfolded=is_open))
    return tag("div", *rows, class_="gates") if rows else tag("p", "No gate ran.", class_="dim")


def _details(result: GateResult) -> Iterator[Node]:
    yield tag("p", tag("code", f"$ {result.command}"))
    if result.error:
        yield tag("p", result.error)
    if result.diagnostics:
        shown = listed(result)[:MAX_LISTED]
        yield problems(shown, more(result, shown))
    if result.changed:
        files = ", ".join(result.changed)
        yield tag("p", f"Changed {counted(len(result.changed), 'file')}: {files}")
    for name, text in (("standard output", result.stdout), ("standard error", result.stderr)):
        if text.strip():
            yield _output(f"{result.name}: {name}", text)
    if result.log_path:
        yield tag("p", f"Whole output: {result.log_path}", class_="dim")


def _output(label: str, text: str) -> Node:
    shown = plain(text.strip("\n"))
    left_out = len(shown) - MAX_OUTPUT_CHARS
    if left_out > 0:
        half = MAX_OUTPUT_CHARS // 2
        shown = f"{shown[:half]}\n... {left_out} characters left out ...\n{shown[-half:]}"
    return foldable(label, scrollable(label, tag("pre", shown)), class_="output")


def problems(diagnostics: Sequence[Diagnostic], left_out: str = "") -> Node:
    """Groups of problems, and the number of others."""
    ordered = sorted(diagnostics, key=_order)[:MAX_LISTED]
    shown, folded = ordered[:UNFOLDED], ordered[UNFOLDED:]
    rest: Node | None = tag("p", f"and {left_out}", class_="dim") if left_out else None
    if folded:
        rest = foldable(counted(len(folded), "more problem"), *_groups(folded), rest)
    return tag("div", *_groups(shown), rest, class_="problems")


def _order(one: Diagnostic) -> tuple[bool, str, str, int]:
    if one.test_id is not None:
        return (False, "", "", 0)  # keeps the gate's order, which has the worst first
    line = one.region.start_line if one.region else 0
    return (True, one.path or "", one.rule_id or "", line)


def _groups(diagnostics: Iterable[Diagnostic]) -> Iterator[Node]:
    for (is_test, path), group in groupby(
        diagnostics, lambda one: (one.test_id is not None, one.path)
    ):
        if is_test:
            yield tag("ul", *(_item(one, place(one), one.rule_id) for one in group))
            continue
        if path:
            yield tag("p", tag("code", path), class_="file")
        rules = groupby(group, lambda one: one.rule_id)
        yield tag("ul", *(_of_rule(rule, [*same]) for rule, same in rules))


def _of_rule(rule: str | None, same: Sequence[Diagnostic]) -> Node:
    """A single problem on one line; several below their rule."""
    if len(same) == 1:
        return _item(same[0], _line(same[0]), rule)
    items = (_item(one, _line(one), None) for one in same)
    name = tag("code", rule or same[0].tool, class_="rule")
    return tag("li", name, f" {len(same)} times", tag("ul", *items))


def _line(one: Diagnostic) -> str:
    return position(one).removeprefix(f"{one.path}:") if one.path and one.region else ""


def _item(one: Diagnostic, where: str, rule: str | None) -> Node:
    whole = one.message.strip()
    first = bounded(whole.partition("\n")[0], MAX_MESSAGE_CHARS)
    at = f" ({position(one)})" if one.test_id and one.path else ""
    message: Node = tag("span", tag("span", first, class_="message"), tag("span", at, class_="dim"))
    if first != whole:
        message = foldable(message, tag("p", whole, class_="message"))
    named = tag("code", rule, class_="rule") if rule else None
    return tag("li", tag("code", where) if where else None, " ", named, " ", message)
