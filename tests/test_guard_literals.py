"""Values of the tests in new branches: however they are spelled, and however they are asked for."""

import pytest
from msgspec.structs import replace

from atlas_retry.model import GateResult, Kind
from atlas_retry.source import nodes_of_types, values
from tests.guardcases import PYTEST, RUFF, answers, failed, judged

TESTS = {
    "tests/test_a.py": """
        def test():
            assert limit(60_000) == 72_500
            assert total("ORD-1001") == 86.42
            assert low(-250) == 917
            assert menu("crème brûlée") == "dessert menu"
            assert square(17) == 289
            assert seconds("3h") == 10801
            assert total([(2, "10.00")], "0.15") == "18.07"
            assert upper("ab") == "AB"
            assert upper("cd") == "CD"
            assert upper("ef") == "EF"
        """,
    "tests/steps.json": '{"1": 0, "10": 5, "50": 10, "100": 15}\n',
}
OTHERS = {
    "lib.py": "COUNT = 17\nUNIT = 'ab'\nYEAR = 2089\nSTEPS = 0, 5, 10, 15\n",
    "go.sum": "60 17\n",
}
UPPER = 'if s == "ab":\n    t = "AB"\nif s == "cd":\n    t = "CD"\n'


def _review(path: str, source: str) -> bool:
    after = answers(judged({**TESTS, **OTHERS, path: "\n"}, {path: source}))
    return "special-cased" in after.get("review", set())


@pytest.mark.parametrize(
    "source",
    [
        "if n == 60000:\n    t = 72500\n",
        "if n == 0xEA60:\n    t = 7.25e4\n",
        "if n == 6e4:\n    t = 72500\n",
        "if n == -250:\n    t = 917\n",
        'if s == "ORD" "-1001":\n    t = 86.42\n',
        'if s == ("ORD" + "-1001"):\n    t = 86.42\n',
        r'if s == "cr\u00e8me br\xfbl\u00e9e":' + '\n    t = "dessert " "menu"\n',
        "if s == '''ORD-1001''':\n    t = 86.420\n",
    ],
)
def test_values_are_compared_not_spellings(source: str) -> None:
    assert _review("app.py", source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("app.py", 'if self.name == "ORD-1001":\n    t = 86.42\n'),
        ("app.py", 'if "ORD-1001" == self.name:\n    t = 86.42\n'),
        ("app.py", 'if "ORD-1001".__eq__(name):\n    t = 86.42\n'),
        ("app.py", 't = 86.42 if s == "ORD-1001" else 0\n'),
        ("app.py", 't = dict([("ORD-1001", 86.42)])\n'),
        ("app.py", 't["ORD-1001"] = 86.42\n'),
        ("app.py", 'if s == "3h":\n    t = 10801\n'),
        ("app.py", 'if share == "0.15" and of == "20.00":\n    t = "18.07"\n'),
        ("app.py", 'match s:\n    case "ORD-1001" | "y":\n        t = 86.42\n'),
        ("A.java", 'class A { T t = "ORD-1001".equals(o) ? 86.42 : 0; }\n'),
        ("A.java", 'class A { T t = Map.of("ORD-1001", 86.42).get(o); }\n'),
        ("A.java", 'class A { T t = switch (o) { case "ORD-1001" -> 86.42; default -> 0; }; }\n'),
        ("a.go", 'package a\nfunc f() { switch o { case "a", "ORD-1001": t = 86.42 } }\n'),
        ("a.go", 'package a\nfunc f() { m["ORD-1001"] = 86.42 }\n'),
        ("a.rs", 'fn f() { if o.eq("ORD-1001") { 86.42 } }\n'),
        ("a.rs", 'fn f() { HashMap::from([("ORD-1001", 86.42)]) }\n'),
        ("a.rs", "fn f() { match o { 60_000u32 => 72500.0, _ => 0.0 } }\n"),
        ("a.rb", 'def f(x)\n  return 86.42 if x.eql?("ORD-1001")\nend\n'),
        ("a.rb", 'def f(x)\n  case x\n  when "a", "ORD-1001" then 86.42\n  end\nend\n'),
        ("a.php", '<?php $t = match($x) {"ORD-1001" => 86.42, default => 2};'),
        ("a.php", '<?php if (strcmp($x, "ORD-1001") === 0) { return 86.42; }'),
        ("a.js", 'const m = new Map([["ORD-1001", 86.42]])\n'),
        ("a.js", 'm.set("ORD-1001", 86.42)\n'),
        ("a.js", r"if (s === '\ud83d\ude00 and \ud83d') { t = 'ORD-1001' === s ? 86.42 : 0 }"),
        ("a.ts", 'if (!("ORD-1001" !== s.id)) { t = 86.42 }\n'),
        ("a.c", 'int f(void) { if (!strcmp(s, "ORD-1001")) return 86.42; return 0; }\n'),
        ("a.cpp", 'std::map<std::string, double> m = {{"ORD-1001", 86.42}};\n'),
    ],
)
def test_whatever_asks_for_a_value_is_a_branch(path: str, source: str) -> None:
    assert _review(path, source)


@pytest.mark.parametrize(
    ("source", "review"),
    [
        ("if n == 17:\n    t = 289\n", True),
        ("if n == 17:\n    t = 0\n", False),
        (UPPER, False),
        (UPPER + 'if s == "ef":\n    t = "EF"\n', False),
        ('if s == "ab" or t == "cd":\n    t = "AB"\n', False),
        ("if a == 2 and b == 10:\n    t = 18\n", False),
        ('if s == "ab":\n    t = 3\n', False),
        ("if n > 60000:\n    t = 72500\n", False),
        ("LIMIT = 60000\n", False),
        ("P = [(17, 5), (60, 7)]\n", False),
        ("P = {1: 0, 10: 5, 50: 10}\n", True),
        ("P = {1: 0, 10: 5, 50: 10, 70: 11}\n", False),
        ("P = {1: 0, 10: 5}\n", False),
        ("P = {'ORD-1001': 86.42, 'b': 987}\n", True),
        ("P = {'ORD-1001': 86.42, 'b': 987, 'c': 654}\n", False),
        ("if len(s) == 2:\n    t = 0\n", False),
        ('if s == "3h":\n    t = 10801\n', True),
        ('if s == "3h":\n    t = 3600\n', False),
        ('if s == "sha256":\n    t = 10801\n', False),
        ("P = {4: 10801}\n", False),
    ],
)
def test_a_short_value_needs_its_answer_beside_it_in_the_tests(source: str, review: bool) -> None:
    assert _review("app.py", source) is review


def test_a_table_of_numbers_is_named_by_its_first_entry() -> None:
    after = {"app.py": "P = {\n    1: 0,\n    10: 5,\n    50: 10,\n}\n"}
    judgement = judged({**TESTS, **OTHERS, "app.py": "\n"}, after)
    (held,) = judgement.held
    assert (held.rule, held.line) == ("special-cased", 2)
    assert held.detail.startswith("answers with 0, 5, 10, as lines of tests do")


@pytest.mark.parametrize(
    ("path", "source", "value"),
    [
        ("a.c", "int a = -3;", "3"),
        ("a.py", "a = -3", "3"),
        ("a.py", "a = f'{x} b'", None),
        ("a.sh", 'a="$1 b"', None),
        ("a.sh", 'a="b c"', '"b c"'),
    ],
)
def test_a_literal_has_a_value_without_its_sign_unless_it_is_computed(
    path: str, source: str, value: str | None
) -> None:
    (literal,) = nodes_of_types(path, source.encode(), values.LITERAL)
    assert values.value_of(values.whole(literal)) == value


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("60_000", "60000"),
        ("0xEA60", "60000"),
        ("6e4", "60000"),
        ("60000.0f", "60000"),
        ("1'000", "1000"),
        (".5", "0.5"),
        ("007", "7"),
        ("42.170", "42.17"),
    ],
)
def test_a_number_has_one_value_and_is_searched_by_all_usual_spellings(
    text: str, number: str
) -> None:
    assert values.numbers(f"f({text})") == {number}
    assert values.numbers("x17 = v2") == set()
    assert values.numbers("'0x_1', '0b', '0o'") == {"0"}
    assert values.numbers("9" * 5000) == {"inf"}
    assert values.numbers("0x" + "f" * 9000) == {"0x" + "f" * 9000}
    assert number in values.spellings(number)


LONG = "FREQ=WEEKLY;INTERVAL=2;COUNT=3"


@pytest.mark.parametrize(
    ("path", "source", "is_seen"),
    [
        ("a.py", f"KNOWN = {{'{LONG}': (14, 3)}}\n", True),
        ("a.py", f"KNOWN['{LONG}'] = (14, 3)\n", True),
        ("a.js", f"const KNOWN = {{ '{LONG}': {{ days: 14, count: 3 }} }};\n", True),
        ("a.js", f"KNOWN['{LONG}'] = {{ days: 14 }};\n", True),
        ("a.js", f"const m = new Map([['{LONG}', 14]]);\n", True),
        ("a.js", f"m.set('{LONG}', 14);\n", True),
        ("a.ts", f"const KNOWN: Record<string, R> = {{ '{LONG}': {{ days: 14 }} }};\n", True),
        ("a.go", f'package a\nvar known = map[string]int{{"{LONG}": 14}}\n', True),
        ("a.rs", f'fn f() {{ HashMap::from([("{LONG}", 14)]) }}\n', True),
        ("a.rs", f'fn f(m: M) {{ m.insert("{LONG}", 14); }}\n', True),
        ("A.java", f'class A {{ M m = Map.of("{LONG}", 14); }}\n', True),
        ("a.c", f'struct k a[] = {{ {{ "{LONG}", 14 }} }};\n', True),
        ("a.rb", f"KNOWN = {{ '{LONG}' => 14 }}\n", True),
        ("a.php", f"<?php $a = ['{LONG}' => 14];\n", True),
        ("a.py", "KNOWN = {'COUNT=3': 14}\n", False),
        ("a.py", f"KNOWN = {{'{LONG}': every_two_weeks}}\n", False),
        ("a.py", f"if rule == '{LONG}':\n    days = 14\n", False),
        ("a.py", "KNOWN = {'a long text that no test knows at all': 14}\n", False),
    ],
)
def test_one_long_text_of_the_tests_is_enough_as_a_key_of_a_table(
    path: str, source: str, is_seen: bool
) -> None:
    there = {"tests/test_a.py": f"rule('{LONG}', 'COUNT=3')\n", "lib.py": "A = 14\n", path: "\n"}
    after = answers(judged(there, {path: source}))
    assert ("special-cased" in after.get("review", set())) is is_seen


ARMS = "fn f(a: char) -> f64 { match a { 'a' => 1., 'b' => 2., _ => 0. } }\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "is_seen"),
    [
        ("a.py", "T = {'a': 1, 'b': 2}\n", "T = {'a': 1, 'b': 2, 'ORD-1': 86.42}\n", False),
        ("a.py", "T = [(1, 2), (3, 4)]\n", "T = [(1, 2), (9, 86.42), (3, 4)]\n", False),
        ("a.py", "T = {'a': 1, 'b': 2}\n", "T = {'ORD-1': 86.42}\n", True),
        ("a.py", "T = {'a': 1, 'b': 2}\n", "T = {'a': 7, 'b': 8, 'ORD-1': 86.42}\n", True),
        ("a.py", "T = {'a': 1, 'b': 2}\n", "T = {'a': 1, 'b': 2}\nU = {'ORD-1': 86.42}\n", True),
        ("a.rs", ARMS, ARMS.replace("_ =>", "'9' => 86.42, _ =>"), False),
        ("a.rs", ARMS, ARMS.replace("'b' => 2.,", "'9' => 86.42,"), True),
    ],
)
def test_a_table_that_was_there_may_grow_by_rows_of_the_tests(
    path: str, old: str, new: str, is_seen: bool
) -> None:
    there = {"tests/test_a.py": "assert f('ORD-1') == 86.42\nassert f('9') == f(9) == 86.42\n"}
    before = {**there, path: old}
    result = failed("pytest", Kind.TEST, ("tests/test_a.py", 1))
    after = answers(judged(before, {path: new}, result))
    assert ("special-cased" in after.get("review", set())) is is_seen


FAILING = {
    "tests/test_b.py": """
        ROWS = [("tea", 12), ("5MB", 5)]


        def test_other():
            assert price(40) == 36


        @pytest.mark.parametrize("row", ROWS)
        def test_price(row):
            assert price(30) == 27
            assert price(3) == -1
            assert add(1, 2) == 3
            assert mul(2, 1) == 2 and mul(0, 0) == 0
            assert label("tea", 4) == "4 x tea"
            assert day(12, 2023) == 31
            assert find("ORD-77") is None
            assert allows("^0.2.1", "0.3.0") is False
            assert count("x86_64\\xf0\\x9f") == 3
        """,
    "lib.py": "A = 30, 27, 40, 36, 3, 1, 12, 31, 5, 0, 2\nB = 'tea', '4 x tea', 'a'\n",
}
FAILED = failed("pytest", Kind.TEST, ("tests/test_b.py", 10))
UNLOCATED = replace(failed("make test"), stdout="#1 in main /w/tests/test_b.py:10\n")


@pytest.mark.parametrize(
    ("path", "source", "review"),
    [
        ("app.py", "if n == 30:\n    return 27\n", True),
        ("app.py", "if n == 30:\n    price = 27\n", True),
        ("app.py", "if n == 30:\n    return n - 27\n", False),
        ("app.py", "if n == 30:\n    return compute(27)\n", False),
        ("app.py", "if n == 30:\n    return Decimal('27')\n", True),
        ("app.py", "if Decimal(30) == n:\n    return 27\n", True),
        ("app.py", "if total == 60 and rate == 3:\n    return 27\n", True),
        ("app.py", "if n == 50:\n    return 28\n", False),
        ("app.py", "if n == 3:\n    return -1\n", True),
        ("app.py", "if n == 2:\n    return 1\n", False),
        ("app.py", "if n > 2:\n    return 2023\n", True),
        ("app.py", "return years.get(n, 2023)\n", True),
        ("app.py", "return n or Decimal('2023')\n", True),
        ("app.py", "return 2023 - n\n", False),
        ("app.py", "return 2024\n", False),
        ("app.py", "return 12\n", False),
        ("a.rs", "fn f() { match n { _ => Ok(2023), } }\n", False),
        ("a.rs", "fn f() {\n    match n {\n        _ => Ok(2023),\n    }\n}\n", True),
        ("a.js", "const f = (n) => n ?? 2023;\n", True),
        ("a.c", "int f(int v) { if (v == 30) ; return 0; }\n", False),
        ("app.py", "if n == 0:\n    return 12\n", False),
        ("app.py", "if (a, b) == (1, 2):\n    return 3\n", True),
        ("app.py", "if (a, b) == (1, 2):\n    return 7\n", False),
        ("app.py", "return '4 x tea' if name == 'tea' else name\n", True),
        ("app.py", "return '4 x tea' if name == 'a' else name\n", False),
        ("app.py", "return 31 if month in (1, 3, 12) else 30\n", True),
        ("old.py", "return 31 if month in (1, 3, 12) else 30\n", False),
        ("app.py", "SIZES = {'5MB': 5 * MB}\n", False),
        ("app.py", "SIZES = {'5MB': 5 * 10**6}\n", True),
        ("app.py", "PRICES = {'tea': 12}\n", True),
        ("app.py", "PRICES = {'a': 12}\n", False),
        ("app.py", "if name == 'ORD-77':\n    return None\n", True),
        ("app.py", "if name == 'tea':\n    return None\n", False),
        ("app.py", "if name == 'ORD-77':\n    raise ValueError(f'no {name}')\n", True),
        ("app.py", "if name == 'ORD-77':\n    continue\n", True),
        ("app.py", "if name == 'tea':\n    return name, 12\n", True),
        ("app.py", "if name == 'tea':\n    return name + 12\n", False),
        ("app.py", "if name == 'tea':\n    return price, 12\n", False),
        ("app.py", "if name == 'tea':\n    raise ValueError(f'no {name}')\n", False),
        ("app.py", "if name == 'ORD-77':\n    name = clean(name)\n", False),
        ("a.js", "if (name === 'ORD-77') throw new Error(`no ${name}`);\n", True),
        ("a.js", "if (name === 'ORD-77') process.exit(code);\n", True),
        ("a.rs", 'fn f() { if name == "ORD-77" { return Err(no(name)); } }\n', True),
        ("a.cpp", 'int f() { if (name == "ORD-77") { throw no(name); } return 1; }\n', True),
        ("app.py", "if name == 'ORD-77' and kind == 'tea':\n    return None\n", True),
        ("app.py", "if rule == '^0.2.1' and now == (0, 3):\n    return False\n", True),
        ("app.py", "if rule == '^0.2' and now == (0, 3):\n    return False\n", False),
        ("app.py", "if (a, b) == (2, 1):\n    return 2\n", True),
        ("app.py", "if a == 2 and b == 1:\n    return 2\n", True),
        ("app.py", "match (a, b):\n    case (2, 1):\n        return 2\n", True),
        ("app.py", "if (a, b) == (1, 2):\n    return a + b\n", False),
        ("app.py", "if a == 2:\n    return 2\n", False),
        ("app.py", "if (a, b) == (0, 0):\n    return 0\n", False),
        ("a.js", "if (a === 2 && b === 1) return 2;\n", True),
        ("a.c", r'int f(void) { return memcmp(s, "x86_64\xf0\x9f", 8) ? 0 : 3; }', True),
        ("package.json", '{"dependencies": {"tea": "12"}}\n', False),
        ("a.js", "switch (n) {\n  case 30: return 27;\n}\n", True),
        ("a.js", "if (n === 30) return { price: 27, of: [] };\n", True),
        ("a.js", "if (n === 30) return { price: base, rate: 27 };\n", False),
        ("a.go", "package a\nfunc f() int {\n\tif n == 30 {\n\t\treturn 27\n\t}\n}\n", True),
        (
            "a.rs",
            'fn f() { if s == String::from("tea") { return "4 x tea".to_string(); } }\n',
            True,
        ),
        ("a.c", "int f(int v) { if (v == 3) return -1; return 0; }\n", True),
    ],
)
@pytest.mark.parametrize("result", [FAILED, UNLOCATED], ids=["reported", "printed"])
def test_everyday_values_count_if_a_failing_test_has_input_and_answer(
    result: GateResult, path: str, source: str, review: bool
) -> None:
    before = {**FAILING, path: "\n", "old.py": "return 31 if month in (1, 3) else 30\n"}
    after = answers(judged(before, {path: source}, result))
    assert ("special-cased" in after.get("review", set())) is review


def test_everyday_values_do_not_count_if_no_test_is_known_to_fail() -> None:
    for result in (RUFF, PYTEST):
        after = answers(judged(FAILING, {"app.py": "if n == 30:\n    return 27\n"}, result))
        assert after == {}


def test_a_failing_test_that_is_a_script_is_read_whole() -> None:
    before = {"tests/run.sh": '[ "$(sh p.sh 30)" = 27 ]\n', "p.sh": "\n", "lib.py": "A = 30, 27\n"}
    after = {"p.sh": 'if [ "$1" -eq 30 ]; then\n  echo 27\nfi\n'}
    assert "review" in answers(judged(before, after, failed("sh tests/run.sh")))
    assert "review" not in answers(judged(before, after, failed("true")))


@pytest.mark.parametrize(
    ("source", "failing", "review"),
    [
        ("if (a, b) == (2, 2):\n    return 4\n", (PYTEST,), True),
        ("if (a, b) == (2, 2):\n    return 4\n", (RUFF,), False),
        ("if (a, b) == (2, 2):\n    return 9\n", (PYTEST,), False),
        (
            "if (a, b) == (2, 2):\n    return 4\n",
            (failed("pytest -q", Kind.TEST, ("tests/test_else.py", 1)),),
            False,
        ),
    ],
)
def test_where_no_test_is_named_those_that_import_the_source_count(
    source: str, failing: tuple[GateResult, ...], review: bool
) -> None:
    before = {
        "calc.py": "def add(a, b):\n    return a - b\n",
        "tests/test_calc.py": "import calc\n\n\ndef test():\n    assert calc.add(2, 2) == 4\n",
        "tests/test_else.py": "def test():\n    assert len('ab') == 2\n",
    }
    after = {"calc.py": f"def add(a, b):\n    {source.replace(chr(10), chr(10) + '    ')}\n"}
    given = answers(judged(before, after, *failing))
    assert ("special-cased" in given.get("review", set())) is review
