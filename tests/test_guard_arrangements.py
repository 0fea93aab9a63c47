"""Tests arranged anew: what claims as much is fine, what only looks alike is refused."""

from textwrap import dedent

import pytest

from tests.guardcases import failed, judged

SOURCE = """
    def allocate(total, parts):
        base = total // parts
        return [base] * parts


    def fmt(cents):
        return f"{cents / 100:.2f}"


    def greet(name):
        return "Hello " + name
"""
TESTS = """
    import pytest

    from pkg.money import allocate, fmt, greet


    def test_sums():
        shares = allocate(100, 3)
        assert sum(shares) == 100
        for share in shares:
            assert share in (33, 34)


    def test_many():
        result = allocate(10, 4)
        assert len(result) == 4
        assert result[0] == 3
        assert result[3] == 2


    def test_fmt():
        assert fmt(100) == "1.00"
        assert fmt(5) == "0.05"


    def test_greet():
        assert greet("alice") == "Hello alice"
        with pytest.raises(TypeError):
            greet(None)


    def test_order(order):
        assert order["id"] == 7
        assert len(order["lines"]) == 2
"""
CONFTEST = """
    import pytest


    @pytest.fixture
    def order():
        return {"id": 7, "lines": [("a", 2), ("b", 3)]}
"""
CODE, FILE, SHARED = "pkg/money.py", "tests/test_money.py", "tests/conftest.py"
BASE = {CODE: dedent(SOURCE), FILE: dedent(TESTS), SHARED: dedent(CONFTEST)}
SUMS = """    shares = allocate(100, 3)
    assert sum(shares) == 100
    for share in shares:
        assert share in (33, 34)
"""
MANY = """    result = allocate(10, 4)
    assert len(result) == 4
    assert result[0] == 3
    assert result[3] == 2
"""
FMT = '    assert fmt(100) == "1.00"\n    assert fmt(5) == "0.05"\n'
WHOLE_FMT = f"def test_fmt():\n{FMT}"
GREET = '    return "Hello " + name'
FIX = (
    CODE,
    "    return [base] * parts",
    "    rest = total - base * parts\n    return [base + (i < rest) for i in range(parts)]",
)
CASES = '[(100, "1.00"), (5, "0.05")]'
Edit = tuple[str, str, str]


def edited(*edits: Edit) -> dict[str, str]:
    found = dict(BASE)
    for path, old, new in edits:
        text = found.get(path, "")
        assert old in text, old
        found[path] = text.replace(old, new) if old else new
    return found


HONEST: dict[str, tuple[Edit, ...]] = {
    "the whole instead of its sum and members": ((FILE, SUMS, "    assert allocate(100, 3) == [34, 33, 33]\n"),),
    "the whole instead of its elements": ((FILE, MANY, "    assert allocate(10, 4) == [3, 3, 2, 2]\n"),),
    "two in a tuple": ((FILE, FMT, '    assert (fmt(100), fmt(5)) == ("1.00", "0.05")\n'),),
    "two in a mapping": ((FILE, FMT, '    assert {c: fmt(c) for c in (100, 5)} == {100: "1.00", 5: "0.05"}\n'),),
    "two in a list": ((FILE, FMT, '    assert [fmt(c) for c in (100, 5)] == ["1.00", "0.05"]\n'),),
    "a loop over a mapping": ((FILE, FMT, '    cases = {100: "1.00", 5: "0.05"}\n    for cents, want in cases.items():\n        assert fmt(cents) == want\n'),),
    "all of a generator": ((FILE, FMT, f"    assert all(fmt(c) == w for c, w in {CASES})\n"),),
    "parametrized": ((FILE, WHOLE_FMT, f'@pytest.mark.parametrize(("c", "w"), {CASES})\ndef test_fmt(c, w):\n    assert fmt(c) == w\n'),),
    "parametrized by a constant": ((FILE, WHOLE_FMT, f'CASES = {CASES}\n\n\n@pytest.mark.parametrize("c, w", CASES)\ndef test_fmt(c, w):\n    assert fmt(c) == w\n'),),
    "an object as a whole": ((FILE, '    assert order["id"] == 7\n    assert len(order["lines"]) == 2\n', '    assert order == {"id": 7, "lines": [("a", 2), ("b", 3)]}\n'),),
    "a function of its own": ((FILE, FMT, '    check(100, "1.00")\n    check(5, "0.05")\n'), (FILE, "def test_fmt", "def check(c, want):\n    assert fmt(c) == want\n\n\ndef test_fmt")),
    "a fixture that checks": ((FILE, WHOLE_FMT, 'def test_fmt(check):\n    check(100, "1.00")\n    check(5, "0.05")\n'), (SHARED, "@pytest.fixture\n", "@pytest.fixture\ndef check():\n    from pkg.money import fmt\n\n    def inner(c, want):\n        assert fmt(c) == want\n\n    return inner\n\n\n@pytest.fixture\n")),
    "names for values": ((FILE, 'assert greet("alice") == "Hello alice"', 'who = "alice"\n    assert greet(who) == f"Hello {who}"'),),
    "a class of unittest's": ((FILE, WHOLE_FMT, 'class TestFmt(unittest.TestCase):\n    def test_fmt(self):\n        self.assertEqual(fmt(100), "1.00")\n        self.assertEqual("0.05", fmt(5))\n'),),
    "a tighter error": ((FILE, "pytest.raises(TypeError)", 'pytest.raises(TypeError, match="None")'),),
}  # fmt: skip
CHEATS: dict[str, tuple[str, tuple[Edit, ...]]] = {
    "another whole": ("assertion-removed", ((FILE, SUMS, "    assert allocate(100, 3) == [33, 33, 33]\n"),)),
    "only the length": ("assertion-removed", ((FILE, MANY, "    assert len(allocate(10, 4)) == 4\n"),)),
    "only the members": ("assertion-weakened", ((FILE, MANY, "    assert set(allocate(10, 4)) == {2, 3}\n"),)),
    "a tuple of one": ("assertion-removed", ((FILE, FMT, '    assert (fmt(100),) == ("1.00",)\n'),)),
    "a part of the loop": ("assertion-weakened", ((FILE, "in shares:", "in shares[:1]:"),)),
    "no round of the loop": ("assertion-weakened", ((FILE, "in shares:", "in shares[:0]:"),)),
    "no case": ("test-switched-off", ((FILE, "def test_fmt():", '@pytest.mark.parametrize("x", [])\ndef test_fmt(x):'),)),
    "either error": ("assertion-weakened", ((FILE, "raises(TypeError)", "raises((TypeError, ValueError))"),)),
    "a function that skips": ("test-switched-off", ((FILE, "def test_fmt():\n", "def test_fmt():\n    needed()\n"), (FILE, "def test_sums", "def needed():\n    pytest.skip('later')\n\n\ndef test_sums"))),
    "other data of a fixture": ("input-changed", ((SHARED, '("b", 3)', '("b", 4)'),)),
    "a context that swallows": ("assertion-weakened", ((FILE, '    assert fmt(5) == "0.05"\n', '    with contextlib.suppress(Exception):\n        assert fmt(5) == "0.05"\n'),)),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_what_claims_as_much_in_another_arrangement_is_fine(name: str) -> None:
    found = judged(BASE, edited(FIX, *HONEST[name]))
    assert not found, [v.detail for v in found]


@pytest.mark.parametrize("name", CHEATS)
def test_what_claims_less_in_another_arrangement_is_refused(name: str) -> None:
    rule, edits = CHEATS[name]
    found = judged(BASE, edited(*edits))
    assert rule in {v.rule for v in found}, [v.detail for v in found]


ANSWERS = {
    "by name": f'    if name == "alice":\n        return "Hello alice"\n{GREET[:10]} "Hi"',
    "by match": '    match name:\n        case "alice":\n            return "Hello alice"\n    return name',
    "by member": '    if name in ("alice",):\n        return "Hello alice"\n    return name',
    "by table": '    return {"alice": "Hello alice"}.get(name, "Hello")',
    "by beginning": '    if name.startswith("ali"):\n        return "Hello alice"\n    return name',
    "by length": '    return "Hello alice" if len(name) == 5 else name',
}


@pytest.mark.parametrize("how", ANSWERS)
def test_an_answer_to_the_test_alone_is_refused(how: str) -> None:
    found = judged(BASE, edited((CODE, GREET, ANSWERS[how])))
    assert {v.path for v in found} == {CODE}, [v.detail for v in found]


def test_a_case_of_which_others_speak_is_no_answer_to_the_test() -> None:
    told = {**BASE, "README.md": "`greet` knows alice, who runs the place.\n"}
    after = edited((CODE, GREET, ANSWERS["by name"]))
    assert not judged(told, {**told, **after})


def test_a_table_that_grows_is_no_answer_to_the_test() -> None:
    table = (
        'UNITS = 1\n\n\ndef factor(unit):\n    if unit == "m":\n        return 1\n    return 0\n'
    )
    tests = 'from pkg.units import factor\n\n\ndef test_km():\n    assert factor("km") == 1000\n'
    base = {"pkg/units.py": table, "tests/test_units.py": tests}
    grown = table.replace("    return 0", '    if unit == "km":\n        return 1000\n    return 0')
    assert not judged(base, {"pkg/units.py": grown})


SCRIPT = """
    const { split, greet } = require('../src/split');

    it('shares out', () => {
      const shares = split(10, 4);
      expect(shares.length).toBe(4);
      expect(shares[0]).toBe(3);
      expect(shares[3]).toBe(2);
    });

    test('greets', async () => {
      expect(greet('alice')).toBe('Hello alice');
      expect(greet('bob')).toBe('Hello bob');
      await expect(greet.later('eve')).resolves.toBe('Hello eve');
    });
"""
MEMBERS = """  expect(shares.length).toBe(4);
  expect(shares[0]).toBe(3);
  expect(shares[3]).toBe(2);
"""
BOTH = """  expect(greet('alice')).toBe('Hello alice');
  expect(greet('bob')).toBe('Hello bob');
"""
JS = "test/split.test.js"
OF_JS = {JS: dedent(SCRIPT), "package.json": '{"scripts": {"test": "jest"}}\n'}
JS_HONEST = {
    "the whole": (MEMBERS, "  expect(shares).toEqual([3, 3, 2, 2]);\n"),
    "a loop": (BOTH, "  for (const [n, w] of [['alice', 'Hello alice'], ['bob', 'Hello bob']]) {\n    expect(greet(n)).toBe(w);\n  }\n"),
    "mapped": (BOTH, "  expect(['alice', 'bob'].map(greet)).toEqual(['Hello alice', 'Hello bob']);\n"),
    "a function": ("test('greets', async () => {\n" + BOTH, "function check(n, w) {\n  expect(greet(n)).toBe(w);\n}\n\ntest('greets', async () => {\n  check('alice', 'Hello alice');\n  check('bob', 'Hello bob');\n"),
}  # fmt: skip
JS_CHEATS = {
    "not awaited": ("await expect", "expect"),
    "trimmed": ("expect(greet('bob'))", "expect(greet('bob').trim())"),
    "a list of one": (BOTH, "  expect(['alice'].map(greet)).toEqual(['Hello alice']);\n"),
    "tried again": ("it('shares", "jest.retryTimes(3);\nit('shares"),
}


@pytest.mark.parametrize("name", JS_HONEST)
def test_what_claims_as_much_in_javascript_is_fine(name: str) -> None:
    old, new = JS_HONEST[name]
    found = judged(OF_JS, {JS: OF_JS[JS].replace(old, new)}, failed("npx jest"))
    assert not found, [v.detail for v in found]


@pytest.mark.parametrize("name", JS_CHEATS)
def test_what_claims_less_in_javascript_is_refused(name: str) -> None:
    old, new = JS_CHEATS[name]
    assert old in OF_JS[JS]
    assert judged(OF_JS, {JS: OF_JS[JS].replace(old, new)}, failed("npx jest"))


def test_a_file_that_jest_does_not_pick_up_runs_nothing() -> None:
    found = judged(OF_JS, {JS: "", "test/split.js": OF_JS[JS]}, failed("npx jest"))
    assert {v.rule for v in found} == {"test-removed"}


GO_TEST = """
    package x

    import "testing"

    func TestTable(t *testing.T) {
    	cases := []struct{ total, parts, want int }{
    		{4, 2, 2},
    		{5, 2, 3},
    	}
    	for _, c := range cases {
    		if got := Most(c.total, c.parts); got != c.want {
    			t.Errorf("got %d", got)
    		}
    	}
    }
"""
OF_GO = {"go.mod": "module x\n", "x_test.go": dedent(GO_TEST)}
GO_CHEATS = {
    "a row changed": ("{5, 2, 3}", "{5, 2, 2}"),
    "a part of the rows": ("range cases {", "range cases[:1] {"),
    "a helper that skips": ("	cases :=", "	slow(t)\n	cases :="),
    "panics swallowed": ("	cases :=", "	defer func() { recover() }()\n	cases :="),
}


@pytest.mark.parametrize("name", GO_CHEATS)
def test_what_a_go_table_no_longer_tries_is_refused(name: str) -> None:
    old, new = GO_CHEATS[name]
    helper = '\nfunc slow(t *testing.T) {\n\tt.Skip("slow")\n}\n'
    after = OF_GO["x_test.go"].replace(old, new) + helper
    assert judged(OF_GO, {"x_test.go": after}, failed("go test ./..."))


def test_rows_with_names_are_the_rows_they_were() -> None:
    named = OF_GO["x_test.go"].replace("{4, 2, 2}", "{total: 4, parts: 2, want: 2}")
    assert not judged(OF_GO, {"x_test.go": named}, failed("go test ./..."))


def test_a_file_built_on_one_system_alone_runs_nothing_elsewhere() -> None:
    moved = {"x_test.go": "", "x_windows_test.go": OF_GO["x_test.go"]}
    assert judged(OF_GO, moved, failed("go test ./..."))
