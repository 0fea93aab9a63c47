"""A running validation: which tree each result belongs to, and which results are stale."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.events import Emit
from atlas_retry.gates.plan import Plan
from atlas_retry.model import Gate, GateResult, Kind, Status
from atlas_retry.text.globs import Globs
from atlas_retry.workspace.snapshot.look import Look, rewritten

WRITERS = frozenset({Kind.FORMAT, Kind.PRE_COMMIT})
READS_DATA = WRITERS | {Kind.LINT}
"""Kinds of gates that check data as they check code."""
FINAL = frozenset({Status.SKIPPED, Status.BROKEN, Status.TIMED_OUT})
"""Statuses that are not run again: they say nothing about the tree, or cost as much again."""
PUT_OFF = -1
"""Value in `Course.ended_on` of a gate that must still run."""


def is_writer(gate: Gate) -> bool:
    """Whether a gate changes files, and so runs alone."""
    return gate.writes or gate.kind in WRITERS


def reads_data(gate: Gate) -> bool:
    """Whether a gate checks or changes data as it does code."""
    return gate.kind in READS_DATA or is_writer(gate)


def reads(gate: Gate, paths: Iterable[str]) -> bool:
    """Whether one of these paths is among the inputs of a gate."""
    if not gate.inputs:
        return True

    return any(map(Globs(gate.inputs).match, paths))


class Move(Struct, frozen=True, kw_only=True):
    """Code or settings that changed while some gates ran."""

    numbers: tuple[int, ...]
    """Positions of the gates that may have changed them."""
    paths: tuple[str, ...]


class Course(Struct, kw_only=True):
    gates: tuple[Gate, ...]
    plan: Plan
    emit: Emit
    seen: "Look | None" = None
    """The tree after the last gate."""
    failed_before: dict[int, GateResult] = field(default_factory=dict)
    """Remembered results of gates that failed on this same tree: one more failure is enough."""
    taken: set[int] = field(default_factory=set)
    """Gates that have not run: their earlier results on the same inputs are used."""
    steady: set[int] = field(default_factory=set)
    """Gates since whose start no file has changed: their results are of the current tree."""
    is_quiet: bool = True
    """Whether the last look saw no change."""
    results: dict[int, GateResult] = field(default_factory=dict)
    moves: list[Move] = field(default_factory=list)
    ended_on: dict[int, int] = field(default_factory=dict)
    """Number of moves when a gate ended; if there are more now, its result is stale."""
    outdated: set[int] = field(default_factory=set)
    """Gates that check data, and did so before others wrote tracked data."""
    rewrites: list[Move] = field(default_factory=list)
    """Tracked data that gates changed when they ran again."""
    again: set[int] = field(default_factory=set)
    """Gates that have run again because they were stale."""
    restore_unstaged: Callable[[], str] = str
    """See `Watched.keep_unstaged`."""

    def is_blocked(self) -> bool:
        return any(result.blocks for result in self.results.values())

    def is_over(self) -> bool:
        """Whether running a gate again is useless."""
        return bool(self.plan.lost()) or (self.plan.fail_fast and self.is_blocked())

    def stale(self) -> tuple[int, ...]:
        """Gates whose results are not of the current tree."""
        final = {number for number, result in self.results.items() if result.status in FINAL}
        old = {number for number, moves in self.ended_on.items() if moves < len(self.moves)}
        put_off = {number for number, moves in self.ended_on.items() if moves == PUT_OFF}
        return tuple(sorted(((old | self.outdated) - final) | put_off))

    def look(self, numbers: tuple[int, ...]) -> tuple[str, ...]:
        """All paths that changed since the last look, while these gates ran."""
        before, self.seen = self.seen, self.plan.seen()
        changed = self.plan.between(before, self.seen)
        self.is_quiet = not changed
        if changed:
            # start-up: needed only if files changed

            self.steady.clear()
            # everything else that a gate writes (logs, databases, coverage, snapshots) is output
            from atlas_retry.guard.decides import is_code_or_setting

            if paths := tuple(filter(is_code_or_setting, changed)):
                self.moves.append(Move(numbers=numbers, paths=paths))
                if before and self.plan.date_later(before, paths):
                    self.seen = self.plan.seen()
            self._outdate(changed, numbers)
        return changed

    def _outdate(self, changed: tuple[str, ...], numbers: tuple[int, ...]) -> None:
        """Mark the gates that checked data before these gates changed it, or while they did."""
        checked = {n for n in (*self.results, *numbers) if reads_data(self.gates[n])}
        others = checked if len(numbers) > 1 else checked.difference(numbers)
        if others and (data := self.plan.tracked(changed)):
            self.outdated.update(n for n in others if reads(self.gates[n], data))
            if self.again.issuperset(numbers):
                self.rewrites.append(Move(numbers=numbers, paths=tuple(sorted(data))))

    def rewritten(self, before: "Look | None") -> tuple[str, ...]:
        """Code and settings that were written since a look, and are as they were."""
        if before is None or self.seen is None or before is self.seen:
            return ()

        written = rewritten(before, self.seen)
        if not written:
            return ()

        from atlas_retry.guard.decides import is_code_or_setting

        return tuple(filter(is_code_or_setting, written))

    def record(self, number: int, result: GateResult, *, ended_on: int | None = None) -> None:
        """Keep the result of a gate; by default it is of the current tree."""
        earlier = self.results.get(number)
        self.results[number] = self._both(number, earlier, result) if earlier else result
        self.ended_on[number] = len(self.moves) if ended_on is None else ended_on
        if self.is_quiet:
            self.steady.add(number)

    def undone(self) -> list[Move]:
        """Changes by which writers, when they ran again, undid those of another one."""
        by_path = defaultdict[str, set[int]](set)
        for move in self.rewrites:
            for path in move.paths:
                by_path[path].update(n for n in move.numbers if is_writer(self.gates[n]))
        pairs = ((path, numbers) for path, numbers in by_path.items() if len(numbers) > 1)
        return [Move(numbers=tuple(sorted(numbers)), paths=(path,)) for path, numbers in pairs]

    def had_part(self, number: int) -> bool:
        """Whether a gate may have moved code or settings."""
        return any(number in move.numbers for move in self.moves)

    def _both(self, number: int, earlier: GateResult, later: GateResult) -> GateResult:
        """The later result, with the changes and the cost of the earlier one added.

        A failure of a gate that may have changed the tree itself is never replaced by a pass.
        """
        stays = self.had_part(number) and not is_writer(self.gates[number]) and not earlier.success
        last = earlier if stays and later.success else later
        note = ("passed only after a gate changed the code: not counted as a pass",)
        cost = [r.cost_usd for r in (earlier, later) if r.cost_usd is not None]
        return replace(
            last,
            changed=tuple(sorted({*earlier.changed, *later.changed})),
            notes=tuple(dict.fromkeys((*earlier.notes, *later.notes)))
            + (note if last is earlier else ()),
            cost_usd=sum(cost) if cost else None,
        )
