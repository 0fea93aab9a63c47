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


class State(StrEnum):
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
    """What was there before it has been put back."""


_DONE = frozenset({State.ABANDONED, State.UNDONE})
_CUT_OFF = frozenset({State.INTERRUPTED}) | _DONE

TRANSITIONS: dict[State | None, frozenset[State]] = {
    None: frozenset({State.PENDING}),
    State.PENDING: frozenset({State.VALIDATING, State.VALIDATION_FAILED, State.FIXING})
    | frozenset({State.PASSED})
    | _CUT_OFF,
    State.VALIDATING: frozenset({State.PASSED, State.VALIDATION_FAILED}) | _CUT_OFF,
    State.VALIDATION_FAILED: frozenset({State.VALIDATING, State.FIXING, State.PASSED}) | _CUT_OFF,
    State.FIXING: frozenset({State.VALIDATING, State.VALIDATION_FAILED}) | _CUT_OFF,
    State.PASSED: frozenset({State.VALIDATING, State.VALIDATION_FAILED}) | _CUT_OFF,
    State.INTERRUPTED: frozenset({State.VALIDATING, State.FIXING, State.VALIDATION_FAILED})
    | frozenset({State.PASSED})
    | _DONE,
    State.ABANDONED: frozenset({State.UNDONE}),
    State.UNDONE: frozenset({State.UNDONE}),
}
"""What may follow what. A state may always be told again with another reason."""


def follows(before: State | None, after: State) -> bool:
    """Whether a run that is in `before` may come to be in `after`."""
    return before is after or after in TRANSITIONS[before]


def state_after(event: Event, *, in_attempt: bool) -> State | None:
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


_STARTED: dict[type[Event], State] = {
    RunStarted: State.PENDING,
    ValidationStarted: State.VALIDATING,
    AttemptStarted: State.FIXING,
}


def _judged(*, success: bool) -> State:
    return State.PASSED if success else State.VALIDATION_FAILED
