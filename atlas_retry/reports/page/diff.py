"""One attempt's patch as tables with numbers and colours."""

from collections.abc import Iterator
from itertools import chain
from xml.etree import ElementTree as ET

from atlas_retry.reports.page.colours import coloured
from atlas_retry.reports.page.elements import Node, foldable, scrollable, tag
from atlas_retry.reports.page.patch import FileDiff, Hunk, files_of
from atlas_retry.text.units import counted

MAX_LINES = 3_000
UNFOLDED_LINES = 60
ROWS = {"+": "added", "-": "removed", "\\": "remark"}


def diff(patch: str) -> Iterator[Node]:
    """A foldable table per file; beyond `MAX_LINES` of one attempt, files are only named."""
    left = MAX_LINES
    for file in files_of(patch):
        size = sum(len(hunk.lines) for hunk in file.hunks)
        left -= size
        yield _file(file, size) if left >= 0 else _named(file, size)


def _named(file: FileDiff, size: int) -> Node:
    return tag("p", tag("code", file.path), f": {counted(size, 'line')} not shown", class_="dim")


def _file(file: FileDiff, size: int) -> Node:
    marks = [line.mark for line in chain.from_iterable(hunk.lines for hunk in file.hunks)]
    title = tag(
        "span",
        tag("code", file.path),
        " ",
        tag("span", f"+{marks.count('+')}", class_="plus"),
        " ",
        tag("span", f"−{marks.count('-')}", class_="minus"),  # noqa: RUF001 - a true minus
    )
    remarks = [tag("p", remark, class_="dim") for remark in file.remarks]
    bodies = [_body(file.path, hunk) for hunk in file.hunks]
    table = scrollable(f"Changes of {file.path}", tag("table", *bodies), class_="diff")
    return foldable(
        title, *remarks, table if bodies else None, class_="file", unfolded=size <= UNFOLDED_LINES
    )


def _body(path: str, hunk: Hunk) -> ET.Element:
    body = tag("tbody", tag("tr", tag("td", hunk.title, colspan="4"), class_="hunk"))
    colours = _colours(path, hunk)
    for line, nodes in zip(hunk.lines, colours, strict=True):
        row = tag(
            "tr",
            tag("td", str(line.old or ""), class_="number"),
            tag("td", str(line.new or ""), class_="number"),
            tag("td", line.mark, class_="mark"),
            tag("td", *nodes, class_="line"),
            class_=ROWS.get(line.mark),
        )
        body.append(row)
    return body


def _colours(path: str, hunk: Hunk) -> list[tuple[Node, ...]]:
    """Old and new side are coloured apart, since only each alone is source text."""
    old = [number for number, line in enumerate(hunk.lines) if line.mark in " -"]
    new = [number for number, line in enumerate(hunk.lines) if line.mark in " +"]
    shown: list[tuple[Node, ...]] = [(line.text,) for line in hunk.lines]
    for side in (old, new):
        lines = [hunk.lines[number].text for number in side]
        for number, nodes in zip(side, coloured(path, lines), strict=True):
            shown[number] = nodes
    return shown
