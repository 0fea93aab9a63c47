"""Values of the journal. Reads and writes nothing."""

from collections.abc import Mapping

from msgspec import Struct, field

from atlas_retry.history.states import RunState
from atlas_retry.model import AgentReply, Attempt, Validation, Verdict
from atlas_retry.settings import OnExhausted


class Order(Struct, frozen=True, kw_only=True):
    """The request for a run, complete enough to repeat it."""

    ai_fix: bool = False
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Dotted configuration keys set by flags, and their values."""
    attempts_flag: int | None = None
    allow: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    """Kinds and names of the gates that run; all if empty."""
    force: bool = False
    batch: str | None = None
    """Id shared by runs that were started together and have one budget."""
    on_exhausted: OnExhausted = "best"


class Opening(Struct, frozen=True, kw_only=True):
    """Facts about a run that the journal needs before its first event."""

    run_id: str
    order: Order
    repository: str
    """Absolute path of the git directory that all worktrees share; scope of learning records."""
    mark: str
    """Variable that identifies the run's processes, see `process.mark`."""
    recorded: Validation | None = None
    """Failures used instead of a baseline validation."""


class RunRow(Struct, frozen=True, kw_only=True):
    """One run in a list."""

    id: str
    root: str
    name: str
    repository: str
    state: RunState
    with_agent: bool
    started_at: str
    last_at: str
    """Time of its latest event."""
    segment_at: str
    """When it was started or last resumed."""
    start: str
    """Snapshot of the state before it."""
    head: str | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    ended_at: str | None = None
    duration_ms: int | None = None
    spent_ms: int = 0
    """Duration until it was last resumed."""
    cost_usd: float = 0.0
    attempts: int = 0
    left_behind: str | None = None
    """Snapshot that it, or a later pick or undo, left in the workspace; None if interrupted."""
    learning: str | None = None
    mark: str = ""
    """As in `Opening`."""
    pruned: bool = False
    unpaid: bool = False
    """Whether an attempt was started whose agent has not reported its whole cost."""

    @classmethod
    def of_snapshots(
        cls, run_id: str, root: str, at: str, *, start: str, ended_at: str | None = None
    ) -> "RunRow":
        """A run that is not in the journal but can be undone; interrupted without an end."""
        return cls(
            id=run_id,
            root=root,
            name=root.rpartition("/")[2],
            repository="",
            state=RunState.ABANDONED if ended_at else RunState.FIXING,
            with_agent=True,
            started_at=at,
            last_at=at,
            segment_at=at,
            ended_at=ended_at,
            start=start,
        )

    @property
    def is_open(self) -> bool:
        """Whether it was interrupted or still runs, which only the lock tells."""
        return self.verdict is None and self.state not in (RunState.ABANDONED, RunState.UNDONE)


class OpenAttempt(Struct, frozen=True, kw_only=True):
    """An attempt that was started but not finished."""

    number: int
    snapshot: str
    """Snapshot of the tree before the agent's turn."""
    session_id: str | None
    reply: AgentReply | None
    """Reply of the agent if its turn, which is paid, had ended."""
    started_at: str
    restored: bool = False
    """Whether all of its edits have been reverted."""
    lost_usd: float = 0.0
    """Reported cost of interrupted turns, which is in no reply."""


class Remains(Struct, frozen=True, kw_only=True):
    """The state of an interrupted run."""

    order: Order
    validations: tuple[Validation, ...]
    """Validations before the first attempt: the baseline, and the one after fixers."""
    attempts: tuple[Attempt, ...]
    open_attempt: OpenAttempt | None
    reviews_usd: float
    """Cost of all reviews, including those of the open attempt."""


class Transition(Struct, frozen=True, kw_only=True):
    """One transition of a run."""

    at: str
    to_state: RunState
    reason: str
