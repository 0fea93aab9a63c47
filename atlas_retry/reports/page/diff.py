"""One attempt's patch as HTML: a block a file, with the syntax colours of its language."""

import re
from collections.abc import Iterator
from itertools import takewhile
from typing import TYPE_CHECKING

from atlas_retry.patterns import regex
from atlas_retry.reports.page.elements import Node, foldable, scrollable, tag
from atlas_retry.text.units import counted

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_LINES = 3_000
UNFOLDED_LINES = 60
MAX_LINE_CHARS = 500
"""A longer line stays uncoloured: a lexer may take quadratic time on odd text."""
KINDS = {"+": "added", "-": "removed", "@": "hunk", "\\": "hunk"}
CLASSES = {
    "Token.Comment": "c",
    "Token.Keyword": "k",
    "Token.Literal.String": "s",
    "Token.Literal.Number": "m",
    "Token.Name.Function": "f",
    "Token.Name.Class": "f",
    "Token.Name.Decorator": "f",
    "Token.Name.Tag": "k",
    "Token.Name.Attribute": "f",
}
_NAME = regex(r'diff --git .*? "?b/(.*?)"?')


def diff(patch: str) -> Iterator[Node]:
    """A foldable block per file; beyond `MAX_LINES` of one attempt, files are only named."""
    left = MAX_LINES
    for text in re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)[1:]:
        first, *lines = text.removesuffix("\n").split("\n")
        name = _NAME.fullmatch(first)
        path = name[1] if name else first
        head = [*takewhile(lambda line: not line.startswith("@@ "), lines)]
        changed = lines[len(head) :]
        size = sum(not line.startswith("@@ ") for line in changed)
        left -= size
        if left >= 0:
            yield _file(path, head, changed)
        else:
            shown = f": {counted(size, 'line')} not shown"
            yield tag("p", tag("code", path), shown, class_="dim")


def _file(path: str, head: list[str], lines: list[str]) -> Node:
    marks = [line[:1] for line in lines]
    title = tag(
        "span",
        tag("code", path),
        " ",
        tag("span", f"+{marks.count('+')}", class_="plus"),
        " ",
        tag("span", f"−{marks.count('-')}", class_="minus"),  # noqa: RUF001 - a true minus
    )
    # modes, renames and `Binary files differ`
    remarks = [line for line in head if not line.startswith(("---", "+++", "index "))]
    lexer = _lexer(path)
    shown = (tag("span", *_coloured(line, lexer), class_=KINDS.get(line[:1])) for line in lines)
    return foldable(
        title,
        *(tag("p", remark, class_="dim") for remark in remarks),
        scrollable(f"Changes of {path}", tag("pre", *shown), class_="diff") if lines else None,
        class_="file",
        unfolded=len(lines) <= UNFOLDED_LINES,
    )


def _lexer(path: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _coloured(line: str, lexer: "Lexer | None") -> Iterator[Node]:
    """A line by itself: what a string or comment of several lines holds is coloured as code."""
    if lexer is None or line.startswith("@@ ") or len(line) > MAX_LINE_CHARS:
        yield line
        return
    yield line[:1]
    for kind, value in lexer.get_tokens(line[1:]):
        name = str(kind)
        shown = next((CLASSES[token] for token in CLASSES if name.startswith(token)), None)
        yield tag("span", value, class_=shown) if shown else value
