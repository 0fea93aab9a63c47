"""Fills the code part of a prompt: as much of the likeliest passages as fits. Ranks nothing anew."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from atlas_retry.excerpt import Excerpt, Passage, excerpt
from atlas_retry.prompt.candidates import Candidate
from atlas_retry.prompt.project import Project
from atlas_retry.prompt.untrusted import harmless_code

SIZE_AVERSION = 0.5
"""How much a long passage must be likelier than a short one to go first."""
MIN_PASSAGE_CHARS = 150
TEST_SHARE = 0.2
"""Of the room, for the failing tests' own sources."""
WINDOW_SHARE = 0.4
MAX_CONSIDERED = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The code part, and what it is made of."""

    text: str
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutting:
    """What is cut, how much of it and what is done to every cut."""

    project: Project
    room: int
    redact: Callable[[str], str]


def code(found: tuple[Candidate, ...], cutting: Cutting) -> Shown:
    """The best passages, whole where they fit, each under a line that says where it is from."""
    tests = [candidate for candidate in found if candidate.is_test]
    others = [candidate for candidate in found if not candidate.is_test][:MAX_CONSIDERED]
    blocks: list[tuple[Candidate, str]] = []
    room = cutting.room
    for candidate in tests[: 1 if room < 8_000 else 3]:  # noqa: PLR2004 - a second test explains less than code
        room -= _take(candidate, blocks, cutting, min(room, int(cutting.room * TEST_SHARE)))
    for candidate in sorted(others, key=lambda c: -_value(c, cutting.project)):
        room -= _take(candidate, blocks, cutting, room)
    shown = sorted(blocks, key=lambda block: -block[0].score)
    return Shown(
        text="\n".join(text for _, text in shown),
        passages=tuple(candidate.passage for candidate, _ in shown),
    )


def _value(candidate: Candidate, project: Project) -> float:
    source = project.source(candidate.passage.path) or b""
    passage = candidate.passage
    size = sum(map(len, source.splitlines()[passage.start_line - 1 : passage.end_line]))
    return float(candidate.score / max(size, MIN_PASSAGE_CHARS) ** SIZE_AVERSION)


def _take(
    candidate: Candidate, blocks: list[tuple[Candidate, str]], cutting: Cutting, room: int
) -> int:
    """Add one passage if it fits and is not there yet; the characters that it took."""
    if any(_covers(block[0].passage, candidate.passage) for block in blocks):
        return 0
    cut = _cut(candidate, cutting, room)
    if cut is None:
        return 0
    text = f"{_header(candidate, cut)}\n{_safe(cut, cutting)}"
    if len(text) + 1 > room:
        return 0
    blocks.append((candidate, text))
    return len(text) + 1


def _cut(candidate: Candidate, cutting: Cutting, room: int) -> Excerpt | None:
    source = cutting.project.source(candidate.passage.path)
    if source is None:
        return None
    available = room - len(_header(candidate, None)) - 12
    whole = excerpt(candidate.passage, source, max_chars=available)
    if whole is None or not whole.omitted_lines:
        return whole
    if not (candidate.passage.marks or candidate.is_test):
        return None
    limit = available if candidate.is_test else int(max(available * WINDOW_SHARE, 500))
    return excerpt(candidate.passage, source, max_chars=min(available, limit))


def _safe(cut: Excerpt, cutting: Cutting) -> str:
    return cutting.redact(harmless_code(cut.text, cutting.project.paths))


def _header(candidate: Candidate, cut: Excerpt | None) -> str:
    passage = candidate.passage
    symbol = f" {passage.symbol}" if passage.symbol else ""
    part = ", in part" if cut is not None and cut.omitted_lines else ""
    return f"#### {passage.path}:{passage.start_line}-{passage.end_line}{symbol} ({candidate.why}{part})"


def _covers(one: Passage, other: Passage) -> bool:
    return (
        one.path == other.path
        and one.start_line <= other.start_line
        and other.end_line <= one.end_line
    )


def without_last(shown: Shown) -> Shown:
    """The code part without its least likely passage."""
    return replace(shown, passages=shown.passages[:-1])
