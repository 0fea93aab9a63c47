"""Names a problem so that it is known again after lines have moved. Compares nothing."""

import hashlib

from atlas_retry.model import Diagnostic
from atlas_retry.patterns import regex

_ADDRESS = regex(r"\b0x[0-9a-fA-F]+\b")
_ABSOLUTE = regex(r"(?<![\w.])(?:[A-Za-z]:)?/(?:[^\s/'\":,()]+/)+")
_NUMBER = regex(r"(?<![\w.])[-+]?\d+(?:\.\d+)*(?:e[-+]?\d+)?(?![\w])")
_DURATION = regex(r"\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds)\b")
_QUOTE = regex('[`"\u00b4\u2018\u2019\u201c\u201d]')
_DIGEST_CHARS = 16


def fingerprint(
    diagnostic: Diagnostic, *, symbol: str | None, line_text: str | None, occurrence: int = 1
) -> str:
    """16 hexadecimal digits from tool, rule, file, test, message, symbol and line text.

    Numbers, addresses, quotation marks and the folders of absolute paths in the message do not
    count, nor does a line number: shifting a file's lines or moving the workspace changes nothing.
    The file does count, or the same mistake in two of them would be one. `occurrence` (1-based)
    tells apart what is the same in all of that.
    """
    parts = (
        diagnostic.tool,
        diagnostic.rule_id or "",
        diagnostic.path or "",
        diagnostic.test_id or "",
        normalised(diagnostic.message),
        symbol or "",
        " ".join((line_text or "").split()),
        str(occurrence) if occurrence > 1 else "",
    )
    digested = "\0".join(parts).encode("utf-8", "surrogateescape")
    return hashlib.sha256(digested).hexdigest()[:_DIGEST_CHARS]


def steady(message: str) -> str:
    """The message with its values, without addresses, folders and durations."""
    text = _DURATION.sub("0s", _ADDRESS.sub("0x", message))
    return " ".join(_ABSOLUTE.sub("", text).split())


def normalised(message: str) -> str:
    """The message without what differs from run to run."""
    text = _ADDRESS.sub("0x", message)
    text = _ABSOLUTE.sub("", text)
    text = _QUOTE.sub("'", text)
    return " ".join(_NUMBER.sub("0", text).split())
