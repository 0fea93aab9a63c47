"""Fills the code part of a prompt with as much of the likeliest passages as fits."""

import re
from collections.abc import Callable, Iterable

from msgspec import Struct

from atlas_retry.prompt.candidates import Candidate
from atlas_retry.prompt.project import Project
from atlas_retry.prompt.untrusted import harmless_code
from atlas_retry.source.excerpt import Excerpt, Passage, excerpt

SIZE_AVERSION = 0.5
"""How much a long passage must be likelier than a short one to go first."""
MIN_PASSAGE_CHARS = 150
TEST_SHARE = 0.15
"""Of the room, for the failing tests' own sources."""
WINDOW_SHARE = 0.4
ALMOST_WHOLE = 0.81
"""Of the lines that say something: what shows more is not called a part."""
MAX_CONSIDERED = 400
MANY_CHARS = 8_000
"""Room in which more than one failing test is shown."""
MAX_ELSEWHERE = 12


class Cutting(Struct, frozen=True, kw_only=True):
    """What is cut, how much of it and what is done to every cut."""

    project: Project
    room: int
    redact: Callable[[str], str]
    quoted: str = ""
    """The errors, which may show a failing test's source already."""
    is_lean: bool = False
    """Little room: less documentation."""


class Block(Struct, frozen=True, kw_only=True):
    """One passage in the prompt."""

    candidate: Candidate
    text: str
    """Of the passage, below the line that names it."""

    @property
    def passage(self) -> Passage:
        return self.candidate.passage


def code(found: tuple[Candidate, ...], cutting: Cutting) -> tuple[Block, ...]:
    """The best passages, whole where they fit, likeliest first."""
    others = [candidate for candidate in found if not candidate.is_test][:MAX_CONSIDERED]
    blocks: list[Block] = []
    room = cutting.room
    for candidate in _tests(found, cutting):
        room -= _take(candidate, blocks, cutting, min(room, int(cutting.room * TEST_SHARE)))
    for candidate in sorted(others, key=lambda c: -_value(c, cutting.project)):
        room -= _take(candidate, blocks, cutting, room)
    return tuple(sorted(blocks, key=lambda block: -_likelihood(block, others)))


def _likelihood(block: Block, others: Iterable[Candidate]) -> float:
    """Of the likeliest definition in it: a class may be shown for the sake of a method."""
    inside = (one.score for one in others if _covers(block.passage, one.passage))
    return max(inside, default=block.candidate.score)


def _tests(found: tuple[Candidate, ...], cutting: Cutting) -> list[Candidate]:
    """Failing tests whose source the output does not show."""
    unseen = [c for c in found if c.is_test and not _is_quoted(c.passage, cutting)]
    return unseen[: 3 if cutting.room > MANY_CHARS else 1]


def _is_quoted(passage: Passage, cutting: Cutting) -> bool:
    source = (cutting.project.source(passage.path) or b"").decode("utf-8", "replace")
    lines = source.splitlines()[passage.start_line - 1 : passage.end_line]
    long = [line.strip() for line in lines if len(line.strip()) > MAX_ELSEWHERE]
    told = sum(line in cutting.quoted for line in long)
    return bool(long) and told * 2 > len(long)


def _value(candidate: Candidate, project: Project) -> float:
    source = project.source(candidate.passage.path) or b""
    passage = candidate.passage
    size = sum(map(len, source.splitlines()[passage.start_line - 1 : passage.end_line]))
    return float(candidate.score / max(size, MIN_PASSAGE_CHARS) ** SIZE_AVERSION)


def _take(candidate: Candidate, blocks: list[Block], cutting: Cutting, room: int) -> int:
    """Add one passage if it fits and is not there yet; the characters that it takes."""
    if any(_covers(block.passage, candidate.passage) for block in blocks):
        return 0
    known = any(block.passage.path == candidate.passage.path for block in blocks)
    head = len(_file_line(candidate.passage.path)) + 1 if not known else 0
    head += len(_line(candidate, whole=False)) + 1
    cut = _cut(candidate, cutting, room - head - 1)
    if cut is None:
        return 0
    safe = cutting.redact(harmless_code(cut.text, cutting.project.paths))
    text = f"{_line(candidate, whole=cut.told >= ALMOST_WHOLE)}\n{safe}"
    if head + len(safe) + 1 > room:
        return 0
    inside = [block for block in blocks if _covers(candidate.passage, block.passage)]
    for block in inside:
        blocks.remove(block)
    blocks.append(Block(candidate=candidate, text=text))
    return head + len(safe) + 1 - sum(len(block.text) + 1 for block in inside)


def _cut(candidate: Candidate, cutting: Cutting, available: int) -> Excerpt | None:
    """The whole passage; else nearly all of it; else windows around what is marked."""
    source = cutting.project.source(candidate.passage.path)
    if source is None or available <= 0:
        return None
    cut = excerpt(candidate.passage, source, max_chars=available, is_lean=cutting.is_lean)
    if cut is None or not cut.omitted_lines or candidate.is_test:
        return cut
    if cut.told >= ALMOST_WHOLE:
        return cut
    if not any(mark.note for mark in candidate.passage.marks):
        return None
    limit = min(available, int(max(available * WINDOW_SHARE, 500)))
    return excerpt(candidate.passage, source, max_chars=limit, is_lean=cutting.is_lean)


def _file_line(path: str) -> str:
    return f"#### {path}"


def _line(candidate: Candidate, *, whole: bool) -> str:
    passage = candidate.passage
    symbol = f" {passage.symbol}" if passage.symbol else ""
    part = "" if whole else ", in part"
    first, last = passage.start_line, passage.end_line
    lines = f"line {first}" if first == last else f"lines {first}-{last}"
    return f"{lines}:{symbol} ({candidate.why}{part})"


def _covers(one: Passage, other: Passage) -> bool:
    return (
        one.path == other.path
        and one.start_line <= other.start_line
        and other.end_line <= one.end_line
    )


def shown(blocks: tuple[Block, ...]) -> str:
    """The blocks by file, the file of the likeliest first, in the order of their lines."""
    parts: list[str] = []
    for path in dict.fromkeys(block.passage.path for block in blocks):
        parts.append(_file_line(path))
        own = [block for block in blocks if block.passage.path == path]
        parts += [b.text for b in sorted(own, key=lambda b: b.passage.start_line)]
    return "\n".join(parts)


def unshown(found: tuple[Candidate, ...], blocks: tuple[Block, ...]) -> tuple[Candidate, ...]:
    """The code that did not fit, likeliest first."""
    return tuple(
        c
        for c in found
        if not c.is_test and not any(_covers(block.passage, c.passage) for block in blocks)
    )


def elsewhere(rest: tuple[Candidate, ...], blocks: tuple[Block, ...], room: int) -> str:
    """Where else to look: the next likeliest, by file, one line."""
    files = dict.fromkeys(c.passage.path for c in rest[:MAX_CONSIDERED])
    known = {block.passage.path for block in blocks}
    parts: list[str] = []
    for path in sorted(files, key=lambda path: path in known):
        names = [c.passage.symbol for c in rest if c.passage.path == path and c.passage.symbol]
        told = f"{path} ({', '.join(dict.fromkeys(filter(_is_name, names[:2])))})"
        if sum(map(len, parts)) + 2 * len(parts) + len(told) + 30 > room:
            continue
        parts.append(told)
    return f"Less likely, not shown: {'; '.join(parts[:MAX_ELSEWHERE])}" if parts else ""


def _is_name(symbol: str) -> bool:
    return re.fullmatch(r"[\w.]+", symbol) is not None
