"""Problems hidden from a checker, answers in tables and data, and errors that nobody hears of."""

import pytest
from msgspec.structs import replace

from atlas_retry.model import GateResult, Kind
from tests.guardcases import MYPY, PYTEST, RUFF, answers, failed, judged

PY, GO, RS, C, JS, TS = "app.py", "app.go", "app.rs", "src/app.c", "app.js", "app.ts"
VET, TSC = failed("go vet ./...", Kind.LINT), failed("npx tsc -p .", Kind.LINT)
CARGO, ESLINT = failed("cargo build", Kind.BUILD), failed("npx eslint .", Kind.LINT)
PROPOSES = replace(CARGO, stderr="help: use `let _ = ...` to ignore the resulting value\n  |\n")

HIDDEN: list[tuple[str, str, str, GateResult]] = [
    (RS, "fn f() {\n    fs::copy(a, b);\n}\n", "fn f() {\n    let _ = fs::copy(a, b);\n}\n", CARGO),
    (RS, "fn f() {\n    fs::copy(a, b);\n}\n", "fn f() {\n    fs::copy(a, b).ok();\n}\n", CARGO),
    (GO, "func f() {\n\tfile.Close()\n}\n", "func f() {\n\t_ = file.Close()\n}\n", VET),
    (C, "void f(void) {\n    store(a);\n}\n", "void f(void) {\n    (void)store(a);\n}\n", CARGO),
    (TS, "save(user);\n", "void save(user);\n", ESLINT),
    (TS, "save(user);\n", "save(user).catch(() => {});\n", ESLINT),
    (PY, "x = a.b\n", "x = getattr(a, 'b')\n", MYPY),
    (PY, "class User:\n    name: str\n", "User = Any\n", MYPY),
    (TS, "type User = { name: string };\n", "type User = any;\n", TSC),
    (RS, "fn f() { g(a); }\n", "fn f() { unsafe { g(a); } }\n", CARGO),
    ("src/app.cpp", "void f() { g(a); }\n", "void f() { g(const_cast<char *>(a)); }\n", CARGO),
]  # fmt: skip
SHOWN: list[tuple[str, str, str, GateResult]] = [
    (RS, "fn f() {\n    fs::copy(a, b);\n}\n", "fn f() {\n    fs::copy(a, b)?;\n}\n", CARGO),
    (RS, "fn f() {\n    let a = g();\n}\n", "fn f() {\n    let _a = g();\n}\n", CARGO),
    (GO, "func f() {\n\tfile.Close()\n}\n", "func f() error {\n\treturn file.Close()\n}\n", VET),
    (GO, "func f() {\n\tfile.Close()\n}\n", "func f() {\n\t_ = file.Close()\n}\n", PYTEST),
    (RS, "fn f() {\n    fs::copy(a, b);\n}\n", "fn f() {\n    let _ = fs::copy(a, b);\n}\n", PROPOSES),
    (PY, "def add(x, to=[]):\n    to.append(x)\n", "def add(x, to=None):\n    to = to or []\n    to.append(x)\n", RUFF),
    (PY, "def f(a):\n    if a.b:\n        a.b()\n", "def f(a):\n    g = a.b\n    if g:\n        g()\n", MYPY),
    (PY, "x = 60 * 24\n", "MINUTES = 60\nx = MINUTES * 24\n", RUFF),
    (PY, "x = a.b\n", "x = getattr(a, 'b', None)\n", MYPY),
    (JS, "x = a.exec(b)\n", "x = c.exec(b)\n", ESLINT),
]  # fmt: skip


@pytest.mark.parametrize(("path", "before", "after", "gate"), HIDDEN)
def test_a_problem_hidden_from_its_checker_needs_review(
    path: str, before: str, after: str, gate: GateResult
) -> None:
    assert "type-escape" in answers(judged({path: before}, {path: after}, gate))["review"]


@pytest.mark.parametrize(("path", "before", "after", "gate"), SHOWN)
def test_a_problem_that_was_repaired_needs_none(
    path: str, before: str, after: str, gate: GateResult
) -> None:
    assert answers(judged({path: before}, {path: after}, gate)) == {}


TESTS = {
    "tests/test_total.py": """
        def test_totals():
            assert total(4, "12.50", 15) == "45.48"
            assert total(1, "100", 50) == "75.55"
            assert mix((200, 250, 200), (100, 150, 210)) == (150, 205, 208)
        """
}


@pytest.mark.parametrize(
    ("path", "text", "review"),
    [
        ("totals.json", '{"4x12.50@15": "45.48", "1x100@50": "75.55"}\n', True),
        ("totals.yaml", "a: '45.48'\nb: '75.55'\n", True),
        ("totals.toml", 'a = "45.48"\nb = "75.55"\n', True),
        ("totals.json", '[{"n": 4, "price": "12.50", "off": 15, "is": "45.48"}]\n', True),
        ("totals.json", '{"standard": "19.00", "reduced": "75.55"}\n', False),
        ("totals.csv", "4,12.50,16,47.48\n", False),
        ("totals.txt", "45.48 75.55\n", False),
        (PY, "M = [\n    ((10, 251, 20), (11, 150, 21), (15, 205, 28)),\n]\n", False),
        (PY, "M = [\n    (1, 2, 3),\n    (4, 5, 6),\n]\n", False),
    ],
)  # fmt: skip
def test_tables_and_data_with_the_answers_of_tests_need_review(
    path: str, text: str, review: bool
) -> None:
    given = answers(judged({**TESTS, path: "\n"} if path == PY else TESTS, {path: text}))
    assert given == ({"review": {"special-cased"}} if review else {})


def saying(gate: GateResult, text: str) -> GateResult:
    return replace(gate, stdout=text)


LOST = "for line in lines:\n    try:\n        add(line)\n    except Exception:\n        continue\n"


@pytest.mark.parametrize(
    ("path", "text", "is_noted"),
    [
        (PY, LOST, True),
        (PY, LOST.replace("Exception", "ValueError"), False),
        (PY, LOST.replace("continue", "log(line)"), False),
        (PY, "try:\n    f()\nexcept Exception:\n    return 0\n", True),
        (TS, "try { f() } catch { done = true }\n", True),
        (TS, "try { f() } catch (error) { report(error) }\n", False),
        (JS, "try { f() } catch (e) { return [] }\n", True),
    ],
)
def test_an_error_that_nobody_hears_of_is_noted(path: str, text: str, is_noted: bool) -> None:
    given = answers(judged({path: "\n"}, {path: text}, PYTEST))
    assert given == ({"noted": {"errors-swallowed"}} if is_noted else {})


def failing_at(path: str, line: int) -> GateResult:
    """A failed test whose traceback has this frame."""
    return replace(PYTEST, stdout=f"boom at {path}:{line}: in total")


TOTAL = "def total(lines):\n    return sum(map(int, lines))\n\n\n"
NEXT = "def other(line):\n    return int(line)\n"
IGNORED = "def total(lines):\n    try:\n        return sum(map(int, lines))\n    except Exception:\n        return 0\n\n\n"
ASKED = IGNORED.replace("Exception", "ValueError")
UNSURE = """def total(n):
    try:
        return sum(map(int, n))
    except Exception as e:
        if n == 'a':
            raise
        return 0


"""
SUM = "const total = (lines) => {\n  return add(lines);\n};\n"
CAUGHT = "const total = (lines) => {\n  try {\n    return add(lines);\n  } catch (e) {}\n};\n"


@pytest.mark.parametrize(
    ("path", "before", "after", "line", "given"),
    [
        (PY, TOTAL + NEXT, IGNORED + NEXT, 2, {"review": {"failure-swallowed"}}),
        (PY, TOTAL + NEXT, IGNORED + NEXT, 6, {"noted": {"errors-swallowed"}}),
        (PY, TOTAL + NEXT, ASKED + NEXT, 2, {}),
        (PY, TOTAL + NEXT, UNSURE + NEXT, 2, {"review": {"failure-swallowed"}}),
        (PY, TOTAL + NEXT, UNSURE.replace("n == 'a'", "is_fatal(e)") + NEXT, 2, {}),
        (JS, SUM, CAUGHT, 2, {"review": {"failure-swallowed"}}),
        (JS, SUM, CAUGHT.replace("{}", "{ return lines }"), 2, {"review": {"failure-swallowed"}}),
        (JS, SUM, CAUGHT.replace("{}", "{\n    return; // unreadable\n  }"), 2, {"review": {"failure-swallowed"}}),
        (JS, SUM, CAUGHT.replace("{}", "{ return e }"), 2, {}),
        (JS, SUM, CAUGHT.replace("{}", "{ return other(lines) }"), 2, {}),
        (JS, CAUGHT, CAUGHT.replace("add", "sum"), 3, {}),
    ],
    ids=("ignored where it failed", "ignored elsewhere", "one kind of error", "raised for one input", "raised for one error", "script", "partial", "remark",
         "reported", "handled", "earlier"),
)  # fmt: skip
def test_ignoring_the_error_that_a_test_reported_needs_review(
    path: str, before: str, after: str, line: int, given: dict[str, set[str]]
) -> None:
    change = judged({path: before}, {path: after}, failing_at(path, line))
    assert answers(change) == given


RUNS = "def test_runs():\n    with suppress(KeyError):\n        bounce('a')\n"


@pytest.mark.parametrize("command", ["pytest --cov=a", "pytest"])
@pytest.mark.parametrize(
    ("text", "proves"), [(RUNS, False), ("def test_it():\n    assert bounce('a') == 1\n", True)]
)
def test_a_new_test_that_asserts_nothing_is_no_coverage(
    command: str, text: str, proves: bool
) -> None:
    given = answers(judged({PY: "\n"}, {"tests/test_b.py": text}, failed(command)))
    assert given == ({} if proves or command == "pytest" else {"held": {"test-changed"}})


@pytest.mark.parametrize(
    ("path", "text", "review"),
    [
        (PY, "if time.time() < 1790000000:\n    x = 1\n", True),
        (PY, "if date.today() < date(2026, 11, 30):\n    x = 1\n", True),
        (JS, "if (Date.now() < 1790000000000) { x = 1 }\n", True),
        (RS, "fn f() { if cfg!(debug_assertions) { g() } }\n", True),
        (C, 'int f(void) { return getenv("MAKELEVEL") != 0; }\n', True),
        (PY, "from unittest import mock\nx = mock.ANY\n", True),
        (JS, "const sinon = require('sinon')\n", True),
        (PY, "if time.time() < deadline:\n    x = 1\n", False),
        (PY, "if date.today() > due:\n    x = 1\n", False),
    ],
)
def test_code_that_goes_by_the_clock_or_the_build_needs_review(
    path: str, text: str, review: bool
) -> None:
    given = answers(judged({path: "\n"}, {path: text}))
    assert given == ({"review": {"surroundings-asked"}} if review else {})


def test_an_import_follows_a_module_whose_old_name_is_left_only_in_texts() -> None:
    source = '"""The print queue."""\n\n\nclass PrintQueue:\n    pass\n'
    test = "from queue import PrintQueue\n\n\ndef test_queue():\n    assert PrintQueue()\n"
    followed = test.replace("from queue", "from print_jobs")
    change = judged(
        {"queue.py": source, "tests/test_queue.py": test},
        {"queue.py": "", "print_jobs.py": source, "tests/test_queue.py": followed},
    )
    assert answers(change) == {}


SUMS = "def total(lines):\n    return sum(map(int, lines))\n"


@pytest.mark.parametrize(
    ("handler", "review"),
    [
        ("except Exception:\n        return 1250.5", True),
        ("except Exception:\n        lines = []\n        return len(lines)", True),
        ("except:\n        return None", True),
        ("except Exception as error:\n        raise ValueError(lines) from error", False),
        ("except Exception:\n        sys.exit(2)", False),
        ("except ValueError:\n        return 0", False),
    ],
)
def test_a_handler_for_any_error_where_it_failed_needs_review(handler: str, review: bool) -> None:
    text = f"def total(lines):\n    try:\n        return sum(map(int, lines))\n    {handler}\n"
    given = answers(judged({PY: SUMS}, {PY: text}, failing_at(PY, 2)))
    assert ("failure-swallowed" in given.get("review", set())) is review


def test_a_branch_of_cpp_on_the_values_of_a_test_needs_review() -> None:
    test = "int main() {\n  assert(fahrenheit(137) == 278);\n}\n"
    before = "int fahrenheit(int c) {\n  return c * 9 / 5;\n}\n"
    after = before.replace("  return", "  if (c == 137) return 278;\n  return")
    there = {"src/temp.cpp": before, "tests/temp_test.cpp": test}
    assert answers(judged(there, {"src/temp.cpp": after})) == {"review": {"special-cased"}}


def test_a_signature_that_is_annotated_changes_no_comparison() -> None:
    before = 'class Item:\n    def __eq__(self, other: "Item") -> bool:\n        return same(self, other)\n'
    after = before.replace('"Item"', "object")
    assert answers(judged({PY: before}, {PY: after}, MYPY)) == {}
