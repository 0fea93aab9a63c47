"""What the loop is given: a run to make, and what it may do to the world. Does nothing itself."""

from collections.abc import Callable, Collection, Mapping, Sequence

from msgspec import Struct

from atlas_retry.agents.lack import Lack
from atlas_retry.decision import Limits, Progress
from atlas_retry.events import Emit
from atlas_retry.guard.judgement import Content, Judgement
from atlas_retry.model import (
    Agent,
    AgentRequest,
    Change,
    Gate,
    Lost,
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


Contents = Mapping[str, Content | None]
"""Files by path; None: there is none."""


class Effects(Struct, frozen=True, kw_only=True):
    """What a run does to the world, each a callable, so that the loop itself is plain."""

    snapshot: Callable[[str], Taken]
    """Take one and keep it under a name within the run."""
    changes: Callable[[str, str], tuple[Change, ...]]
    restore: Callable[[str, str, Collection[str] | None], None]
    """Bring back a snapshot, whole or some paths of it. The second id is what should be there
    now: what differs from it was edited by the user meanwhile, and is told, not overwritten."""
    read: Callable[[str, Collection[str]], Contents]
    """These files as a snapshot holds them."""
    write: Callable[[Contents], None]
    """Make these files what is said."""
    validate: Callable[[Validation | None], Validation]
    """Run the gates; None before the first attempt, else the validation before."""
    fix: Callable[[Validation], tuple[str, ...]]
    """Run the fixers of what failed; the paths that changed."""
    request: Callable[[Progress, int], tuple[AgentRequest, str]]
    """The next attempt's request, and the path its prompt was written to."""
    lack: Callable[[], Lack | None]
    """Why no agent can be had; asked for before an attempt is begun."""
    seal: Callable[[], None]
    """Take what decides besides the files of the workspace, as it is now: the next `judge`
    compares with it."""
    ask: Agent
    judge: Callable[[str, str, str, Progress], Judgement]
    """What the guard says of the change between the last two snapshots. Of the first, and of what
    the user has edited since, is everything that decides as it was before the run."""
    rewritten: Callable[[str, str, Validation], tuple[Violation, ...]]
    """What decides and moved between two snapshots, while the gates of a validation ran."""
    unseen: Callable[[str, str, Collection[str]], Contents]
    """What turns wrote where git does not look, as it was in the first snapshot; without what can
    be made again, or of which no more than its time moved. The second snapshot is the last."""
    aside: Callable[[Sequence[Gate], Contents, Validation], Validation]
    """Run these gates with these files in place of those that are there; all is left as it is.
    Given is what the same gates said before."""
    lost: Callable[[str, str], tuple[Lost, ...]]
    """Definitions that only the uncommitted files of the first snapshot held, gone in the other."""
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
    interrupted_usd: float = 0.0
    """See `Outcome`."""
