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


def test_rows_wrapped_by_a_narrower_terminal_are_erased(
    terminal: tuple[int, TextIO],
) -> None:
    _, stream = terminal
    resize(stream, 80)
    shown = region(stream, "x" * 60, "short")
    shown._painted()
    resize(stream, 40)
    assert shown._erased() == "\r" + "\x1b[1A\x1b[2K" * 3


@pytest.mark.parametrize("columns", [1, 5, 40, 200])
def test_rows_are_narrower_than_the_terminal(columns: int, terminal: tuple[int, TextIO]) -> None:
    _, stream = terminal
    resize(stream, columns)
    shown = region(stream, "name " * 70, "宽" * 200)
    shown._painted()
    assert max(shown._drawn) < max(columns, 2)


def test_rows_beyond_the_terminal_height_are_counted(terminal: tuple[int, TextIO]) -> None:
    _, stream = terminal
    resize(stream, 80, rows=10)
    painted = region(stream, *(f"gate {n}" for n in range(40)))._painted()
    assert painted.count("\n") == 8
    assert "and 33 more" in painted


def test_the_cursor_is_shown_again_after_an_error(terminal: tuple[int, TextIO]) -> None:
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


def test_the_agent_row_shows_cost_and_activity_until_its_turn_ends(
    terminal: tuple[int, TextIO],
) -> None:
    _, stream = terminal
    screen = LiveScreen(stream=stream)
    shown = []
    for event in (ASKED, STEP, AgentReplied(number=1, reply=AgentReply(status=ReplyStatus.DONE))):
        screen._follow(event)
        shown += [shown_rows(screen)]
    screen._follow(GateStarted(gate="lint", command="true"))
    assert shown == [["agent starting"], ["agent $0.50, 3 turns: Edit calc.py"], []]
    assert shown_rows(screen) == ["lint "]


def test_activity_and_summary_of_the_agent_stay_on_the_terminal(
    terminal: tuple[int, TextIO],
) -> None:
    primary, stream = terminal
    reply = AgentReply(status=ReplyStatus.DONE, summary="it subtracts\n" * 9 + "x" * 900)
    with LiveScreen(stream=stream) as screen:
        screen(STEP)
        screen(AgentReplied(number=1, reply=reply))
    output = read_until(primary, "\x1b[?25h")
    assert "· Edit calc.py" in output
    assert "> it subtracts" in output
    assert "> ... 4 more lines" in output


def test_printed_lines_stay_above_the_running_rows(terminal: tuple[int, TextIO]) -> None:
    primary, stream = terminal
    with region(stream, "running") as shown:
        shown.print(Text("done: lint"))
    output = read_until(primary, "\x1b[?25h")
    assert output.index("done: lint") < output.index("running", output.index("done: lint"))
