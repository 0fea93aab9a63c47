"""Neutralises untrusted text in a prompt, and shortens it. Does not redact secrets.

Claude Code reads the file of an `@path` after white space, and runs a `/command` at the start
(measured, see the documentation of the agent).
"""

import re
from collections.abc import Collection

from atlas_retry.patterns import regex
from atlas_retry.text.redaction import clean

TRUNCATED = "... truncated"
_MENTION = regex(r"(?:(?<=\s)|^)@(?=\S)", re.MULTILINE)
_RISKY_MENTION = regex(r"(?:(?<=\s)|^)@(?=[~./\\\"']|[\w-]*[/\\])", re.MULTILINE)
_PLAIN_MENTION = regex(r"(?:(?<=\s)|^)@([\w.-]+)", re.MULTILINE)
_COMMAND = regex(r"^(\s*)/(?=[A-Za-z][\w:-]*(\s|$))", re.MULTILINE)


def harmless_output(text: str) -> str:
    """Output of a tool without mentions and commands."""
    return _COMMAND.sub(r"\1\\/", _MENTION.sub("@ ", clean(text)))


def harmless_code(text: str, paths: Collection[str] = ()) -> str:
    """Source with a space after each `@` before a file name; decorators stay unchanged."""

    def spaced(match: re.Match[str]) -> str:
        name = match[1].rstrip(".,;:")
        return f"@ {match[1]}" if name in paths else match[0]

    text = _RISKY_MENTION.sub("@ ", clean(text))
    return _COMMAND.sub(r"\1\\/", _PLAIN_MENTION.sub(spaced, text))


def fenced(text: str, marker: str) -> str:
    """The text between marks that it cannot contain."""
    return f"<data-{marker}>\n{text}\n</data-{marker}>"


def elided(text: str, limit: int) -> str:
    """At most `limit` characters, cut in the middle, preferably at line ends."""
    if len(text) <= limit:
        return text
    note = f"\n{TRUNCATED} ({len(text) - limit} characters) ...\n"
    room = limit - len(note)
    if room < 2:  # noqa: PLR2004 - one character on each side
        return text[: max(limit, 0)]
    head = text[: room // 2]
    end = head.rfind("\n")
    if end > len(head) // 2:
        head = head[:end]
    tail = text[len(text) - (room - len(head)) :]
    start = tail.find("\n")
    if 0 <= start < len(tail) // 2:
        tail = tail[start + 1 :]
    return head + note + tail
