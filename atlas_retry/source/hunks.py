"""The hunks of a change to a file, and the file with only some of them. Pure."""

from collections.abc import Collection, Iterator
from difflib import SequenceMatcher

from msgspec import Struct

from atlas_retry.model import Content

MAX_BYTES = 200_000
"""A file that is larger, before and after together, is one hunk."""
CONTEXT_LINES = 3
"""Changed lines with fewer unchanged ones between them are one hunk, as in git's diff."""

File = Content | None
"""Git mode and content; None if there is no such file."""


class FileHunk(Struct, frozen=True, kw_only=True):
    """Lines of one file that replace others."""

    path: str
    old: range
    """0-based lines that are replaced."""
    new: range
    """0-based lines that replace them."""
    is_whole: bool = False
    """Whether it is a change of the whole file, as of one that is new or binary."""

    @property
    def place(self) -> str:
        """Path and 1-based lines in the changed file."""
        if self.is_whole:
            return self.path
        first, last = self.new.start + 1, max(self.new.start + 1, self.new.stop)
        return f"{self.path}:{first}" if last == first else f"{self.path}:{first}-{last}"


def hunks_of(path: str, before: File, after: File) -> Iterator[FileHunk]:
    """The hunks by which a file differs, from its first line to its last."""
    if before == after:
        return
    if before is None or after is None or not _are_lines(before, after):
        yield FileHunk(path=path, old=range(0), new=range(0), is_whole=True)
        return
    old_lines, new_lines = before[1].splitlines(keepends=True), after[1].splitlines(keepends=True)
    matcher = SequenceMatcher(None, old_lines, new_lines, autojunk=False)
    for group in matcher.get_grouped_opcodes(CONTEXT_LINES):
        moved = [step for step in group if step[0] != "equal"]
        old, new = range(moved[0][1], moved[-1][2]), range(moved[0][3], moved[-1][4])
        yield FileHunk(path=path, old=old, new=new)


def _are_lines(before: Content, after: Content) -> bool:
    both = before[1] + after[1]
    return before[0] == after[0] and len(both) <= MAX_BYTES and b"\0" not in both


def with_hunks(before: File, after: File, chosen: Collection[FileHunk]) -> File:
    """The file before the change with these of its hunks, which are in order."""
    if not chosen:
        return before
    if before is None or after is None or any(hunk.is_whole for hunk in chosen):
        return after
    old, new = (file[1].splitlines(keepends=True) for file in (before, after))
    lines: list[bytes] = []
    at = 0
    for hunk in chosen:
        lines += old[at : hunk.old.start] + new[hunk.new.start : hunk.new.stop]
        at = hunk.old.stop
    return before[0], b"".join(lines + old[at:])


def shown(hunk: FileHunk, before: File, after: File) -> str:
    """The removed and the added lines, as in a diff; empty for a change of a whole file."""
    if hunk.is_whole or before is None or after is None:
        return ""
    removed = before[1].splitlines()[hunk.old.start : hunk.old.stop]
    added = after[1].splitlines()[hunk.new.start : hunk.new.stop]
    lines = (*(b"-" + line for line in removed), *(b"+" + line for line in added))
    return b"\n".join(lines).decode(errors="replace")
