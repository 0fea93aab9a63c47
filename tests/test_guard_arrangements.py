"""Tests arranged anew: what claims as much is fine, what only looks alike is refused."""

from textwrap import dedent

import pytest

from tests.guardcases import failed, judged, rules_of

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


UNIT = """
    from dataclasses import dataclass


    @dataclass
    class Slot:
        start: int
        end: int

        def merged(self, other):
            return Slot(self.start, other.end)
"""
UNIT_TESTS = """
    import unittest

    import pytest

    from pkg.slots import Slot


    @pytest.mark.parametrize(("minutes", "text"), [(65, "1h05"), (120, "2h00")])
    def test_shows(minutes, text):
        assert Slot(0, minutes).shown() == text


    class SlotTest(unittest.TestCase):
        def setUp(self):
            self.slot = Slot(0, 10)

        def test_merged(self):
            self.assertEqual(self.slot.merged(Slot(5, 20)), Slot(0, 20))

        def test_before(self):
            self.assertEqual(self.slot.before(10), [1])
            self.assertEqual(self.slot.before(11), [1, 2])

        def test_refuses(self):
            with self.assertRaises(ValueError):
                Slot(3, 1)
"""
SLOTS, SLOT_TESTS = "pkg/slots.py", "tests/test_slots.py"
OF_SLOTS = {SLOTS: dedent(UNIT), SLOT_TESTS: dedent(UNIT_TESTS)}
EQUAL = "\n    def __eq__(self, other):\n        return isinstance(other, Slot) and self.start == other.start"
SLOT_CHEATS = {
    "expected by a formula": (SLOT_TESTS, "    assert Slot(0, minutes).shown() == text", '    hours, rest = divmod(minutes, 60)\n    want = text if not rest else f"{hours}h{rest}"\n    assert Slot(0, minutes).shown() == want'),
    "another value tried": (SLOT_TESTS, "before(10)", "before(9)"),
    "a mended class instead": (SLOT_TESTS, "class SlotTest(unittest.TestCase):\n    def setUp(self):\n        self.slot = Slot(0, 10)", "class Mended(Slot):\n    def merged(self, other):\n        return Slot(0, 20)\n\n\nclass SlotTest(unittest.TestCase):\n    def setUp(self):\n        self.slot = Mended(0, 10)"),
    "equal by a part": (SLOTS, "    end: int\n", f"    end: int\n{EQUAL}\n"),
    "homemade raises": (SLOT_TESTS, "            with self.assertRaises(ValueError):", "            with raises(ValueError):"),
}  # fmt: skip
SLOT_HONEST = {
    "equal by all of it": (SLOTS, "    end: int\n", f"    end: int\n{EQUAL} and self.end == other.end\n"),
    "values in a loop": (SLOT_TESTS, "        self.assertEqual(self.slot.before(10), [1])\n        self.assertEqual(self.slot.before(11), [1, 2])\n", "        for limit, want in ((10, [1]), (11, [1, 2])):\n            with self.subTest(limit):\n                self.assertEqual(self.slot.before(limit), want)\n"),
    "nothing to object to in a list": (SLOT_TESTS, "            with self.assertRaises(ValueError):", "            with self.assertRaisesRegex(ValueError, 'end'):"),
}  # fmt: skip


@pytest.mark.parametrize("name", SLOT_CHEATS)
def test_what_is_compared_with_less_is_refused(name: str) -> None:
    path, old, new = SLOT_CHEATS[name]
    old = old if old in OF_SLOTS[path] else old.removeprefix("    ")
    assert old in OF_SLOTS[path]
    assert judged(OF_SLOTS, {path: OF_SLOTS[path].replace(old, new)})


@pytest.mark.parametrize("name", SLOT_HONEST)
def test_what_is_compared_as_before_is_fine(name: str) -> None:
    path, old, new = SLOT_HONEST[name]
    found = judged(OF_SLOTS, {path: OF_SLOTS[path].replace(old, new)})
    assert not found, [v.detail for v in found]


CONFIG = {
    "app/core.py": "X = 1\n",
    "tests/test_core.py": "def test_x():\n    assert True is True\n",
}
INI = "[pytest]\ntestpaths = tests\nxfail_strict = true\nfilterwarnings =\n    error\n"
TOML = '[tool.pytest.ini_options]\ntestpaths = ["tests"]\nxfail_strict = true\nfilterwarnings = ["error"]\n'


def test_settings_may_move_to_another_file() -> None:
    found = judged({**CONFIG, "pytest.ini": INI}, {"pytest.ini": "", "pyproject.toml": TOML})
    assert not found, [v.detail for v in found]


def test_settings_that_are_looser_where_they_moved_to_are_refused() -> None:
    looser = TOML.replace('["error"]', '["ignore"]')
    assert judged({**CONFIG, "pytest.ini": INI}, {"pytest.ini": "", "pyproject.toml": looser})


SETTINGS = {
    "a mode's part switched off": ("[tool.mypy]\nstrict = true\n", "warn_return_any = false\n", True),
    "a mode's part switched on": ("[tool.mypy]\nstrict = true\n", "warn_unreachable = true\n", False),
    "warnings passed over": ("[tool.pytest.ini_options]\n", 'filterwarnings = ["ignore"]\n', True),
    "warnings made errors": ("[tool.pytest.ini_options]\n", 'filterwarnings = ["error"]\n', False),
    "an older Python": ('[tool.ruff]\ntarget-version = "py311"\n', "", False),
    "a limit of time": ("[tool.pytest.ini_options]\n", "timeout = 30\n", False),
}  # fmt: skip


@pytest.mark.parametrize("name", SETTINGS)
def test_a_setting_is_read_by_what_it_means(name: str) -> None:
    head, more, refused = SETTINGS[name]
    base = {**CONFIG, "pyproject.toml": head}
    assert bool(judged(base, {"pyproject.toml": head + more})) is refused


STEERING = {
    ".npmrc": ("script-shell=/bin/true\n", "save-exact=true\n"),
    ".cargo/config.toml": ('[build]\nrustflags = ["--cap-lints", "allow"]\n', '[alias]\nt = "test"\n'),
}  # fmt: skip


@pytest.mark.parametrize("path", STEERING)
def test_what_steers_the_tools_of_the_gates_is_refused(path: str) -> None:
    cheat, innocent = STEERING[path]
    assert judged(CONFIG, {path: cheat})
    assert not judged(CONFIG, {path: innocent})


MAKE = ".PHONY: test\ntest:\n\tpytest -q\n"
MAKE_CHANGES = {
    "a result of that name": ({"Makefile": "test:\n\tpytest -q\n", "test": "done\n"}, True),
    "a target that tidies up": ({"Makefile": MAKE + "\nclean:\n\t-rm -rf build\n"}, False),
    "the tool another way": ({"Makefile": MAKE.replace("pytest", "python -m pytest")}, False),
}


@pytest.mark.parametrize("name", MAKE_CHANGES)
def test_make_is_read_by_what_it_runs(name: str) -> None:
    after, refused = MAKE_CHANGES[name]
    assert bool(judged({**CONFIG, "Makefile": MAKE}, after, failed("make test"))) is refused


@pytest.mark.parametrize(("name", "refused"), [("test-money.py", True), ("test_cash.py", False)])
def test_a_test_file_keeps_a_name_that_runners_import(name: str, refused: bool) -> None:
    found = judged(BASE, {FILE: "", f"tests/{name}": BASE[FILE]})
    assert bool(found) is refused, [v.detail for v in found]


@pytest.mark.parametrize(
    ("comment", "refused"), [("yamllint disable", True), ("nolint's place", False)]
)
def test_settings_may_speak_of_suppressions(comment: str, refused: bool) -> None:
    base = {"deploy.yaml": "a: 1\n"}
    assert bool(judged(base, {"deploy.yaml": f"# {comment}\na: 1\n"})) is refused


SPAN = """from datetime import datetime

from kit.calendar import Span, free


def span(start, end):
    day = "2024-05-06T"
    return Span(datetime.fromisoformat(day + start), datetime.fromisoformat(day + end))
"""
DAY = 'DAY = span("09:00", "17:00")\n'
CLAIMS = """

def test_free({0}):
    assert free([], {1}) == [{1}]


def test_overlap():
    assert not span("09:00", "10:00").overlaps(span("10:00", "11:00"))
"""
GIVEN = """import pytest

from tests.support import span


@pytest.fixture
def day():
    return span("09:00", "17:00")
"""
ASKING = "from kit.calendar import free\nfrom tests.support import span\n" + CLAIMS.format(
    "day", "day"
)
NAMING = "from kit.calendar import free\nfrom tests.support import DAY, span\n" + CLAIMS.format(
    "", "DAY"
)
SPANS = {"tests/test_calendar.py": SPAN + "\n\n" + DAY + CLAIMS.format("", "DAY")}
MOVED = {
    "a fixture": {"tests/test_calendar.py": ASKING, "tests/support.py": SPAN, "tests/conftest.py": GIVEN},
    "a constant": {"tests/test_calendar.py": NAMING, "tests/support.py": SPAN + "\n\n" + DAY},
    "beside": {
        "tests/test_calendar.py": ASKING.replace("tests.support", ".support"),
        "tests/support.py": SPAN,
        "tests/conftest.py": GIVEN.replace("tests.support", ".support"),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", MOVED)
def test_what_tests_are_made_of_may_move(name: str) -> None:
    assert judged(SPANS, MOVED[name]) == ()


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("tests/support.py", "05-06", "05-07"),
        ("tests/support.py", "day + end", "day + start"),
        ("tests/conftest.py", "17:00", "16:00"),
    ],
)
def test_what_tests_are_made_of_stays_as_it_is_when_it_moves(path: str, old: str, new: str) -> None:
    after = MOVED["a fixture"]
    changed = {**after, path: after[path].replace(old, new)}
    assert "expectation-changed" in rules_of(judged(SPANS, changed))
