"""A validation and a run with everything that is awkward to write down."""

from collections.abc import Mapping

from msgspec.structs import replace

from atlas_retry.model import (
    Answer,
    Attempt,
    Change,
    ChangeStatus,
    Diagnostic,
    Frame,
    GateResult,
    Held,
    Kind,
    Level,
    Outcome,
    Region,
    Status,
    Tokens,
    Validation,
    Verdict,
    Violation,
    WorkspaceFacts,
)
from atlas_retry.reports.subject import Subject

AWKWARD = "é\udc80\ud800 \x00\x07\x1b[31m]]> <b>&\"' %0A::error::\r\n | `x` \ufffe \U0001f600"
"""Lone surrogates, control characters, the marks of every format, an emoji."""

UNUSED = Diagnostic(
    tool="ruff",
    message=f"`os` imported but unused {AWKWARD}",
    rule_id="F401",
    path="src/a b/caf\udce9.py",
    region=Region(start_line=3, start_column=8, end_line=3, end_column=9),
    symbol="load",
    fingerprint="f-unused",
)
WRONG = Diagnostic(
    tool="pytest",
    message="assert 2 == 3",
    path="tests/test_sum.py",
    region=Region(start_line=7),
    fingerprint="f-wrong",
    test_id="tests/test_sum.py::test_sum",
    frames=(Frame(path="src/sums.py", line=2, function="add"),),
    text="E   assert 2 == 3",
)
LATER = Diagnostic(
    tool="mypy",
    message="Incompatible return value",
    rule_id="return-value",
    level=Level.WARNING,
    path="src/sums.py",
    region=Region(start_line=2),
    fingerprint="f-later",
)

FORMAT = GateResult(
    name="format",
    kind=Kind.FORMAT,
    command="ruff format .",
    status=Status.PASSED,
    success=True,
    exit_code=0,
    duration_ms=40,
    changed=("src/sums.py",),
)
LINT = GateResult(
    name="ruff",
    kind=Kind.LINT,
    command="ruff check .",
    status=Status.FAILED,
    success=False,
    exit_code=1,
    stdout=f"F401 {AWKWARD}",
    error="exit code 1",
    duration_ms=120,
    diagnostics=(UNUSED,),
)
TEST = GateResult(
    name="test",
    kind=Kind.TEST,
    command="pytest -q",
    status=Status.FAILED,
    success=False,
    exit_code=1,
    stdout="1 failed",
    error="exit code 1",
    duration_ms=2500,
    diagnostics=(WRONG,),
)
FLAKY = GateResult(
    name="hooks",
    kind=Kind.PRE_COMMIT,
    command="pre-commit run -a",
    required=False,
    status=Status.FLAKY,
    success=True,
    exit_code=0,
    duration_ms=900,
)
BROKEN = GateResult(
    name="build",
    kind=Kind.BUILD,
    command="cargo build",
    required=False,
    status=Status.BROKEN,
    success=False,
    exit_code=127,
    error="cargo: not found",
)
GREEN_TEST = GateResult(
    name="test",
    kind=Kind.TEST,
    command="pytest -q",
    status=Status.PASSED,
    success=True,
    exit_code=0,
    duration_ms=2400,
)
TYPES = GateResult(
    name="types",
    kind=Kind.LINT,
    command="mypy src",
    status=Status.FAILED,
    success=False,
    exit_code=1,
    duration_ms=700,
    diagnostics=(LATER,),
    error="exit code 1",
)

TIMES = ("2026-11-22T10:00:00.000Z", "2026-11-22T10:00:03.560Z")
RED = Validation(
    results=(FORMAT, LINT, TEST, FLAKY, BROKEN),
    started_at=TIMES[0],
    completed_at=TIMES[1],
    duration_ms=3560,
)
HALF = Validation(results=(FORMAT, TYPES, GREEN_TEST), started_at=TIMES[0], duration_ms=2500)
GREEN = Validation(results=(FORMAT, GREEN_TEST, FLAKY), started_at=TIMES[0], duration_ms=2440)
NOTHING = Validation()
WORKSPACE = WorkspaceFacts(name="shop", root="/work/shop", head="0123456789abcdef", dirty=True)

FIRST = Attempt(
    number=1,
    agent="claude-code",
    model="sonnet",
    session_id="s-1",
    cost_usd=0.0413,
    tokens=Tokens(input=12_000, output=900, cache_read=8_000, cache_write=4_000),
    duration_ms=61_000,
    prompt_chars=5210,
    summary=f"Removed the import. {AWKWARD}",
    changes=(
        Change(path="src/sums.py", status=ChangeStatus.MODIFIED, added=2, removed=1),
        Change(path="logo.png", status=ChangeStatus.ADDED),
    ),
    violations=(
        Violation(rule="test-removed", path="tests/test_sum.py", line=7, detail="test_sum is gone"),
    ),
    fixed=("f-unused", "f-wrong"),
    introduced=("f-later",),
    snapshot="a1",
    result="a2",
    validation=HALF,
)
SECOND = Attempt(
    number=2,
    agent="claude-code",
    model="opus",
    cost_usd=None,
    duration_ms=30_000,
    fixed=("f-later",),
    kept=True,
    validation=GREEN,
)
FIXED = Outcome(
    run_id="r-1",
    verdict=Verdict.FIXED,
    workspace=WORKSPACE,
    baseline=RED,
    final=GREEN,
    attempts=(FIRST, SECOND),
    cost_usd=0.0413,
    duration_ms=97_000,
    start_snapshot="a0",
)
GAVE_UP = Outcome(
    run_id="r-2",
    verdict=Verdict.GAVE_UP,
    workspace=WORKSPACE,
    baseline=RED,
    final=RED,
    attempts=(Attempt(number=1, agent="command", gave_up="the tests contradict each other"),),
    final_error="the agent says it cannot be done",
    remedy="atlas resume r-2",
    cost_usd=float("nan"),
    escalation_required=True,
    learning_record_id="lr-2026-11-22-001",
)
HELD = Outcome(
    run_id="r-3",
    start_snapshot="a0",
    verdict=Verdict.NEEDS_REVIEW,
    workspace=WORKSPACE,
    baseline=RED,
    final=RED,
    attempts=(
        Attempt(
            number=1,
            agent="command",
            changes=(Change(path="tests/test_sum.py", status=ChangeStatus.MODIFIED),),
            violations=(Violation(rule="tool-replaced", path="bin/ruff", detail=AWKWARD),),
            held=(
                Held(rule="test-changed", path="tests/test_sum.py", line=7, needed=True),
                Held(rule="lock-changed", path="uv.lock", needed=False, detail="moved"),
                Held(rule="special-cased", path="src/sums.py", line=2, in_place=True),
            ),
            noted=(Answer(rule="emptied", path="src/b.py", line=1, detail="no work left"),),
            snapshot="b1",
            result="b2",
            kept=True,
            validation=RED,
        ),
    ),
    final_error="passes only with held changes: tests/test_sum.py",
    remedy="atlas pick r-3 1 --held",
)
PATCH = (
    "diff --git a/src/sums.py b/src/sums.py\nindex 1..2 100644\n--- a/src/sums.py\n"
    "+++ b/src/sums.py\n@@ -1,2 +1,3 @@ def add\n def add(a, b):\n-    return a\n"
    "+    # <script>alert(1)</script>\n+    return a + b\n"
)


def of_run(
    run: Outcome, patches: Mapping[int, str] | None = None, prompts: Mapping[int, str] | None = None
) -> Subject:
    return Subject(
        result=run, workspace=run.workspace, patches=patches or {}, prompts=prompts or {}
    )


SUBJECTS = {
    "red validation": Subject(result=RED, workspace=WORKSPACE),
    "green validation": Subject(result=GREEN, workspace=WORKSPACE),
    "no gates": Subject(result=NOTHING, workspace=WORKSPACE),
    "fixed run": of_run(FIXED, patches={1: PATCH}, prompts={1: f"Fix this.\n{AWKWARD}"}),
    "given up": of_run(GAVE_UP),
    "held": of_run(HELD),
}
"""One of each kind, by what a test's name should say."""


def big_run(attempts: int = 5, problems: int = 280, files: int = 30) -> Outcome:
    """A run as of a large project: a dozen gates, hundreds of problems, many changed files."""
    runs = [
        _big_attempt(number, problems - number * problems // (attempts + 2), files)
        for number in range(1, attempts + 1)
    ]
    return Outcome(
        run_id="20261122-100000-0b16",
        verdict=Verdict.EXHAUSTED,
        workspace=WORKSPACE,
        baseline=_big_validation(problems),
        final=_big_validation(problems - attempts * problems // (attempts + 2)),
        attempts=tuple(runs),
        cost_usd=4.2,
        final_error="test failed after 5 attempts",
        start_snapshot="a0",
    )


def _big_attempt(number: int, problems: int, files: int) -> Attempt:
    validation = _big_validation(problems)
    left = tuple(d.fingerprint for result in validation.results for d in result.diagnostics)
    changes = [
        Change(path=f"src/package/module_{n}.py", status=ChangeStatus.MODIFIED, added=9, removed=4)
        for n in range(files)
    ]
    return Attempt(
        number=number,
        agent="claude-code",
        model="sonnet",
        cost_usd=0.84,
        duration_ms=400_000,
        changes=tuple(changes),
        summary="The parser dropped the last token; it is kept now.",
        remaining=left,
        introduced=left[:40],
        validation=validation,
    )


def _big_validation(problems: int) -> Validation:
    diagnostics = tuple(
        Diagnostic(
            tool="ruff",
            message=f"`module_{n % 7}.name_{n}` imported but unused; consider removing it",
            rule_id=("F401", "E501", "B006")[n % 3],
            path=f"src/package/sub/module_{n // 9}.py",
            region=Region(start_line=n + 1, start_column=5),
            fingerprint=f"f{n}",
        )
        for n in range(problems)
    )
    tests = tuple(
        Diagnostic(
            tool="pytest",
            message=f"AssertionError: assert {n} == {n + 1}",
            path="tests/test_package.py",
            region=Region(start_line=n * 9 + 4),
            test_id=f"tests/test_package.py::TestModule::test_that_number_{n}_is_right",
            fingerprint=f"t{n}",
        )
        for n in range(problems // 9)
    )
    green = tuple(
        replace(GREEN_TEST, name=f"gate {n}", command=f"make check-{n}") for n in range(10)
    )
    lint = replace(LINT, diagnostics=diagnostics, stdout="x\n" * 3000)
    return Validation(
        results=(*green, lint, replace(TEST, diagnostics=tests)),
        started_at=TIMES[0],
        duration_ms=90_000,
    )
