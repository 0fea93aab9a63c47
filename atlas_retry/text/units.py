"""Format durations, money, changes, lists of names and commands for people."""

from collections.abc import Iterable

from atlas_retry.model import Change, ChangeStatus, Outcome
from atlas_retry.text.commands import from_there

TENTHS_UP_TO_MS = 9_950
ONE_CENT = 0.01
MAX_NAMED = 8
"""How many names a message gives before it only counts them."""
NOT_REPORTED = "not reported"
"""For a cost that no agent told, which is not zero."""


def seconds(duration_ms: int) -> str:
    """A duration for people: `0.3 s`, `12 s`, `3 min 20 s`."""
    if duration_ms < TENTHS_UP_TO_MS:
        return f"{duration_ms / 1000:.1f} s"
    minutes, rest_s = divmod(round(duration_ms / 1000), 60)
    return f"{minutes} min {rest_s} s" if minutes else f"{rest_s} s"


def usd(amount: float, *, at_least: bool = False) -> str:
    """Money, with enough digits not to show a small amount as zero.

    `at_least`: part of it was not reported; without any known part, the text says only that.
    """
    if at_least and not amount:
        return NOT_REPORTED
    shown = f"${amount:.4f}" if 0 < amount < ONE_CENT else f"${amount:.2f}"
    return f"at least {shown}" if at_least else shown


def counted(number: int, noun: str) -> str:
    """`1 gate`, `2 gates`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def changed(change: Change) -> str:
    """A change in the form `calc.py (+1 -1)`, or `notes.txt (deleted)` where lines say less."""
    added, removed = change.added or 0, change.removed or 0
    is_whole = change.status in (ChangeStatus.DELETED, ChangeStatus.MODE)
    if is_whole or not added + removed:
        return f"{change.path} ({change.status})"
    return f"{change.path} (+{added} -{removed})"


def bounded(text: str, limit_chars: int) -> str:
    """A text of limited length; `...` replaces the end of a longer one."""
    return text if len(text) <= limit_chars else f"{text[: limit_chars - 3].rstrip()}..."


def first_few(names: Iterable[str], limit: int = MAX_NAMED) -> str:
    """The first names, and how many more there are: `a, b and 3 more`."""
    every = [*names]
    more = f" and {len(every) - limit} more" if len(every) > limit else ""
    return ", ".join(every[:limit]) + more


def spent(run: Outcome) -> str:
    """Cost of a run, and of an interrupted run before it."""
    is_known = all(attempt.cost_usd is not None for attempt in run.attempts)
    own = usd(run.cost_usd, at_least=not is_known)
    own = f"cost {own}" if own == NOT_REPORTED else own
    more = f" and {usd(run.interrupted_usd, at_least=True)} of an interrupted run"
    return own + (more if run.interrupted_usd else "")


def labelled(label: str, *commands: str) -> tuple[str, ...]:
    """Lines such as `next:` and `  atlas undo`, unwrapped so that a command is copied whole.

    Commands work where atlas was started, also if `-C` led elsewhere.
    """
    lines = "\n".join(commands).splitlines()
    return (f"{label}:", *(f"  {from_there(line)}" for line in lines))
