"""The bytes of a text file and back, so that encoding and line endings stay. Pure."""

import codecs
import io
import re
import tokenize
from collections import Counter
from difflib import SequenceMatcher
from typing import Final

from msgspec import Struct

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENDING: Final = re.compile(r"\r\n|\n|\r")


class Text(Struct, frozen=True, kw_only=True):
    """A text file: what it says, and how that is written."""

    lines: tuple[str, ...]
    """Without their endings."""
    endings: tuple[str, ...]
    """Of each line; empty for a last line that has none."""
    encoding: str
    mark: bytes = b""

    @property
    def text(self) -> str:
        """With plain newlines."""
        pairs = zip(self.lines, self.endings, strict=True)
        return "".join(line + ("\n" if ending else "") for line, ending in pairs)


NEW: Final = Text(lines=(), endings=(), encoding="utf-8")
"""What a file that is created starts from."""


def read_text(source: bytes, *, is_python: bool) -> Text | None:
    """The text of a file; None for a binary one."""
    mark, encoding = next(((m, e) for m, e in _MARKS if source.startswith(m)), (b"", ""))
    body = source[len(mark) :]
    if not mark and b"\0" in source:
        return None
    try:
        decoded, encoding = _decoded(body, encoding or _declared(source, is_python=is_python))
    except (UnicodeDecodeError, LookupError):
        return None
    lines, endings = _split(decoded)
    return Text(lines=lines, endings=endings, encoding=encoding, mark=mark)


def _declared(source: bytes, *, is_python: bool) -> str:
    """What a Python file says of itself (PEP 263)."""
    if not is_python:
        return "utf-8"
    try:
        return tokenize.detect_encoding(io.BytesIO(source).readline)[0].removesuffix("-sig")
    except SyntaxError:
        return "utf-8"


def _decoded(body: bytes, encoding: str) -> tuple[str, str]:
    """A text that is not UTF-8 and does not say what it is: Latin-1 loses no byte."""
    try:
        return body.decode(encoding), encoding
    except UnicodeDecodeError:
        if encoding != "utf-8":
            raise
        return body.decode("latin-1"), "latin-1"


def _split(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    endings = _ENDING.findall(text)
    lines = _ENDING.split(text)
    if lines[-1] == "":
        return tuple(lines[:-1]), tuple(endings)
    return tuple(lines), (*endings, "")


def written(text: str, old: Text) -> bytes:
    """A new text in the manner of the old one: encoding, mark, line endings, the last one too.

    Raises UnicodeEncodeError where the encoding cannot say it.
    """
    lines, own = _split(text)
    usual = Counter(ending for ending in old.endings if ending).most_common()
    if len(usual) <= 1:
        endings = [usual[0][0] if usual else "\n"] * len(lines)
    else:
        endings = _aligned(lines, old, usual[0][0])
    if own[-1:] == ("",) == old.endings[-1:]:  # the last line had no ending, and has none
        endings[-1] = ""
    whole = "".join(line + ending for line, ending in zip(lines, endings, strict=True))
    return old.mark + whole.encode(old.encoding)


def _aligned(lines: tuple[str, ...], old: Text, usual: str) -> list[str]:
    """Where endings are mixed, every line that stays keeps its own."""
    endings = [usual] * len(lines)
    for mine, theirs, size in SequenceMatcher(
        None, lines, old.lines, autojunk=False
    ).get_matching_blocks():
        endings[mine : mine + size] = [end or usual for end in old.endings[theirs : theirs + size]]
    return endings
