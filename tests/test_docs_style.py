"""The pages are read once: no long sentences. Tables, code and headings are not counted."""

import re
from collections.abc import Iterator
from pathlib import Path
from statistics import mean

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted((*(ROOT / "docs").glob("*.md"), ROOT / "README.md", ROOT / "SECURITY.md"))
GUARD = [page for page in PAGES if page.stem in {"guard", "guard-reference"}]
MOST_WORDS = 35
MOST_WORDS_ON_AVERAGE = 20
NO_PROSE = re.compile(r"^```.*?^```$|<!--.*?-->|^(?:#|\|)[^\n]*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
BLOCK = re.compile(r"\n\s*\n|^\s*(?:[-*]|\d+\.) ", re.MULTILINE)
END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"(*]|code|atlas)")


def sentences(text: str) -> Iterator[str]:
    """Sentences of a page, an item of a list is at least one; code in a line is one word."""
    prose = re.sub(r"`[^`]+`", "code", LINK.sub(r"\1", NO_PROSE.sub("\n\n", text)))
    for block in BLOCK.split(prose):
        yield from filter(None, END.split(" ".join(block.split())))


def words(page: Path) -> dict[str, int]:
    return {each: len(each.split()) for each in sentences(page.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_sentence_is_long(page: Path) -> None:
    assert [each for each, count in words(page).items() if count > MOST_WORDS] == []


@pytest.mark.parametrize("page", GUARD, ids=lambda page: page.name)
def test_sentences_about_the_guard_are_short(page: Path) -> None:
    assert mean(words(page).values()) <= MOST_WORDS_ON_AVERAGE


def test_long_sentences_are_found() -> None:
    text = f"Short. Long {'word ' * 40}end.\n\n| {'cell ' * 40} |\n\n- `a b` c\n- d"
    assert [len(each.split()) for each in sentences(text)] == [1, 42, 2, 1]
