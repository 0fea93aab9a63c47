"""What a person reads when an attempt has ended, and of what failed."""

from atlas_retry.events import AttemptFinished
from atlas_retry.model import Diagnostic, GateResult, Kind, Status, Validation
from atlas_retry.wording import failure_lines, lines_of
from tests.values import attempt


def test_calls_that_were_refused_are_told_once() -> None:
    event = AttemptFinished(result=attempt(denials=("Bash: curl", "Bash: curl", "Edit: ci.yml")))
    assert ("  not permitted: Bash: curl, Edit: ci.yml", "warn") in list(lines_of(event))


def test_an_exception_that_begins_its_message_is_named_once() -> None:
    told = Diagnostic(tool="pytest", rule_id="AssertionError", message="AssertionError: 1 != 2")
    failed = GateResult(
        name="unit",
        kind=Kind.TEST,
        command="pytest",
        status=Status.FAILED,
        success=False,
        diagnostics=(told,),
    )
    text = "\n".join(line for line, _ in failure_lines(Validation(results=(failed,)), verbosity=0))
    assert "pytest: AssertionError: 1 != 2" in text
