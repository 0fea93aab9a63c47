"""A running validation: which tree each result belongs to, and which gates must run again."""

from collections import defaultdict
from collections.abc import Callable, Iterable

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.events import Emit, GateFinished
from atlas_retry.gates.lines import Job, run_lines
from atlas_retry.gates.plan import Plan, Reuse, log_name
from atlas_retry.model import Gate, GateResult, Kind, Status
from atlas_retry.text.globs import Globs
from atlas_retry.workspace.snapshot.look import Look, rewritten

WRITERS = frozenset({Kind.FORMAT, Kind.PRE_COMMIT})
READS_DATA = WRITERS | {Kind.LINT}
"""Kinds of gates that check data as they check code."""
FINAL = frozenset({Status.SKIPPED, Status.BROKEN, Status.TIMED_OUT})
"""Statuses that are not run again: they say nothing about the tree, or cost as much again."""
PENDING = -1
"""Value in `ValidationState.ended_on` of a gate that must still run."""


def is_writer(gate: Gate) -> bool:
    """Whether a gate changes files, and so runs alone."""
    return gate.writes or gate.kind in WRITERS


def reads(gate: Gate, paths: Iterable[str]) -> bool:
    """Whether one of these paths is among the inputs of a gate."""
    return not gate.inputs or any(map(Globs(gate.inputs).match, paths))


class CodeChange(Struct, frozen=True, kw_only=True):
    """Code or settings that changed while some gates ran."""

    numbers: tuple[int, ...]
    """Positions of the gates that may have changed them."""
    paths: tuple[str, ...]


class ValidationState(Struct, kw_only=True):
    """Gates are named by their positions in `gates`."""

    gates: tuple[Gate, ...]
    plan: Plan
    emit: Emit
    restore_unstaged: Callable[[], str] = str
    """See `Watched.keep_unstaged`."""
    seen: Look | None = None
    """The tree after the last gate."""
    is_quiet: bool = True
    """Whether the last look saw no change."""
    results: dict[int, GateResult] = field(default_factory=dict)
    failed_before: dict[int, GateResult] = field(default_factory=dict)
    """Remembered results of gates that failed on this same tree: one more failure is enough."""
    reused: set[int] = field(default_factory=set)
    """Gates that have not run: their earlier results on the same inputs are used."""
    steady: set[int] = field(default_factory=set)
    """Gates since whose start no file has changed: their results are of the current tree."""
    changes: list[CodeChange] = field(default_factory=list)
    ended_on: dict[int, int] = field(default_factory=dict)
    """Number of changes when a gate ended; if there are more now, its result is stale."""
    outdated: set[int] = field(default_factory=set)
    """Gates that check data, and did so before others wrote tracked data."""
    rewrites: list[CodeChange] = field(default_factory=list)
    """Tracked data that gates changed when they ran again."""
    rerun: set[int] = field(default_factory=set)
    """Gates that have run again because they were stale."""

    def is_blocked(self) -> bool:
        return any(result.blocks for result in self.results.values())

    def is_over(self) -> bool:
        """Whether running a gate again is useless."""
        return bool(self.plan.lost()) or (self.plan.fail_fast and self.is_blocked())

    def stale(self) -> tuple[int, ...]:
        """Gates whose results are not of the current tree."""
        final = {number for number, result in self.results.items() if result.status in FINAL}
        old = {number for number, ended in self.ended_on.items() if ended < len(self.changes)}
        pending = {number for number, ended in self.ended_on.items() if ended == PENDING}
        return tuple(sorted(((old | self.outdated) - final) | pending))

    def to_rerun(self) -> tuple[int, ...]:
        """Stale gates that have not run again yet."""
        if self.is_over():
            return ()
        return tuple(number for number in self.stale() if number not in self.rerun)

    def next_round(self) -> tuple[int, ...]:
        """The gates to run now: stale ones, each once, then those that were only reused."""
        stale = self.to_rerun()
        self.rerun.update(stale)
        if stale or self.plan.reuse is Reuse.PASSED or self.is_blocked():
            return stale
        return tuple(number for number in sorted(self.reused) if self.results[number].reused)

    def before(self, number: int) -> GateResult | None:
        """The last result of a gate: of this tree, else of the validation before."""
        previous = self.plan.previous.results if self.plan.previous else ()
        default = previous[number] if number < len(previous) else None
        return self.failed_before.get(number, default)

    def run(self, number: int, suffix: str = "", line: str | None = None) -> GateResult:
        """Run the line of a gate, or another one in its place."""
        gate = self.gates[number]
        job = Job(gate=gate, line=line or gate.run, log_name=log_name(number, gate, suffix))
        return run_lines([job], self.plan, self.emit, restore=self.restore_unstaged)[0]

    def look(self, numbers: tuple[int, ...]) -> tuple[str, ...]:
        """All paths that changed since the last look, while these gates ran."""
        before, self.seen = self.seen, self.plan.seen()
        changed = self.plan.between(before, self.seen)
        self.is_quiet = not changed
        if not changed:
            return ()
        self.steady.clear()
        # everything else that a gate writes (logs, databases, coverage, snapshots) is output
        if paths := self._code_or_settings(changed):
            self.changes.append(CodeChange(numbers=numbers, paths=paths))
            if before and self.plan.date_later(before, paths):
                self.seen = self.plan.seen()
        self._outdate(changed, numbers)
        return changed

    def _outdate(self, changed: tuple[str, ...], numbers: tuple[int, ...]) -> None:
        """Mark the gates that checked data before these gates changed it, or while they did."""
        others = {*self.results, *numbers} if len(numbers) > 1 else {*self.results} - {*numbers}
        checked = [number for number in others if _reads_data(self.gates[number])]
        if checked and (data := self.plan.tracked(changed)):
            self.outdated.update(n for n in checked if reads(self.gates[n], data))
            if self.rerun.issuperset(numbers):
                self.rewrites.append(CodeChange(numbers=numbers, paths=tuple(sorted(data))))

    def rewritten(self, before: Look | None) -> tuple[str, ...]:
        """Code and settings that were written since a look, and are as they were."""
        if before is None or self.seen is None or before is self.seen:
            return ()
        return self._code_or_settings(rewritten(before, self.seen))

    def _code_or_settings(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those that are code or settings, and no build output that git does not know."""
        paths = tuple(paths)
        if not paths:
            return ()
        from atlas_retry.guard import decides, places

        found = tuple(filter(decides.is_code_or_setting, paths))
        made = {*filter(places.is_build_output, found)}
        output = made - self.plan.tracked(made) if made else made
        return tuple(path for path in found if path not in output)

    def reuse(self, number: int, result: GateResult) -> None:
        self.reused.add(number)
        self.record(number, result)
        self.report(number)

    def report(self, number: int) -> None:
        self.emit(GateFinished(result=self.results[number]))

    def record(self, number: int, result: GateResult, *, ended_on: int | None = None) -> None:
        """Keep the result of a gate; by default it is of the current tree.

        With the changes and the cost of an earlier result. A failure of a gate that may have
        changed the tree itself is never replaced by a pass.
        """
        self.ended_on[number] = len(self.changes) if ended_on is None else ended_on
        if self.is_quiet:
            self.steady.add(number)
        earlier = self.results.get(number)
        if earlier is None:
            self.results[number] = result
            return
        notes = (*earlier.notes, *result.notes)
        changed = tuple(sorted({*earlier.changed, *result.changed}))
        cost = [each.cost_usd for each in (earlier, result) if each.cost_usd is not None]
        may_have_changed = self.had_part(number) and not is_writer(self.gates[number])
        if may_have_changed and result.success and not earlier.success:
            result = earlier
            notes += ("passed only after a gate changed the code: not counted as a pass",)
        self.results[number] = replace(
            result,
            changed=changed,
            notes=tuple(dict.fromkeys(notes)),
            cost_usd=sum(cost) if cost else None,
        )

    def had_part(self, number: int) -> bool:
        """Whether a gate may have changed code or settings."""
        return any(number in change.numbers for change in self.changes)

    def movers(self) -> set[int]:
        """Readers that run alone; see `Learned.movers`."""
        movers = self.plan.learned.movers
        return {number for number, gate in enumerate(self.gates) if gate in movers}

    def isolate(self, numbers: Iterable[int]) -> set[int]:
        """Run these gates alone from now on; returns those that ran beside others before."""
        new = {*numbers} - self.movers()
        self.plan.learned.movers.update(self.gates[number] for number in new)
        return new

    def undone(self) -> list[CodeChange]:
        """Changes by which writers, when they ran again, undid those of another one."""
        by_path = defaultdict[str, set[int]](set)
        for change in self.rewrites:
            for path in change.paths:
                by_path[path].update(n for n in change.numbers if is_writer(self.gates[n]))
        pairs = ((path, numbers) for path, numbers in by_path.items() if len(numbers) > 1)
        return [
            CodeChange(numbers=tuple(sorted(numbers)), paths=(path,)) for path, numbers in pairs
        ]


def _reads_data(gate: Gate) -> bool:
    """Whether a gate checks or changes data as it does code."""
    return gate.kind in READS_DATA or gate.writes
