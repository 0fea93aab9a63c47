"""The bytes of a text file and back, so that encoding and line endings stay. Pure."""

import codecs
import io
import re
import tokenize
from collections import Counter
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

    text: str = ""
    """With its own line endings."""
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def plain(self) -> str:
        """With plain newlines."""
        return _ENDING.sub("\n", self.text)

    @property
    def ending(self) -> str:
        """The one that most of its lines have."""
        usual = Counter(_ENDING.findall(self.text)).most_common(1)
        return usual[0][0] if usual else "\n"


def read_text(source: bytes, *, is_python: bool) -> Text | None:
    """The text of a file; None for a binary one."""
    mark, encoding = next(((m, e) for m, e in _MARKS if source.startswith(m)), (b"", ""))
    body = source[len(mark) :]
    if not mark and b"\0" in source:
        return None
    encoding = encoding or (_declared(source) if is_python else "utf-8")
    try:
        return Text(text=body.decode(encoding), encoding=encoding, mark=mark)
    except (UnicodeDecodeError, LookupError):
        if encoding != "utf-8":
            return None
        return Text(text=body.decode("latin-1"), encoding="latin-1")  # it loses no byte


def _declared(source: bytes) -> str:
    """What a Python file says of itself (PEP 263)."""
    try:
        return tokenize.detect_encoding(io.BytesIO(source).readline)[0].removesuffix("-sig")
    except SyntaxError:
        return "utf-8"


def in_manner_of(old: Text, text: str) -> str:
    """A text with the line endings of the old one, the last one too."""
    plain = _ENDING.sub("\n", text)
    is_ended = not old.text or old.plain.endswith("\n")
    if is_ended and plain:
        plain = plain.removesuffix("\n") + "\n"
    return plain.replace("\n", old.ending)
