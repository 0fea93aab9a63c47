"""Syntax colours of source lines as spans with five classes; it knows no colour."""

from collections.abc import Iterator, Sequence

from atlas_retry.reports.page.elements import Node, tag

MAX_LINES, MAX_LINE_CHARS = 2_000, 500
"""Beyond these a file stays uncoloured: a lexer may take quadratic time on odd text."""

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


def coloured(path: str, lines: Sequence[str]) -> list[tuple[Node, ...]]:
    """Each of `lines`, which follow each other in a file of that name, as nodes."""
    uncoloured: list[tuple[Node, ...]] = [(line,) for line in lines]
    if len(lines) > MAX_LINES or any(len(line) > MAX_LINE_CHARS for line in lines):
        return uncoloured
    lexed = list(_lexed(path, "\n".join(lines)))
    return lexed if len(lexed) == len(lines) else uncoloured


def _lexed(path: str, text: str) -> Iterator[tuple[Node, ...]]:
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        lexer = get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return
    line: list[Node] = []
    for kind, value in lexer.get_tokens(text):
        shown = _class(str(kind))
        for number, piece in enumerate(value.split("\n")):
            if number:
                yield tuple(line)
                line = []
            line.append(tag("span", piece, class_=shown) if shown and piece else piece)
    yield tuple(line)


def _class(kind: str) -> str | None:
    return next((name for token, name in CLASSES.items() if kind.startswith(token)), None)
