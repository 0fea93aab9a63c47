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
    "a file that is not read": (RATES.replace(ROWS, "[]"), {"tests/rows.json": TABLE}),
}


@pytest.mark.parametrize(("tests", "more"), MOVED.values(), ids=MOVED)
def test_data_may_go_where_the_tests_find_it(tests: str, more: dict[str, str]) -> None:
    assert judged({"tests/test_rates.py": RATES}, {"tests/test_rates.py": tests, **more}) == ()


@pytest.mark.parametrize(("tests", "more"), LOST.values(), ids=LOST)
def test_data_that_the_tests_had_is_not_lost(tests: str, more: dict[str, str]) -> None:
    assert judged({"tests/test_rates.py": RATES}, {"tests/test_rates.py": tests, **more})
