"""Fills the code part of a prompt with the most likely passages that fit."""

from collections.abc import Callable

from msgspec import Struct

from atlas_retry.prompt.candidates import Candidate
from atlas_retry.prompt.project import Project
from atlas_retry.prompt.untrusted import harmless_code
from atlas_retry.source.excerpt import Passage, excerpt

SIZE_AVERSION, MIN_PASSAGE_CHARS = 0.4, 250
"""Exponent of the penalty on length, and the smallest length that counts."""
TEST_SHARE = 0.1
"""Share of the room for the source of a failing test."""
PART_SHARE = 0.5
"""Share of the room for the likeliest passage if it does not fit whole."""
MAX_CONSIDERED = 400
MIN_TOLD_CHARS = 12
"""Shorter lines may occur anywhere."""

START = "#### Start here: "
OTHERS = "Less likely, not shown ({}):"


class Cutting(Struct, frozen=True, kw_only=True):
    """How passages are cut."""

    project: Project
    room: int
    redact: Callable[[str], str]
    quoted: str = ""
    """The quoted errors, which may already contain a failing test's source."""


class Block(Struct, frozen=True, kw_only=True):
    """One passage in the prompt."""

    candidate: Candidate
    text: str
    """Heading and passage."""


def code(all_candidates: tuple[Candidate, ...], cutting: Cutting) -> tuple[Block, ...]:
    """The failing test, the likeliest passage, in part if it is long, and others that fit whole."""
    others = [candidate for candidate in all_candidates if not candidate.is_test][:MAX_CONSIDERED]
    blocks, room = list[Block](), cutting.room
    tests = (candidate for candidate in all_candidates if candidate.is_test)
    for test in [test for test in tests if not _is_quoted(test.passage, cutting)][:1]:
        room -= _take(test, blocks, cutting, int(room * TEST_SHARE), in_part=True)
    for likeliest in others[:1]:
        if len(_text(likeliest.passage, cutting)) > room:
            room -= _take(likeliest, blocks, cutting, int(room * PART_SHARE), in_part=True)

    def value(candidate: Candidate) -> float:
        size = max(len(_text(candidate.passage, cutting)), MIN_PASSAGE_CHARS)
        return float(candidate.score / size**SIZE_AVERSION)

    for candidate in sorted(others, key=value, reverse=True):
        room -= _take(candidate, blocks, cutting, room)
    return tuple(sorted(blocks, key=lambda b: (not b.candidate.is_test, -b.candidate.score)))


def _is_quoted(passage: Passage, cutting: Cutting) -> bool:
    """Whether the output has most lines of a passage."""
    lines = _text(passage, cutting).split("\n")
    long = [line.strip() for line in lines if len(line.strip()) > MIN_TOLD_CHARS]
    return bool(long) and sum(line in cutting.quoted for line in long) * 2 > len(long)


def _text(passage: Passage, cutting: Cutting) -> str:
    return cutting.project.text(passage.path, passage.start_line, passage.end_line)


def _take(
    candidate: Candidate, blocks: list[Block], cutting: Cutting, room: int, *, in_part: bool = False
) -> int:
    """Add a passage if it fits and is new; returns the characters used."""
    if any(_covers(block.candidate.passage, candidate.passage) for block in blocks):
        return 0
    inside = [block for block in blocks if _covers(candidate.passage, block.candidate.passage)]
    freed = sum(len(block.text) + 1 for block in inside)
    room += freed
    head = len(_heading(candidate, is_whole=False)) + len(START) + 1
    source = cutting.project.source(candidate.passage.path)
    cut = excerpt(candidate.passage, source, max_chars=room - head - 1) if source else None
    if cut is None or (cut.omitted_lines and not in_part):
        return 0
    safe = cutting.redact(harmless_code(cut.text, cutting.project.paths))
    if head + len(safe) + 1 > room:
        return 0
    text = f"{_heading(candidate, is_whole=not cut.omitted_lines)}\n{safe}"
    for block in inside:
        blocks.remove(block)
    blocks.append(Block(candidate=candidate, text=text))
    return head + len(safe) + 1 - freed


def _heading(candidate: Candidate, *, is_whole: bool) -> str:
    passage = candidate.passage
    symbol = f" {passage.symbol}" if passage.symbol else ""
    extent = "" if is_whole else ", in part"
    first, last = passage.start_line, passage.end_line
    lines = f"{first}" if first == last else f"{first}-{last}"
    return f"{passage.path}:{lines}{symbol} ({candidate.why}{extent})"


def _covers(one: Passage, other: Passage) -> bool:
    return (
        one.path == other.path
        and one.start_line <= other.start_line
        and other.end_line <= one.end_line
    )


def shown(blocks: tuple[Block, ...]) -> str:
    """The text of the blocks, the most likely one marked."""
    first = next((block for block in blocks if not block.candidate.is_test), None)
    return "\n".join(f"{START if b is first else '#### '}{b.text}" for b in blocks)


def elsewhere(all_candidates: tuple[Candidate, ...], blocks: tuple[Block, ...], room: int) -> str:
    """The likeliest other places that fit, a line for each file: `path: symbol:line, ...`."""
    taken = [block.candidate.passage for block in blocks]
    code = (c.passage for c in all_candidates if not c.is_test)
    rest = [one for one in code if not any(_covers(other, one) for other in taken)]
    left = room - len(heading := OTHERS.format(len(rest)))
    names: dict[str, list[str]] = {}
    for one in rest:
        name = f"{one.symbol or ''}:{one.start_line}"
        left -= len(name) + 2 + (0 if one.path in names else len(one.path))
        if left < 0:
            break
        names.setdefault(one.path, []).append(name)
    lines = (f"{path}: {', '.join(here)}" for path, here in names.items())
    return "\n".join((heading, *lines)) if names else ""
