"""Fingerprints that identify a problem even after its line has moved."""

from atlas_retry.digests import sha256_of
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

    Line numbers, and numbers, addresses, quotation marks and folders of absolute paths in the
    message do not count: moving lines or the workspace changes nothing.
    The file counts, or the same mistake in two files would be one problem. `occurrence` (1-based)
    distinguishes problems that are otherwise equal.
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
    return sha256_of(digested)[:_DIGEST_CHARS]


def steady(message: str) -> str:
    """The message with values, but without addresses, folders and durations."""
    text = _DURATION.sub("0s", _ADDRESS.sub("0x", message))
    return " ".join(_ABSOLUTE.sub("", text).split())


def normalised(message: str) -> str:
    """The message without parts that differ between runs."""
    text = _ADDRESS.sub("0x", message)
    text = _ABSOLUTE.sub("", text)
    text = _QUOTE.sub("'", text)
    return " ".join(_NUMBER.sub("0", text).split())
