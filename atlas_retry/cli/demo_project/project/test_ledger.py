"""What the ledger promises."""

import ledger


def test_total_counts_every_amount() -> None:
    assert ledger.total([1, 2, 3]) == 6


def test_average_keeps_the_fraction() -> None:
    assert ledger.average([1, 2]) == 1.5


def test_average_of_nothing_is_nothing() -> None:
    assert ledger.average([]) == 0
