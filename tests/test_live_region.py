"""The foot of a terminal that is drawn anew in place, on a real terminal device."""

import os
import pty
import re
import termios
from collections.abc import Iterator
from contextlib import suppress
from typing import TextIO

import pytest
from rich.console import Console
from rich.text import Text

from atlas_retry.events import AgentActivity, AgentReplied, AttemptStarted, GateStarted
from atlas_retry.model import AgentReply, ReplyStatus
from atlas_retry.reports.screen.console import LiveScreen
from atlas_retry.reports.screen.live_region import LiveRegion


@pytest.fixture
def terminal() -> Iterator[tuple[int, TextIO]]:
    primary, secondary = pty.openpty()
    with os.fdopen(secondary, "w", encoding="utf-8") as stream:
        yield primary, stream
    os.close(primary)


def resize(stream: TextIO, columns: int, rows: int = 24) -> None:
    termios.tcsetwinsize(stream.fileno(), (rows, columns))


def region(stream: TextIO, *rows: str) -> LiveRegion:
    console = Console(file=stream, force_terminal=True)
    return LiveRegion(console=console, render=lambda _: [Text(row) for row in rows])


def read_until(primary: int, end: str) -> str:
    """What was shown up to this; a terminal hands it over in pieces."""
    shown = b""
    while end.encode() not in shown:
        shown += os.read(primary, 65536)
    return shown.decode()


def test_rows_that_a_narrower_terminal_wrapped_are_erased_whole(
    terminal: tuple[int, TextIO],
) -> None:
    _, stream = terminal
    resize(stream, 80)
    shown = region(stream, "x" * 60, "short")
    shown._painted()
    resize(stream, 40)
    assert shown._erased() == "\r" + "\x1b[1A\x1b[2K" * 3


@pytest.mark.parametrize("columns", [1, 5, 40, 200])
def test_no_row_is_wider_than_the_terminal(columns: int, terminal: tuple[int, TextIO]) -> None:
    _, stream = terminal
    resize(stream, columns)
    shown = region(stream, "name " * 70, "宽" * 200)
    shown._painted()
    assert max(shown._drawn) < max(columns, 2)


def test_no_more_rows_than_the_terminal_has(terminal: tuple[int, TextIO]) -> None:
    _, stream = terminal
    resize(stream, 80, rows=10)
    painted = region(stream, *(f"gate {n}" for n in range(40)))._painted()
    assert painted.count("\n") == 8
    assert "and 33 more" in painted


def test_the_cursor_is_shown_again_whatever_happens(terminal: tuple[int, TextIO]) -> None:
    primary, stream = terminal
    with suppress(RuntimeError), LiveScreen(stream=stream) as screen:
        screen(GateStarted(gate="lint", command="true"))
        raise RuntimeError
    shown = read_until(primary, "\x1b[?25h")
    assert shown.index("\x1b[?25l") < shown.rindex("\x1b[?25h")


ASKED = AttemptStarted(
    number=1, agent="a", model=None, session_id=None, snapshot="", prompt_chars=0, prompt_path=""
)
STEP = AgentActivity(text="Edit calc.py", cost_usd=0.5, turns=3)


def shown_rows(screen: LiveScreen) -> list[str]:
    """Without the spinner and the elapsed time."""
    rows = (" ".join(row.plain.split()[1:]) for row in screen._rows(80))
    return [re.sub(r"[\d.]+ s ?", "", row) for row in rows]


def test_the_row_of_the_agent_says_what_it_costs_and_does_until_its_turn_is_over(
    terminal: tuple[int, TextIO],
) -> None:
    _, stream = terminal
    screen = LiveScreen(stream=stream)
    shown = []
    for event in (ASKED, STEP, AgentReplied(number=1, reply=AgentReply(status=ReplyStatus.DONE))):
        screen._follow(event)
        shown += [shown_rows(screen)]
    screen._follow(GateStarted(gate="lint", command="true"))
    assert shown == [["agent is asked"], ["agent $0.50, 3 turns: Edit calc.py"], []]
    assert shown_rows(screen) == ["lint "]


def test_what_the_agent_did_and_found_stays_on_the_terminal(terminal: tuple[int, TextIO]) -> None:
    primary, stream = terminal
    found = AgentReply(status=ReplyStatus.DONE, summary="it subtracts\n" * 9 + "x" * 900)
    with LiveScreen(stream=stream) as screen:
        screen(STEP)
        screen(AgentReplied(number=1, reply=found))
    told = read_until(primary, "\x1b[?25h")
    assert "· Edit calc.py" in told
    assert "> it subtracts" in told
    assert "> ... 4 more lines" in told


def test_lines_stay_above_what_is_running(terminal: tuple[int, TextIO]) -> None:
    primary, stream = terminal
    with region(stream, "running") as shown:
        shown.print(Text("done: lint"))
    told = read_until(primary, "\x1b[?25h")
    assert told.index("done: lint") < told.index("running", told.index("done: lint"))
