"""The states of a run, their transitions, and the events that cause them. Stores nothing."""

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
    """State of a run."""

    PENDING = "pending"
    """Its start snapshot is taken; nothing has run yet."""
    VALIDATING = "validating"
    VALIDATION_FAILED = "validation_failed"
    """Gates fail. With a verdict, the run is over."""
    FIXING = "fixing"
    """The agent edits the workspace."""
    PASSED = "passed"
    INTERRUPTED = "interrupted"
    """Ended by a signal or an error of atlas, or killed."""
    ABANDONED = "abandoned"
    """Given up by a person, or replaced by another run in the workspace."""
    UNDONE = "undone"
    """The state before it was restored."""


_VALIDATED = {RunState.PASSED, RunState.VALIDATION_FAILED}
_DONE = {RunState.ABANDONED, RunState.UNDONE}
_CUT_OFF = {RunState.INTERRUPTED, *_DONE}

TRANSITIONS: dict[RunState | None, set[RunState]] = {
    None: {RunState.PENDING},
    RunState.PENDING: {RunState.VALIDATING, RunState.FIXING, *_VALIDATED, *_CUT_OFF},
    RunState.VALIDATING: {*_VALIDATED, *_CUT_OFF},
    RunState.VALIDATION_FAILED: {RunState.VALIDATING, RunState.FIXING, RunState.PASSED, *_CUT_OFF},
    RunState.FIXING: {RunState.VALIDATING, RunState.VALIDATION_FAILED, *_CUT_OFF},
    RunState.PASSED: {
        RunState.VALIDATING,
        RunState.FIXING,  # with a change that a person would have to review
        RunState.VALIDATION_FAILED,
        *_CUT_OFF,
    },
    RunState.INTERRUPTED: {RunState.VALIDATING, RunState.FIXING, *_VALIDATED, *_DONE},
    RunState.ABANDONED: {RunState.UNDONE},
    RunState.UNDONE: {RunState.UNDONE},
}
"""Allowed transitions. A state may always follow itself, with another reason."""


def follows(before: RunState | None, after: RunState) -> bool:
    """Whether the transition is allowed."""
    return before is after or after in TRANSITIONS[before]


def state_after(event: Event, *, in_attempt: bool) -> RunState | None:
    """The state that an event leads to; None if it changes nothing.

    In an attempt only its end counts: the guard may judge again after its gates have passed.
    """
    match event:
        case RunFinished():
            return _judged(success=event.outcome.verdict.is_green)
        case ValidationFinished():
            return None if in_attempt else _judged(success=event.validation.success)
        case AttemptFinished():
            return _judged(success=event.result.passed)
        case _:
            return _STARTED.get(type(event))


_STARTED: dict[type[Event], RunState] = {
    RunStarted: RunState.PENDING,
    ValidationStarted: RunState.VALIDATING,
    AttemptStarted: RunState.FIXING,
}


def _judged(*, success: bool) -> RunState:
    return RunState.PASSED if success else RunState.VALIDATION_FAILED
