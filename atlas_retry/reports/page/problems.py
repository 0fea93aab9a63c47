"""Problems as HTML: tests by name, all others by file and rule; beyond the first ones folded."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from atlas_retry.model import Diagnostic
from atlas_retry.reports.page.elements import Node, foldable, tag
from atlas_retry.reports.problems import place, position
from atlas_retry.text.units import bounded, counted

UNFOLDED, MAX_LISTED = 20, 200
MAX_MESSAGE_CHARS = 240


def problems(diagnostics: Sequence[Diagnostic], left_out: str = "") -> Node:
    """The groups of problems, and how many there are more."""
    ordered = sorted(diagnostics, key=_order)[:MAX_LISTED]
    shown, folded = ordered[:UNFOLDED], ordered[UNFOLDED:]
    rest: Node | None = tag("p", f"and {left_out}", class_="dim") if left_out else None
    if folded:
        rest = foldable(counted(len(folded), "more problem"), *_groups(folded), rest)
    return tag("div", *_groups(shown), rest, class_="problems")


def _order(one: Diagnostic) -> tuple[bool, str, str, int]:
    if one.test_id is not None:
        return (False, "", "", 0)  # as the gate has them: it shows the worst first
    line = one.region.start_line if one.region else None
    return (True, one.path or "", one.rule_id or "", line or 0)


def _groups(diagnostics: Iterable[Diagnostic]) -> Iterator[Node]:
    for (is_test, path), group in groupby(
        diagnostics, lambda one: (one.test_id is not None, one.path)
    ):
        if is_test:
            yield tag("ul", *map(_item, group))
            continue
        ofs = [tag("li", *_of_rule([*same])) for _, same in groupby(group, _rule)]
        yield tag("p", tag("code", path), class_="file") if path else ""
        yield tag("ul", *ofs)


def _rule(one: Diagnostic) -> str:
    return one.rule_id or ""


def _of_rule(same: Sequence[Diagnostic]) -> Iterator[Node]:
    """One problem in a line; several under their rule."""
    rule = same[0].rule_id
    if len(same) == 1:
        yield from _parts(same[0], _line(same[0]), rule)
        return
    yield tag("code", rule or same[0].tool, class_="rule")
    yield f" {len(same)} times"
    yield tag("ul", *(tag("li", *_parts(one, _line(one), None)) for one in same))


def _line(one: Diagnostic) -> str:
    return position(one).removeprefix(f"{one.path}:") if one.path and one.region else ""


def _item(one: Diagnostic) -> Node:
    return tag("li", *_parts(one, place(one), one.rule_id))


def _parts(one: Diagnostic, where: str, rule: str | None) -> Iterator[Node]:
    if where:
        yield tag("code", where)
        yield " "
    if rule:
        yield tag("code", rule, class_="rule")
        yield " "
    whole = one.message.strip()
    first = bounded(whole.partition("\n")[0], MAX_MESSAGE_CHARS)
    at = f" ({position(one)})" if one.test_id and one.path else ""
    if first == whole:
        yield tag("span", whole, class_="message")
        yield tag("span", at, class_="dim") if at else ""
    else:
        yield foldable(tag("span", first, at), tag("p", whole, class_="message"))
