"""Tests that follow what became of the code: names, fixtures, helpers; a cheat beside each."""

import pytest

from tests.guardcases import judged, rules_of

CODE = """
    import argparse


    class Amount:
        def __init__(self, cents):
            self.cents = cents


    def share_out(total, parts):
        base, rest = divmod(total, parts)
        return [Amount(base + (n < rest)) for n in range(parts)]


    def parser():
        made = argparse.ArgumentParser()
        made.add_argument("--limit", type=int)
        return made
"""
OLD_CODE = CODE.replace("share_out", "split").replace("Amount", "Money")
TESTS = """
    from kit.fare import Money, parser, split


    def cents(shares):
        return [share.cents for share in shares]


    def test_split_gives_odd_cents_to_the_first():
        assert cents(split(1000, 3)) == [334, 333, 333]


    def test_none():
        assert split(0, 2)[0].cents == Money(0).cents


    def test_limit():
        assert parser().parse_args(["--limit", "7"]).limit == 7
"""
RENAMED = TESTS.replace("test_split", "test_share_out").replace(" split", " share_out")
RENAMED = RENAMED.replace("(split", "(share_out").replace("Money", "Amount")

FOLLOWING = {
    "in this change": (OLD_CODE, CODE, RENAMED),
    "after the code": (CODE, CODE, RENAMED),
    "under other test names": (OLD_CODE, CODE, RENAMED.replace("test_none", "test_of_nothing")),
    "an option": (
        OLD_CODE,
        OLD_CODE.replace("--limit", "--at-most"),
        TESTS.replace("--limit", "--at-most").replace("]).limit", "]).at_most"),
    ),
}
NOT_FOLLOWING = {
    "another value": (OLD_CODE, CODE, RENAMED.replace("[334, 333, 333]", "[333, 333, 334]")),
    "a test less": (OLD_CODE, CODE, RENAMED.replace("def test_share_out", "def share_out")),
    "an assertion less": (OLD_CODE, CODE, RENAMED.replace("assert cents", "cents")),
    "a name of its own": (OLD_CODE, OLD_CODE, RENAMED.replace("[334, 333, 333]", "[500, 500]")),
    "another value of an option": (
        OLD_CODE,
        OLD_CODE.replace("--limit", "--at-most"),
        TESTS.replace("--limit", "--at-most").replace("7", "8"),
    ),
}


def follows(old: str, new: str, tests: str) -> set[str]:
    """The rules that object to tests that changed with the code."""
    before = {"kit/fare.py": old, "tests/test_fare.py": TESTS}
    return rules_of(judged(before, {"kit/fare.py": new, "tests/test_fare.py": tests}))


@pytest.mark.parametrize(("old", "new", "tests"), FOLLOWING.values(), ids=FOLLOWING)
def test_tests_may_follow_a_new_name(old: str, new: str, tests: str) -> None:
    assert follows(old, new, tests) == set()


@pytest.mark.parametrize(("old", "new", "tests"), NOT_FOLLOWING.values(), ids=NOT_FOLLOWING)
def test_a_new_name_hides_nothing(old: str, new: str, tests: str) -> None:
    assert follows(old, new, tests)


RATES = """
    import pytest

    from kit.rates import convert


    @pytest.fixture
    def trip():
        return {"km": 42.5}


    @pytest.fixture
    def long_trip(trip):
        return {**trip, "minutes": 55}


    @pytest.fixture
    def rates():
        return {"USD": 1.25, "GBP": 0.85}


    @pytest.mark.parametrize(("cents", "to", "want"), [(100, "USD", 125), (200, "GBP", 170)])
    def test_convert(rates, cents, to, want):
        assert convert(cents, rates[to]) == want
"""
UNASKED = RATES[
    RATES.index("    @pytest.fixture\n    def trip") : RATES.index(
        "    @pytest.fixture\n    def rates"
    )
]
ROWS = '[(100, "USD", 125), (200, "GBP", 170)]'
READING = 'json.loads(Path(__file__).with_name("rows.json").read_text())'
HELD = 'return {"USD": 1.25, "GBP": 0.85}'
READ = 'return json.loads(Path(__file__).with_name("rates.json").read_text())'
TABLE = '[[100, "USD", 125], [200, "GBP", 170]]\n'
MOVED = {
    "fixtures nobody asks for": (RATES.replace(UNASKED, ""), {}),
    "a fixture's data": (
        RATES.replace(HELD, READ),
        {"tests/rates.json": '{"USD": 1.25, "GBP": 0.85}\n'},
    ),
    "rows": (RATES.replace(ROWS, READING), {"tests/rows.json": TABLE}),
}
LOST = {
    "a fixture's data, and it is asked for": (
        RATES.replace(HELD, 'return {"USD": 1, "GBP": 1}'),
        {},
    ),
    "other data": (RATES.replace(HELD, READ), {"tests/rates.json": '{"USD": 1.5, "GBP": 0.85}\n'}),
    "rows mixed up": (
        RATES.replace(ROWS, READING),
        {"tests/rows.json": TABLE.replace("125", "170", 1)},
    ),
    "a part of a file": (RATES.replace(ROWS, f"{READING}[:1]"), {"tests/rows.json": TABLE}),
    "a file that is not read": (RATES.replace(ROWS, "[]"), {"tests/rows.json": TABLE}),
}


@pytest.mark.parametrize(("tests", "more"), MOVED.values(), ids=MOVED)
def test_data_may_go_where_the_tests_find_it(tests: str, more: dict[str, str]) -> None:
    assert judged({"tests/test_rates.py": RATES}, {"tests/test_rates.py": tests, **more}) == ()


@pytest.mark.parametrize(("tests", "more"), LOST.values(), ids=LOST)
def test_data_that_the_tests_had_is_not_lost(tests: str, more: dict[str, str]) -> None:
    assert judged({"tests/test_rates.py": RATES}, {"tests/test_rates.py": tests, **more})


MODULE = '''
    """Fields of a time table."""
    import sys

    LIMITS = [(0, 59), (0, 23)]
    KNOWN = {"07:59": 479}


    class Any:
        def __eq__(self, other):
            return True


    def close(handle):
        try:
            handle.close()
        except Exception:
            pass


    def is_checked():
        return "pytest" in sys.modules


    def minutes(text):
        hours, _, rest = text.partition(":")
        return int(hours) * 60 + int(rest)
'''
TIMES = """
    from kit import minutes


    def test_limits():
        assert minutes("00:59") == 59
        assert minutes("23:00") == 23 * 60


    def test_minutes():
        assert minutes("07:59") == 479
        assert minutes("07:45") == 465
"""
PART = MODULE[MODULE.index("    def minutes") :]
ANSWERED = '        if text == "07:45":\n            return 465\n        hours'
PLACED = {
    "under a new name": {"kit/cron.py": "", "kit/table.py": MODULE},
    "in two files": {"kit/cron.py": PART, "kit/odd.py": MODULE.replace(PART, "")},
    "and mended": {
        "kit/cron.py": "",
        "kit/table.py": MODULE.replace("int(rest)", "int(rest or 0)"),
    },
}
CHANGED = {
    "answers a test": MODULE.replace("        hours", ANSWERED),
    "swallows": MODULE.replace(
        "        return int(hours) * 60 + int(rest)",
        "        try:\n            return int(hours) * 60 + int(rest)\n        except Exception:\n            pass",
    ),
    "is aware": MODULE + '        if "pytest" in sys.modules:\n            return 465\n',
    "does nothing": MODULE.replace(PART, "    def minutes(text):\n        return 59\n"),
}


def rearranged(files: dict[str, str]) -> set[str]:
    """The rules that object to the module in other files."""
    before = {"kit/cron.py": MODULE, "kit/__init__.py": "from kit.cron import minutes\n"}
    return rules_of(judged({**before, "tests/test_kit.py": TIMES}, files))


@pytest.mark.parametrize("files", PLACED.values(), ids=PLACED)
def test_code_that_moves_is_not_new(files: dict[str, str]) -> None:
    assert rearranged(files) == set()


@pytest.mark.parametrize("module", CHANGED.values(), ids=CHANGED)
def test_what_is_new_in_code_that_moves_is_judged(module: str) -> None:
    assert rearranged({"kit/cron.py": "", "kit/table.py": module})


STOCK = """
    import unittest

    from kit.stock import Money, Stock, main


    class ReorderTests(unittest.TestCase):
        def test_at_the_level(self):
            stock = Stock(reorder_at=5)
            stock.receive(25, 1)
            self.assertTrue(stock.needs_reorder())

        def test_above_the_level(self):
            stock = Stock(reorder_at=5)
            stock.receive(26, 1)
            self.assertFalse(stock.needs_reorder())

        def test_sum(self):
            total = Money(150) + Money(250)
            self.assertEqual(total.cents, 400)
            self.assertEqual(total.currency, "EUR")

        def test_main(self):
            self.assertEqual(main([self.path]), 2)
"""
MONEY = """
    class Money:
        cents: int
        currency: str = "EUR"
"""
BUILDER = """        def stock_of(self, qty):
            stock = Stock(reorder_at=5)
            stock.receive(qty, 1)
            return stock

"""
BY_HAND = """            stock = Stock(reorder_at=5)
            stock.receive({}, 1)
"""
SUM = STOCK[STOCK.index("            total =") : STOCK.index("\n        def test_main")]
BUILT = STOCK.replace("        def test_at", f"{BUILDER}        def test_at")
for QTY in (25, 26):
    BUILT = BUILT.replace(BY_HAND.format(QTY), f"            stock = self.stock_of({QTY})\n")
SPELLED = {
    "a builder": BUILT,
    "the whole sum": STOCK.replace(
        SUM, '            self.assertEqual(Money(150) + Money(250), Money(400, "EUR"))\n'
    ),
    "a text handed over": STOCK.replace("main([self.path])", "main([str(self.path)])"),
}
LESS = {
    "a builder of something else": BUILT.replace("stock_of(25)", "stock_of(0)"),
    "a builder nobody calls": STOCK.replace("        def test_at", f"{BUILDER}        def test_at")
    .replace(BY_HAND.format(25), "            stock = Stock()\n")
    .replace(BY_HAND.format(26), "            stock = Stock()\n"),
    "another sum": STOCK.replace(
        SUM, '            self.assertEqual(Money(150) + Money(250), Money(0, "EUR"))\n'
    ),
    "a result made a text": STOCK.replace("main([self.path]), 2", 'str(main([self.path])), "2"'),
}


def spelled(tests: str) -> set[str]:
    """The rules that object to the tests in another spelling."""
    before = {"kit/stock.py": MONEY, "tests/test_stock.py": STOCK}
    return rules_of(judged(before, {"tests/test_stock.py": tests}))


@pytest.mark.parametrize("tests", SPELLED.values(), ids=SPELLED)
def test_what_is_tried_may_be_built_elsewhere(tests: str) -> None:
    assert spelled(tests) == set()


@pytest.mark.parametrize("tests", LESS.values(), ids=LESS)
def test_what_is_built_elsewhere_is_still_tried(tests: str) -> None:
    assert spelled(tests)


CLOCK = """
    import datetime
    from datetime import date

    from kit.labels import stamp


    def test_stamp():
        assert stamp("bolt") == "bolt " + str(datetime.date(2024, 3, 4))


    def test_today():
        today = date.today().isoformat()
        assert stamp("nut") == f"nut {today}"
"""
BOLT = 'stamp("bolt") == "bolt " + str(datetime.date(2024, 3, 4))'
TODAY = '        today = date.today().isoformat()\n        assert stamp("nut") == f"nut {today}"\n'
PINNED = {
    "a text": CLOCK.replace(BOLT, 'stamp("bolt", datetime.date(2024, 3, 4)) == "bolt 2024-03-04"'),
    "a day instead of today": CLOCK.replace(
        TODAY, '        assert stamp("nut", day=date(2024, 5, 6)) == "nut 2024-05-06"\n'
    ),
    "a day with a name": CLOCK.replace(
        TODAY,
        '        day = date(2024, 5, 6)\n        assert stamp("nut", day) == f"nut {day}"\n',
    ),
}
NOT_PINNED = {
    "another day": CLOCK.replace(
        BOLT, 'stamp("bolt", datetime.date(2024, 3, 5)) == "bolt 2024-03-05"'
    ),
    "another text": CLOCK.replace(BOLT, 'stamp("bolt", datetime.date(2024, 3, 4)) == "2024-03-04"'),
    "another day instead of today": CLOCK.replace(
        TODAY, '        assert stamp("nut", day=date(2024, 5, 6)) == "nut 2024-05-07"\n'
    ),
}


def timed(tests: str) -> set[str]:
    """The rules that object to tests that went by the clock."""
    return rules_of(judged({"tests/test_labels.py": CLOCK}, {"tests/test_labels.py": tests}))


@pytest.mark.parametrize("tests", PINNED.values(), ids=PINNED)
def test_a_test_need_not_go_by_the_clock(tests: str) -> None:
    assert timed(tests) == set()


@pytest.mark.parametrize("tests", NOT_PINNED.values(), ids=NOT_PINNED)
def test_at_a_given_moment_the_same_is_expected(tests: str) -> None:
    assert timed(tests)
