"""Which changed files another session edited, by the transcripts. Reads those of Claude Code."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from atlas_retry.events import seconds_of

_TOOLS = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})


class _Input(msgspec.Struct, frozen=True):
    file_path: str = ""
    notebook_path: str = ""


class _Block(msgspec.Struct, frozen=True):
    type: str = ""
    name: str = ""
    input: _Input = _Input()


class _Message(msgspec.Struct, frozen=True):
    content: tuple[_Block, ...] = ()


class _Line(msgspec.Struct, frozen=True):
    timestamp: str = ""
    message: _Message = _Message()


def of_others(
    changed: frozenset[str], root: Path, *, own: str, others: tuple[str, ...], since: str
) -> frozenset[str]:
    """Those of the changed files that only tools of other sessions have edited since then.

    `own` and `others` are paths of transcripts. What a shell wrote is in none: it stays the turn's.
    """
    theirs = set[str]()
    for each in others:
        theirs.update(_edited(each, root, since))
    own_edits = _edited(own, root, since) if theirs else ()
    return changed & theirs.difference(own_edits)


def _edited(transcript: str, root: Path, since: str) -> Iterator[str]:
    """Paths relative to the root."""
    top = os.path.realpath(root)
    for block in _blocks(transcript, since):
        path = block.input.file_path or block.input.notebook_path
        if block.name in _TOOLS and path:
            yield os.path.relpath(os.path.realpath(path), top)


def _blocks(transcript: str, since: str) -> Iterator[_Block]:
    with suppress(OSError, ValueError), Path(transcript).open("rb") as lines:
        if os.fstat(lines.fileno()).st_mtime < seconds_of(since):
            return
        for line in lines:
            with suppress(msgspec.MsgspecError):
                # most lines, and the longest, are results of tools
                said = msgspec.json.decode(line, type=_Line) if b'_path":' in line else _Line()
                if said.timestamp >= since:
                    yield from said.message.content
