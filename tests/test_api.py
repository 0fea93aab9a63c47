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


def test_validate_returns_the_failed_step(project: Project) -> None:
    printed = python(project, "import atlas_retry as a; v = a.validate(); print(v.failed_step)")
    assert printed == "test\n"


def test_retry_without_ai_fix_starts_no_agent(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    printed = python(project, "import atlas_retry as a; print(a.retry().verdict)")
    assert printed == "failed\n"


def test_retry_fixes_and_returns_its_cost(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, cost_usd=0.5)
    program = "import atlas_retry as a; r = a.retry(ai_fix=True); print(r.verdict, r.cost_usd)"
    assert python(project, program) == "fixed 0.5\n"


def test_settings_override_the_configuration(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    limit = "settings={'retry.max_ai_retry_attempts': 0}"
    program = f"import atlas_retry as a; print(a.retry(ai_fix=True, {limit}).verdict)"
    assert python(project, program) == "exhausted\n"


def test_a_user_error_has_a_remedy(project: Project) -> None:
    program = (
        "import atlas_retry as a; from atlas_retry.errors import UsageError\n"
        "try: a.validate(only=['nope'])\n"
        "except UsageError as error: print(error.remedy)"
    )
    assert python(project, program).startswith("one of: test")


def test_importing_the_package_imports_no_other_module_of_it(project: Project) -> None:
    program = "import sys, atlas_retry; print([m for m in sys.modules if m.startswith('atlas_')])"
    assert python(project, program) == "['atlas_retry']\n"
