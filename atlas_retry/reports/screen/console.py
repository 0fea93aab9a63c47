"""Shows events to people: a live view on a terminal, append-only lines anywhere else."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Self, TextIO

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
from atlas_retry.reports.screen.lines import Line, coloured, harmless, printable
from atlas_retry.settings import in_ci
from atlas_retry.text.units import counted, seconds, usd

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from atlas_retry.reports.screen.live_region import LiveRegion

SPINNER, ASCII_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏", r"-\|/"
BELL_AFTER_S = 30.0
"""Shortest duration after which the terminal's bell rings at the end."""


def wants_colour(environ: Mapping[str, str]) -> bool | None:
    """The environment's choice of colour: True always, False never, None on a terminal.

    Source: no-color.org, force-color.org, bixense.com/clicolors.
    """
    if environ.get("NO_COLOR") or environ.get("CLICOLOR") == "0":
        return False
    forced = (environ.get(name, "") for name in ("FORCE_COLOR", "CLICOLOR_FORCE"))
    return True if any(value not in ("", "0") for value in forced) else None


class Printer(Struct, kw_only=True):
    """Prints append-only lines without control codes, except requested colours."""

    stream: TextIO
    verbosity: int = 0
    named: bool = False
    """Whether each line of an event starts with the name of its workspace."""
    coloured: bool = False
    steady: bool = False
    """Whether gates are named when they start, and once a minute while they run, as in CI."""
    _minutes: dict[tuple[str | None, str], int] = field(default_factory=dict)
    """Minutes for which a running gate was last named, by workspace and gate."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to restore."""

    def __call__(self, event: Event) -> None:
        if self.verbosity >= 0:
            self.write(self._labelled(event, lines_of(event, verbosity=self.verbosity)))
        if self.verbosity == 0 and self.steady:
            self.write(self._labelled(event, self._signs_of_life(event)))

    def _labelled(self, event: Event, lines: Iterator[Line]) -> Iterator[Line]:
        workspace = event.scope.workspace
        if not workspace or not self.named:
            return lines
        return ((f"[{printable(workspace)}] {text}", style) for text, style in lines if text)

    def _signs_of_life(self, event: Event) -> Iterator[Line]:
        match event:
            case GateStarted():
                self._minutes[event.scope.workspace, event.gate] = 0
                yield f"  started   {printable(event.gate)}", "dim"
            case GateProgress():
                key, minutes = (event.scope.workspace, event.gate), int(event.elapsed_s // 60)
                if minutes > self._minutes.get(key, 0):
                    self._minutes[key] = minutes
                    last = f": {printable(event.last_line)}" if event.last_line else ""
                    yield f"  running   {printable(event.gate)} ({minutes} min){last}", "dim"
            case _:
                pass

    def write(self, lines: Iterable[Line]) -> None:
        for text, style in lines:
            print(coloured(text, style if self.coloured else ""), file=self.stream, flush=True)


class JobLog(Printer, kw_only=True):
    """Prints lines in the log of a GitHub job, with a group for each gate.

    The output of tools may look like a command (`::error::`, `::add-mask::`), so commands are
    stopped between those of atlas. Source: docs.github.com, "Workflow commands", stop-commands.
    """

    token: str = field(default_factory=lambda: os.urandom(16).hex())
    _in_group: bool = False

    def __enter__(self) -> Self:
        self._print(f"::stop-commands::{self.token}")
        return self

    def __exit__(self, *_: object) -> None:
        self._end_group()
        self._print(f"::{self.token}::")

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
    """A running gate or turn of the agent in the live view."""

    started_s: float = field(default_factory=time.monotonic)
    text: str = ""
    steps: int = 0

    def follow(self, step: AgentActivity) -> None:
        """Show the agent's step, after its cost, if known, and its number of turns or steps."""
        self.steps += 1
        cost = "" if step.cost_usd is None else f"{usd(step.cost_usd)}, "
        turns = counted(step.turns, "turn") if step.turns else counted(self.steps, "step")
        self.text = f"{cost}{turns}: {step.text}"


class LiveScreen(Printer, kw_only=True):
    """Prints lines, with a live view of running gates below them from the first event on."""

    bell_after_s: float = BELL_AFTER_S
    _running: dict[tuple[str, str | None], _Running] = field(default_factory=dict)
    """Running work by workspace and gate; None stands for the agent."""
    _since_s: float = field(default_factory=time.monotonic)
    _console: "Console | None" = None
    _region: "LiveRegion | None" = None

    def __exit__(self, *error: object) -> None:
        if self._region:
            self._region.__exit__(*error)
            self._region = None
        if self.verbosity >= 0 and time.monotonic() - self._since_s >= self.bell_after_s:
            self.stream.write("\a")
            self.stream.flush()

    def __call__(self, event: Event) -> None:
        self._follow(event)
        if self._region is None:
            from atlas_retry.reports.screen.live_region import LiveRegion

            self._region = LiveRegion(console=self._on(), render=self._rows).__enter__()
        Printer.__call__(self, event)

    def write(self, lines: Iterable[Line]) -> None:
        from rich.text import Text

        text = Text("\n").join(Text.from_ansi(coloured(*line)) for line in lines)
        if text and self._region:
            self._region.print(text)
        elif text:
            self._on().print(text, soft_wrap=True, highlight=False)

    def _on(self) -> "Console":
        if self._console is None:
            from rich.console import Console

            # some shells and CI export 0, and Rich would show nothing
            unsized = {("COLUMNS", "0"), ("LINES", "0")}
            environ = dict(os.environ.items() - unsized)
            self._console = Console(file=self.stream, force_terminal=True, _environ=environ)
        return self._console

    def _follow(self, event: Event) -> None:
        workspace = event.scope.workspace or ""
        match event:
            case GateStarted():
                self._running[workspace, event.gate] = _Running()
            case GateProgress():
                if gate := self._running.get((workspace, event.gate)):
                    gate.text = event.last_line
            case GateFinished():
                self._running.pop((workspace, event.result.name), None)
            case ValidationFinished():
                self._running = {k: v for k, v in self._running.items() if k[0] != workspace}
            case AttemptStarted():
                self._running[workspace, None] = _Running(text="starting")
            case AgentActivity():
                self._running.setdefault((workspace, None), _Running()).follow(event)
            case AgentReplied() | AttemptFinished():
                self._running.pop((workspace, None), None)
            case _:
                pass

    def _rows(self, columns: int) -> "list[Text]":
        """One row for each running gate: spinner, name, elapsed time, last line of output."""
        from rich.text import Text

        now_s = time.monotonic()
        running = list(self._running.items())
        names = [Text(self._name(*key)) for key, _ in running]
        width = min(max((name.cell_len for name in names), default=0), columns * 2 // 5)
        is_utf8 = (self.stream.encoding or "").lower().startswith("utf")
        frames = SPINNER if is_utf8 else ASCII_SPINNER
        frame = frames[int(now_s * 10) % len(frames)]
        rows = []
        for name, (_, one) in zip(names, running, strict=True):
            name.truncate(width, overflow="ellipsis", pad=True)
            elapsed = seconds(round((now_s - one.started_s) * 1000))
            last = (printable(one.text), "dim")
            rows.append(Text.assemble(frame, " ", name, f" {elapsed:>6} ", last))
        return rows

    def _name(self, workspace: str, gate: str | None) -> str:
        name = "agent" if gate is None else gate
        return printable(f"[{workspace}] {name}" if self.named and workspace else name)


def screen(
    environ: Mapping[str, str],
    *,
    plain: bool = False,
    verbosity: int = 0,
    to_stderr: bool = False,
    named: bool = False,
) -> Printer:
    """The screen for people: on stderr if stdout has a document; `named` for several runs."""
    stream = sys.stderr if to_stderr else sys.stdout
    # `CI` and `TERM=dumb` also exclude control codes
    refused = plain or environ.get("TERM") == "dumb" or in_ci(environ)
    if stream.isatty() and not refused and wants_colour(environ) is not False:
        return LiveScreen(stream=stream, verbosity=verbosity, named=named)
    if environ.get("GITHUB_ACTIONS") == "true":
        return JobLog(stream=stream, verbosity=verbosity, named=named, steady=True)
    coloured = not plain and wants_colour(environ) is True
    return Printer(
        stream=stream,
        verbosity=verbosity,
        named=named,
        coloured=coloured,
        steady=in_ci(environ),
    )
