"""Gates that judge what is staged: the fix in the work tree stays, and the run says to stage it."""

import json

import pytest

from atlas_retry.model import Verdict
from tests.processes import PYTHON
from tests.projects import Project, atlas
from tests.repositories import git

CHECKS = {
    "git": "git diff --cached --check",
    "blob": f"git show :calc.py | {PYTHON} -c \"import sys; sys.exit(' \\n' in sys.stdin.read())\"",
    "pre-commit": f"{PYTHON} -m pre_commit run",
}
HOOK = (
    "repos: [{repo: local, hooks: [{id: blanks, name: blanks, language: system, "
    """entry: 'sh -c "! grep -n \\" $\\" \\"$@\\"" --', files: calc.py}]}]"""
    "\n"
)
BAD, GOOD = "x = 1   \n", "x = 1\n"


def staged(project: Project, check: str) -> None:
    (project.root / ".pre-commit-config.yaml").write_text(HOOK)
    project.configure(validation={"lint": [check]})
    project.commit()
    (project.root / "calc.py").write_text(BAD)
    git(project.root, "add", "calc.py")


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_a_fix_that_only_has_to_be_staged_stays(project: Project, check: str) -> None:
    staged(project, check)
    before = git(project.root, "ls-files", "--stage")
    project.attempt(1, {"calc.py": GOOD})
    outcome = project.retry(retry__max_ai_retry_attempts=2)
    assert (outcome.verdict, outcome.remedy) == (Verdict.NEEDS_REVIEW, "git add -- calc.py")
    assert len(outcome.attempts) == 1
    assert (project.root / "calc.py").read_text() == GOOD
    assert git(project.root, "ls-files", "--stage") == before


def test_the_command_that_is_named_makes_the_gates_pass(project: Project) -> None:
    staged(project, CHECKS["git"])
    project.attempt(1, {"calc.py": GOOD})
    done = atlas(project, "retry", ".", "--ai-fix", "--json")
    assert done.code == 1
    remedy = json.loads(done.out)["remedy"].split()
    git(project.root, *remedy[1:])
    assert atlas(project, "validate").code == 0


def test_a_wrong_fix_of_a_staged_file_is_no_fix_once_staged(project: Project) -> None:
    staged(project, CHECKS["git"])
    project.attempt(1, {"calc.py": "x = 2   \n"})
    outcome = project.retry(retry__max_ai_retry_attempts=1)
    assert outcome.verdict is Verdict.EXHAUSTED
    assert outcome.attempts[0].unstaged == ()
