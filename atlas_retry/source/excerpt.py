"""Passages of source around diagnostics, and their text within a limit. Ranks nothing."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics import fingerprint
from atlas_retry.model import Diagnostic
from atlas_retry.source import Scope, ScopeKind, comment_of, definitions, enclosing

Read = Callable[[str], bytes | None]
"""Content of a file by its path relative to the root; None if there is no file."""

PLAIN_LINES = 6
"""Lines to show before and after a line without a scope around it."""
MAX_NOTE_CHARS = 160


class Mark(Struct, frozen=True, kw_only=True):
    """A note at one line, 1-based."""

    line: int
    note: str


class Passage(Struct, frozen=True, kw_only=True):
    """Lines of one file that belong together, 1-based and inclusive."""

    path: str
    start_line: int
    end_line: int
    def_line: int
    """Line of the signature; `start_line` if there is none."""
    symbol: str | None = None
    marks: tuple[Mark, ...] = ()


def anchor(diagnostics: Iterable[Diagnostic], read: Read) -> tuple[Diagnostic, ...]:
    """The diagnostics with `symbol` and `fingerprint` filled in. Each file is read once."""
    source = cache(read)
    place = cache(lambda path, line: _place(path, line, source(path)))
    seen = Counter[str]()
    anchored: list[Diagnostic] = []
    for d in diagnostics:
        around, text = place(d.path, d.region.start_line) if d.path and d.region else (None, None)
        symbol = d.symbol or around
        identity = fingerprint(d, symbol=symbol, line_text=text)
        seen[identity] += 1
        if (times := seen[identity]) > 1:
            identity = fingerprint(d, symbol=symbol, line_text=text, occurrence=times)
        anchored.append(replace(d, symbol=symbol, fingerprint=identity))
    return tuple(anchored)


def _place(path: str, line: int, source: bytes | None) -> tuple[str | None, str | None]:
    scope = enclosing(path, source or b"", line)
    lines = (source or b"").splitlines()
    text = lines[line - 1].decode("utf-8", "replace").strip() if 0 < line <= len(lines) else None
    return scope.qualified_name if scope else None, text


def passage_of(path: str, scope: Scope) -> Passage:
    """The lines of a definition."""
    return Passage(
        path=path,
        start_line=scope.start_line,
        end_line=scope.end_line,
        def_line=scope.def_line,
        symbol=scope.qualified_name,
    )


def passage_at(path: str, source: bytes, line: int) -> Passage:
    """The innermost function or class around a line, else the plain lines around it.

    A line of a class outside its methods gets the lines around it, not the class.
    """
    scope = enclosing(path, source, line)
    if scope is not None and (scope.kind is not ScopeKind.CLASS or scope.lines <= 4 * PLAIN_LINES):
        return passage_of(path, scope)
    # the lines around, up to the functions and classes before and after
    count = len(source.splitlines())
    taken: set[int] = set()
    for other in definitions(path, source):
        if other.kind in (ScopeKind.FUNCTION, ScopeKind.CLASS) and not other.holds(line):
            taken.update(range(other.start_line, other.end_line + 1))
    start = end = max(1, min(line, count))
    while start > max(1, line - PLAIN_LINES) and start - 1 not in taken:
        start -= 1
    while end < min(count, line + PLAIN_LINES) and end + 1 not in taken:
        end += 1
    return Passage(
        path=path,
        start_line=start,
        end_line=end,
        def_line=start,
        symbol=scope.qualified_name if scope else None,
    )


def marked(passage: Passage, marks: Iterable[Mark]) -> Passage:
    """The passage with the marks inside it, one per line, with their notes joined."""
    notes: dict[int, list[str]] = {}
    for mark in (*passage.marks, *marks):
        if passage.start_line <= mark.line <= passage.end_line:
            line_notes = notes.setdefault(mark.line, [])
            if mark.note not in line_notes:
                line_notes.append(mark.note)
    return replace(
        passage,
        marks=tuple(
            Mark(line=line, note=shortened("; ".join(filter(None, line_notes)), MAX_NOTE_CHARS))
            for line, line_notes in sorted(notes.items())
        ),
    )


def note_of(diagnostic: Diagnostic) -> str:
    """The note at the offending line: `<rule> <message>`."""
    first = (diagnostic.message.splitlines() or [""])[0]
    rule = diagnostic.rule_id or ""
    return shortened(first if rule in first else f"{rule} {first}".strip(), MAX_NOTE_CHARS)


def shortened(text: str, limit: int) -> str:
    """Cut in the middle to `limit` characters."""
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


MAX_LINE_CHARS = 400
MAX_SIGNATURE_LINES = 12


class Excerpt(Struct, frozen=True, kw_only=True):
    """A passage as text; `omitted_lines` of it were left out."""

    text: str
    omitted_lines: int = 0


def excerpt(passage: Passage, source: bytes, *, max_chars: int) -> Excerpt | None:
    """The passage within `max_chars`: whole, else its signature and windows around the marks.

    White space is exact, because agents edit by exact text. None if the marked lines do not fit, or
    the source is binary.
    """
    if b"\0" in source[:8192]:
        return None
    wanted = source.splitlines()[passage.start_line - 1 : passage.end_line]
    lines = [shortened(raw.decode("utf-8", "replace"), MAX_LINE_CHARS) for raw in wanted]
    for mark in passage.marks:
        at = mark.line - passage.start_line
        if mark.note and 0 <= at < len(lines):
            lines[at] += f"  {comment_of(passage.path)} <-- ERROR: {mark.note}"
    is_whole = sum(len(line) + 1 for line in lines) <= max_chars
    kept = set(range(len(lines))) if is_whole else _windows(passage, lines, max_chars)
    if not kept:
        return None
    shown = sorted(kept)
    return Excerpt(text=_joined(lines, shown), omitted_lines=len(lines) - len(kept))


def _windows(passage: Passage, lines: list[str], max_chars: int) -> set[int]:
    """Indices of the lines to show of a passage that does not fit, nearest to the marks first."""
    marks = [mark.line - passage.start_line for mark in passage.marks]
    head = _signature(passage, lines)
    there = range(len(lines))
    centres = marks or head[-1:] or [0]
    nearest = sorted(there, key=lambda index: (min(abs(index - c) for c in centres), index))
    spent, kept = 0, set[int]()
    for index in dict.fromkeys((*filter(there.__contains__, (*marks, *head)), *nearest)):
        # a line without neighbours adds two gaps, one with two removes
        neighbours = (index - 1 in kept) + (index + 1 in kept)
        cost = len(lines[index]) + 1 + GAPS_BY_NEIGHBOURS[neighbours] * _GAP_CHARS
        if spent + cost > max_chars:
            break
        spent += cost
        kept.add(index)
    return kept if kept.issuperset(marks[:1] or head[:1]) else set()


def _signature(passage: Passage, lines: list[str]) -> list[int]:
    first = passage.def_line - passage.start_line
    for index in range(first, min(len(lines), first + MAX_SIGNATURE_LINES)):
        if lines[index].rstrip().endswith((":", "{", "do", ")", ";")) or index == first + 11:
            return list(range(first, index + 1))
    return [first] if first < len(lines) else []


_GAP = "    ... ({} lines left out)"
_GAP_CHARS = len(_GAP) + 6
GAPS_BY_NEIGHBOURS = (2, 0, 0)


def _joined(lines: list[str], kept: list[int]) -> str:
    shown: list[str] = []
    expected = 0
    for index in (*kept, len(lines)):
        if index > expected:
            shown.append(_GAP.format(index - expected))
        shown += lines[index : index + 1]
        expected = index + 1
    return "\n".join(shown)
