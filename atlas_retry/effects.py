"""What the loop is given: a run to make, and what it may do to the world. Does nothing itself."""

from collections.abc import Callable, Collection

from msgspec import Struct

from atlas_retry.agents.lack import Lack
from atlas_retry.decision import Limits, Progress
from atlas_retry.events import Emit
from atlas_retry.model import (
    Agent,
    AgentRequest,
    Change,
    Outcome,
    Validation,
    Violation,
    WorkspaceFacts,
)
from atlas_retry.settings import OnExhausted


class Taken(Struct, frozen=True, kw_only=True):
    """A snapshot, as the loop sees it."""

    id: str
    """Brings everything back that it holds."""
    tree: str
    """Of the files that count: equal exactly when these are equal."""
    left_out: tuple[str, ...] = ()


class Judgement(Struct, frozen=True, kw_only=True):
    """What the guard says of an attempt's changes."""

    violations: tuple[Violation, ...] = ()
    put_back: tuple[str, ...] | None = ()
    """Files whose return removes the violations; None: all of the attempt has to go."""
    blocks: bool = True
    """False: violations are told, nothing is put back."""


class Effects(Struct, frozen=True, kw_only=True):
    """What a run does to the world, each a callable, so that the loop itself is plain."""

    snapshot: Callable[[str], Taken]
    """Take one and keep it under a name within the run."""
    changes: Callable[[str, str], tuple[Change, ...]]
    restore: Callable[[str, str, Collection[str] | None], None]
    """Bring back a snapshot, whole or some paths of it. The second id is what should be there
    now: what differs from it was edited by the user meanwhile, and is told, not overwritten."""
    validate: Callable[[Validation | None], Validation]
    """Run the gates; None before the first attempt, else the validation before."""
    fix: Callable[[Validation], tuple[str, ...]]
    """Run the fixers of what failed; the paths that changed."""
    request: Callable[[Progress, int], tuple[AgentRequest, str]]
    """The next attempt's request, and the path its prompt was written to."""
    lack: Callable[[], Lack | None]
    """Why no agent can be had; asked for before an attempt is begun."""
    ask: Agent
    judge: Callable[[str, str, Validation], Judgement]
    """What the guard says of the change between two snapshots, given what failed before it."""
    learn: Callable[[Outcome], str | None]
    """Record what a failed run teaches; the record's id."""
    account: Callable[[Progress], Progress]
    """The same with the time it took, and with what others have spent of a budget they share."""
    elapsed_s: Callable[[], float]
    emit: Emit


class Run(Struct, frozen=True, kw_only=True):
    """What a run is about."""

    run_id: str
    workspace: WorkspaceFacts
    limits: Limits
    agent: str = ""
    on_exhausted: OnExhausted = OnExhausted.BEST
    recorded: Validation | None = None
    """Failures to start from instead of a baseline validation."""
    so_far: Progress | None = None
    """Of an interrupted run that goes on."""
