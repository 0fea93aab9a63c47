"""A hiccup of a gate costs no agent: what names no place is run again before money is spent."""

from pathlib import Path

import pytest

from atlas_retry.model import Status, Verdict
from tests.miniatures import ADD, REPAIR, miniature

Environ = dict[str, str]
ONCE = "echo ran >> ../runs; test -e ../seen || { touch ../seen; echo '%s'; exit 1; }"


@pytest.mark.parametrize("kind", ["lint", "build"])
@pytest.mark.parametrize("text", ["segmentation fault", "error: ECONNREFUSED 127.0.0.1:5432"])
def test_a_failure_without_a_place_is_run_again_before_an_agent_is_asked(
    tmp_path: Path, environ: Environ, kind: str, text: str
) -> None:
    gates = {kind: [ONCE % text]}
    project = miniature(tmp_path, environ, {"calc.py": ADD}, [REPAIR], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.CLEAN
    assert outcome.baseline.results[0].status is Status.FLAKY
    assert not outcome.attempts


def test_a_failure_with_a_place_is_not_run_again(tmp_path: Path, environ: Environ) -> None:
    gates = {"lint": [ONCE % "calc.py:2:5: F401 unused"]}
    project = miniature(tmp_path, environ, {"calc.py": ADD}, [REPAIR], validation=gates)
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert (tmp_path / "runs").read_text() == "ran\n" * 2


@pytest.mark.parametrize(
    ("validation", "ai_fix"),
    [
        ({"lint": [ONCE % "segmentation fault"]}, False),
        ({"format": [ONCE % "segmentation fault"]}, True),
        ({"lint": [{"run": ONCE % "segmentation fault", "required": False}]}, True),
    ],
    ids=["no agent", "a formatter", "optional"],
)
def test_others_run_as_before(
    tmp_path: Path, environ: Environ, validation: dict[str, object], ai_fix: bool
) -> None:
    project = miniature(tmp_path, environ, {"calc.py": ADD}, ["true"], validation=validation)
    outcome = project.retry(ai_fix=ai_fix)
    assert outcome.baseline.results[0].status is not Status.FLAKY
