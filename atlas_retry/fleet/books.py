"""The one budget of a batch: promised before a run, settled after; pure.

What a machine has spent on a run is known by the total in that machine's journal, which only grows.
So an account is a total that is replaced, never added to: what is reported twice counts once.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

T = TypeVar("T")
LEAST_USD = 0.01
"""Less is not worth a run."""


class Beat(Struct, frozen=True, kw_only=True):
    """How far a run has come on a machine, by that machine's journal: what a heartbeat tells."""

    run: str
    machine: str
    number: int
    """Of the latest try of the item that this machine had."""
    attempt: int = 0
    cost_usd: float = 0.0
    """Of the run, in all."""


class Account(Struct, frozen=True, kw_only=True):
    """What one machine has spent on one run, as far as it is known."""

    cost_usd: float = 0.0
    held_usd: float = 0.0
    """What it may have spent beyond, since it was last heard of."""
    number: int = 0
    """The latest try that this is about."""


Accounts = Mapping[str, Mapping[str, Account]]


class Books(Struct, frozen=True, kw_only=True):
    """All money of a batch. Runs that are closed and fully known are one sum."""

    limit_usd: float | None = None
    """None: unlimited."""
    spent_usd: float = 0.0
    promised: Mapping[str, float] = field(default_factory=dict)
    """To the runs under way."""
    caps: Mapping[str, float | None] = field(default_factory=dict)
    """What each open run was promised first, for a machine that continues it goes by that; None:
    unlimited."""
    accounts: Accounts = field(default_factory=dict)
    """By run and machine: of the runs that are open, and of those with something held."""

    @property
    def known_usd(self) -> float:
        """What is known to be spent."""
        return self.spent_usd + sum(account.cost_usd for account in self._every())

    @property
    def held_usd(self) -> float:
        """What lost machines may have spent beyond that."""
        return sum(account.held_usd for account in self._every())

    @property
    def free_usd(self) -> float:
        """What may still be promised; `inf` without a limit."""
        if self.limit_usd is None:
            return inf
        taken = self.known_usd + self.held_usd + sum(self.promised.values())
        return max(self.limit_usd - taken, 0.0)

    def _every(self) -> Iterator[Account]:
        for by_machine in self.accounts.values():
            yield from by_machine.values()


def promise(books: Books, run: str, wanted_usd: float | None) -> tuple[Books, float | None] | None:
    """Promise a run its money: all that is wanted, or the rest where nothing else may come back.

    The sum, None: unlimited. Returns None where the run has to wait for others, or there is no
    money: `may_grow` tells which.
    """
    asked = books.caps.get(run, wanted_usd)
    granted = wanted = inf if asked is None else asked
    if books.free_usd < wanted:
        is_the_rest = run not in books.caps and not may_grow(books)
        granted = books.free_usd if is_the_rest else 0.0
    if granted < min(LEAST_USD, wanted):
        return None
    if granted == inf:
        return replace(books, caps={**books.caps, run: None}), None
    caps = {**books.caps, run: granted}
    return replace(books, promised={**books.promised, run: granted}, caps=caps), granted


def may_grow(books: Books) -> bool:
    """Whether money may come back: runs are under way, or a lost machine may yet be heard of."""
    return bool(books.promised) or books.held_usd > 0


def settle(books: Books, beat: Beat) -> Books:
    """A try has come back: the beat is its last."""
    return _with(_returned(books, beat.run), beat, held_usd=0.0)


def lose(books: Books, run: str, beat: Beat | None) -> Books:
    """A try's worker is gone; what it was promised is held until its machine's journal is read.

    `beat` is the last that was heard. None: nobody had begun, for that is said before anything is
    spent.
    """
    promised_usd = books.caps.get(run) or 0.0
    books = _returned(books, run)
    if beat is None:
        return books
    before = _account(books, beat)
    if before.number >= beat.number:
        return books  # its machine has reported already
    known_usd = max(beat.cost_usd, before.cost_usd)
    return _with(books, beat, held_usd=max(promised_usd - known_usd, 0.0))


def report(books: Books, beat: Beat) -> Books:
    """A machine says what its journal holds of a run; of a closed one only where it is missed."""
    run = beat.run
    is_closed = run not in books.caps
    if is_closed and beat.machine not in books.accounts.get(run, {}):
        return books
    before = _account(books, beat)
    is_late = before.number > beat.number
    books = _with(books, beat, held_usd=before.held_usd if is_late else 0.0)
    return close(books, run) if is_closed else books


def close(books: Books, run: str) -> Books:
    """The run goes no further: what is known of it for sure becomes part of the sum."""
    accounts = books.accounts.get(run, {})
    known_usd = sum(one.cost_usd for one in accounts.values() if not one.held_usd)
    left = {machine: one for machine, one in accounts.items() if one.held_usd}
    return replace(
        books,
        spent_usd=books.spent_usd + known_usd,
        caps=_without(books.caps, run),
        accounts={**_without(books.accounts, run), **({run: left} if left else {})},
    )


def cost_of(books: Books, run: str) -> float:
    """What is known to be spent on an open run."""
    return sum(account.cost_usd for account in books.accounts.get(run, {}).values())


def _returned(books: Books, run: str) -> Books:
    return replace(books, promised=_without(books.promised, run))


def _account(books: Books, beat: Beat) -> Account:
    return books.accounts.get(beat.run, {}).get(beat.machine, Account())


def _with(books: Books, beat: Beat, held_usd: float) -> Books:
    """An account as of this beat; what was known of it to be spent is never less afterwards."""
    before = _account(books, beat)
    now = Account(
        cost_usd=max(beat.cost_usd, before.cost_usd),
        held_usd=held_usd,
        number=max(beat.number, before.number),
    )
    of_run = {**books.accounts.get(beat.run, {}), beat.machine: now}
    return replace(books, accounts={**books.accounts, beat.run: of_run})


def _without(table: Mapping[str, T], key: str) -> dict[str, T]:
    return {name: value for name, value in table.items() if name != key}
