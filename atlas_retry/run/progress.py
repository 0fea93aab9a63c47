"""What a run is about, what it may spend, and what it has come to so far. Values only."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard.judgement import Content
from atlas_retry.model import AgentReply, Attempt, Budget, Gate, Validation, WorkspaceFacts
from atlas_retry.settings import OnExhausted, Settings, attempts_of_run

Contents = Mapping[str, Content | None]
"""Files by path; None: there is none."""


class Limits(Struct, frozen=True, kw_only=True):
    """What a run may spend, and on what."""

    budget: Budget
    gates: tuple[Gate, ...]
    with_agent: bool
    """Without it no money is spent, whatever the budget."""
    attempts_flag: int | None = None
    attempts_configured: int | None = None


def limits(settings: Settings, *, with_agent: bool, attempts_flag: int | None) -> Limits:
    """What a run may spend; the attempts of all gates bound those of the run."""
    attempts = attempts_of_run(settings, flag=attempts_flag)
    return Limits(
        budget=replace(settings.retry.budget, attempts=attempts),
        gates=settings.gates,
        with_agent=with_agent,
        attempts_flag=attempts_flag,
        attempts_configured=settings.attempts_configured,
    )


class Elsewhere(Struct, frozen=True, kw_only=True):
    """What the runs that share this one's budget have come to, this one left out."""

    cost_usd: float = 0.0
    """Spent, and promised to attempts that are under way."""
    dearest_usd: float = 0.0
    """The most that one attempt has cost, in this run or another."""
    promised_usd: float | None = None
    """What the next attempt of this run may cost; None = unlimited."""


class Progress(Struct, frozen=True, kw_only=True):
    """Everything a run has come to so far."""

    run_id: str = "RUN"
    """For what there is to type."""
    baseline: Validation
    settled: Validation
    """After the fixers: what the first attempt starts from."""
    latest: Validation
    """Of what is there now."""
    start: str
    """Snapshot of what was there before the run."""
    origin: str
    """Snapshot that the first attempt starts from: after the fixers."""
    current: str
    """Snapshot of what is there now."""
    trees: tuple[str, ...] = ()
    """Ids of every work tree there has been, the present one last."""
    fixers_changed: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    refused: AgentReply | None = None
    """The agent could not be had."""
    theirs: frozenset[str] = frozenset()
    """What the user has edited while an agent worked: it is not restored."""
    begun_usd: float = 0.0
    """What the turn that comes next has cost already, where it was cut off and goes on."""
    begun_reviews_usd: float = 0.0
    """The same of the reviews after it."""
    elapsed_s: float = 0.0
    elsewhere: Elsewhere = Elsewhere()

    @property
    def cost_usd(self) -> float:
        """Of every turn, counted as an attempt or not, cut off or not, and of every review."""
        refused = (self.refused.cost_usd or 0.0) if self.refused else 0.0
        settled = self.settled.cost_usd if self.settled is not self.baseline else 0.0
        begun = self.begun_usd + self.begun_reviews_usd
        return sum(
            map(_cost_usd, self.attempts), refused + self.baseline.cost_usd + settled + begun
        )

    @property
    def base(self) -> tuple[Validation, str]:
        """What the next attempt starts from, and its snapshot: without what left things worse."""
        there = [attempt for attempt in self.attempts if not attempt.worse]
        validated = [a.validation for a in there if a.validation]
        results = [a.result for a in there if a.result]
        return [self.settled, *validated][-1], [self.origin, *results][-1]

    @property
    def dearest_usd(self) -> float:
        return max(map(_cost_usd, self.attempts), default=0.0)


def _cost_usd(attempt: Attempt) -> float:
    """Of the agent's turn and of the reviews after it."""
    reviews = attempt.validation.cost_usd if attempt.validation else 0.0
    return (attempt.cost_usd or 0.0) + attempt.reviews_usd + reviews


class Taken(Struct, frozen=True, kw_only=True):
    """A snapshot, as the loop sees it."""

    id: str
    """Brings everything back that it holds."""
    tree: str
    """Of the files that count: equal exactly when these are equal."""
    left_out: tuple[str, ...] = ()


class Run(Struct, frozen=True, kw_only=True):
    """What a run is about."""

    run_id: str
    workspace: WorkspaceFacts
    limits: Limits
    agent: str = ""
    on_exhausted: OnExhausted = "best"
    recorded: Validation | None = None
    """Failures to start from instead of a baseline validation."""
    so_far: Progress | None = None
    """Of an interrupted run that goes on."""
    interrupted_usd: float = 0.0
    """See `Outcome`."""
