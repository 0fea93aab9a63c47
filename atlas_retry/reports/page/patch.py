"""A unified diff as values: files, hunks and numbered lines; it shows nothing.

Source: git-diff(1), "Generating patch text with -p".
"""

import re
from collections.abc import Iterator

from msgspec import Struct

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)")
NO_REMARK = ("---", "+++", "index ")
_ESCAPED = re.compile(rb"\\([0-7]{3}|.)")
_CHARACTERS = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


class PatchLine(Struct, frozen=True, kw_only=True):
    """One line of a hunk; `mark` is a blank, `+`, `-`, or a backslash for git's own remark."""

    mark: str
    text: str
    old: int | None = None
    new: int | None = None


class Hunk(Struct, frozen=True, kw_only=True):
    """Changed lines with what surrounds them."""

    title: str
    lines: tuple[PatchLine, ...]


class FileDiff(Struct, frozen=True, kw_only=True):
    """What happened to one file."""

    path: str
    remarks: tuple[str, ...] = ()
    """Modes, renames, `Binary files differ`."""
    hunks: tuple[Hunk, ...] = ()


def files_of(patch: str) -> tuple[FileDiff, ...]:
    """Every file of a patch as `git diff` writes it; what is no patch gives nothing."""
    parts = re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)
    return tuple(
        _file(part.removesuffix("\n").split("\n"))
        for part in parts
        if part.startswith("diff --git ")
    )


def _file(lines: list[str]) -> FileDiff:
    starts = [number for number, line in enumerate(lines) if line.startswith("@@ ")]
    head = lines[1 : starts[0]] if starts else lines[1:]
    names = [line[4:] for line in head if line.startswith(("--- ", "+++ "))]
    named = [name for name in names if name.rstrip("\t") != "/dev/null"]
    path = _path(named[-1]) if named else _path(lines[0].partition(" b/")[2] or lines[0][11:])
    remarks = tuple(line for line in filter(None, head) if not line.startswith(NO_REMARK))
    return FileDiff(path=path, remarks=remarks, hunks=tuple(_hunks(lines, starts)))


def _path(name: str) -> str:
    """Without git's quotes and its `a/` or `b/`."""
    name = name.rstrip("\t")
    if name.startswith('"') and name.endswith('"'):
        raw = name[1:-1].encode(errors="surrogateescape")
        name = _ESCAPED.sub(_unescaped, raw).decode(errors="surrogateescape")
    return name[2:] if name.startswith(("a/", "b/")) else name


def _unescaped(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes([int(code, 8)]) if len(code) == 3 else _CHARACTERS.get(code, code)  # noqa: PLR2004


def _hunks(lines: list[str], starts: list[int]) -> Iterator[Hunk]:
    after = -1
    for start in starts:
        head = _HUNK.match(lines[start])
        if head is None or start < after:
            continue
        counts = int(head[2] or 1), int(head[4] or 1)
        body = tuple(_numbered(lines[start + 1 :], (int(head[1]), int(head[3])), counts))
        after = start + 1 + len(body)
        yield Hunk(title=lines[start], lines=body)


def _numbered(
    lines: list[str], first: tuple[int, int], counts: tuple[int, int]
) -> Iterator[PatchLine]:
    """Lines until both counts are used up: a removed `-- x` looks like a header but is none."""
    old, new = first
    last_old, last_new = old + counts[0], new + counts[1]
    for line in lines:
        mark, text = line[:1] or " ", line[1:]
        if mark == "\\":
            yield PatchLine(mark=mark, text=text)
            continue
        if old >= last_old and new >= last_new:
            return
        in_old, in_new = mark in " -", mark in " +"
        yield PatchLine(
            mark=mark, text=text, old=old if in_old else None, new=new if in_new else None
        )
        old += in_old
        new += in_new
