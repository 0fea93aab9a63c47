import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from atlas_retry.model import Attempt, Diagnostic, Frame, Gate, GateResult, Kind, Region, Status
from atlas_retry.prompt import compose
from atlas_retry.prompt.candidates import Candidate
from atlas_retry.prompt.code import Cutting, code
from atlas_retry.prompt.project import Project
from atlas_retry.prompt.wording import FENCE, PREVIOUS
from atlas_retry.settings import PromptSettings
from atlas_retry.source.excerpt import Mark, Passage, excerpt, marked, passage_at
from tests.briefs import PROJECT, PYTEST_LOG, brief_of, failed

TEXT = st.text(max_size=400)
FENCED_FROM_CHARS = 500
PATHS = st.sampled_from([*PROJECT, "gone.py", "a/b.go", "", "\udcff.py"])
LINES = st.integers(min_value=-3, max_value=60)
DIAGNOSTICS = st.builds(
    Diagnostic,
    tool=st.sampled_from(["pytest", "ruff", "x"]),
    message=TEXT,
    rule_id=st.none() | st.text(max_size=9),
    path=st.none() | PATHS,
    region=st.none() | st.builds(Region, start_line=LINES),
    test_id=st.none() | st.sampled_from(["tests/test_cart.py::test_total", "a b ("]) | TEXT,
    frames=st.lists(st.builds(Frame, path=PATHS, line=LINES), max_size=4).map(tuple),
    text=TEXT | st.just(PYTEST_LOG),
    fingerprint=st.sampled_from(["", "a", "b"]),
)
RESULTS = st.lists(
    st.builds(
        GateResult,
        name=st.text(max_size=12),
        kind=st.sampled_from(Kind),
        command=TEXT,
        status=st.sampled_from([Status.FAILED, Status.TIMED_OUT, Status.VACUOUS]),
        success=st.just(value=False),
        exit_code=st.none() | st.integers(-9, 255),
        stdout=TEXT | st.just(PYTEST_LOG * 3),
        stderr=TEXT,
        error=st.none() | TEXT,
        log_path=st.none() | st.just("/logs"),
        diagnostics=st.lists(DIAGNOSTICS, max_size=6).map(tuple),
    ),
    max_size=3,
)
HISTORY = st.lists(
    st.builds(
        Attempt, number=st.integers(1, 3), agent=st.just("x"), summary=TEXT, error=st.none() | TEXT
    ),
    max_size=2,
)
RELAXED = settings(
    max_examples=150,
    derandomize=True,
    database=None,
)


@RELAXED
@given(results=RESULTS, history=HISTORY, budget=st.integers(0, 20_000), learnings=st.lists(TEXT))
def test_every_prompt_is_within_budget_and_valid_utf_8(
    results: list[GateResult], history: list[Attempt], budget: int, learnings: list[str]
) -> None:
    brief = replace(
        brief_of(*results),
        history=tuple(history),
        budget_chars=budget,
        learnings=tuple(learnings),
    )
    text = compose(brief).text
    assert len(text) <= budget
    text.encode("utf-8")
    opened = text.count("<data-c0ffee>\n")
    assert opened == text.count("\n</data-c0ffee>")
    assert opened or budget < FENCED_FROM_CHARS or not results


MANY_WORDS = replace(
    brief_of(failed("pytest -q " + "tests/test_cart.py " * 40, PYTEST_LOG)),
    protected=tuple(f"protected/{n}/**" for n in range(80)),
    gates=tuple(Gate(name=f"g{n}", kind=Kind.LINT, run=f"tool-{n} --check") for n in range(40)),
    learnings=tuple(f"learning {n} " + "word " * 30 for n in range(20)),
    settings=PromptSettings(preamble="We use tabs. " * 200),
    history=(Attempt(number=1, agent="x", summary="tried " * 99, error="no " * 99),),
    attempt=2,
)


@pytest.mark.parametrize("budget", [500, 700, 1_000, 1_500, 2_500, 6_000])
def test_the_assertion_is_kept_in_any_budget_from_500_characters(budget: int) -> None:
    text = compose(replace(MANY_WORDS, budget_chars=budget)).text
    assert "E       assert 1 == 2" in text
    assert len(text) <= budget


def test_what_gives_way_to_the_errors_leaves_no_line_behind() -> None:
    text = compose(replace(MANY_WORDS, budget_chars=500)).text
    fence = FENCE.format("c0ffee")
    assert text.startswith(f"{fence}\n\n{PREVIOUS}\n<data-c0ffee>\n")
    _, _, after = text.rpartition("</data-c0ffee>\n")
    assert after.splitlines() == [
        "Less likely, not shown (6):",
        "src/shop/cart.py: Cart.total:11, Cart.add:8",
    ]


def test_the_prompt_says_what_was_left_out_and_where_the_log_is() -> None:
    log = "".join(f"src/shop/cart.py:{n}:1: E{n} broken {n} thing\n" for n in range(1, 301))
    text = compose(replace(brief_of(failed("mytool", log, Kind.LINT)), budget_chars=3_000)).text
    assert re.search(r"^Left out: .*\d+ more errors.*\.$", text, re.MULTILINE)
    assert "Full output: /state/logs/1" in text


def test_a_function_gets_the_room_of_what_it_holds() -> None:
    lines = [f"    value_{n} = rounded(total_{n})" for n in range(60)]
    source = "\n".join(("def outer():", "    def inner():", *lines))
    project = Project(lambda _: source.encode(), lambda: ("a.py",))
    outer = Passage(path="a.py", start_line=1, end_line=62, def_line=1)
    inner = replace(outer, start_line=2, end_line=50, def_line=2)
    found = tuple(Candidate(passage=one, score=1.0, why="x") for one in (outer, inner))
    blocks = code(found, Cutting(project=project, room=len(source) + 100, redact=str))
    assert [block.candidate.passage for block in blocks] == [outer]


def test_the_likeliest_function_is_shown_in_part_if_it_is_long_and_the_next_one_is_not() -> None:
    project = Project(lambda _: b"def it():\n" + b"    go()\n" * 99, lambda: ("a.py",))
    passage = Passage(path="a.py", start_line=1, end_line=100, def_line=1)
    first = Candidate(passage=passage, score=1.0, why="x")
    second = replace(first, passage=replace(passage, path="b.py"), score=0.5)
    blocks = code((first, second), Cutting(project=project, room=800, redact=str))
    assert [block.candidate for block in blocks] == [first]
    assert "left out" in blocks[0].text


def test_a_long_test_id_is_cut_and_not_left_out() -> None:
    long = PYTEST_LOG.replace("test_total", f"test_total_{'x' * 500}")
    text = compose(replace(brief_of(failed("pytest -q", long)), budget_chars=4_000)).text
    assert "Failing: tests/test_cart.py::test_total_xxx" in text


@RELAXED
@given(
    path=st.sampled_from(["a.py", "a.go", "a.rs", "a.ts", "a.rb", "a.txt", "a"]),
    source=st.binary(max_size=2_000)
    | st.text(max_size=2_000).map(lambda t: t.encode("utf-8", "replace")),
    line=LINES,
    note=st.text(max_size=300),
    limit=st.integers(0, 3_000),
)
def test_every_excerpt_is_within_its_limit(
    path: str, source: bytes, line: int, note: str, limit: int
) -> None:
    passage = marked(passage_at(path, source, line), [Mark(line=line, note=note)])
    cut = excerpt(passage, source, max_chars=limit)
    assert cut is None or len(cut.text) <= limit


def test_the_prompt_package_has_a_limited_number_of_lines() -> None:
    files = (Path(__file__).parents[1] / "atlas_retry" / "prompt").glob("*.py")
    assert sum(len(path.read_text().splitlines()) for path in files) <= 2_420


def test_the_likeliest_function_is_shown_around_its_error_if_it_is_too_long() -> None:
    body = "".join(f"    step_{n} = prepare({n}, 'and some more words')\n" for n in range(200))
    source = f"def long(value):\n{body}    return step_7 + valu\n"
    log = "long.py:202:21: F821 Undefined name `valu`\n"
    result = failed("ruff check", log, Kind.LINT)
    brief = replace(brief_of(result, files={"long.py": source}), budget_chars=4000)
    text = compose(brief).text
    assert "Start here: long.py:1-202 long (problem, in part)\ndef long(value):" in text
    assert "    return step_7 + valu  # <-- ERROR: F821 Undefined name `valu`" in text
