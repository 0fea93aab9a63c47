"""A run with its limits and its progress, and the order of its attempts. Pure."""

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.counting import compared, cut_short, total
from atlas_retry.model import (
    AgentReply,
    Attempt,
    Budget,
    Gate,
    OpenReview,
    Status,
    Validation,
    WorkspaceFacts,
)
from atlas_retry.settings import OnExhausted, Settings, attempts_of_run


class Limits(Struct, frozen=True, kw_only=True):
    """The budget of a run and its gates."""

    budget: Budget
    gates: tuple[Gate, ...]
    with_agent: bool
    """If false, no money is spent, independent of the budget."""
    attempts_flag: int | None = None
    attempts_configured: int | None = None


def limits(settings: Settings, *, with_agent: bool, attempts_flag: int | None) -> Limits:
    """Limits of a run; its attempts are limited by those of its gates."""
    attempts = attempts_of_run(settings, flag=attempts_flag)
    return Limits(
        budget=replace(settings.retry.budget, attempts=attempts),
        gates=settings.gates,
        with_agent=with_agent,
        attempts_flag=attempts_flag,
        attempts_configured=settings.attempts_configured,
    )


class Elsewhere(Struct, frozen=True, kw_only=True):
    """State of the other runs that share this one's budget."""

    cost_usd: float = 0.0
    """Spent, or promised to running attempts."""
    dearest_usd: float = 0.0
    """Cost of the most expensive attempt, in this run or another."""
    promised_usd: float | None = None
    """Most that the next attempt of this run may cost; None = unlimited."""


class Progress(Struct, frozen=True, kw_only=True):
    """State of a run."""

    run_id: str = "RUN"
    """Id for commands that are shown."""
    baseline: Validation
    settled: Validation
    """Validation after the fixers, which the first attempt starts from."""
    latest: Validation
    """Validation of the current tree."""
    start: str
    """Snapshot before the run."""
    origin: str
    """Snapshot after the fixers, which the first attempt starts from."""
    current: str
    """Snapshot of the current tree."""
    trees: tuple[str, ...] = ()
    """Ids of all work trees so far, the current one last."""
    fixers_changed: tuple[str, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    refused: AgentReply | None = None
    """Reply that the agent is not available."""
    theirs: frozenset[str] = frozenset()
    """Paths that the user edited while an agent worked; they are not restored."""
    begun_usd: float = 0.0
    """Cost so far of the interrupted turn that continues next."""
    begun_reviews_usd: float = 0.0
    """Cost so far of the reviews after that turn."""
    elapsed_s: float = 0.0
    elsewhere: Elsewhere = Elsewhere()
    open_reviews: tuple[OpenReview, ...] = ()
    """Changes in the current tree that a person must review, of this run or an earlier one."""

    @property
    def cost_usd(self) -> float:
        """Cost of all turns, including uncounted and interrupted ones, and of all reviews."""
        refused = (self.refused.cost_usd or 0.0) if self.refused else 0.0
        settled = self.settled.cost_usd if self.settled is not self.baseline else 0.0
        begun = self.begun_usd + self.begun_reviews_usd
        return sum(
            map(_cost_usd, self.attempts), refused + self.baseline.cost_usd + settled + begun
        )

    @property
    def last(self) -> Attempt | None:
        return self.attempts[-1] if self.attempts else None

    @property
    def base(self) -> tuple[Validation, str]:
        """Validation and snapshot that the next attempt starts from: without worse attempts."""
        there = [attempt for attempt in self.attempts if not attempt.worse]
        validated = [a.validation for a in there if a.validation]
        results = [a.result for a in there if a.result]
        return [self.settled, *validated][-1], [self.origin, *results][-1]

    @property
    def dearest_usd(self) -> float:
        return max(map(_cost_usd, self.attempts), default=0.0)


def _cost_usd(attempt: Attempt) -> float:
    reviews = attempt.validation.cost_usd if attempt.validation else 0.0
    return (attempt.cost_usd or 0.0) + attempt.reviews_usd + reviews


class Run(Struct, frozen=True, kw_only=True):
    """The input of a run."""

    run_id: str
    workspace: WorkspaceFacts
    limits: Limits
    agent: str = ""
    on_exhausted: OnExhausted = "best"
    recorded: Validation | None = None
    """Failures to start from instead of a baseline validation."""
    so_far: Progress | None = None
    """Progress of the interrupted run to continue."""
    interrupted_usd: float = 0.0
    """See `Outcome`."""


Standing = tuple[int, int, int]
"""Failed required gates, gates that could not count problems, problems; lower is better."""


def best(progress: Progress) -> Attempt | None:
    """The attempt to keep if a run does not end green; None if the start was no worse.

    Order: most required gates passed, fewest problems remaining, fewest introduced, smallest
    change. A gate that could not count its problems ranks below any number of them.
    """
    start = progress.settled

    def rank(attempt: Attempt) -> tuple[Standing, int, int]:
        validation = attempt.validation or start
        introduced = compared(start, validation)[2]
        size = sum((c.added or 0) + (c.removed or 0) for c in attempt.since_start)
        return _standing(validation, start), len(introduced), size

    stay = (one for one in progress.attempts if not one.rolled_back)
    judged = (one for one in stay if one.validation)
    chosen = min((one for one in judged if one.result), key=rank, default=None)
    if chosen is None or chosen.validation is None:
        return None
    return chosen if is_worse(start, than=chosen.validation) else None


def is_worse(validation: Validation, *, than: Validation) -> bool:
    """Whether fewer required gates pass, or equally many with more problems."""
    return _standing(validation, than) > _standing(than, validation)


def _standing(validation: Validation, other: Validation) -> Standing:
    skipped = (one for one in validation.results if one.status is Status.SKIPPED)
    red = len(validation.failures) + sum(one.required for one in skipped)
    return red, cut_short(validation, other), total(validation, other)
