"""`from atlas_retry import retry, validate`: the same as the commands, as values."""

import subprocess
import sys

from tests.projects import FIXED, Project

LIMIT_S = 60.0


def python(project: Project, program: str) -> str:
    done = subprocess.run(
        (sys.executable, "-c", program),
        cwd=project.root,
        env=project.environ,
        check=True,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
    )
    return done.stdout


def test_validate_tells_what_failed(project: Project) -> None:
    said = python(project, "import atlas_retry as a; v = a.validate(); print(v.failed_step)")
    assert said == "test\n"


def test_retry_without_ai_fix_asks_nobody(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    said = python(project, "import atlas_retry as a; print(a.retry().verdict)")
    assert said == "failed\n"


def test_retry_mends_and_tells_what_it_cost(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, cost_usd=0.5)
    program = "import atlas_retry as a; r = a.retry(ai_fix=True); print(r.verdict, r.cost_usd)"
    assert python(project, program) == "fixed 0.5\n"


def test_settings_win_over_the_configuration(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    limit = "settings={'retry.max_ai_retry_attempts': 0}"
    program = f"import atlas_retry as a; print(a.retry(ai_fix=True, {limit}).verdict)"
    assert python(project, program) == "exhausted\n"


def test_what_the_user_must_mend_is_an_error_with_its_remedy(project: Project) -> None:
    program = (
        "import atlas_retry as a; from atlas_retry.errors import UsageError\n"
        "try: a.validate(only=['nope'])\n"
        "except UsageError as error: print(error.remedy)"
    )
    assert python(project, program).startswith("one of: test")


def test_the_package_itself_imports_nothing_of_ours(project: Project) -> None:
    program = "import sys, atlas_retry; print([m for m in sys.modules if m.startswith('atlas_')])"
    assert python(project, program) == "['atlas_retry']\n"
