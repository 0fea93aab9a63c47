"""What a run teaches later ones, and how little of it is said; how runs have gone, in figures."""

import re
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.errors import UsageError
from atlas_retry.history import learning, overview, statistics
from atlas_retry.history.database import connect, reading, writing
from atlas_retry.history.entries import tally
from atlas_retry.history.learning import MAX_CHARS
from atlas_retry.model import Diagnostic, Kind, Outcome, Status, Validation, Verdict, WorkspaceFacts
from tests.projects import FIXED, WORSE, Project, make_project
from tests.values import GREEN, RED, attempt, result, validation

NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


def failed(
    rule: str, fingerprint: str, path: str = "a.py", symbol: str | None = None
) -> Validation:
    diagnostic = Diagnostic(
        tool="ruff",
        rule_id=rule,
        message=rule,
        fingerprint=fingerprint,
        path=path,
        symbol=symbol,
    )
    return validation(
        replace(result("lint", Status.FAILED, kind=Kind.LINT), diagnostics=(diagnostic,))
    )


def outcome(baseline: Validation = RED, verdict: Verdict = Verdict.EXHAUSTED) -> Outcome:
    green = verdict is Verdict.FIXED
    made = attempt(1, GREEN if green else baseline, summary="took the \x1b[31mimport\n out")
    return Outcome(
        run_id="20261122-120000-aaaa",
        verdict=verdict,
        workspace=WorkspaceFacts(name="project", root="/project"),
        baseline=baseline,
        final=GREEN if green else baseline,
        attempts=(made,),
        final_error=None if green else "lint failed after 1 attempt",
        escalation_required=not green,
    )


def recorded(to: sqlite3.Connection, what: Outcome, repository: str = "/repository") -> str:
    record = learning.record_of(what)
    assert record
    with writing(to):
        return learning.store(to, repository, record)


def recalled(
    to: sqlite3.Connection, about: Validation, repository: str = "/repository"
) -> tuple[str, ...]:
    return learning.recalled(to, repository, about)


@pytest.fixture
def journal(tmp_path: Path) -> sqlite3.Connection:
    return connect(tmp_path)


def test_a_record_holds_failure_attempts_and_result() -> None:
    record = learning.record_of(outcome(failed("F401", "f1")))
    assert record
    assert (record.failure_type, record.gates) == ("lint", ("lint",))
    assert record.rules == (("f1", "ruff F401"),)
    assert record.files_involved == ("a.py",)
    assert record.attempts[0].summary == "took the import out"
    assert record.attempts[0].fell_short == "still failing: lint"
    assert record.escalation_required


def test_without_an_attempt_no_record_is_made() -> None:
    assert learning.record_of(replace(outcome(), attempts=())) is None


def test_ids_count_per_day_and_are_not_reused(journal: sqlite3.Connection) -> None:
    with closing(journal) as to:
        names = [recorded(to, outcome()) for _ in range(2)]
        learning.forget(to, names[1])
        names.append(recorded(to, outcome()))
    assert [name[-3:] for name in names] == ["001", "002", "003"]
    assert all(re.fullmatch(r"lr-\d{4}-\d\d-\d\d-\d{3}", name) for name in names)


@pytest.mark.parametrize(
    ("about", "repository", "is_told"),
    [
        (failed("F401", "f1"), "/repository", True),
        (failed("F401", "another"), "/repository", True),
        (failed("F401", "another", "b.py", "load"), "/repository", True),
        (failed("F401", "f1", "b.py"), "/repository", False),
        (failed("E501", "another"), "/repository", False),
        (RED, "/repository", False),
        (failed("F401", "f1"), "/somebody/elses", False),
    ],
    ids=["the same", "file", "symbol", "rule", "neither", "silent", "another repository"],
)
def test_a_record_is_recalled_for_the_same_rule_in_the_same_file_or_symbol(
    journal: sqlite3.Connection, about: Validation, repository: str, is_told: bool
) -> None:
    with closing(journal) as to:
        recorded(to, outcome(failed("F401", "f1", symbol="load")))
        assert bool(recalled(to, about, repository)) == is_told


def test_at_most_three_short_lines_are_recalled_without_duplicates(
    journal: sqlite3.Connection,
) -> None:
    with closing(journal) as to:
        for number in range(6):
            what = outcome(failed("F401", f"f{number}"))
            made = replace(what.attempts[0], summary=f"{number // 2} " + "word " * 200)
            recorded(to, replace(what, attempts=(made,)))
        lines = recalled(to, failed("F401", "f0"))
    assert len(lines) == len(set(lines)) == 3
    assert all(len(line) <= MAX_CHARS and "\n" not in line for line in lines)


def test_a_persons_note_replaces_the_recorded_text(journal: sqlite3.Connection) -> None:
    with closing(journal) as to:
        name = recorded(to, outcome(failed("F401", "f1")))
        learning.note(to, name, "re-export it in __all__")
        assert recalled(to, failed("F401", "f1")) == ("ruff F401 in a.py: re-export it in __all__",)


def test_an_earlier_fix_of_the_problem_is_recalled(journal: sqlite3.Connection) -> None:
    with closing(journal) as to:
        recorded(to, outcome(failed("F401", "f1"), Verdict.FIXED))
        lines = recalled(to, failed("F401", "f1"))
    what = "fixed by an earlier run, which changed a.py (+1 -1): took the import out"
    assert lines == (f"ruff F401 in a.py: {what}",)


@pytest.mark.parametrize("summary", ["", "done", "Done, all tests pass now.", "Fixed the bug."])
def test_a_summary_that_only_says_changed_is_not_recalled(
    journal: sqlite3.Connection, summary: str
) -> None:
    what = outcome(failed("F401", "f1"), Verdict.FIXED)
    with closing(journal) as to:
        recorded(to, replace(what, attempts=(replace(what.attempts[0], summary=summary),)))
        assert recalled(to, failed("F401", "f1")) == ()


def test_the_next_prompt_holds_the_record(tmp_path: Path, environ: dict[str, str]) -> None:
    project = make_project(tmp_path, environ)
    project.attempt(1, {"calc.py": WORSE}, summary="times, it should be times")
    first = project.retry(retry__max_ai_retry_attempts=1)
    assert first.learning_record_id
    again = project.retry(retry__max_ai_retry_attempts=1)
    assert "times, it should be times" in Path(again.attempts[0].prompt_path or "").read_text()


def test_a_fixed_run_leaves_a_record_without_naming_it(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    project = make_project(tmp_path, environ)
    project.attempt(1, {"calc.py": FIXED}, summary="plus")
    assert project.retry().learning_record_id is None
    with reading(Path(environ["ATLAS_HOME"])) as connection:
        (kept,) = learning.every(connection)
    assert kept.record.verdict == "fixed"


@pytest.mark.parametrize("act", [learning.one, learning.forget])
def test_an_unknown_record_is_a_usage_error(journal: sqlite3.Connection, act: object) -> None:
    assert callable(act)
    with closing(journal) as to, pytest.raises(UsageError):
        act(to, "lr-2026-01-01-001")


def test_a_failed_run_is_passed_to_on_failure(tmp_path: Path, environ: dict[str, str]) -> None:
    project = make_project(tmp_path, environ)
    project.configure(retry={"on_failure": f"cat > {tmp_path}/told.json"})
    project.attempt(1, {"calc.py": WORSE})
    project.retry(retry__max_ai_retry_attempts=1)
    assert '"schema": "atlas.run/1"' in (tmp_path / "told.json").read_text()


def test_a_passing_run_is_not_passed_to_on_failure(tmp_path: Path, environ: dict[str, str]) -> None:
    project = make_project(tmp_path, environ)
    project.configure(retry={"on_failure": f"cat > {tmp_path}/told.json"})
    project.attempt(1, {"calc.py": FIXED})
    project.retry()
    assert not (tmp_path / "told.json").exists()


def test_problems_are_counted_as_fixed_remaining_and_introduced() -> None:
    before = validation(*failed("F401", "a").results, *failed("E501", "b").results)
    after = validation(*failed("E501", "b").results, *failed("E501", "c").results)
    assert tally(before, after) == {
        "ruff E501": (0, 1, 1),
        "ruff F401": (1, 0, 0),
    }


def test_statistics_count_attempts_gates_rules_and_costs(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    project: Project = make_project(tmp_path, environ)
    project.attempt(1, {"calc.py": WORSE}, cost_usd=0.25)
    project.attempt(2, {"calc.py": FIXED}, cost_usd=0.75)
    project.retry()
    with reading(Path(environ["ATLAS_HOME"])) as connection:
        figures = statistics.statistics(connection, "")
        nothing = statistics.statistics(connection, "2100-01-01")
    assert (figures.runs, figures.with_attempts, figures.fixed) == (1, 1, 1)
    assert (figures.cost_usd, figures.cost_per_fix_usd) == (1.0, 1.0)
    assert [[*row.values()][:4] for row in figures.attempts] == [["1", 1, 0, 0.0], ["2", 1, 1, 1.0]]
    assert [[*row.values()] for row in figures.kinds] == [["test", 1, 1, 1.0]]
    assert any(row["fixed"] for row in figures.rules)
    assert nothing.runs == 0
    assert nothing.cost_per_fix_usd is None
    assert [row["cost_usd"] for row in figures.attempts] == [0.25, 0.75]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        (None, ""),
        ("7d", "2026-11-15T12:00:00Z"),
        ("12h", "2026-11-22T00:00:00Z"),
        ("2w", "2026-11-08T12:00:00Z"),
        ("2026-01-31T00:00:00Z", "2026-01-31T00:00:00Z"),
    ],
)
def test_since_accepts_a_duration_or_a_date(text: str | None, moment: str) -> None:
    assert statistics.moment(text, NOW) == moment


@pytest.mark.parametrize("text", ["", "7", "7y", "tomorrow", "2026-13-01"])
def test_since_refuses_anything_else(text: str) -> None:
    with pytest.raises(UsageError, match="--since"):
        statistics.moment(text, NOW)


@pytest.mark.parametrize(
    ("time", "shown"),
    [
        ("2026-11-22T11:59:30Z", "30 s"),
        ("2026-11-22T11:00:00Z", "1 h"),
        ("2026-11-19T11:00:00Z", "3 d"),
        ("2026-11-22T12:00:09Z", "0 s"),
    ],
)
def test_an_age_is_shown_in_its_largest_unit(time: str, shown: str) -> None:
    assert overview.age(time, NOW) == shown
