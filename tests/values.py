"""Short makers of values that many tests need."""

from atlas_retry.model import (
    Attempt,
    Change,
    ChangeStatus,
    Diagnostic,
    Gate,
    GateResult,
    Kind,
    Status,
    Validation,
)


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
