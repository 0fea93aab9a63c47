"""A batch as it stands: its items, their groups and endings, and the segments of its history; pure.

A batch is carried out in segments, so that no history grows too long.
"""

from collections import Counter
from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.fleet.books import Books
from atlas_retry.fleet.manifest import BatchLimits, Manifest
from atlas_retry.model import GateResult, Verdict
from atlas_retry.settings import CascadeSettings

SEGMENT_ITEMS = 500
"""Between two beginnings of the history anew; a segment ends before the next one begins."""
MAX_GROUPS = 200
"""With a patch, that go from one segment to the next."""


class Stage(StrEnum):
    """What a run of an item is for."""

    LOOK = "look"
    """Gates and fixers; no model is asked."""
    REPLAY = "replay"
    """Another item's accepted patch is tried."""
    FIX = "fix"
    """The agent is asked."""


class Ending(StrEnum):
    """What has become of an item."""

    CLEAN = "clean"
    FIXER = "fixer"
    REPLAY = "replay"
    AGENT = "agent"
    FAILED = "failed"
    BROKEN = "broken"
    """It could not be run: by its own fault, or because the worker does not allow it."""
    UNPAID = "unpaid"
    """The budget was spent before it could ask."""
    GIVEN_UP = "given_up"
    """Too many workers were lost over it."""

    @property
    def is_green(self) -> bool:
        return self in (Ending.CLEAN, Ending.FIXER, Ending.REPLAY, Ending.AGENT)


_LETTERS = {ending: str(number) for number, ending in enumerate(Ending)}


class Item(Struct, frozen=True, kw_only=True):
    """One repository, as far as the batch has come with it."""

    index: int
    """Of its repository in the manifest."""
    running: Stage | None = None
    group: str | None = None
    """Of its first problem; None: not looked at yet."""
    is_replayed: bool = False
    """The patch of its group has been tried, in vain."""
    tries: int = 0
    deaths: int = 0
    cost_usd: float = 0.0
    """Of its closed runs."""
    ending: Ending | None = None


class Group(Struct, frozen=True, kw_only=True):
    """Items with the same first problem."""

    leader: int | None = None
    """The item that asks first, and has not ended."""
    failures: int = 0
    patch_of: int | None = None
    """The item whose accepted patch the others try."""


class Assignment(Struct, frozen=True, kw_only=True):
    """One run, as a worker gets it: the manifest itself is in the store."""

    batch: str
    digest: str
    index: int
    stage: Stage
    number: int
    """Of this try of the item, from 1."""
    promised_usd: float | None = None
    patch_of: int | None = None
    timeout_s: float = 86_400.0

    @property
    def run(self) -> str:
        return run_of(self.batch, self.index, self.stage)


class ItemResult(Struct, frozen=True, kw_only=True):
    """How a run ended, small enough for a payload; everything else is in the store."""

    run: str
    machine: str
    verdict: Verdict | None = None
    """None: it was stopped before its end, and has to run again."""
    cost_usd: float = 0.0
    """Of the run, by this machine's journal, in all."""
    attempts: int = 0
    duration_ms: int = 0
    error: str = ""
    failing: tuple[GateResult, ...] = ()
    """Without output, with few problems."""
    has_patch: bool = False
    delivered: str = ""


class State(Struct, frozen=True, kw_only=True):
    """A whole batch."""

    batch: str
    digest: str
    count: int
    """Items in all."""
    limits: BatchLimits = BatchLimits()
    cascade: CascadeSettings = field(default_factory=CascadeSettings)
    ai_fix: bool = False
    canary: bool = True
    books: Books = Books()
    first: int = 0
    """Item of this segment."""
    items: Mapping[int, Item] = field(default_factory=dict)
    """Of this segment."""
    groups: Mapping[str, Group] = field(default_factory=dict)
    earlier: str = ""
    """A letter for each item of the segments before: see `endings`."""
    latest: tuple[ItemResult, ...] = ()
    """Of the items that ended last: what a common cause is looked for in."""
    paused: str = ""
    """Why nothing more is started; empty: it is."""
    stopped: bool = False


class BatchStatus(Struct, frozen=True, kw_only=True):
    """How far a batch has come, for people."""

    batch: str
    items: int
    digest: str
    """Of the manifest."""
    ended: Mapping[Ending, int]
    """How many items ended so."""
    letters: str
    """See `endings`."""
    running: tuple[str, ...]
    """Ids of runs."""
    known_usd: float
    promised_usd: float
    held_usd: float
    """What lost machines may have spent, and have not reported."""
    limit_usd: float | None
    paused: str
    stopped: bool


def run_of(batch: str, index: int, stage: Stage) -> str:
    """The id of a run: `atlas retry --run-id` gets it, and the store's names begin with it."""
    return f"{batch}-{index}-{stage}"


def begun(batch: str, digest: str, manifest: Manifest) -> State:
    """A batch before anything has run."""
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
    """The same batch before its next items; of the groups those with a patch stay."""
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
    """What became of each item so far, in the order of the manifest."""
    known = {letter: ending for ending, letter in _LETTERS.items()}
    return tuple(known.get(letter) for letter in letters)


def _lettered(state: State) -> str:
    items = state.items.values()
    return state.earlier + "".join(_LETTERS[i.ending] if i.ending else "." for i in items)


def opened(state: State) -> State:
    """With the items of its segment, which no payload holds."""
    indexes = range(state.first, min(state.first + SEGMENT_ITEMS, state.count))
    return replace(state, items={index: Item(index=index) for index in indexes})


def status(state: State) -> BatchStatus:
    """The batch in short."""
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
    """The items that a worker has, or that wait for one."""
    return tuple(item for item in state.items.values() if item.running)


def is_segment_over(state: State) -> bool:
    """Whether nothing runs, and nothing is left to do or may be done."""
    return not running(state) and (state.stopped or all(i.ending for i in state.items.values()))


def is_last_segment(state: State) -> bool:
    """Whether nothing comes after this one."""
    return state.stopped or state.first + SEGMENT_ITEMS >= state.count
