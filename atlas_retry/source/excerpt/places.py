"""Places diagnostics in their source: the function around each, the marks in it. Cuts nothing."""

from collections import Counter
from collections.abc import Callable, Iterable
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics import fingerprint
from atlas_retry.model import Diagnostic
from atlas_retry.source import Scope, ScopeKind, definitions, enclosing

Read = Callable[[str], bytes | None]
"""Content of a file by its path relative to the root; None where there is nothing."""

PLAIN_LINES = 6
"""Shown before and after a line that has no scope around it."""
MAX_NOTE_CHARS = 160


class Mark(Struct, frozen=True, kw_only=True):
    """What is said at one line, 1-based."""

    line: int
    note: str


class Passage(Struct, frozen=True, kw_only=True):
    """Lines of one file that belong together, 1-based and inclusive."""

    path: str
    start_line: int
    end_line: int
    def_line: int
    """Where the signature stands; `start_line` if there is none."""
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
        if seen[identity] > 1:
            again = seen[identity]
            identity = fingerprint(d, symbol=symbol, line_text=text, occurrence=again)
        anchored.append(replace(d, symbol=symbol, fingerprint=identity))
    return tuple(anchored)


def _place(path: str, line: int, source: bytes | None) -> tuple[str | None, str | None]:
    """The symbol around a line, and its text."""
    if source is None:
        return None, None
    scope = enclosing(path, source, line)
    lines = source.splitlines()
    text = lines[line - 1].decode("utf-8", "replace").strip() if 0 < line <= len(lines) else None
    return scope.qualified_name if scope else None, text


def passage_at(path: str, source: bytes, line: int) -> Passage:
    """The innermost function or class around a line, else the plain lines around it.

    A line of a class that lies in none of its methods gets the lines around it, not the class.
    """
    scope = enclosing(path, source, line)
    if scope is not None and (scope.kind is not ScopeKind.CLASS or scope.lines <= 4 * PLAIN_LINES):
        return Passage(
            path=path,
            start_line=scope.start_line,
            end_line=scope.end_line,
            def_line=scope.def_line,
            symbol=scope.qualified_name,
        )
    return _plain(path, source, line, scope)


def _plain(path: str, source: bytes, line: int, scope: Scope | None) -> Passage:
    """The lines around, up to the functions and classes before and after."""
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
    """The passage with those marks that lie in it, one a line, notes joined."""
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
    """What stands at the offending line: `<rule> <message>`."""
    first = (diagnostic.message.splitlines() or [""])[0]
    rule = diagnostic.rule_id or ""
    return shortened(first if rule in first else f"{rule} {first}".strip(), MAX_NOTE_CHARS)


def shortened(text: str, limit: int) -> str:
    """Cut in the middle to `limit` characters."""
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"
