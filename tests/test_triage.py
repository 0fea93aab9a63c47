"""What fails is told apart from what failed before the change; real git, real gates."""

import pytest

from atlas_retry.events import Event, Notice
from atlas_retry.model import Diagnostic, Outcome, Verdict
from atlas_retry.workspace.isolation import overlay
from tests.projects import CALC, UNITTEST, WORSE, Project, atlas, git

COMPLAIN = "grep -n 'return a [-*] b' calc.py | sed 's/^/calc.py:/'; exit 1"


def problems(project: Project, events: list[Event]) -> tuple[Diagnostic, ...]:
    outcome = project.retry(events, ai_fix=False)
    return tuple(d for result in outcome.baseline.failures for d in result.diagnostics)


def test_a_failure_that_exists_at_the_baseline_is_marked(project: Project) -> None:
    project.configure(validation={"test": [UNITTEST]}, triage={"baseline": "HEAD"})
    events: list[Event] = []
    (problem,) = problems(project, events)
    assert problem.preexisting
    assert "1 of 1 problems also exist at HEAD" in " ".join(
        event.text for event in events if isinstance(event, Notice)
    )


def test_a_failure_introduced_by_the_change_is_not_marked(project: Project) -> None:
    git(project.root, "tag", "before", environ=project.environ)
    (project.root / "calc.py").write_text(WORSE)
    project.configure(validation={"lint": [COMPLAIN]}, triage={"baseline": "before"})
    assert [problem.preexisting for problem in problems(project, [])] == [False]


def test_without_a_baseline_gates_run_once_and_nothing_is_marked(project: Project) -> None:
    project.configure(validation={"lint": [f"echo >> ../runs; {COMPLAIN}"]})
    assert [problem.preexisting for problem in problems(project, [])] == [False]
    assert (project.root.parent / "runs").read_text() == "\n"


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (("validate",), ".atlas/config.yaml:5:13: triage.baseline: "),
        (("retry", "."), ".atlas/config.yaml:5:13: triage.baseline: "),
        (("config", "check"), ".atlas/config.yaml:5:13: triage.baseline: "),
        (("retry", ".", "--since", "nope"), "the command line: triage.baseline: "),
    ],
)
def test_a_baseline_that_is_no_commit_is_refused_with_its_place_before_any_gate(
    project: Project, arguments: tuple[str, ...], place: str
) -> None:
    project.configure(validation={"test": ["touch ran"]}, triage={"baseline": "nope"})
    ended = atlas(project, *arguments)
    assert (ended.code, f"{place}there is no commit 'nope'" in ended.err) == (2, True), ended.err
    assert "git log --oneline --all" in ended.err
    assert not (project.root / "ran").exists()


@pytest.mark.parametrize("in_place", [False, True])
def test_comparing_with_the_baseline_leaves_the_workspace_unchanged(
    project: Project, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    if in_place:
        monkeypatch.setattr(overlay, "binaries", lambda *_: ())
    project.configure(validation={"test": [UNITTEST]}, triage={"baseline": "HEAD"})
    (project.root / "calc.py").write_text(WORSE)
    before = git(project.root, "status", "--porcelain", environ=project.environ)
    (problem,) = problems(project, [])
    assert problem.preexisting
    assert git(project.root, "status", "--porcelain", environ=project.environ) == before
    assert (project.root / "calc.py").read_text() == WORSE


TWO = "def add(a, b):\n    return a - b\n\n\ndef twice(a, b):\n    return a * b\n"


def since_head(project: Project, *, ai_fix: bool = False, **gate: object) -> Outcome:
    """The outcome of a run in which one problem is old, and a second one of the change."""
    project.configure(
        validation={"lint": [{"run": COMPLAIN, "parser": "calc", **gate}]},
        triage={"baseline": "HEAD"},
        parsers={"calc": r"^(?P<path>\S+?):(?P<line>\d+):(?P<message>.+)$"},
    )
    return project.retry([], ai_fix=ai_fix)


def test_with_accept_baseline_a_gate_passes_with_old_problems_only(project: Project) -> None:
    outcome = since_head(project, accept="baseline")
    assert outcome.verdict is Verdict.CLEAN
    (result,) = outcome.baseline.results
    assert result.notes == ("1 of 1 problems exist at the base too: accepted",)


def test_with_accept_baseline_a_gate_fails_with_new_problems_only(project: Project) -> None:
    (project.root / "calc.py").write_text(TWO)
    outcome = since_head(project, accept="baseline")
    assert outcome.verdict is Verdict.FAILED
    (result,) = outcome.baseline.failures
    assert [d.region and d.region.start_line for d in result.diagnostics] == [6]


@pytest.mark.parametrize(
    ("then", "now", "fixes", "verdict"),
    [
        (1, 3, False, Verdict.FAILED),
        (3, 1, False, Verdict.FAILED),
        (2, 1, True, Verdict.CLEAN),
        (1, 2, True, Verdict.FAILED),
    ],
)
def test_old_problems_with_another_exit_code_are_accepted_only_if_fewer(
    project: Project, then: int, now: int, fixes: bool, verdict: Verdict
) -> None:
    (project.root / "calc.py").write_text(TWO)
    project.commit()
    if fixes:
        (project.root / "calc.py").write_text(CALC)
    (project.root / "now").touch()
    run = COMPLAIN.replace("exit 1", f"[ -e now ] && exit {now}; exit {then}")
    outcome = since_head(project, run=run, accept="baseline")
    assert outcome.verdict is verdict
    (result,) = outcome.baseline.results
    said = f"exit code {now}, and {then} at the base: not accepted"
    assert (said in result.notes) is (verdict is Verdict.FAILED)


def test_without_accept_baseline_old_problems_fail(project: Project) -> None:
    assert since_head(project).verdict is Verdict.FAILED


def test_a_failure_without_readable_problems_is_never_accepted(project: Project) -> None:
    project.configure(
        validation={"lint": [{"run": "exit 1", "accept": "baseline"}]},
        triage={"baseline": "HEAD"},
    )
    assert project.retry([], ai_fix=False).verdict is Verdict.FAILED


def test_with_accept_baseline_an_attempt_has_to_fix_only_new_problems(project: Project) -> None:
    (project.root / "calc.py").write_text(TWO)
    project.attempt(1, {"calc.py": CALC})
    assert since_head(project, ai_fix=True, accept="baseline").verdict is Verdict.FIXED
