"""Progress: which problems are the same, how many there are, and how that is shown."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics import ToolOutput, diagnose
from atlas_retry.diagnostics.counting import (
    compared,
    course,
    first_problem,
    is_cut_short,
    problem_trend,
    total,
)
from atlas_retry.model import Diagnostic, GateResult, Kind, Level, Outcome, Status, Validation
from atlas_retry.reports import markdown, page
from atlas_retry.reports.screen.run_lines import outcome_summary
from atlas_retry.reports.subject import Subject
from atlas_retry.run.progress import is_worse
from tests.processes import PYTHON
from tests.projects import CALC, FIXED, Project
from tests.values import GREEN, result, validation

GOLDENS = Path(__file__).parent / "goldens"
UNUSED = Diagnostic(tool="ruff", rule_id="F401", path="a.py", message="unused", fingerprint="u")
NEVER_READ = Diagnostic(
    tool="ruff", rule_id="F841", path="a.py", symbol="f", message="`s` is never used"
)
TEST_ADD = Diagnostic(tool="pytest", rule_id="AssertionError", message="?", test_id="t.py::add")


def red(*diagnostics: Diagnostic, kind: Kind = Kind.LINT, **rest: object) -> GateResult:
    return replace(result("gate", Status.FAILED, kind=kind), diagnostics=diagnostics, **rest)


def test_a_problem_on_an_edited_line_is_the_same_problem() -> None:
    before = validation(red(replace(NEVER_READ, fingerprint="s = 1  # note")))
    after = validation(red(replace(NEVER_READ, fingerprint="s = 1")))
    assert compared(before, after) == ((), ("s = 1",), ())


def test_a_test_that_fails_differently_is_the_same_problem() -> None:
    before = replace(TEST_ADD, fingerprint="1 != 3", path="t.py")
    after = replace(TEST_ADD, fingerprint="TypeError", path="calc.py", rule_id="TypeError")
    assert compared(validation(red(before)), validation(red(after))) == ((), ("TypeError",), ())


def test_problems_of_one_kind_in_one_place_are_counted_separately() -> None:
    three = [replace(UNUSED, fingerprint=name) for name in ("os", "re", "sys")]
    fixed, remaining, introduced = compared(validation(red(*three)), validation(red(three[1])))
    assert (fixed, remaining, introduced) == (("os", "sys"), ("re",), ())
    assert compared(validation(red(UNUSED)), validation(red(*three)))[2] == ("re", "sys")
    assert total(validation(red(replace(UNUSED, count=5)))) == 5


def test_problems_of_a_gate_that_timed_out_do_not_count_as_fixed() -> None:
    late = validation(red(status=Status.TIMED_OUT))
    fixed, remaining, introduced = compared(validation(red(UNUSED)), late)
    assert (fixed, remaining, introduced) == ((), ("u",), ("gate:timed_out",))


def read(name: str, command: str, kind: Kind) -> GateResult:
    folder = GOLDENS / name
    logs = [(folder / f"{stream}.txt") for stream in ("stdout", "stderr")]
    stdout, stderr = (file.read_text() if file.exists() else "" for file in logs)
    output = ToolOutput(command=command, kind=kind, exit_code=1, stdout=stdout, stderr=stderr)
    return red(*diagnose(output).diagnostics, kind=kind)


@pytest.mark.parametrize(
    ("name", "command", "kind", "cut"),
    [
        ("pytest-9.2.0-collection", "pytest", Kind.TEST, True),
        ("unittest-3.11-discover", "python -m unittest", Kind.TEST, True),
        ("unittest-3.11-buffer", "python -m unittest", Kind.TEST, False),
        ("jest-30.5.2-plain", "jest", Kind.TEST, True),
        ("vitest-4.1.12-run", "vitest run", Kind.TEST, True),
        ("cargo-test-1.95-plain", "cargo test", Kind.TEST, False),
        ("go-test-1.26-plain", "go test ./...", Kind.TEST, True),
        ("maven-3.8.7-tests", "mvn test", Kind.TEST, False),
        ("ruff-0.17.6-syntax", "ruff check", Kind.LINT, True),
        ("ruff-0.17.6-full", "ruff check", Kind.LINT, False),
        ("flake8-7.5.0-default", "flake8", Kind.LINT, True),
        ("mypy-2.4.1-syntax", "mypy", Kind.LINT, True),
        ("mypy-2.4.1-strict", "mypy", Kind.LINT, False),
        ("black-26.10.1-check", "black --check .", Kind.FORMAT, True),
        ("prettier-3.10.1-check", "prettier --check .", Kind.FORMAT, True),
    ],
)
def test_output_cut_short_by_collection_or_syntax_errors_is_recognised(
    name: str, command: str, kind: Kind, *, cut: bool
) -> None:
    assert is_cut_short(read(name, command, kind), Validation()) is cut


@pytest.mark.parametrize(
    ("late", "cut"),
    [
        (red(status=Status.TIMED_OUT), True),
        (red(UNUSED, exit_code=127), True),
        (red(), True),
        (red(UNUSED), False),
        (red(TEST_ADD, kind=Kind.TEST), False),
        (red(TEST_ADD, replace(UNUSED, rule_id="fail-under"), kind=Kind.TEST), False),
        (red(TEST_ADD, replace(UNUSED, level=Level.WARNING), kind=Kind.TEST), False),
    ],
)
def test_a_timeout_or_silence_is_cut_short(late: GateResult, *, cut: bool) -> None:
    assert is_cut_short(late, Validation()) is cut


def run_of(project: Project, *texts: str, on_exhausted: str = "best") -> Outcome:
    for number, text in enumerate(texts, start=1):
        project.attempt(number, {"calc.py": text})
    return project.retry(retry__max_ai_retry_attempts=len(texts), retry__on_exhausted=on_exhausted)


IMPORTS = "import os\nimport re\nimport sys\n\n\ndef f():\n    s = 1{}\n    return 2\n"


def linted(project: Project) -> None:
    project.configure(
        validation={"lint": [f"{PYTHON} -m ruff check --isolated --no-cache --select F calc.py"]}
    )
    (project.root / "calc.py").write_text(IMPORTS.format("  # note"))
    project.commit()


def test_fixed_problems_are_kept_although_a_line_with_a_problem_was_edited(
    project: Project,
) -> None:
    linted(project)
    left = IMPORTS.format("").partition("sys\n\n\n")[2]
    outcome = run_of(project, left)
    (made,) = outcome.attempts
    assert (len(made.fixed), len(made.remaining), len(made.introduced)) == (3, 1, 0)
    assert made.kept
    assert (project.root / "calc.py").read_text() == left
    assert problem_trend(outcome) == "4 -> 1"


TESTS = """import unittest

import calc


class AddTest(unittest.TestCase):
    def test_one(self):
        self.assertEqual(calc.add(1, 2), 3)

    def test_two(self):
        self.assertEqual(calc.add(0, 2), 2)

    def test_three(self):
        self.assertEqual(calc.add(2, 2), 4)
"""


def tested(project: Project) -> None:
    (project.root / "test_calc.py").write_text(TESTS)
    project.commit()


ONLY_ZERO = "def add(a, b):\n    return b\n"
ALL_BUT_ONE = "def add(a, b):\n    return a + b if a else 9\n"
BROKEN = "def add(a, b:\n"
NONE = "def add(a, b):\n    return 70\n"


def test_a_worse_attempt_is_reverted_before_the_next_one(
    project: Project,
) -> None:
    tested(project)
    (project.root / "other.py").write_text("x = 1\n")
    project.commit()
    project.attempt(1, {"calc.py": ONLY_ZERO})
    project.attempt(2, {"calc.py": BROKEN, "other.py": "x = 2\n"})
    project.attempt(3, {"notes.py": "y = 1\n"})
    outcome = project.retry(retry__max_ai_retry_attempts=3)
    assert [attempt.worse for attempt in outcome.attempts] == [False, True, False]
    third = outcome.attempts[2]
    assert (len(third.remaining), third.fixed, third.introduced) == (2, (), ())
    assert (project.root / "other.py").read_text() == "x = 1\n"
    assert (project.root / "calc.py").read_text() == ONLY_ZERO
    assert "all of it was restored" in Path(third.prompt_path or "").read_text()
    assert problem_trend(outcome) == "3 -> 2 -> unknown -> 2"


def test_a_worse_last_attempt_stays_with_on_exhausted_keep(
    project: Project,
) -> None:
    tested(project)
    outcome = run_of(project, ALL_BUT_ONE, BROKEN, on_exhausted="keep")
    assert (project.root / "calc.py").read_text() == BROKEN
    assert [attempt.kept for attempt in outcome.attempts] == [False, True]
    assert outcome.better == 1


def test_a_collection_error_is_never_better_than_failing_tests(project: Project) -> None:
    tested(project)
    outcome = run_of(project, BROKEN)
    assert outcome.better is None
    assert (project.root / "calc.py").read_text() == CALC


def test_failing_tests_are_better_than_a_collection_error(project: Project) -> None:
    tested(project)
    (project.root / "calc.py").write_text(BROKEN)
    project.commit()
    outcome = run_of(project, NONE)
    assert [attempt.kept for attempt in outcome.attempts] == [True]
    assert problem_trend(outcome) == "unknown -> 3"


def test_every_report_shows_the_counts_and_the_pick_command(project: Project) -> None:
    tested(project)
    outcome = run_of(project, ALL_BUT_ONE, NONE, on_exhausted="restore")
    subject = Subject(result=outcome, workspace=outcome.workspace)
    command = f"atlas pick {outcome.run_id} 1"
    terminal = "\n".join(line for line, _ in outcome_summary(outcome))
    assert "3 -> 1 -> 3" in terminal
    assert command in terminal
    for text in (markdown.report(subject), page.report(subject)):
        assert "3 -&gt; 1 -&gt; 3" in text.replace("&#62;", "&gt;")
        assert command in text
    assert (project.root / "calc.py").read_text() == CALC


def test_a_fixed_run_ends_with_zero_problems(project: Project) -> None:
    assert problem_trend(run_of(project, FIXED)) == "1 -> 0"


def test_without_counts_problems_are_compared_by_their_number() -> None:
    says_more, says_less = (red(*[UNUSED] * count, kind=Kind.TEST) for count in (3, 2))
    assert course((validation(says_more), validation(says_less))) == "3 -> 2"


def test_the_first_problem_is_a_failing_test_with_the_total() -> None:
    failed = validation(red(replace(UNUSED, fingerprint="u"), TEST_ADD, kind=Kind.TEST))
    assert first_problem(failed) == "2 problems, the first: t.py::add: AssertionError ?"
    assert first_problem(GREEN) == ""


def test_a_failure_without_problems_shows_its_last_line() -> None:
    failed = validation(red(error="exit code 3", stderr="a\nno such option\n"))
    assert first_problem(failed) == "1 line that no parser knows: gate: exit code 3: no such option"


def unread(*lines: str) -> Validation:
    return validation(red(stdout="\n".join(lines), exit_code=1))


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        (("<a> is bad", "<b> is bad", "<c> is bad"), ("<b> is bad",), (2, 1, 0)),
        (("<a> is bad",), ("<a> is bad", "<b> is bad"), (0, 1, 1)),
        (("ui: a.ts(1): no", "ui: b.ts(2): no"), ("ui: b.ts(9): no",), (1, 1, 0)),
        (("docs/a.md", "docs/b.md"), ("docs/b.md",), (1, 1, 0)),
        (("<a> is bad", "<b> is bad"), ("Traceback (most recent call last):",), (0, 0, 0)),
    ],
)
def test_output_that_no_parser_reads_counts_by_its_lines(
    before: tuple[str, ...], after: tuple[str, ...], counts: tuple[int, ...]
) -> None:
    assert tuple(map(len, compared(unread(*before), unread(*after)))) == counts


def test_a_tool_that_dies_is_no_progress_over_unread_problems() -> None:
    problems, death = unread("<a> is bad", "<b> is bad"), unread("Segmentation fault")
    assert not is_worse(problems, than=death)
    assert is_worse(unread("<a> is bad", "<b> is bad"), than=unread("<a> is bad"))


STRANGE = (
    "import pathlib, sys\n"
    "bad = [w for w in pathlib.Path('words').read_text().split() if w.startswith('bad')]\n"
    "print('\\n'.join(f'<{word}> is not wanted at all' for word in bad))\n"
    "sys.exit(bool(bad))\n"
)


def test_paid_fixes_stay_although_no_parser_reads_the_gate(project: Project) -> None:
    (project.root / "lint.py").write_text(STRANGE)
    (project.root / "words").write_text("bad1 bad2 bad3\n")
    project.configure(validation={"lint": [f"{PYTHON} lint.py"]})
    project.commit()
    project.attempt(1, {"words": "good bad2 bad3\n"})
    project.attempt(2, {"words": "good good bad3\n"})
    outcome = project.retry(retry__max_ai_retry_attempts=2)
    assert (project.root / "words").read_text() == "good good bad3\n"
    assert [len(attempt.fixed) for attempt in outcome.attempts] == [1, 1]
    assert problem_trend(outcome) == "3 -> 2 -> 1"
