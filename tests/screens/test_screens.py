"""Every screen is as its transcript has it, and every command that it proposes works there."""

from pathlib import Path

import pytest

from tests.projects import Project
from tests.screens import SCREENS, next_steps, typed_again
from tests.screens.pages import FOLDER, PAGES, page


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_as_its_transcript_has_it(name: str, project: Project) -> None:
    screen = SCREENS[name].read_text(encoding="utf-8")
    assert typed_again(screen, project) == screen, "make golden shows the difference"


@pytest.mark.parametrize("name", SCREENS)
def test_what_a_screen_proposes_is_typed_there(name: str) -> None:
    proposed = next_steps(SCREENS[name].read_text(encoding="utf-8"))
    assert [command for command, is_typed in proposed if not is_typed] == []


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_a_page_is_as_it_was_read(path: Path) -> None:
    assert page(PAGES[path]) == path.read_text(encoding="utf-8"), "make golden shows the difference"


def test_every_page_is_made() -> None:
    assert {*FOLDER.iterdir()} == {*PAGES}
