"""What a batch does next, and what each result means for it; pure.

An item is looked at without a model. What fails goes on: one item of each group of the same first
problem asks the agent, the others try its accepted patch before they ask.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.fleet import books
from atlas_retry.fleet.books import Beat, Books
from atlas_retry.fleet.manifest import BatchLimits, Manifest
from atlas_retry.model import GateResult, Outcome, Validation, Verdict, WorkspaceFacts
from atlas_retry.run.cascade import detect
from atlas_retry.settings import CascadeSettings, OnCascade

SEGMENT_ITEMS = 500
"""Between two beginnings of the history anew; a segment ends before the next one begins."""
MAX_CANARIES = 2
"""So many of a group fail, one after the other, before all others may ask."""
MAX_TRIES = 30
"""Of an item, however they were lost."""
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


class EndingTally(Struct, frozen=True, kw_only=True):
    """How many items ended in one way, and what they cost."""

    items: int = 0
    cost_usd: float = 0.0


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
    ended: Mapping[Ending, EndingTally] = field(default_factory=dict)
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
    ended: Mapping[Ending, EndingTally]
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
    books_ = state.books
    return BatchStatus(
        batch=state.batch,
        items=state.count,
        digest=state.digest,
        ended=state.ended,
        letters=_lettered(state),
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


def start(state: State) -> tuple[State, tuple[Assignment, ...]]:
    """All that may start now. What waits for money that cannot come any more has ended."""
    assignments: list[Assignment] = []
    if state.paused or state.stopped:
        return state, ()
    room = state.limits.runs_at_once - len(running(state))
    for index in [item.index for item in sorted(_waiting(state), key=_urgency)]:
        if len(assignments) >= room:
            break
        state, assignment = _started(state, state.items[index])
        assignments += [assignment] if assignment else []
    return state, tuple(assignments)


def forgone(state: State) -> State:
    """Nothing runs, and what lost machines may have left is not waited for any longer."""
    for item in _waiting(state):
        state = _failed(state, item, Ending.UNPAID)
    return state


def ended(state: State, assignment: Assignment, result: ItemResult) -> State:
    """A run has come back."""
    beat = Beat(
        run=assignment.run,
        machine=result.machine,
        number=assignment.number,
        cost_usd=result.cost_usd,
    )
    now = books.settle(state.books, beat)
    item = replace(state.items[assignment.index], running=None)
    if result.verdict is None:
        return _put(replace(state, books=now), item)
    spent_usd = item.cost_usd + books.cost_of(now, assignment.run)
    state = replace(state, books=books.close(now, assignment.run))
    item = replace(item, cost_usd=spent_usd, deaths=0)
    return _STEPS[assignment.stage](state, item, result)


def withdrawn(state: State, assignment: Assignment) -> State:
    """No worker had begun with it."""
    state = replace(state, books=books.lose(state.books, assignment.run, None))
    return _put(state, replace(state.items[assignment.index], running=None))


def lost(state: State, assignment: Assignment, beat: Beat | None) -> State:
    """The worker of a run is gone; `beat` is its last heartbeat."""
    now = books.lose(state.books, assignment.run, beat)
    item = state.items[assignment.index]
    # where no worker had begun, as when the network swallows an assignment, none is to blame
    item = replace(item, running=None, deaths=item.deaths + (beat is not None))
    state = _put(replace(state, books=now), item)
    if item.deaths < state.limits.deaths and item.tries < MAX_TRIES:
        return state
    spent_usd = item.cost_usd + books.cost_of(now, assignment.run)
    state = replace(state, books=books.close(now, assignment.run))
    return _failed(state, replace(item, cost_usd=spent_usd), Ending.GIVEN_UP)


def reported(state: State, beat: Beat) -> State:
    """A machine says what its journal holds of a run that it has no longer under way."""
    return replace(state, books=books.report(state.books, beat))


def paused(state: State, why: str) -> State:
    """Start nothing more until it is resumed."""
    return replace(state, paused=why)


def stopped(state: State) -> State:
    """Start nothing more at all."""
    return replace(state, stopped=True)


def resumed(state: State) -> State:
    """Go on after a pause; what came before it is no cause for another."""
    return replace(state, paused="", latest=())


def _waiting(state: State) -> Iterator[Item]:
    return (item for item in state.items.values() if not item.running and not item.ending)


def _urgency(item: Item) -> tuple[bool, int]:
    """Who has been looked at goes first: what is found helps others of the group."""
    return item.group is None, item.index


def _stage(state: State, item: Item) -> Stage | None:
    """What an item that waits does next; None: it waits for another of its group."""
    if item.group is None:
        return Stage.LOOK
    group = state.groups[item.group]
    if group.patch_of is not None and not item.is_replayed:
        return Stage.REPLAY
    is_open = not state.canary or group.patch_of is not None or group.failures >= MAX_CANARIES
    return Stage.FIX if is_open or group.leader in (None, item.index) else None


def _started(state: State, item: Item) -> tuple[State, Assignment | None]:
    stage = _stage(state, item)
    if stage is None or _is_suspect_beside_another(state, item):
        return state, None
    paid = _paid(state, item, stage)
    if paid is None:
        waits = books.may_grow(state.books)
        return (state if waits else _failed(state, item, Ending.UNPAID)), None
    state, promised_usd = paid
    if stage is Stage.FIX:
        state = _led(state, item)
    item = replace(item, running=stage, tries=item.tries + 1)
    return _put(state, item), Assignment(
        batch=state.batch,
        digest=state.digest,
        index=item.index,
        stage=stage,
        number=item.tries,
        promised_usd=promised_usd,
        patch_of=state.groups[item.group or ""].patch_of if stage is Stage.REPLAY else None,
    )


def _is_suspect_beside_another(state: State, item: Item) -> bool:
    """What may kill its worker runs with no other that may: so only the guilty is blamed again."""
    return bool(item.deaths) and any(other.deaths for other in running(state))


def _paid(state: State, item: Item, stage: Stage) -> tuple[State, float | None] | None:
    """With the money that the run may spend; None: there is none now."""
    if stage is Stage.LOOK:
        return state, None
    run = run_of(state.batch, item.index, stage)
    promise = books.promise(state.books, run, state.limits.max_cost_usd_per_run)
    return (replace(state, books=promise[0]), promise[1]) if promise else None


def _led(state: State, item: Item) -> State:
    """The item is its group's leader, where that has none."""
    name = item.group or ""
    group = state.groups[name]
    leader = item.index if group.leader is None else group.leader
    return _grouped(state, name, replace(group, leader=leader))


def _looked(state: State, item: Item, result: ItemResult) -> State:
    if result.verdict is Verdict.CLEAN:
        return _end(state, item, Ending.CLEAN, result)
    if result.verdict is Verdict.FIXED:
        return _end(state, item, Ending.FIXER, result)
    if result.verdict is Verdict.BROKEN or not state.ai_fix:
        return _end(state, item, _bad(result), result)
    name = first_problem(result) if state.canary else f"{item.index}"
    state = _grouped(state, name, state.groups.get(name, Group()))
    return _put(state, replace(item, group=name))


def _replayed(state: State, item: Item, result: ItemResult) -> State:
    if result.verdict and result.verdict.is_green:
        return _end(state, item, Ending.REPLAY, result)
    return _put(state, replace(item, is_replayed=True))


def _fixed(state: State, item: Item, result: ItemResult) -> State:
    if not result.verdict or not result.verdict.is_green:
        return _failed(state, item, _bad(result), result)
    name = item.group or ""
    group = state.groups[name]
    if result.has_patch and group.patch_of is None:
        group = replace(group, patch_of=item.index)
    state = _grouped(state, name, replace(group, leader=_no_more(group.leader, item)))
    return _end(state, item, Ending.AGENT if result.attempts else Ending.FIXER, result)


_STEPS = {Stage.LOOK: _looked, Stage.REPLAY: _replayed, Stage.FIX: _fixed}


def _bad(result: ItemResult) -> Ending:
    return Ending.BROKEN if result.verdict is Verdict.BROKEN else Ending.FAILED


def _failed(state: State, item: Item, ending: Ending, result: ItemResult | None = None) -> State:
    """An item has ended badly; where it led its group, another may."""
    group = state.groups.get(item.group or "")
    if group and group.leader == item.index:
        left = replace(group, leader=None, failures=group.failures + 1)
        state = _grouped(state, item.group or "", left)
    return _end(state, item, ending, result)


def _no_more(leader: int | None, item: Item) -> int | None:
    return None if leader == item.index else leader


def _end(state: State, item: Item, ending: Ending, result: ItemResult | None = None) -> State:
    tally = state.ended.get(ending, EndingTally())
    tally = EndingTally(items=tally.items + 1, cost_usd=tally.cost_usd + item.cost_usd)
    state = replace(state, ended={**state.ended, ending: tally})
    state = _put(state, replace(item, running=None, ending=ending))
    return _watched(state, result) if result else state


def _watched(state: State, result: ItemResult) -> State:
    """Pause where the last results have a cause in common."""
    latest = (*state.latest, result)[-state.cascade.window_size :]
    state = replace(state, latest=latest)
    pauses = state.cascade.on_cascade is OnCascade.PAUSE_AND_ALERT
    found = detect([_outcome(one) for one in latest], state.cascade)
    if state.paused or not (pauses and found.cascade_detected):
        return state
    return replace(state, paused=f"cascade: {found.diagnosis}")


def _outcome(result: ItemResult) -> Outcome:
    return Outcome(
        run_id=result.run,
        verdict=result.verdict or Verdict.INTERRUPTED,
        workspace=WorkspaceFacts(name=result.run, root=result.run),
        baseline=Validation(),
        final=Validation(results=result.failing),
        final_error=result.error or None,
    )


def first_problem(result: ItemResult) -> str:
    """What items that fail alike have in common: the fingerprint of the first problem."""
    fingerprints: Iterable[str] = (
        diagnostic.fingerprint for gate in result.failing for diagnostic in gate.diagnostics
    )
    silent = next((f"{gate.name}:{gate.status}" for gate in result.failing), result.error)
    return next(filter(None, fingerprints), silent)


def _put(state: State, item: Item) -> State:
    return replace(state, items={**state.items, item.index: item})


def _grouped(state: State, name: str, group: Group) -> State:
    return replace(state, groups={**state.groups, name: group})
