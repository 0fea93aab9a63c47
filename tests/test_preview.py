"""`atlas prompt`: what is shown is what would be sent."""

import re
from pathlib import Path

from atlas_retry.run.briefing import preview
from tests.projects import FIXED, UNITTEST, WORSE, Project, make_project


def shown(project: Project) -> str:
    return preview(project.root, project.environ, {}, recorded=None, max_chars=None)


def lasting(prompt: str) -> str:
    """A prompt without what is new in each: its marker, its times and where its logs are."""
    (marker,) = set(re.findall(r"<data-([0-9a-f]{8})", prompt))
    return re.sub(r"/\S+/|\d+\.\d+ ?s|" + marker, "", prompt)


def test_the_preview_equals_the_prompt_of_the_run(tmp_path: Path, environ: dict[str, str]) -> None:
    project = make_project(tmp_path, environ)
    project.configure(guard={"protect": ["contract/**"]})
    project.attempt(1, {"calc.py": WORSE}, summary="times, it should be times")
    project.retry(retry__max_ai_retry_attempts=1)

    before = shown(project)
    outcome = project.retry()

    assert "May not be touched: contract/**, .atlas/**" in before
    assert "times, it should be times" in before
    sent = Path(outcome.attempts[0].prompt_path or "").read_text()
    assert lasting(before) == lasting(sent)


def test_the_preview_has_the_attempt_limit_of_the_run(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    project = make_project(tmp_path, environ)
    project.configure(validation={"test": [{"run": UNITTEST, "max_retries": 5}]})
    project.attempt(1, {"calc.py": FIXED})
    before = shown(project)
    (attempt,) = project.retry().attempts
    sent = Path(attempt.prompt_path or "").read_text()
    assert "Attempt 1 of 5." in before
    assert lasting(before) == lasting(sent)
