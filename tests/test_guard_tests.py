"""What tests may not lose, in Python: each cheat beside the innocent change that looks like it."""

import pytest

from atlas_retry.model import GateResult
from tests.guardcases import PYTEST, RUFF, judged, rules_of

SOURCE = "def area(w, h):\n    return w * h\n\n\ndef name(code):\n    return {}[code]\n"
BASE = {
    "shapes/__init__.py": "",
    "shapes/flat.py": SOURCE,
    "tests/test_flat.py": """
        import pytest

        from shapes.flat import area, name


        @pytest.fixture
        def side():
            return 4


        @pytest.mark.parametrize(("w", "h", "want"), [(2, 3, 6), (5, 5, 25), (0, 9, 0)])
        def test_area(w, h, want):
            assert area(w, h) == want


        def test_square(side):
            assert area(side, side) == 16
            assert area(side, 1) == 4


        def test_unknown():
            with pytest.raises(KeyError, match="zz"):
                name("zz")
    """,
}
FILE = "tests/test_flat.py"


def edited(*pairs: tuple[str, str]) -> dict[str, str]:
    """The test file with some of its text replaced (indentation as in BASE)."""
    text = BASE[FILE]
    for old, new in pairs:
        assert old in text, old
        text = text.replace(old, new)
    return {FILE: text}


SQUARE = "assert area(side, side) == 16"
I8 = "\n        "
I12 = "\n            "

CHEATS = {
    "deleted": ("test-removed", edited((f"def test_square(side):{I12}{SQUARE}{I12}assert area(side, 1) == 4", ""))),
    "renamed out": ("test-removed", edited(("def test_square", "def check_square"))),
    "made a method of nothing": ("test-removed", edited(("def test_square(side):", f"def later():{I12}def test_square(side):"))),
    "shadowed by a twin": ("assertion-removed", edited(("def test_unknown", "def test_square"))),
    "shadowed by one that asks something else": ("test-shadowed", edited(("def test_unknown", f"def test_square():{I12}assert area(16, 1) == 16{I8}{I8}def test_unknown"))),
    "shadowed by an import": ("test-shadowed", edited(("def test_unknown", f"from elsewhere import test_square{I8}{I8}def test_unknown"))),
    "undone": ("test-removed", edited(("def test_unknown():", f"del test_square{I8}{I8}def test_unknown():"))),
    "not collected": ("test-removed", edited(("def test_unknown():", f"test_square.__test__ = False{I8}{I8}def test_unknown():"))),
    "skipped inside": ("test-switched-off", edited((SQUARE, f"pytest.skip('later'){I12}{SQUARE}"))),
    "skip raised": ("test-switched-off", edited((SQUARE, f"raise unittest.SkipTest('x'){I12}{SQUARE}"))),
    "imported alias": ("test-switched-off", edited(("import pytest\n", "import pytest\n        from unittest import skip as stable\n"), ("def test_square", "@stable('x')\n        def test_square"))),
    "module mark": ("test-switched-off", edited(("from shapes", "pytestmark = pytest.mark.skipif(True, reason='x')\n        from shapes"))),
    "marked and left out": ("test-switched-off", edited(("def test_square", "@pytest.mark.slow\n        def test_square")) | {"pytest.ini": "[pytest]\naddopts = -m 'not slow'\n"}),
    "a decorator that swallows": ("test-switched-off", edited(("def test_square", "@tolerant\n        def test_square"))),
    "made a generator": ("test-switched-off", edited((SQUARE, f"yield{I12}{SQUARE}"))),
    "made a coroutine": ("test-switched-off", edited(("def test_square", "async def test_square"))),
    "returned early": ("assertion-removed", edited((SQUARE, f"return{I12}{SQUARE}"))),
    "only on a condition": ("assertion-weakened", edited((SQUARE, f"if area(1, 1) == 1:{I12}    {SQUARE}"))),
    "assertion gone": ("assertion-removed", edited((SQUARE + I12, ""))),
    "swallowed by try": ("assertion-weakened", edited((SQUARE, f"try:{I12}    {SQUARE}{I12}except AssertionError:{I12}    pass"))),
    "swallowed by suppress": ("assertion-weakened", edited((SQUARE, f"with contextlib.suppress(Exception):{I12}    {SQUARE}"))),
    "compared with itself": ("assertion-weakened", edited((SQUARE, "assert area(side, side) == area(side, side)"))),
    "is not None": ("assertion-weakened", edited((SQUARE, "assert area(side, side) is not None"))),
    "isinstance": ("assertion-weakened", edited((SQUARE, "assert isinstance(area(side, side), int)"))),
    "in a range": ("assertion-weakened", edited((SQUARE, "assert 0 < area(side, side) <= 16"))),
    "either or": ("assertion-weakened", edited((SQUARE, "assert area(side, side) == 16 or area(side, side) == 8"))),
    "one of many": ("assertion-weakened", edited((SQUARE, "assert area(side, side) in (8, 16)"))),
    "rounded": ("assertion-weakened", edited((SQUARE, "assert round(area(side, side), -2) == 16"))),
    "printed": ("assertion-removed", edited((SQUARE, "print(area(side, side))"))),
    "a string instead of a condition": ("assertion-removed", edited((SQUARE, 'assert "area(side, side) == 16"'))),
    "a new expectation": ("expectation-changed", edited((SQUARE, "assert area(side, side) == 8"))),
    "expected by calling the code": ("expectation-changed", edited((SQUARE, f"want = area(side, side){I12}assert area(side, side) == want"))),
    "a wide tolerance": ("assertion-weakened", edited((SQUARE, "assert area(side, side) == pytest.approx(16, abs=50)"))),
    "any error will do": ("assertion-weakened", edited(('pytest.raises(KeyError, match="zz")', "pytest.raises(Exception)"))),
    "another error": ("expectation-changed", edited(("pytest.raises(KeyError, ", "pytest.raises(ValueError, "))),
    "raises by itself": ("assertion-weakened", edited(('name("zz")', f'name("zz"){I12}    raise KeyError("zz")'))),
    "a case gone": ("cases-removed", edited((", (0, 9, 0)", ""))),
    "a case changed": ("cases-removed", edited(("(5, 5, 25)", "(5, 5, 10)"))),
    "a case marked": ("test-switched-off", edited(("(5, 5, 25)", "pytest.param(5, 5, 25, marks=pytest.mark.skip)"))),
    "no longer parsed": ("test-unparsable", edited((SQUARE, "assert area(side, side) = = 16"))),
    "mocked": ("code-under-test-mocked", edited(("def test_square(side):", f"def test_square(side, monkeypatch):{I12}monkeypatch.setattr('shapes.flat.area', lambda w, h: w ** 2)"))),
    "own copy": ("code-under-test-mocked", edited(("import area, name", "import name"), ("@pytest.fixture", "def area(w, h):\n            return w * h\n\n\n        @pytest.fixture"))),
    "from a fake": ("code-under-test-mocked", edited(("from shapes.flat import area, name", "from shapes.flat import name\n        from tests.fakes import area"))),
    "run again until it passes": ("test-switched-off", edited(("def test_square", "@pytest.mark.flaky(reruns=5)\n        def test_square"))),
    "emptied": ("assertion-removed", edited((f"{SQUARE}{I12}assert area(side, 1) == 4", "pass"))),
    "fixture that skips": ("runner-hooked", edited(("return 4", f"pytest.skip('no side'){I12}return 4"))),
}  # fmt: skip


@pytest.mark.parametrize("case", CHEATS)
def test_a_test_that_proves_less_is_refused_in_its_own_file(case: str) -> None:
    rule, after = CHEATS[case]
    found = judged(BASE, after)
    assert (rule, FILE) in {(v.rule, v.path) for v in found}, [v.detail for v in found]


CONVERTED = """
    from pytest import fixture, mark, raises

    from shapes.flat import area, name


    @fixture(name="side")
    def _side() -> int:
        return 4


    class TestArea:
        @mark.parametrize(
            "w, h, want",
            [
                (2, 3, 6),
                (5, 5, 25),
                (0, 9, 0),
                (1, 1, 1),
            ],
        )
        def test_area(self, w: int, h: int, want: int) -> None:
            assert want == area(w, h), "area"

        def test_square(self, side: int) -> None:
            square = area(side, side)
            assert square == 16
            assert area(side, 1) == 4


    def test_unknown() -> None:
        with raises(KeyError, match="zz"):
            name("zz")
"""
SPLIT = """
    from shapes.flat import area


    def test_square_of_a_side(side):
        assert area(side, side) == 16
        assert area(side, 1) == 4
"""
INNOCENT: dict[str, tuple[GateResult, dict[str, str]]] = {
    "style and a class": (RUFF, {FILE: CONVERTED}),
    "a message": (PYTEST, edited((SQUARE, SQUARE + ", 'square'"))),
    "yoda turned": (RUFF, edited((SQUARE, "assert 16 == area(side, side)"))),
    "moved to another file": (PYTEST, edited((f"def test_square(side):{I12}{SQUARE}{I12}assert area(side, 1) == 4", "")) | {"tests/test_square.py": SPLIT}),
    "renamed to say more": (PYTEST, edited(("def test_square", "def test_square_of_a_side"))),
    "merged into cases": (PYTEST, edited((", (0, 9, 0)", ", (0, 9, 0), (4, 4, 16), (4, 1, 4)"), (f"def test_square(side):{I12}{SQUARE}{I12}assert area(side, 1) == 4", ""))),
    "a twin that does all of it": (PYTEST, edited(("def test_unknown", f"def test_square(side):{I12}{SQUARE}{I12}assert area(side, 1) == 4{I12}assert area(1, side) == 4{I8}{I8}def test_unknown"))),
    "a case more": (PYTEST, edited((", (0, 9, 0)", ", (0, 9, 0), (7, 1, 7)"))),
    "cases named": (RUFF, edited(("(5, 5, 25)", 'pytest.param(5, 5, 25, id="square")'))),
    "cases as a loop": (PYTEST, edited(('@pytest.mark.parametrize(("w", "h", "want"), [(2, 3, 6), (5, 5, 25), (0, 9, 0)])\n        def test_area(w, h, want):\n            assert area(w, h) == want', "def test_area():\n            for w, h, want in [(2, 3, 6), (5, 5, 25), (0, 9, 0)]:\n                assert area(w, h) == want"))),
    "a helper asserts": (PYTEST, edited((f"{SQUARE}{I12}assert area(side, 1) == 4", f"check(side, side, 16){I12}check(side, 1, 4)"), ("def test_unknown", f"def check(w, h, want):{I12}assert area(w, h) == want{I8}{I8}def test_unknown"))),
    "the code was renamed": (PYTEST, edited(("import area, name", "import name, surface"), ("area(", "surface("))),
    "a specific error": (RUFF, edited(("pytest.raises(KeyError, match=", "pytest.raises(KeyError, check=bool, match="))),
    "a constant was named": (RUFF, edited((SQUARE, "assert area(side, side) == SQUARE"), ("@pytest.fixture", "SQUARE = 16\n\n\n        @pytest.fixture"))),
    "a clock is fixed": (PYTEST, edited(("def test_square(side):", f"def test_square(side, monkeypatch):{I12}monkeypatch.setattr('shapes.flat.time.time', lambda: 12.5)"))),
    "approximately, as floats are": (PYTEST, edited((SQUARE, "assert area(side, side) == pytest.approx(16)"))),
    "a fixture moved to conftest": (PYTEST, edited(("@pytest.fixture\n        def side():\n            return 4\n", "")) | {"tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef side():\n    return 4\n"}),
    "a marker nobody leaves out": (PYTEST, edited(("def test_square", "@pytest.mark.slow\n        def test_square"))),
    "new tests": (PYTEST, {"tests/test_name.py": "from shapes.flat import name\n\n\ndef test_name():\n    assert name('a') == 'A'\n"}),
    "strengthened": (PYTEST, edited(("assert area(side, 1) == 4", f"assert area(side, 1) == 4{I12}assert area(1, side) == 4"))),
    "a condition split": (RUFF, edited((f"{SQUARE}{I12}assert area(side, 1) == 4", "assert area(side, side) == 16 and area(side, 1) == 4"))),
}  # fmt: skip


@pytest.mark.parametrize("case", INNOCENT)
def test_a_change_that_proves_as_much_is_fine(case: str) -> None:
    gate, after = INNOCENT[case]
    assert judged(BASE, after, gate) == ()


UNITTEST = {
    "kit/__init__.py": "def slug(text):\n    return text\n",
    "tests/__init__.py": "# tests\n",
    "tests/test_kit.py": """
        import unittest

        from kit import slug


        class SlugTests(unittest.TestCase):
            def setUp(self):
                self.text = "A b"

            def test_plain(self):
                self.assertEqual(slug(self.text), "a-b")
                self.assertTrue(slug("x"))
                for said, same in (("a", "a"), ("b", "b"), ("a", "b")):
                    self.assertTrue(slug(said + same))
    """,
}
CLASSIC = {
    "failing with another error": ("test-switched-off", ("def setUp(self):", "failureException = KeyError\n\n            def setUp(self):")),
    "its own name replaced": ("code-under-test-mocked", ("def setUp(self):", 'def setUp(self):\n                mock.patch("tests.test_kit.slug").start()')),
    "rounds of a loop": ("cases-removed", ('(("a", "a"), ("b", "b"), ("a", "b"))', '(("a", "a"), ("b", "b"))')),
    "skipped in setUp": ("runner-hooked", ('self.text = "A b"', 'self.text = "A b"\n                self.skipTest("later")')),
    "skipped class": ("test-switched-off", ("class SlugTests", '@unittest.skipIf(True, "x")\n        class SlugTests')),
    "assertEqual to assertTrue": ("assertion-weakened", ('assertEqual(slug(self.text), "a-b")', 'assertTrue(slug(self.text), "a-b")')),
    "expected failure": ("test-switched-off", ("def test_plain", "@unittest.expectedFailure\n            def test_plain")),
    "no longer a TestCase": ("test-removed", ("SlugTests(unittest.TestCase)", "SlugChecks")),
    "own loader": ("runner-hooked", ("class SlugTests", "def load_tests(loader, tests, pattern):\n            return unittest.TestSuite()\n\n\n        class SlugTests")),
    "exit": ("early-exit", ("class SlugTests", "import os\n        os._exit(0)\n\n\n        class SlugTests")),
}  # fmt: skip


@pytest.mark.parametrize("case", CLASSIC)
def test_unittest_is_read_as_pytest_is(case: str) -> None:
    rule, (old, new) = CLASSIC[case]
    text = UNITTEST["tests/test_kit.py"]
    assert old in text
    assert rule in rules_of(judged(UNITTEST, {"tests/test_kit.py": text.replace(old, new)}))


def test_assertions_may_be_written_the_other_frameworks_way() -> None:
    after = """
        from kit import slug


        def test_plain():
            text = "A b"
            assert slug(text) == "a-b"
            assert slug("x")
            for said, same in [("a", "a"), ("b", "b"), ("a", "b")]:
                assert slug(said + same)
    """
    assert judged(UNITTEST, {"tests/test_kit.py": after}, RUFF) == ()


METHOD = "\n    def test_slug(self):\n        self.assertEqual(slug('c'), 'c')\n"
CLASS = "from kit import slug\nimport unittest\n\n\nclass TestSlug(unittest.TestCase):" + METHOD
TWINS = {
    "a method": METHOD.replace("'c'", "''"),
    "a class": "\n\nclass TestSlug(unittest.TestCase):" + METHOD.replace("slug", "c"),
    "nothing": "\n    test_slug = None\n",
    "set from outside": "\n\nTestSlug.test_slug = lambda self: None\n",
    "taken from outside": "\n\ndel TestSlug.test_slug\n",
}


@pytest.mark.parametrize("twin", TWINS.values(), ids=TWINS)
def test_a_method_whose_name_is_given_away_is_told(twin: str) -> None:
    found = judged({"tests/test_slug.py": CLASS}, {"tests/test_slug.py": CLASS + twin})
    assert "test-shadowed" in rules_of(found)


def test_twins_may_be_told_apart() -> None:
    before = CLASS + METHOD.replace("'c'", "'d'")
    after = CLASS + METHOD.replace("'c'", "'d'").replace("test_slug", "test_slug_of_d")
    assert judged({"tests/test_slug.py": before}, {"tests/test_slug.py": after}, RUFF) == ()


def test_a_package_of_tests_stays_a_package() -> None:
    assert "test-package-removed" in rules_of(judged(UNITTEST, {"tests/__init__.py": ""}))


def test_what_the_user_allows_is_not_told() -> None:
    _, after = CHEATS["renamed out"]
    assert judged(BASE, after, allow=("tests/**",)) == ()


def test_a_finding_says_how_to_allow_it() -> None:
    _, after = CHEATS["renamed out"]
    assert f"--allow '{FILE}'" in judged(BASE, after)[0].detail


SUPPORT = {
    "kit.py": "def total(x):\n    return x\n",
    "tests/conftest.py": """
        import pytest

        from kit import Account


        @pytest.fixture
        def account():
            return Account("cash", 250)
    """,
    "tests/checks.py": "def same_money(a, b):\n    assert a == b\n    assert type(a) is type(b)\n",
    "tests/test_kit.py": """
        from kit import total
        from tests.checks import same_money


        def test_total(account):
            same_money(total(account), 250)


        def test_import():
            import kit
    """,
}


@pytest.mark.parametrize(
    ("path", "old", "new", "rule"),
    [
        ("tests/conftest.py", '"cash", 250', '"cash", 0', "input-changed"),
        ("tests/checks.py", "assert a == b", "assert a is not None", "assertion-weakened"),
        ("tests/checks.py", "    assert a == b\n", "", "assertion-removed"),
        ("tests/test_kit.py", "            import kit\n", "            pass\n", "test-removed"),
    ],
)
def test_what_tests_stand_on_is_read_with_them(path: str, old: str, new: str, rule: str) -> None:
    assert old in SUPPORT[path]
    found = judged(SUPPORT, {path: SUPPORT[path].replace(old, new)})
    assert (rule, path) in {(v.rule, v.path) for v in found}, found


def test_a_marker_may_become_stricter() -> None:
    before = {
        "tests/test_a.py": "import pytest\n\n\n@pytest.mark.xfail(reason='x')\ndef test_a():\n    assert f() == 1\n"
    }
    after = {"tests/test_a.py": before["tests/test_a.py"].replace("'x')", "'y', strict=True)")}
    assert judged(before, after) == ()
