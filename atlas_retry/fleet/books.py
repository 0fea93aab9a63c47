"""The one budget of a batch: money is promised before a run, and settled after it; pure.

A machine's spending on a run is the total in its journal, which only grows. So an account is a
total that is replaced, not added to, and a repeated report counts once.
"""

from collections.abc import Iterator, Mapping
from math import inf
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

T = TypeVar("T")
LEAST_USD = 0.01
"""Least budget for which a run is started."""


class Beat(Struct, frozen=True, kw_only=True):
    """Content of a heartbeat: progress of a run according to its machine's journal."""

    run: str
    machine: str
    number: int
    """Number of this machine's latest try of the item."""
    attempt: int = 0
    cost_usd: float = 0.0
    """Total cost of the run."""


class Account(Struct, frozen=True, kw_only=True):
    """Known spending of one machine on one run."""

    cost_usd: float = 0.0
    held_usd: float = 0.0
    """Upper bound of what it spent since its last report."""
    number: int = 0
    """Number of the latest try that is included."""


Accounts = Mapping[str, Mapping[str, Account]]


class Books(Struct, frozen=True, kw_only=True):
    """All money of a batch. Closed runs with known costs are in one sum."""

    limit_usd: float | None = None
    """None: unlimited."""
    spent_usd: float = 0.0
    promised: Mapping[str, float] = field(default_factory=dict)
    """Money promised to current runs."""
    caps: Mapping[str, float | None] = field(default_factory=dict)
    """First promise to each open run, which also limits a machine that continues it; None:
    unlimited."""
    accounts: Accounts = field(default_factory=dict)
    """Accounts by run and machine, of open runs and of those with money held."""

    @property
    def known_usd(self) -> float:
        """Known spending."""
        return self.spent_usd + sum(account.cost_usd for account in self._every())

    @property
    def held_usd(self) -> float:
        """Upper bound of what lost machines have spent in addition."""
        return sum(account.held_usd for account in self._every())

    @property
    def free_usd(self) -> float:
        """Money that may still be promised; `inf` without a limit."""
        if self.limit_usd is None:
            return inf
        taken = self.known_usd + self.held_usd + sum(self.promised.values())
        return max(self.limit_usd - taken, 0.0)

    def _every(self) -> Iterator[Account]:
        for by_machine in self.accounts.values():
            yield from by_machine.values()


def promise(books: Books, run: str, wanted_usd: float | None) -> tuple[Books, float | None] | None:
    """Promise a run its money: all it wants, or the rest if no more money can come back.

    Returns the new books and the sum (None: unlimited); or None if the run must wait for others or
    there is no money, as `may_grow` tells.
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
    """Whether money may come back, from current runs or a report of a lost machine."""
    return bool(books.promised) or books.held_usd > 0


def settle(books: Books, beat: Beat) -> Books:
    """The books after a try has ended with this last beat."""
    return _with(_returned(books, beat.run), beat, held_usd=0.0)


def lose(books: Books, run: str, beat: Beat | None) -> Books:
    """The books after a worker was lost; its promise is held until its machine reports.

    `beat` is its last heartbeat; None if it had not begun, as one is sent before money is spent.
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
    """The books after a machine's report on a run; for a closed run, only if money is held."""
    run = beat.run
    is_closed = run not in books.caps
    if is_closed and beat.machine not in books.accounts.get(run, {}):
        return books
    before = _account(books, beat)
    is_late = before.number > beat.number
    books = _with(books, beat, held_usd=before.held_usd if is_late else 0.0)
    return close(books, run) if is_closed else books


def close(books: Books, run: str) -> Books:
    """The books after a run has ended for good: its known cost is added to the sum."""
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
    """Known cost of an open run."""
    return sum(account.cost_usd for account in books.accounts.get(run, {}).values())


def _returned(books: Books, run: str) -> Books:
    return replace(books, promised=_without(books.promised, run))


def _account(books: Books, beat: Beat) -> Account:
    return books.accounts.get(beat.run, {}).get(beat.machine, Account())


def _with(books: Books, beat: Beat, held_usd: float) -> Books:
    """The books with the account updated by a beat; its known cost never decreases."""
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
