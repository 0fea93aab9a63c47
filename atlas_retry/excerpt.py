"""Places diagnostics in their source and cuts the passage that explains them. Ranks nothing."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from atlas_retry.diagnostics import fingerprint
from atlas_retry.model import Diagnostic
from atlas_retry.syntax import Scope, ScopeKind, comment_of, definitions, enclosing

Read = Callable[[str], bytes | None]
"""Content of a file by its path relative to the root; None where there is nothing."""

PLAIN_LINES = 6
"""Shown before and after a line that has no scope around it."""
MAX_LINE_CHARS = 400
MAX_NOTE_CHARS = 160
MAX_SIGNATURE_LINES = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """What is said at one line, 1-based."""

    line: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """Lines of one file that belong together, 1-based and inclusive."""

    path: str
    start_line: int
    end_line: int
    def_line: int
    """Where the signature stands; `start_line` if there is none."""
    symbol: str | None = None
    marks: tuple[Mark, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Excerpt:
    """A passage as text; `omitted_lines` of it were left out."""

    passage: Passage
    text: str
    omitted_lines: int = 0


def anchor(diagnostics: Iterable[Diagnostic], read: Read) -> tuple[Diagnostic, ...]:
    """The diagnostics with `symbol` and `fingerprint` filled in. Each file is read once."""
    sources: dict[str, bytes | None] = {}
    places: dict[tuple[str, int], tuple[str | None, str | None]] = {}
    seen = Counter[str]()
    return tuple(_anchored(d, read, sources, places, seen) for d in diagnostics)


def _anchored(
    diagnostic: Diagnostic,
    read: Read,
    sources: dict[str, bytes | None],
    places: dict[tuple[str, int], tuple[str | None, str | None]],
    seen: Counter[str],
) -> Diagnostic:
    symbol: str | None = diagnostic.symbol
    line_text: str | None = None
    if diagnostic.path is not None:
        if diagnostic.path not in sources:
            sources[diagnostic.path] = read(diagnostic.path)
        source = sources[diagnostic.path]
        if source is not None and diagnostic.region is not None:
            place = (diagnostic.path, diagnostic.region.start_line)
            if place not in places:
                places[place] = _place(*place, source)
            symbol, line_text = symbol or places[place][0], places[place][1]
    told = fingerprint(diagnostic, symbol=symbol, line_text=line_text)
    seen[told] += 1
    if seen[told] > 1:
        told = fingerprint(diagnostic, symbol=symbol, line_text=line_text, occurrence=seen[told])
    return replace(diagnostic, symbol=symbol, fingerprint=told)


def _place(path: str, line: int, source: bytes) -> tuple[str | None, str | None]:
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
    taken = {
        number
        for other in definitions(path, source)
        if other.kind in (ScopeKind.FUNCTION, ScopeKind.CLASS) and not other.holds(line)
        for number in range(other.start_line, other.end_line + 1)
    }
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
            told = notes.setdefault(mark.line, [])
            if mark.note not in told:
                told.append(mark.note)
    return replace(
        passage,
        marks=tuple(
            Mark(line=line, note=_short("; ".join(filter(None, told)), MAX_NOTE_CHARS))
            for line, told in sorted(notes.items())
        ),
    )


def note_of(diagnostic: Diagnostic) -> str:
    """What stands at the offending line: `<rule> <message>`."""
    lines = diagnostic.message.splitlines() or [""]
    return _short(f"{diagnostic.rule_id or ''} {lines[0]}".strip(), MAX_NOTE_CHARS)


def excerpt(passage: Passage, source: bytes, *, max_chars: int) -> Excerpt | None:
    """The passage within `max_chars`: whole, else its signature and windows around the marks.

    None where not even the marked lines fit, or the source is binary.
    """
    if b"\0" in source[:8192]:
        return None
    lines = _decorated(passage, source)
    kept = _whole_or_windows(passage, lines, max_chars)
    if not kept:
        return None
    return Excerpt(
        passage=passage,
        text=_joined(lines, kept),
        omitted_lines=len(lines) - len(kept),
    )


def _decorated(passage: Passage, source: bytes) -> list[str]:
    notes = {mark.line: mark.note for mark in passage.marks}
    comment = comment_of(passage.path)
    wanted = source.splitlines()[passage.start_line - 1 : passage.end_line]
    return [
        _short(raw.decode("utf-8", "replace").rstrip(), MAX_LINE_CHARS)
        + (f"  {comment} <-- ERROR: {notes[number]}" if notes.get(number) else "")
        for number, raw in enumerate(wanted, start=passage.start_line)
    ]


def _whole_or_windows(passage: Passage, lines: list[str], max_chars: int) -> list[int]:
    """Indices of the lines that are shown."""
    if sum(len(line) + 1 for line in lines) <= max_chars:
        return list(range(len(lines)))
    marks = [mark.line - passage.start_line for mark in passage.marks]
    head = _signature(passage, lines)
    spent, kept = 0, set[int]()
    for index in _by_distance(len(lines), [*marks, *head] if marks else head, marks):
        cost = len(lines[index]) + 1 + _gap_cost(index, kept)
        if spent + cost > max_chars:
            break
        spent += cost
        kept.add(index)
    return sorted(kept) if kept.issuperset(marks[:1] or head[:1]) else []


def _signature(passage: Passage, lines: list[str]) -> list[int]:
    first = passage.def_line - passage.start_line
    for index in range(first, min(len(lines), first + MAX_SIGNATURE_LINES)):
        if lines[index].rstrip().endswith((":", "{", "do", ")", ";")) or index == first + 11:
            return list(range(first, index + 1))
    return [first] if first < len(lines) else []


def _by_distance(count: int, first: list[int], centres: list[int]) -> list[int]:
    """The lines named first, then all others, nearest to a centre first."""
    around = centres or first[-1:] or [0]
    rest = sorted(
        set(range(count)) - set(first),
        key=lambda index: (min(abs(index - centre) for centre in around), index),
    )
    return [*dict.fromkeys(index for index in first if 0 <= index < count), *rest]


_GAP = "    ... ({} lines left out)"
_GAP_CHARS = len(_GAP) + 6


def _gap_cost(index: int, kept: set[int]) -> int:
    """A line with no neighbour opens a gap on both sides; one with two closes it."""
    neighbours = (index - 1 in kept) + (index + 1 in kept)
    return (2 - 2 * neighbours) * _GAP_CHARS if neighbours < 2 else 0  # noqa: PLR2004 - both sides


def _joined(lines: list[str], kept: list[int]) -> str:
    shown: list[str] = []
    expected = 0
    for index in kept:
        if index > expected:
            shown.append(_GAP.format(index - expected))
        shown.append(lines[index])
        expected = index + 1
    if expected < len(lines):
        shown.append(_GAP.format(len(lines) - expected))
    return "\n".join(shown)


def _short(text: str, limit: int) -> str:
    """Cut in the middle to `limit` characters."""
    if len(text) <= limit:
        return text
    half = (limit - 5) // 2
    return f"{text[:half]} ... {text[-half:]}"


def definition_passage(path: str, source: bytes, name: str) -> Passage | None:
    """The first definition of a name, dotted or bare, in one file."""
    for scope in definitions(path, source):
        if name in (scope.qualified_name, scope.name):
            return Passage(
                path=path,
                start_line=scope.start_line,
                end_line=scope.end_line,
                def_line=scope.def_line,
                symbol=scope.qualified_name,
            )
    return None
