"""One budget over many machines: never above the limit, and at the end exact, whatever happens."""

from collections.abc import Iterator
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct, field

from atlas_retry.fleet import books
from atlas_retry.fleet.books import Beat, Books

CENT = 0.0001


def spent(machine: str, cost_usd: float, number: int = 1) -> Beat:
    return Beat(run="r", machine=machine, number=number, cost_usd=cost_usd)


def promised(limit_usd: float | None = 10.0, wanted_usd: float | None = 4.0) -> Books:
    promise = books.promise(Books(limit_usd=limit_usd), "r", wanted_usd)
    assert promise is not None
    return promise[0]


def test_promised_money_is_not_promised_again() -> None:
    first = promised(limit_usd=5.0)
    assert books.promise(first, "s", 4.0) is None
    assert books.may_grow(first)


def test_the_remainder_is_promised_when_no_more_can_be_returned() -> None:
    now = books.close(books.settle(promised(limit_usd=5.0), spent("a", 4.0)), "r")
    promise = books.promise(now, "s", 4.0)
    assert promise is not None
    assert promise[1] == pytest.approx(1.0)


def test_a_result_that_is_delivered_twice_counts_once() -> None:
    now = books.settle(promised(), spent("a", 3.0))
    now = books.close(books.settle(now, spent("a", 3.0)), "r")
    assert books.report(now, spent("a", 3.0)).known_usd == pytest.approx(3.0)


def test_possible_costs_of_a_lost_machine_are_held_until_it_reports() -> None:
    lost = books.lose(promised(), "r", spent("a", 1.0))
    assert (lost.known_usd, lost.held_usd, lost.free_usd) == (1.0, 3.0, 6.0)
    heard = books.report(lost, spent("a", 2.5))
    assert (heard.known_usd, heard.held_usd) == (2.5, 0.0)


def test_a_report_of_an_earlier_try_releases_nothing_of_a_later_one() -> None:
    lost = books.lose(promised(), "r", spent("a", 1.0, number=2))
    assert books.report(lost, spent("a", 1.0, number=1)).held_usd == pytest.approx(3.0)


def test_a_run_that_never_started_holds_nothing() -> None:
    assert books.lose(promised(), "r", None).free_usd == pytest.approx(10.0)


def test_a_run_on_two_machines_costs_the_sum_of_both() -> None:
    now = books.lose(promised(), "r", spent("a", 1.0))
    again = books.promise(now, "r", 4.0)
    assert again is not None
    now = books.close(books.settle(again[0], spent("b", 2.0, number=2)), "r")
    now = books.report(now, spent("a", 1.5))
    assert (now.known_usd, now.held_usd, now.accounts) == (3.5, 0.0, {})


class World(Struct, kw_only=True):
    """Machines that spend what they are promised and die, and what the workflow knows of it."""

    chance: Random
    limit_usd: float
    books: Books
    journals: dict[tuple[str, str], float] = field(default_factory=dict)
    """By run and machine, what has truly been spent."""
    under_way: dict[str, tuple[str, int]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    last: dict[tuple[str, str], int] = field(default_factory=dict)
    done: set[str] = field(default_factory=set)
    cut_off: dict[tuple[str, str], float] = field(default_factory=dict)
    """Machines that the server has lost and that go on spending, with what they were promised."""

    @property
    def spent_usd(self) -> float:
        return sum(self.journals.values())

    def begin(self, run: str, machine: str) -> None:
        if run in self.under_way or run in self.done or (run, machine) in self.cut_off:
            return
        promise = books.promise(self.books, run, self.chance.choice([1.0, 3.0, 7.0]))
        if promise:
            self.books = promise[0]
            number = self.numbers[run] = self.numbers.get(run, 0) + 1
            self.under_way[run] = (machine, number)
            self.last[run, machine] = number
            self.journals.setdefault((run, machine), 0.0)

    def spend(self, run: str) -> None:
        keys = {key: cap for key, cap in self.cut_off.items() if key[0] == run}
        if run in self.under_way:
            keys[run, self.under_way[run][0]] = self.books.caps[run] or 0.0
        for key, cap in keys.items():
            self.journals[key] += self.chance.random() * (cap - self.journals[key])

    def beat(self, run: str, machine: str, share: float = 1.0) -> Beat:
        """`share`: heartbeats may be older than what the journal holds."""
        return Beat(
            run=run,
            machine=machine,
            number=self.last[run, machine],
            cost_usd=self.journals[run, machine] * share,
        )

    def finish(self, run: str) -> None:
        if run in self.under_way:
            machine, _ = self.under_way.pop(run)
            self.books = books.close(books.settle(self.books, self.beat(run, machine)), run)
            self.done.add(run)

    def die(self, run: str) -> None:
        if run in self.under_way:
            machine, _ = self.under_way.pop(run)
            beat = self.beat(run, machine, self.chance.random())
            if self.chance.random() < 0.3 and self.journals[run, machine]:
                self.cut_off[run, machine] = self.books.caps[run] or 0.0
            heard = (
                None if self.journals[run, machine] == 0 and self.chance.random() < 0.5 else beat
            )
            self.books = books.lose(self.books, run, heard)

    def reports(self) -> Iterator[Beat]:
        busy = {(run, machine) for run, (machine, _) in self.under_way.items()} | {*self.cut_off}
        yield from (self.beat(*key) for key in self.journals if key not in busy)


@settings(max_examples=100)
@given(st.randoms(), st.floats(0, 30))
def test_no_schedule_exceeds_the_limit_and_all_costs_are_known_at_the_end(
    chance: Random, limit_usd: float
) -> None:
    world = World(chance=chance, limit_usd=limit_usd, books=Books(limit_usd=limit_usd))
    for _ in range(150):
        run = f"run-{chance.randrange(50)}"
        match chance.randrange(7):
            case 0 | 1:
                world.begin(run, f"machine-{chance.randrange(3)}")
            case 2:
                world.spend(chance.choice([*world.under_way, *(r for r, _ in world.cut_off), run]))
            case 3:
                world.finish(chance.choice([*world.under_way] or [run]))
            case 4:
                world.die(chance.choice([*world.under_way] or [run]))
            case 5:
                world.cut_off.clear()
            case _:
                beats = list(world.reports())
                for beat in chance.sample(beats, min(2, len(beats))):
                    world.books = books.report(world.books, beat)
        assert world.spent_usd <= limit_usd + CENT
        assert (
            world.spent_usd
            <= world.books.known_usd
            + world.books.held_usd
            + sum(world.books.promised.values())
            + CENT
        )
    world.cut_off.clear()
    for run in [*world.under_way]:
        world.finish(run)
    for beat in world.reports():
        world.books = books.report(world.books, beat)
    assert world.books.known_usd == pytest.approx(world.spent_usd, abs=CENT)
    assert world.books.held_usd == 0
