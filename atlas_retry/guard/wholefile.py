"""Suppressions that hold for a whole file: to narrow one to single lines asks for more. Pure."""

import re

_CODES = r"[ \t]*[:=(\[]?[ \t]*([\w@/.,:\- \"]*)"
_ANYWHERE: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("noqa", re.compile(r"^[ \t]*#[ \t]*(?:ruff|flake8)\s*:\s*noqa\b" + _CODES, re.MULTILINE)),
    (
        "type: ignore",
        re.compile(
            r"^#[ \t]*mypy:\s*(?:ignore-errors\b(?!\s*=\s*[Ff])|disable-error-code\b)" + _CODES,
            re.MULTILINE,
        ),
    ),
    ("allow", re.compile(r"^#!\[(?:allow|expect)\(([\w:, ]*)\)", re.MULTILINE)),
)
_AT_THE_TOP: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("type: ignore", re.compile(r"^#[ \t]*type:\s*ignore\b" + _CODES)),
    ("pylint: disable", re.compile(r"^#[ \t]*pylint:\s*disable" + _CODES)),
    ("eslint-disable", re.compile(r"^/\*[ \t]*eslint-disable(?!-)" + _CODES)),
    ("ts-ignore", re.compile(r"^//[ \t]*@ts-nocheck()")),
    ("shellcheck disable", re.compile(r"^#[ \t]*shellcheck\s+disable" + _CODES)),
    ("rubocop", re.compile(r"^#[ \t]*rubocop:(?:disable|todo)" + _CODES)),
    ("nolint", re.compile(r"^//[ \t]*(?:nolint|NOLINTBEGIN)" + _CODES)),
)
"""Comments that reach to the end of the file when no code stands above them."""
_ENDS = re.compile(r"eslint-enable|pylint:\s*enable|rubocop:enable|NOLINTEND")
_DOCSTRING = re.compile(r'\A(?:[ \t]*#[^\n]*\n|\s)*[rR]?("""|\'\'\').*?\1[ \t]*\n', re.DOTALL)


def whole_file(source: bytes | None) -> frozenset[tuple[str, str]]:
    """Kind, by the name it has on a line, and code; an empty code is for all there are."""
    text = (source or b"").decode("utf-8", "replace")
    found = {(kind, code) for kind, said in _ANYWHERE for m in said.finditer(text)
             for code in _codes(m[1])}  # fmt: skip
    if _ENDS.search(text):
        return frozenset(found)
    for line in _head(text):
        for kind, said in _AT_THE_TOP:
            match = said.match(line)
            found |= {(kind, code) for code in _codes(match[1])} if match else set()
    return frozenset(found)


def _head(text: str) -> list[str]:
    """The comments above the code, and those above and below a docstring."""
    docstring = _DOCSTRING.match(text)
    lines = (text[: docstring.start(1)] + text[docstring.end() :] if docstring else text).split(
        "\n"
    )
    code = (n for n, line in enumerate(lines) if not re.match(r"\s*(#|//|/\*|\*|$)", line))
    return [line.strip() for line in lines[: next(code, len(lines))]]


def _codes(text: str) -> list[str]:
    said = re.split(r"\s--\s|\s{2,}|\s-\s", text)[0]
    return [w for w in re.split(r"[\s,]+", said.strip(' "*/[]()')) if re.search(r"\w", w)] or [""]


def is_narrowed(key: str, gone: frozenset[tuple[str, str]]) -> bool:
    """Whether a suppression of a line is part of one of the whole file that went."""
    kind, _, code = key.partition("\t")
    return (kind, code.strip()) in gone or (kind, "") in gone
