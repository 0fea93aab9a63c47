"""Budgets of the day and the month, over all runs, and their export."""

import csv
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import yaml

from atlas_retry.history.database import opened
from tests.configurations import project as configured
from tests.configurations import refusal
from tests.projects import FIXED, WORSE, Project, atlas, git

SPENT = 0.6
"""US dollars that the first run costs."""


@pytest.fixture
def spent(project: Project) -> Project:
    """A project in which a run has failed at a price."""
    project.configure(retry={"max_ai_retry_attempts": 1})
    project.attempt(1, {"calc.py": WORSE}, cost_usd=SPENT)
    assert atlas(project, "retry", ".", "--ai-fix").code == 1
    (project.script / "1/files/calc.py").write_text(FIXED)
    return project


def limit(project: Project, **budgets: float) -> None:
    file = Path(project.environ["HOME"]) / ".config/atlas/config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump({"budgets": budgets}))


@pytest.mark.parametrize("key", ["day", "month", "repository_day", "repository_month"])
def test_a_spent_budget_refuses_the_agent_before_any_gate(key: str, spent: Project) -> None:
    limit(spent, **{key: SPENT})
    ended = atlas(spent, "retry", ".", "--ai-fix")
    assert ended.code == 2
    assert "$0.60 of $0.60 are spent" in ended.err
    assert f"budgets.{key}" in ended.err
    assert atlas(spent, "retry", ".").code == 1, "without an agent nothing is spent"


def test_a_run_may_cost_only_what_is_left_of_the_day(spent: Project) -> None:
    (spent.script / "1/files/calc.py").write_text(WORSE)
    spent.attempt(2, {"calc.py": FIXED}, cost_usd=SPENT)
    limit(spent, day=1.0)
    ended = atlas(spent, "retry", ".", "--ai-fix", "--max-attempts", "2")
    assert ended.code == 1
    assert "the budget of $0.40 is spent" in ended.out + ended.err


@pytest.mark.parametrize(
    ("day", "thresholds"),
    [
        (10.0, []),
        (2.0, ["$1.20 of $2.00"]),
        (1.0, ["$0.60 of $1.00", "$1.20 of $1.00"]),
    ],
)
def test_reaching_half_three_quarters_and_nine_tenths_is_reported(
    day: float, thresholds: list[str], spent: Project
) -> None:
    limit(spent, day=day)
    ended = atlas(spent, "retry", ".", "--ai-fix")
    assert ended.code == 0, ended.err
    lines = [line for line in (ended.out + ended.err).splitlines() if "are spent" in line]
    assert [line.split(": ")[1].removesuffix(" are spent") for line in lines] == thresholds


def test_other_repositories_and_earlier_days_do_not_count(spent: Project) -> None:
    limit(spent, repository_day=SPENT)
    other = spent.root.with_name("other")
    git(spent.root, "clone", "-q", ".", str(other), environ=spent.environ)
    assert atlas(spent, "retry", ".", "--ai-fix", cwd=other).code == 0
    long_ago = (datetime.now(UTC) - timedelta(days=40)).isoformat()
    with opened(Path(spent.environ["ATLAS_HOME"])) as journal:
        journal.execute("UPDATE runs SET started_at = ?", (long_ago,))
    assert atlas(spent, "retry", ".", "--ai-fix").code == 0


def test_a_repository_cannot_set_the_budget_of_a_person(tmp_path: Path) -> None:
    root = configured(tmp_path, "validation: {test: [pytest]}\nbudgets: {day: 1000}\n")
    error = refusal(root)
    assert "~/.config/atlas/config.yaml" in error.message


def test_runs_are_exported_as_csv_and_json(spent: Project) -> None:
    rows = list(csv.DictReader(atlas(spent, "stats", "--export", "csv").out.splitlines()))
    documents = json.loads(atlas(spent, "stats", "--export", "json").out)
    assert [row["run"] for row in rows] == [document["run"] for document in documents]
    (document,) = documents
    assert document["cost_usd"] == SPENT
    assert document["verdict"] == "exhausted"
    assert document["workspace"] == str(spent.root)
