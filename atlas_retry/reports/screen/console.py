"""Show events to a person: a live view on a terminal, append-only lines anywhere else."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from msgspec import Struct, field

from atlas_retry.events import (
    AgentActivity,
    AgentReplied,
    AttemptFinished,
    AttemptStarted,
    Event,
    GateFinished,
    GateProgress,
    GateStarted,
    ValidationFinished,
)
from atlas_retry.reports.screen.event_lines import lines_of
from atlas_retry.reports.screen.lines import STYLES, Line, harmless, printable
from atlas_retry.text.units import counted, seconds, usd

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from atlas_retry.reports.screen.live_region import LiveRegion

SPINNER, ASCII_SPINNER = "dots", "line"
"""Names of Rich's spinners."""
COLOURS = {
    "good": "\x1b[32m", "bad": "\x1b[1;31m", "gate": "\x1b[1;31m", "warn": "\x1b[33m",
    "dim": "\x1b[2m", "head": "\x1b[1m", "code": "\x1b[36m",
}  # fmt: skip
"""The styles of lines where no view is live. Source: ECMA-48 §8.3.117, SGR."""
BELL_AFTER_S = 30.0
"""What took longer ends with the terminal's bell: its owner is looking elsewhere by then."""


class Screen(AbstractContextManager["Screen"], Protocol):
    """Something that shows events while they happen, and lines afterwards."""

    def __call__(self, event: Event) -> None:
        """Show an event."""

    def write(self, lines: Iterable[Line]) -> None:
        """Show lines as they are."""


def wants_colour(environ: Mapping[str, str]) -> bool | None:
    """What the environment says of colour: always, never, or None: where a terminal is.

    Source: no-color.org, force-color.org, bixense.com/clicolors.
    """
    if environ.get("NO_COLOR") or environ.get("CLICOLOR") == "0":
        return False
    forced = (environ.get(name, "") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    return True if any(value not in ("", "0") for value in forced) else None


def is_live(stream: TextIO, environ: Mapping[str, str], *, plain: bool = False) -> bool:
    """Whether control codes may go to a stream; `CI` and `TERM=dumb` refuse them as well."""
    refused = plain or environ.get("TERM") == "dumb" or environ.get("CI")
    return stream.isatty() and not refused and wants_colour(environ) is not False


class Printer(Struct, frozen=True, kw_only=True):
    """Append-only lines without control codes, but for the colour that was asked for."""

    stream: TextIO
    verbosity: int = 0
    named: bool = False
    """Whether each line of an event says which workspace it is about."""
    coloured: bool = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to restore."""

    def __call__(self, event: Event) -> None:
        if self.verbosity >= 0:
            self.write(_lines(event, self.verbosity, named=self.named))

    def write(self, lines: Iterable[Line]) -> None:
        for text, style in lines:
            colour = COLOURS.get(style, "") if self.coloured else ""
            shown = f"{colour}{harmless(text)}\x1b[0m" if colour and text else harmless(text)
            print(shown, file=self.stream, flush=True)


class JobLog(Struct, kw_only=True):
    """Lines in the log of a GitHub job: none of them a command to the runner, each gate a group.

    What tools print may look like a command (`::error::`, `::add-mask::`): between our own ones the
    runner is told to heed none. Source: docs.github.com, "Workflow commands", stop-commands.
    """

    stream: TextIO
    verbosity: int = 0
    named: bool = False
    token: str = field(default_factory=lambda: os.urandom(16).hex())
    _in_group: bool = False

    def __enter__(self) -> Self:
        self._print(f"::stop-commands::{self.token}")
        return self

    def __exit__(self, *_: object) -> None:
        self._end_group()
        self._print(f"::{self.token}::")

    def __call__(self, event: Event) -> None:
        if self.verbosity >= 0:
            self.write(_lines(event, self.verbosity, named=self.named))

    def write(self, lines: Iterable[Line]) -> None:
        for text, style in lines:
            if style == "gate" or not text:
                self._end_group()
            if style == "gate":
                self._command(f"::group::{printable(text)}")
                self._in_group = True
            else:
                self._print(text)

    def _end_group(self) -> None:
        if self._in_group:
            self._command("::endgroup::")
            self._in_group = False

    def _command(self, command: str) -> None:
        for line in (f"::{self.token}::", command, f"::stop-commands::{self.token}"):
            self._print(line)

    def _print(self, text: str) -> None:
        print(harmless(text), file=self.stream, flush=True)


class _Running(Struct):
    """One gate under way, as the live view shows it."""

    started_s: float
    last_line: str = ""


class _Turn(Struct):
    """The agent's turn under way, as the live view shows it."""

    started_s: float
    steps: int = 0
    latest: AgentActivity | None = None

    def row(self) -> str:
        """What it does, after what it has cost and how far it is, as far as that is known."""
        if self.latest is None:
            return "is asked"
        told = self.latest
        cost = "" if told.cost_usd is None else f"{usd(told.cost_usd)}, "
        turns = counted(told.turns, "turn") if told.turns else counted(self.steps, "step")
        return f"{cost}{turns}: {told.text}"


class LiveScreen(Struct, kw_only=True):
    """Lines above, what is running now below; started with the first event."""

    stream: TextIO
    verbosity: int = 0
    named: bool = False
    """Whether each line of an event says which workspace it is about."""
    running: dict[tuple[str, str], _Running] = field(default_factory=dict)
    turns: dict[str, _Turn] = field(default_factory=dict)
    bell_after_s: float = BELL_AFTER_S
    _since_s: float = field(default_factory=time.monotonic)
    _console: "Console | None" = None
    _region: "LiveRegion | None" = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._region:
            self._region.__exit__(kind, error, trace)
            self._region = None
        if self.verbosity >= 0 and time.monotonic() - self._since_s >= self.bell_after_s:
            self.stream.write("\a")
            self.stream.flush()

    def __call__(self, event: Event) -> None:
        self._follow(event)
        if self._region is None:
            from atlas_retry.reports.screen.live_region import LiveRegion

            self._region = LiveRegion(console=self._on(), render=self._rows).__enter__()
        if self.verbosity >= 0:
            self.write(_lines(event, self.verbosity, named=self.named))

    def write(self, lines: Iterable[Line]) -> None:
        from rich.text import Text

        text = Text("\n").join(Text(harmless(text), style=STYLES[style]) for text, style in lines)
        if text and self._region:
            self._region.print(text)
        elif text:
            self._on().print(text, soft_wrap=True, highlight=False)

    def _on(self) -> "Console":
        if self._console is None:
            from rich.console import Console

            # some shells and CI export 0, and Rich would show no column of anything
            unsized = {("COLUMNS", "0"), ("LINES", "0")}
            environ = dict(os.environ.items() - unsized)
            self._console = Console(file=self.stream, force_terminal=True, _environ=environ)
        return self._console

    def _follow(self, event: Event) -> None:
        workspace = event.scope.workspace or ""
        match event:
            case GateStarted():
                self.running[workspace, event.gate] = _Running(time.monotonic())
            case GateProgress():
                if entry := self.running.get((workspace, event.gate)):
                    entry.last_line = event.last_line
            case GateFinished():
                self.running.pop((workspace, event.result.name), None)
            case ValidationFinished():
                self.running = {k: v for k, v in self.running.items() if k[0] != workspace}
            case AttemptStarted():
                self.turns[workspace] = _Turn(time.monotonic())
            case AgentActivity():
                turn = self.turns.setdefault(workspace, _Turn(time.monotonic()))
                turn.steps, turn.latest = turn.steps + 1, event
            case AgentReplied() | AttemptFinished():
                self.turns.pop(workspace, None)
            case _:
                pass

    def _rows(self, columns: int) -> "list[Text]":
        """What is running, one row each: spinner, name, elapsed time, what it says last."""
        from rich.text import Text

        now_s = time.monotonic()
        gates = [
            (self._name(*key), entry.started_s, entry.last_line)
            for key, entry in list(self.running.items())
        ]
        agents = [
            (self._name(key, "agent"), turn.started_s, turn.row())
            for key, turn in list(self.turns.items())
        ]
        told = [
            (name, seconds(round((now_s - started_s) * 1000)), text)
            for name, started_s, text in (*gates, *agents)
        ]
        names = [Text(name) for name, _, _ in told]
        width = min(max((name.cell_len for name in names), default=0), columns * 2 // 5)
        for name in names:
            name.truncate(width, overflow="ellipsis", pad=True)
        frame = self._frame(now_s)
        return [
            Text.assemble(frame, " ", name, f" {elapsed:>6} ", (printable(last), "dim"))
            for name, (_, elapsed, last) in zip(names, told, strict=True)
        ]

    def _frame(self, now_s: float) -> str:
        from rich.spinner import Spinner

        frames = Spinner(SPINNER).frames
        if not _says(self.stream, "".join(frames)):
            frames = Spinner(ASCII_SPINNER).frames
        return frames[int(now_s * 10) % len(frames)]

    def _name(self, workspace: str, name: str) -> str:
        return printable(f"[{workspace}] {name}" if self.named and workspace else name)


def _says(stream: TextIO, text: str) -> bool:
    """Whether a stream's encoding has these characters."""
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True


def _lines(event: Event, verbosity: int, *, named: bool) -> Iterator[Line]:
    """Of one workspace, or each with the name of the one it is about."""
    lines = lines_of(event, verbosity=verbosity)
    name = event.scope.workspace
    if not named or not name:
        yield from lines
        return
    for text, style in lines:
        if text:
            yield f"[{printable(name)}] {text}", style


def screen(
    environ: Mapping[str, str],
    *,
    plain: bool = False,
    verbosity: int = 0,
    to_stderr: bool = False,
    named: bool = False,
) -> Screen:
    """The screen for people: on stderr when stdout holds a document; `named` for several runs."""
    stream = sys.stderr if to_stderr else sys.stdout
    if is_live(stream, environ, plain=plain):
        return LiveScreen(stream=stream, verbosity=verbosity, named=named)
    if environ.get("GITHUB_ACTIONS") == "true":
        return JobLog(stream=stream, verbosity=verbosity, named=named)
    coloured = not plain and wants_colour(environ) is True
    return Printer(stream=stream, verbosity=verbosity, named=named, coloured=coloured)
