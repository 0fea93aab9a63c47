"""State of a batch: its items, their groups and endings, and the segments of its history; pure.

A batch runs in segments, so that no history grows too long.
"""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.fleet.books import Books
from atlas_retry.fleet.manifest import BatchLimits, Manifest
from atlas_retry.model import GateResult, OpenReview, Verdict
from atlas_retry.settings import CascadeSettings

SEGMENT_ITEMS = 500
"""Items of a segment; each segment starts a new history once the last one has ended."""
MAX_GROUPS = 200
"""Groups with a patch that the next segment keeps."""


class Stage(StrEnum):
    """Purpose of a run of an item."""

    LOOK = "look"
    """Run gates and fixers, without a model."""
    REPLAY = "replay"
    """Try another item's accepted patch."""
    FIX = "fix"
    """Ask the agent."""


class Ending(StrEnum):
    """How an item ended."""

    CLEAN = "clean"
    FIXER = "fixer"
    REPLAY = "replay"
    AGENT = "agent"
    FAILED = "failed"
    BROKEN = "broken"
    """It could not run, because of itself or because the worker does not allow it."""
    UNPAID = "unpaid"
    """The budget was spent before it could ask an agent."""
    GIVEN_UP = "given_up"
    """Too many workers were lost while running it."""

    @property
    def is_green(self) -> bool:
        return self in (Ending.CLEAN, Ending.FIXER, Ending.REPLAY, Ending.AGENT)


_LETTERS = {ending: str(number) for number, ending in enumerate(Ending)}


class Item(Struct, frozen=True, kw_only=True):
    """State of one repository in the batch."""

    index: int
    """Position of the repository in the manifest."""
    running: Stage | None = None
    group: str | None = None
    """Fingerprint of its first problem; None before the first run."""
    is_replayed: bool = False
    """Whether the patch of its group was tried without success."""
    tries: int = 0
    deaths: int = 0
    cost_usd: float = 0.0
    """Cost of its closed runs."""
    ending: Ending | None = None


class Group(Struct, frozen=True, kw_only=True):
    """Items with the same first problem."""

    leader: int | None = None
    """Item that asks the agent first, and has not ended."""
    failures: int = 0
    patch_of: int | None = None
    """Item whose accepted patch the others try."""


class Assignment(Struct, frozen=True, kw_only=True):
    """One run, as sent to a worker; the manifest itself is in the store."""

    batch: str
    digest: str
    index: int
    stage: Stage
    number: int
    """Number of this try of the item, from 1."""
    promised_usd: float | None = None
    patch_of: int | None = None

    @property
    def run(self) -> str:
        return run_of(self.batch, self.index, self.stage)


class ItemResult(Struct, frozen=True, kw_only=True):
    """How a run ended, small enough for a payload; everything else is in the store."""

    run: str
    machine: str
    verdict: Verdict | None = None
    """None if it was stopped before its end, and must run again."""
    cost_usd: float = 0.0
    """Total cost of the run according to this machine's journal."""
    attempts: int = 0
    error: str = ""
    failing: tuple[GateResult, ...] = ()
    """Failing gates, without output and with few problems."""
    open_reviews: tuple[OpenReview, ...] = ()
    """Changes that a person must review before the run can be delivered."""
    has_patch: bool = False
    delivered: str = ""


class State(Struct, frozen=True, kw_only=True):
    """State of a batch."""

    batch: str
    digest: str
    count: int
    """Total number of items."""
    limits: BatchLimits = BatchLimits()
    cascade: CascadeSettings = field(default_factory=CascadeSettings)
    ai_fix: bool = False
    canary: bool = True
    books: Books = Books()
    first: int = 0
    """First item of this segment."""
    items: Mapping[int, Item] = field(default_factory=dict)
    """Items of this segment."""
    groups: Mapping[str, Group] = field(default_factory=dict)
    earlier: str = ""
    """One letter for each item of earlier segments, see `endings`."""
    latest: tuple[ItemResult, ...] = ()
    """Results of the last items, searched for a common cause."""
    paused: str = ""
    """Why no more items are started; empty if not paused."""
    stopped: bool = False


class BatchStatus(Struct, frozen=True, kw_only=True):
    """Progress of a batch, for people."""

    batch: str
    items: int
    digest: str
    """Digest of the manifest."""
    ended: Mapping[Ending, int]
    """Number of items by ending."""
    letters: str
    """See `endings`."""
    running: tuple[str, ...]
    """Ids of the current runs."""
    known_usd: float
    promised_usd: float
    held_usd: float
    """Upper bound of what lost machines have spent and not reported."""
    limit_usd: float | None
    paused: str
    stopped: bool


def run_of(batch: str, index: int, stage: Stage) -> str:
    """Id of a run, for `atlas retry --run-id` and as prefix of names in the store."""
    return f"{batch}-{index}-{stage}"


def begun(batch: str, digest: str, manifest: Manifest) -> State:
    """A batch before its first run."""
    return State(
        batch=batch,
        digest=digest,
        count=len(manifest.repositories),
        limits=manifest.limits,
        cascade=manifest.cascade,
        ai_fix=manifest.ai_fix,
        canary=manifest.canary,
        books=Books(limit_usd=manifest.limits.max_cost_usd),
    )


def next_segment(state: State) -> State:
    """The batch before its next items; only groups with a patch are kept."""
    fixed = [(name, group) for name, group in state.groups.items() if group.patch_of is not None]
    first = state.first + SEGMENT_ITEMS
    return replace(
        state,
        first=first,
        items={},
        earlier=_lettered(state),
        groups=dict(fixed[-MAX_GROUPS:]),
    )


def endings(letters: str) -> tuple[Ending | None, ...]:
    """The ending of each item so far, in the order of the manifest."""
    known = {letter: ending for ending, letter in _LETTERS.items()}
    return tuple(known.get(letter) for letter in letters)


def _lettered(state: State) -> str:
    items = state.items.values()
    return state.earlier + "".join(_LETTERS[i.ending] if i.ending else "." for i in items)


def opened(state: State) -> State:
    """The state with the items of its segment, which payloads do not hold."""
    indexes = range(state.first, min(state.first + SEGMENT_ITEMS, state.count))
    return replace(state, items={index: Item(index=index) for index in indexes})


def status(state: State) -> BatchStatus:
    """A summary of the batch."""
    books_, letters = state.books, _lettered(state)
    return BatchStatus(
        batch=state.batch,
        items=state.count,
        digest=state.digest,
        ended=Counter(filter(None, endings(letters))),
        letters=letters,
        running=tuple(
            run_of(state.batch, item.index, item.running) for item in running(state) if item.running
        ),
        known_usd=books_.known_usd,
        promised_usd=sum(books_.promised.values()),
        held_usd=books_.held_usd,
        limit_usd=books_.limit_usd,
        paused=state.paused,
        stopped=state.stopped,
    )


def running(state: State) -> tuple[Item, ...]:
    """The items that a worker runs, or that wait for a worker."""
    return tuple(item for item in state.items.values() if item.running)


def is_segment_over(state: State) -> bool:
    """Whether nothing runs, and nothing is left to do or allowed."""
    return not running(state) and (state.stopped or all(i.ending for i in state.items.values()))


def is_last_segment(state: State) -> bool:
    """Whether this is the last segment."""
    return state.stopped or state.first + SEGMENT_ITEMS >= state.count
