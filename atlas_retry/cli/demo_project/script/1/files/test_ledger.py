"""What the ledger promises."""

import unittest

import ledger


class TestLedger(unittest.TestCase):
    def test_total_counts_every_amount(self) -> None:
        self.assertEqual(ledger.total([1, 2, 3]), 5)

    def test_average_keeps_the_fraction(self) -> None:
        self.assertEqual(ledger.average([0, 3]), 1.5)

    def test_average_of_nothing_is_nothing(self) -> None:
        self.assertEqual(ledger.average([]), 0)
