"""How a later attempt differs from the ones before it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.model import Attempt, Change, ChangeStatus, Outcome
from atlas_retry.prompt import compose
from atlas_retry.prompt.wording import DIAGNOSE
from tests.briefs import PYTEST_LOG, brief_of, failed
from tests.projects import CALC, UNITTEST, WORSE, Project

TRIED = tuple(
    Attempt(
        number=number,
        agent="scripted",
        summary=f"I tried idea {number}.",
        changes=(Change(path="src/shop/money.py", status=ChangeStatus.MODIFIED, added=1),),
    )
    for number in (1, 2)
)
THIRD = replace(brief_of(failed("pytest -q", PYTEST_LOG)), attempt=3, history=TRIED)


def tried(project: Project, *texts: str, **sections: object) -> Outcome:
    project.configure(validation={"test": [UNITTEST]}, **sections)
    for number, text in enumerate(texts, start=1):
        project.attempt(number, {"calc.py": text})
    return project.retry(retry__max_ai_retry_attempts=len(texts))


def test_a_diagnosis_is_requested_after_the_failed_approaches() -> None:
    text = compose(replace(THIRD, ask="diagnose")).text
    assert text.index("I tried idea 1.") < text.index("I tried idea 2.") < text.index(DIAGNOSE)


def test_a_fix_prompt_leaves_out_the_text_of_older_attempts() -> None:
    text = compose(THIRD).text
    assert "I tried idea 1." not in text
    assert DIAGNOSE not in text


def test_the_third_prompt_asks_for_a_diagnosis_by_default(project: Project) -> None:
    outcome = tried(project, WORSE, CALC.replace("-", "%"), CALC.replace("-", "//"))
    prompts = [Path(str(a.prompt_path)).read_text(encoding="utf-8") for a in outcome.attempts]
    assert [DIAGNOSE in prompt for prompt in prompts] == [False, False, True]


@pytest.mark.parametrize(
    ("step", "model"),
    [
        ({"model": "opus"}, "opus"),
        ({"model": "opus", "models": {"test": "haiku"}}, "haiku"),
        ({"model": "opus", "models": {"lint": "haiku"}}, "opus"),
        ({}, "sonnet"),
    ],
)
def test_the_strategy_selects_the_model_by_attempt_and_kind(
    project: Project, step: dict[str, object], model: str
) -> None:
    (attempt,) = tried(project, WORSE, retry={"strategy": [step]}).attempts
    assert attempt.model == model


def test_the_strategy_sets_the_prompt_size_of_an_attempt(project: Project) -> None:
    strategy = {"strategy": [{"room": 0.1}]}
    (attempt,) = tried(project, WORSE, retry=strategy).attempts
    assert attempt.prompt_chars is not None
    assert attempt.prompt_chars <= 1_600
