"""What the names, arguments and values of failing tests say about the code behind them."""

import pytest
from msgspec.structs import replace

from atlas_retry.model import Diagnostic, Kind
from atlas_retry.prompt.candidates import candidates
from atlas_retry.prompt.failing import locate, passing
from atlas_retry.prompt.graph import Graph
from atlas_retry.prompt.project import MAX_SEARCHED, Project
from atlas_retry.prompt.signals import SIGNALS
from tests.briefs import brief_of, failed, ranked_symbols

STORE = """\
def entry(data, **options):
    return route(data, options)


def route(data, options):
    for step in STEPS:
        data = step(data, options)
    return data


def escaping(data, options):
    return data.translate(TABLE)


def joining(data, options):
    return ' | '.join(data)


def sorting(data, options):
    size = len(data)
    return sorted(data) if size else data


def counting(data, options):
    return data


STEPS = [escaping, joining, sorting, counting]
"""
TESTS = """\
from store import entry


def test_plain():
    assert entry(['a']) == 'a'


def test_escapes():
    assert entry(['<']) == '&lt;'


def test_lines():
    assert entry(['a', 'b']) == 'a | b'
"""
FILES = {"store.py": STORE, "tests/test_store.py": TESTS}
LOG = """\
=================================== FAILURES ===================================
__________________________________ {name} __________________________________

    def {name}():
>       {line}
E       {error}

tests/test_store.py:{number}: AssertionError
=========================== short test summary info ============================
FAILED tests/test_store.py::{name} - AssertionError
1 failed, 2 passed in 0.01s
"""
STEPS = ("escaping", "joining", "sorting", "counting")


def _first_step(name: str, error: str) -> str:
    """Which of the steps, all reached alike, is thought likeliest."""
    number = TESTS.splitlines().index(f"def {name}():") + 2
    line = TESTS.splitlines()[number - 1].strip()
    log = LOG.format(name=name, line=line, number=number, error=error)
    project = Project(lambda path: FILES[path].encode(), lambda: FILES)
    passages = candidates((failed("pytest -q", log),), project, (), {})
    return next(c.passage.symbol for c in passages if c.passage.symbol in STEPS)


def test_a_test_name_leads_to_a_function_with_similar_words() -> None:
    assert _first_step("test_escapes", "AssertionError: assert 1 == 2") == "escaping"


def test_a_failing_test_is_never_used_as_a_passing_one() -> None:
    names = [f"test_many[{n}]" for n in range(40)] + ["test_late"]
    tests = "from store import entry\n\n\ndef test_many(n):\n    entry(n)\n\n\n"
    tests += "def test_late():\n    joining([1])\n"
    lines = "\n".join(f"FAILED tests/test_store.py::{name} - assert 1 == 2" for name in names)
    result = failed("pytest -q", f"{lines}\n41 failed in 0.1s\n", Kind.TEST)
    files = FILES | {"tests/test_store.py": tests}
    brief = replace(brief_of(result, files=files), budget_chars=8_000)
    ranking = ranked_symbols(brief)
    assert ranking.index("joining") < ranking.index("escaping")


def test_passing_tests_are_selected_deterministically() -> None:
    names = [f"tests/test_{letter}.py" for letter in "hgfedcba"]
    text = "".join(f"def test_{n}():\n    entry({n})\n\n\n" for n in range(20))
    project = Project(lambda _path: text.encode(), lambda: names)
    graph = Graph(project, names)
    failures = [Diagnostic(tool="pytest", message="", test_id=f"{name}::test_0") for name in names]
    passed = passing([locate(failure, project, graph) for failure in failures], graph)
    assert list(dict.fromkeys(spot.path for spot in passed)) == names


MONEY = """\
class TestMoney:
    def test_money(self):
        pass

    def test_money_is_rounded_up(self):
        assert rounded(1) == 2


def test_other(case):
    pass
"""


@pytest.mark.parametrize(
    ("test_id", "expected"),
    [
        ("tests/test_money.py::TestMoney::test_money_is_rounded_up", "test_money_is_rounded_up"),
        ("tests/test_money.py::TestMoney::test_money", "test_money"),
        ("tests.test_money.TestMoney.test_money_is_rounded_up", "test_money_is_rounded_up"),
        ("tests/test_money.py::test_other[a::test_money]", "test_other"),
        ("tests/test_money.py::TestMoney::test_gone", None),
        ("tests/test_money.py::another_test_other", None),
        ("tests/test_money.py::test_other_one", None),
        ("tests/test_money.py", None),
    ],
)
def test_only_the_exact_test_id_names_the_failing_test(test_id: str, expected: str | None) -> None:
    path = "tests/test_money.py"
    project = Project(lambda _path: MONEY.encode(), lambda: [path])
    failure = Diagnostic(tool="pytest", message="", test_id=test_id, path=path)
    spot = locate(failure, project, Graph(project, [path])).spot
    assert (spot.scope.name if spot else None) == expected


def test_a_table_named_in_the_failure_is_a_candidate() -> None:
    files = FILES | {"store.py": STORE + "\n\nESCAPES = {\n    '<': '&lt;',\n}\n"}
    line = "assert entry(['<']) == ESCAPES['<']"
    log = LOG.format(name="test_escapes", line=line, number=9, error="KeyError: ESCAPES")
    project = Project(lambda path: files[path].encode(), lambda: files)
    passages = candidates((failed("pytest -q", log),), project, (), {})
    assert "ESCAPES" in {c.passage.symbol for c in passages}


def test_an_unimported_file_is_found_by_its_words() -> None:
    files = FILES | {
        "plugins/quoting.py": "def quote_angle_brackets(data):\n    return data\n",
        **{f"plugins/other_{n}.py": f"def other_{n}():\n    pass\n" for n in range(20)},
    }
    log = LOG.format(name="test_escapes", line="x", number=9, error="quote_angle_brackets is off")
    project = Project(lambda path: files[path].encode(), lambda: files)
    passages = candidates((failed("pytest -q", log),), project, (), {})
    assert "quote_angle_brackets" in {c.passage.symbol for c in passages}


def test_words_are_sought_in_a_limited_number_of_files_near_the_test_first() -> None:
    read = []

    def source(path: str) -> bytes:
        read.append(path)
        return b"def quote_angle_brackets(data):\n    return data\n"

    many = [f"{folder}/module_{n}.py" for folder in "ab" for n in range(MAX_SEARCHED)]
    near = "src/quoting/brackets.py"
    project = Project(source, lambda: [*many, near])
    tests = ["tests/quoting/test_brackets.py"]
    found = project.speaking_of(["quote_angle_brackets"], "python", tests, 1)
    assert (found, len(read)) == ((near,), MAX_SEARCHED)


def test_every_signal_has_a_source_and_a_weight() -> None:
    assert all(signal.source and signal.weight for signal in SIGNALS)


DEEP = {
    "a chain of elif": "    if a:\n        return 1\n" + "    elif a:\n        return 1\n" * 600,
    "a chain of calls": f"    return route(a){'.add(a)' * 600}\n",
    "a chain of operators": f"    return ({' + '.join(['a'] * 900)}).total\n",
}


@pytest.mark.parametrize("body", DEEP.values(), ids=DEEP)
def test_deeply_nested_code_is_shown_without_analysis(body: str) -> None:
    files = FILES | {"store.py": STORE.replace("    return route(data, options)\n", body)}
    log = LOG.format(name="test_plain", line="assert entry(['a'])", number=5, error="assert 1 == 2")
    project = Project(lambda path: files[path].encode(), lambda: files)
    passages = candidates((failed("pytest -q", log),), project, (), {})
    assert "entry" in {c.passage.symbol for c in passages}


def test_minified_code_is_no_candidate() -> None:
    minified = ";".join(
        f"function entry{n}(data){{return data.store(options)}}" for n in range(500)
    )
    files = {
        "tests/store.test.js": "",
        "docs/jquery.js": minified,
        "store.js": "function entry() {\n}\n",
    }
    project = Project(lambda path: files.get(path, "").encode(), lambda: files)
    assert project.definitions("docs/jquery.js") == ()
    assert project.definitions("store.js")
