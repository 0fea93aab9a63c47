"""Short makers of values that many tests need."""

from atlas_retry.model import (
    Attempt,
    Budget,
    Change,
    ChangeStatus,
    Diagnostic,
    Gate,
    GateResult,
    Held,
    Kind,
    Status,
    Validation,
    Violation,
)
from atlas_retry.run.progress import Limits, Progress


def gate(name: str = "tests", kind: Kind = Kind.TEST, run: str = "true", **rest: object) -> Gate:
    return Gate(name=name, kind=kind, run=run, **rest)  # type: ignore[arg-type]


def result(
    name: str = "tests",
    status: Status = Status.PASSED,
    *fingerprints: str,
    kind: Kind = Kind.TEST,
    required: bool = True,
) -> GateResult:
    return GateResult(
        name=name,
        kind=kind,
        command=f"run {name}",
        required=required,
        status=status,
        success=status in {Status.PASSED, Status.FLAKY, Status.SKIPPED},
        exit_code=0 if status is Status.PASSED else 1,
        error=None if status is Status.PASSED else f"{status} it is",
        diagnostics=tuple(
            Diagnostic(tool="t", message=f"about {f}", fingerprint=f) for f in fingerprints
        ),
    )


def validation(*results: GateResult) -> Validation:
    return Validation(results=results)


GREEN = validation(result())
RED = validation(result("tests", Status.FAILED, "a", "b"))


def attempt(number: int = 1, after: Validation | None = RED, **rest: object) -> Attempt:
    defaults: dict[str, object] = {
        "agent": "scripted",
        "changes": (Change(path="a.py", status=ChangeStatus.MODIFIED, added=number, removed=1),),
        "validation": after,
        "result": f"snapshot-{number}",
    }
    return Attempt(number=number, **(defaults | rest))  # type: ignore[arg-type]


LIMITS = Limits(
    budget=Budget(attempts=3, cost_usd=5.0, wall_s=600.0), gates=(gate(),), with_agent=True
)
OTHER_RED = validation(result("tests", Status.FAILED, "c"))
CHEAT = (Violation(rule="test-deleted", path="test_a.py"),)


def holding(number: int, *paths: str, needed: bool | None = True, **rest: object) -> Attempt:
    held = tuple(Held(rule="tests-changed", path=path, needed=needed) for path in paths)
    after = RED if number % 2 else OTHER_RED
    return attempt(number, **({"after": after, "held": held} | rest))  # type: ignore[arg-type]


def progress(
    *attempts: Attempt, baseline: Validation = RED, latest: Validation | None = None, **rest: object
) -> Progress:
    trees = tuple(f"tree-{number}" for number in range(len(attempts) + 1))
    validated = [a.validation for a in attempts if a.validation]
    return Progress(
        baseline=baseline,
        settled=baseline,
        latest=latest or (validated[-1] if validated else baseline),
        start="start",
        origin="origin",
        current="current",
        attempts=attempts,
        **({"trees": trees} | rest),  # type: ignore[arg-type]
    )
