"""What the journal holds of a run, as values. Reads and writes nothing."""

from collections.abc import Mapping

from msgspec import Struct, field

from atlas_retry.history.states import RunState
from atlas_retry.model import AgentReply, Attempt, Validation, Verdict
from atlas_retry.settings import OnExhausted


class Order(Struct, frozen=True, kw_only=True):
    """What a person asked of a run: enough to ask the same again."""

    ai_fix: bool = False
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Configuration keys, dotted, that flags set."""
    attempts_flag: int | None = None
    allow: tuple[str, ...] = ()
    force: bool = False
    batch: str | None = None
    """The runs that were asked for together have this in common, and one budget."""
    on_exhausted: OnExhausted = "best"


class Opening(Struct, frozen=True, kw_only=True):
    """What the journal is told of a run before its first event."""

    run_id: str
    order: Order
    repository: str
    """Absolute path of the git directory that all worktrees share: learnings stay within it."""
    mark: str
    """The variable by which the run's processes can be found, see `process.mark`."""
    recorded: Validation | None = None
    """Failures that take the place of a baseline validation."""


class RunRow(Struct, frozen=True, kw_only=True):
    """One run, as a list shows it."""

    id: str
    root: str
    name: str
    repository: str
    state: RunState
    with_agent: bool
    started_at: str
    last_at: str
    """Of its latest event."""
    segment_at: str
    """When it was started or last continued."""
    start: str
    """Snapshot of what was there before it."""
    head: str | None = None
    verdict: Verdict | None = None
    reason: str | None = None
    ended_at: str | None = None
    duration_ms: int | None = None
    spent_ms: int = 0
    """Before it was last continued."""
    cost_usd: float = 0.0
    attempts: int = 0
    left_behind: str | None = None
    """Snapshot that it, or who took something of it, left in the workspace; None: cut off."""
    learning: str | None = None
    mark: str = ""
    """As in `Opening`."""
    pruned: bool = False
    unpaid: bool = False
    """An attempt was begun whose agent has not told all that it has cost."""

    @classmethod
    def of_snapshots(
        cls, run_id: str, root: str, at: str, *, start: str, ended_at: str | None = None
    ) -> "RunRow":
        """What is no run of the journal, but can be undone as one; without an end, cut off."""
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
        """Whether it was cut off, or is still under way: only its lock can tell."""
        return self.verdict is None and self.state not in (RunState.ABANDONED, RunState.UNDONE)


class OpenAttempt(Struct, frozen=True, kw_only=True):
    """An attempt that was started and never finished."""

    number: int
    snapshot: str
    """Of the tree that the agent was given."""
    session_id: str | None
    reply: AgentReply | None
    """The agent's turn, when it had come to its end: it is paid."""
    started_at: str
    restored: bool = False
    """Whether its edits have all been restored."""
    lost_usd: float = 0.0
    """What each beginning of the turn had cost, as far as the agent had told; no reply holds it."""


class Remains(Struct, frozen=True, kw_only=True):
    """What a run had come to when it was cut off."""

    order: Order
    validations: tuple[Validation, ...]
    """Before the first attempt: the baseline, and what the fixers made of it."""
    attempts: tuple[Attempt, ...]
    open_attempt: OpenAttempt | None
    reviews_usd: float
    """What all reviews have cost, those of the open attempt included."""


class Transition(Struct, frozen=True, kw_only=True):
    """One step of a run from state to state."""

    at: str
    from_state: RunState | None
    to_state: RunState
    reason: str
