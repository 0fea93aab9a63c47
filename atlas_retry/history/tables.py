"""Statistics as tables and a small plot, for a person. Computes nothing."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, TextIO

from atlas_retry.history.statistics import GateTimes, Rate, Statistics, Turns
from atlas_retry.reports.screen.lines import harmless
from atlas_retry.text.units import seconds, usd

if TYPE_CHECKING:
    from rich.console import RenderableType

BAR_CHARS = 30
Row = tuple[str, ...]


def show(found: Statistics, stream: TextIO) -> None:
    """Write it to a stream; colours only where it is a terminal."""
    from rich.console import Console

    console = Console(file=stream, highlight=False)
    console.print(_headline(found), soft_wrap=True)
    for part in _parts(found):
        console.print()
        console.print(part)


def _headline(found: Statistics) -> str:
    if not found.runs:
        return "no run is recorded; atlas retry makes one"
    ends = ", ".join(f"{each.runs} {each.name.replace('_', ' ')}" for each in found.verdicts)
    lines = [f"{found.runs} runs: {ends}; {usd(found.cost_usd)} spent"]
    if found.with_attempts:
        share = f"{found.fixed / found.with_attempts:.0%}"
        lines.append(
            f"an agent was asked in {found.with_attempts} and fixed {found.fixed} ({share})"
        )
    if found.cost_per_fix_usd is not None and found.duration_per_fix_ms is not None:
        took = seconds(round(found.duration_per_fix_ms))
        lines.append(f"a fix costs {usd(found.cost_per_fix_usd)} and takes {took}")
    return "\n".join(lines)


def _parts(found: Statistics) -> Iterator["RenderableType"]:
    if found.attempts:
        yield plot(found.attempts)
        yield _table("agents", ("agent", "attempts", "fixed", "", "cost", "time"), _turns(found))
    for name, rates in (("gate kinds", found.kinds), ("rules", found.rules)):
        if rates:
            yield _table(name, (name.rstrip("s"), "failed", "fixed", ""), map(_rate, rates))
    for name, gates in (("flaky gates", found.flaky), ("slowest gates", found.slowest)):
        if gates:
            yield _table(name, ("gate", "ran", "flaky", "mean", "longest"), map(_gate, gates))


def plot(attempts: Sequence[Turns]) -> str:
    """How often attempt N, where it was needed, fixed everything."""
    return "\n".join(
        f"attempt {turn.name:<3} {'█' * round(turn.share * BAR_CHARS):<{BAR_CHARS}} "
        f"{turn.share:>4.0%}  ({turn.fixed} of {turn.failed})"
        for turn in attempts
    )


def _turns(found: Statistics) -> Iterator[Row]:
    for turn in found.agents:
        cost = "" if turn.cost_usd is None else usd(turn.cost_usd)
        took = "" if turn.duration_ms is None else seconds(round(turn.duration_ms))
        yield turn.name, str(turn.failed), str(turn.fixed), f"{turn.share:.0%}", cost, took


def _rate(rate: Rate) -> Row:
    return rate.name, str(rate.failed), str(rate.fixed), f"{rate.share:.0%}"


def _gate(gate: GateTimes) -> Row:
    mean, longest = seconds(round(gate.mean_ms)), seconds(gate.max_ms)
    return gate.name, str(gate.ran), str(gate.flaky), mean, longest


def _table(title: str, columns: Row, rows: "Iterator[Row]") -> "RenderableType":
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*map(Text, map(harmless, row)))
    return table
