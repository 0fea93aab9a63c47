"""Decide what a batch does next, and what each result means for it; pure.

An item first runs without a model. If it fails, one item of each group with the same first problem
asks the agent, and the others try its accepted patch before they ask.
"""

from collections.abc import Iterator
from itertools import chain

from msgspec.structs import replace

from atlas_retry.fleet import books
from atlas_retry.fleet.batch import (
    Assignment,
    Ending,
    Group,
    Item,
    ItemResult,
    Stage,
    State,
    run_of,
    running,
)
from atlas_retry.fleet.books import Beat
from atlas_retry.model import Outcome, Validation, Verdict, WorkspaceFacts
from atlas_retry.run.cascade import detect

MAX_CANARIES = 2
"""Failures in a row in one group after which the other items of it may ask the agent."""
MAX_TRIES = 30
"""Limit of tries of an item, for any reason."""


def start(state: State) -> tuple[State, tuple[Assignment, ...]]:
    """The runs that may start now. Items that wait for money that cannot come any more end."""
    assignments: list[Assignment] = []
    if state.paused or state.stopped:
        return state, ()
    room = state.limits.runs_at_once - len(running(state))
    # items with a group go first, because their result helps others of the group
    waiting = sorted(_waiting(state), key=lambda item: (item.group is None, item.index))
    for index in [item.index for item in waiting]:
        if len(assignments) >= room:
            break
        state, assignment = _started(state, state.items[index])
        assignments += [assignment] if assignment else []
    return state, tuple(assignments)


def forgone(state: State) -> State:
    """End waiting items as unpaid, without waiting any longer for reports of lost machines."""
    for item in _waiting(state):
        state = _failed(state, item, Ending.UNPAID)
    return state


def ended(state: State, assignment: Assignment, result: ItemResult) -> State:
    """The state after the result of a run."""
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


def lost(state: State, assignment: Assignment, beat: Beat | None) -> State:
    """The state after a run's worker was lost; `beat` is its last heartbeat, None if not begun."""
    now = books.lose(state.books, assignment.run, beat)
    item = state.items[assignment.index]
    # a run that had not begun was cancelled or lost by the network, so it counts as no death
    item = replace(item, running=None, deaths=item.deaths + (beat is not None))
    state = _put(replace(state, books=now), item)
    if item.deaths < state.limits.deaths and item.tries < MAX_TRIES:
        return state
    spent_usd = item.cost_usd + books.cost_of(now, assignment.run)
    state = replace(state, books=books.close(now, assignment.run))
    return _failed(state, replace(item, cost_usd=spent_usd), Ending.GIVEN_UP)


def _waiting(state: State) -> Iterator[Item]:
    open_items = (item for item in state.items.values() if item.ending is None)
    return (item for item in open_items if item.running is None)


def _stage(state: State, item: Item) -> Stage | None:
    """The next stage of a waiting item; None if it waits for another of its group."""
    if item.group is None:
        return Stage.LOOK
    group = state.groups[item.group]
    if group.patch_of is not None and not item.is_replayed:
        return Stage.REPLAY
    is_open = not state.canary or group.patch_of is not None or group.failures >= MAX_CANARIES
    return Stage.FIX if is_open or group.leader in (None, item.index) else None


def _started(state: State, item: Item) -> tuple[State, Assignment | None]:
    stage = _stage(state, item)
    # items that may kill their worker run one at a time
    must_wait = item.deaths and any(other.deaths for other in running(state))
    if stage is None or must_wait:
        return state, None
    paid = _paid(state, item, stage)
    if paid is None:
        waits = books.may_grow(state.books)
        return (state if waits else _failed(state, item, Ending.UNPAID)), None
    state, promised_usd = paid
    if stage is Stage.FIX:
        name = item.group or ""
        group = state.groups[name]
        leader = item.index if group.leader is None else group.leader
        state = _grouped(state, name, replace(group, leader=leader))
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


def _paid(state: State, item: Item, stage: Stage) -> tuple[State, float | None] | None:
    """The state and the money that the run may spend; None if there is none now."""
    if stage is Stage.LOOK:
        return state, None
    run = run_of(state.batch, item.index, stage)
    promise = books.promise(state.books, run, state.limits.max_cost_usd_per_run)
    return (replace(state, books=promise[0]), promise[1]) if promise else None


def _looked(state: State, item: Item, result: ItemResult) -> State:
    if result.verdict is Verdict.CLEAN:
        return _end(state, item, Ending.CLEAN, result)
    if result.verdict is Verdict.FIXED:
        return _end(state, item, Ending.FIXER, result)
    if result.verdict is Verdict.BROKEN or not state.ai_fix:
        return _end(state, item, _failure_of(result), result)
    name = first_problem(result) if state.canary else f"{item.index}"
    state = _grouped(state, name, state.groups.get(name, Group()))
    return _put(state, replace(item, group=name))


def _replayed(state: State, item: Item, result: ItemResult) -> State:
    if result.verdict and result.verdict.is_green:
        return _end(state, item, Ending.REPLAY, result)
    return _put(state, replace(item, is_replayed=True))


def _fixed(state: State, item: Item, result: ItemResult) -> State:
    if not result.verdict or not result.verdict.is_green:
        return _failed(state, item, _failure_of(result), result)
    name = item.group or ""
    group = state.groups[name]
    if result.has_patch and group.patch_of is None:
        group = replace(group, patch_of=item.index)
    leader = None if group.leader == item.index else group.leader
    state = _grouped(state, name, replace(group, leader=leader))
    return _end(state, item, Ending.AGENT if result.attempts else Ending.FIXER, result)


_STEPS = {Stage.LOOK: _looked, Stage.REPLAY: _replayed, Stage.FIX: _fixed}


def _failure_of(result: ItemResult) -> Ending:
    return Ending.BROKEN if result.verdict is Verdict.BROKEN else Ending.FAILED


def _failed(state: State, item: Item, ending: Ending, result: ItemResult | None = None) -> State:
    """End an item without success; if it led its group, another item may lead."""
    group = state.groups.get(item.group or "")
    if group and group.leader == item.index:
        left = replace(group, leader=None, failures=group.failures + 1)
        state = _grouped(state, item.group or "", left)
    return _end(state, item, ending, result)


def _end(state: State, item: Item, ending: Ending, result: ItemResult | None = None) -> State:
    """End an item, and pause the batch if the last results have a common cause."""
    state = _put(state, replace(item, running=None, ending=ending))
    if result is None:
        return state
    latest = (*state.latest, result)[-state.cascade.window_size :]
    state = replace(state, latest=latest)
    pauses = state.cascade.on_cascade == "pause_and_alert"
    outcomes = [
        Outcome(
            run_id=one.run,
            verdict=one.verdict or Verdict.INTERRUPTED,
            workspace=WorkspaceFacts(name=one.run, root=one.run),
            baseline=Validation(),
            final=Validation(results=one.failing),
            final_error=one.error or None,
        )
        for one in latest
    ]
    cascade = detect(outcomes, state.cascade)
    if state.paused or not (pauses and cascade.cascade_detected):
        return state
    return replace(state, paused=f"cascade: {cascade.diagnosis}")


def first_problem(result: ItemResult) -> str:
    """Fingerprint of the first problem, which groups items that fail alike."""
    problems = chain.from_iterable(gate.diagnostics for gate in result.failing)
    fingerprints = (problem.fingerprint for problem in problems)
    silent = next((f"{gate.name}:{gate.status}" for gate in result.failing), result.error)
    return next(filter(None, fingerprints), silent)


def _put(state: State, item: Item) -> State:
    return replace(state, items={**state.items, item.index: item})


def _grouped(state: State, name: str, group: Group) -> State:
    return replace(state, groups={**state.groups, name: group})
