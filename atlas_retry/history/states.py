"""The states that a run goes through, as one table, and which event leads where. Stores nothing."""

from enum import StrEnum

from atlas_retry.events import (
    AttemptFinished,
    AttemptStarted,
    Event,
    RunFinished,
    RunStarted,
    ValidationFinished,
    ValidationStarted,
)


class RunState(StrEnum):
    """Where a run is."""

    PENDING = "pending"
    """Its start is held, nothing has run yet."""
    VALIDATING = "validating"
    VALIDATION_FAILED = "validation_failed"
    """Gates fail. With a verdict the run is over; the workspace waits for a person."""
    FIXING = "fixing"
    """The agent has the workspace."""
    PASSED = "passed"
    INTERRUPTED = "interrupted"
    """By a signal, an error of ours, or a death that told nobody."""
    ABANDONED = "abandoned"
    """A person, or another run in the same workspace, has given it up."""
    UNDONE = "undone"
    """What was there before it has been restored."""


_VALIDATED = {RunState.PASSED, RunState.VALIDATION_FAILED}
_DONE = {RunState.ABANDONED, RunState.UNDONE}
_CUT_OFF = {RunState.INTERRUPTED, *_DONE}

TRANSITIONS: dict[RunState | None, set[RunState]] = {
    None: {RunState.PENDING},
    RunState.PENDING: {RunState.VALIDATING, RunState.FIXING, *_VALIDATED, *_CUT_OFF},
    RunState.VALIDATING: {*_VALIDATED, *_CUT_OFF},
    RunState.VALIDATION_FAILED: {RunState.VALIDATING, RunState.FIXING, RunState.PASSED, *_CUT_OFF},
    RunState.FIXING: {RunState.VALIDATING, RunState.VALIDATION_FAILED, *_CUT_OFF},
    RunState.PASSED: {RunState.VALIDATING, RunState.VALIDATION_FAILED, *_CUT_OFF},
    RunState.INTERRUPTED: {RunState.VALIDATING, RunState.FIXING, *_VALIDATED, *_DONE},
    RunState.ABANDONED: {RunState.UNDONE},
    RunState.UNDONE: {RunState.UNDONE},
}
"""What may follow what. A state may always follow itself, with another reason."""


def follows(before: RunState | None, after: RunState) -> bool:
    """Whether a run that is in `before` may come to be in `after`."""
    return before is after or after in TRANSITIONS[before]


def state_after(event: Event, *, in_attempt: bool) -> RunState | None:
    """The state that an event leads to; None when it leads nowhere.

    Of an attempt only its end decides, for the guard may look again after its gates have passed.
    """
    match event:
        case RunFinished():
            return _judged(success=event.outcome.verdict.is_green)
        case ValidationFinished():
            return None if in_attempt else _judged(success=event.validation.success)
        case AttemptFinished():
            validation = event.result.validation
            return _judged(success=validation is not None and validation.success)
        case _:
            return _STARTED.get(type(event))


_STARTED: dict[type[Event], RunState] = {
    RunStarted: RunState.PENDING,
    ValidationStarted: RunState.VALIDATING,
    AttemptStarted: RunState.FIXING,
}


def _judged(*, success: bool) -> RunState:
    return RunState.PASSED if success else RunState.VALIDATION_FAILED
