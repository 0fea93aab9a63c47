"""A running validation: which tree each result belongs to, and which gates must run again."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.events import Emit, GateFinished, GateProgress, GateStarted
from atlas_retry.gates.files import typed
from atlas_retry.gates.fixers import restoring
from atlas_retry.gates.plan import Plan, command_of, log_name
from atlas_retry.gates.results import result_of, skipped
from atlas_retry.model import CHECKERS, WRITERS, Gate, GateResult, Kind, Status
from atlas_retry.process import Completed
from atlas_retry.text.file_names import PLACEHOLDER
from atlas_retry.text.globs import Globs
from atlas_retry.text.redaction import clean, redact
from atlas_retry.workspace.snapshot.look import Look

FINAL = frozenset({Status.SKIPPED, Status.BROKEN, Status.TIMED_OUT})
"""Statuses that are not run again: they say nothing about the tree, or cost as much again."""
PENDING = -1
"""Value of `GateState.ended_on` of a gate that must still run, whatever its result says."""


def is_writer(gate: Gate) -> bool:
    """Whether a gate changes files, and so runs alone."""
    return gate.writes or gate.kind in WRITERS


def reads(gate: Gate, paths: Iterable[str]) -> bool:
    """Whether one of these paths is among the inputs of a gate."""
    return not gate.inputs or any(map(Globs(gate.inputs).match, paths))


class GateState(Struct, kw_only=True, eq=False):
    """One gate in a running validation."""

    number: int
    gate: Gate
    result: GateResult
    """The last one; `skipped` before the first."""
    before: GateResult | None = None
    """The result of the validation before; if it failed on this same tree, that failure."""
    failed_here: GateResult | None = None
    """A remembered failure on this same tree: one more is enough."""
    has_ended: bool = False
    ended_on: int = 0
    """Number of changes when it ended; if there are more now, its result is stale."""
    is_outdated: bool = False
    """Whether it checks data, and did so before another gate wrote tracked data."""
    has_rerun: bool = False
    """Whether it has run again because it was stale."""
    may_have_changed: bool = False
    """Whether code or settings changed while it ran."""
    is_steady: bool = False
    """Whether no file has changed since it started: its result is of the current tree."""

    @property
    def has_failed(self) -> bool:
        return self.before is not None and not self.before.success

    @property
    def checks_data(self) -> bool:
        """Whether it checks or changes data as it does code."""
        return self.gate.writes or self.gate.kind in CHECKERS


class TreeChange(Struct, frozen=True, kw_only=True):
    """Files that changed while some gates ran."""

    by: tuple[GateState, ...]
    paths: tuple[str, ...]


class ValidationState(Struct, kw_only=True):
    """What has happened so far."""

    plan: Plan
    emit: Emit
    gates: list[GateState] = field(default_factory=list)
    restore_unstaged: Callable[[], str] = str
    """See `Watched.keep_unstaged`."""
    seen: Look | None = None
    """The tree after the last gate."""
    is_quiet: bool = True
    """Whether the last look saw no change."""
    changes: list[TreeChange] = field(default_factory=list)
    """Of code or settings."""
    rewrites: list[TreeChange] = field(default_factory=list)
    """Of tracked data, by gates that ran again."""

    def is_blocked(self) -> bool:
        return any(one.result.blocks for one in self.gates)

    def is_over(self) -> bool:
        """Whether running a gate again is useless."""
        return bool(self.plan.lost()) or (self.plan.fail_fast and self.is_blocked())

    def stale(self) -> list[GateState]:
        """Gates whose results are not of the current tree."""
        ended = (one for one in self.gates if one.has_ended)
        return [one for one in ended if self._is_stale(one)]

    def _is_stale(self, one: GateState) -> bool:
        is_old = one.is_outdated or one.ended_on < len(self.changes)
        return one.ended_on == PENDING or (is_old and one.result.status not in FINAL)

    def to_rerun(self) -> list[GateState]:
        """Stale gates that have not run again yet."""
        return [] if self.is_over() else [one for one in self.stale() if not one.has_rerun]

    def run(self, one: GateState, suffix: str = "", line: str | None = None) -> GateResult:
        """Run the line of a gate, or another one in its place."""
        return self.run_lines([(one, line or one.gate.run)], suffix)[0]

    def run_lines(
        self,
        lines: Sequence[tuple[GateState, str]],
        suffix: str = "",
        tell: Callable[[GateState, GateResult], None] = lambda _, __: None,
    ) -> list[GateResult]:
        """Run these in parallel, and return their results in order; `tell` gets each at once."""
        if not lines:
            return []
        plan, watch = self.plan, _Watch(lines=lines, state=self, tell=tell)
        commands, decisive = [], set()
        for one, line in lines:
            command = command_of(one.gate, line, plan, log_name(one.number, one.gate, suffix))
            commands.append(command)
            # its first failure ends the validation; not if a flaky rerun may still pass
            may_be_flaky = plan.flake_reruns > 0 and one.gate.kind is Kind.TEST
            if plan.fail_fast and one.gate.required and not may_be_flaky:
                decisive.add(command.log_dir)
        with restoring(self.restore_unstaged, self.emit) as ends:
            ended = process.run_all(
                commands,
                jobs=plan.jobs,
                watch=watch,
                stop_when=lambda ended: ended.exit_code != 0 and ended.command.log_dir in decisive,
            )
            ends += [each.ended for each in ended if each]
        return [
            watch.results.get(index) or skipped(one.gate, "an earlier gate failed")
            for index, (one, _) in enumerate(lines)
        ]

    def look(self, group: Sequence[GateState]) -> tuple[str, ...]:
        """All paths that changed since the last look, while these gates ran."""
        before, self.seen = self.seen, self.plan.seen()
        changed = self.plan.between(before, self.seen)
        self.is_quiet = not changed
        if not changed:
            return ()
        for one in self.gates:
            one.is_steady = False
        # everything else that a gate writes (logs, databases, coverage, snapshots) is output
        if paths := self.code_or_settings(changed):
            self.changes.append(TreeChange(by=tuple(group), paths=paths))
            for one in group:
                one.may_have_changed = True
            if before and self.plan.date_later(before, paths):
                self.seen = self.plan.seen()
        self._outdate(changed, group)
        return changed

    def _outdate(self, changed: tuple[str, ...], group: Sequence[GateState]) -> None:
        """Mark the gates that checked data before these gates changed it, or while they did."""
        ended = [one for one in self.gates if one.has_ended]
        beside = group if len(group) > 1 else ()
        others = {*ended}.difference(group).union(beside)
        readers = [one for one in others if one.checks_data]
        data = self.plan.tracked(changed) if readers else ()
        if not data:
            return
        for one in readers:
            one.is_outdated |= reads(one.gate, data)
        if all(one.has_rerun for one in group):
            self.rewrites.append(TreeChange(by=tuple(group), paths=tuple(sorted(data))))

    def code_or_settings(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those that are code or settings, and no build output that git does not know."""
        paths = tuple(paths)
        if not paths:
            return ()
        from atlas_retry.guard import decides, places

        found = tuple(filter(decides.is_code_or_setting, paths))
        made = {*filter(places.is_build_output, found)}
        output = made - self.plan.tracked(made) if made else made
        return tuple(path for path in found if path not in output)

    def reuse(self, one: GateState, result: GateResult) -> None:
        self.record(one, result)
        self.report(one)

    def report(self, one: GateState) -> None:
        self.emit(GateFinished(result=one.result))

    def record(self, one: GateState, result: GateResult, ended_on: int | None = None) -> None:
        """Keep the result of a gate; by default it is of the current tree.

        With the changes and the cost of an earlier result. A failure of a gate that may have
        changed the tree itself is never replaced by a pass.
        """
        earlier = one.result if one.has_ended else result
        one.has_ended = True
        one.ended_on = len(self.changes) if ended_on is None else ended_on
        one.is_steady |= self.is_quiet
        if earlier is result:
            one.result = result
            return
        notes = (*earlier.notes, *result.notes)
        changed = tuple(sorted({*earlier.changed, *result.changed}))
        cost = [each.cost_usd for each in (earlier, result) if each.cost_usd is not None]
        may_have_changed = one.may_have_changed and not is_writer(one.gate)
        if may_have_changed and result.success and not earlier.success:
            result = earlier
            notes += ("passed only after a gate changed the code: not counted as a pass",)
        one.result = replace(
            result,
            changed=changed,
            notes=tuple(dict.fromkeys(notes)),
            cost_usd=sum(cost) if cost else None,
        )

    def undone(self) -> list[TreeChange]:
        """Changes by which writers, when they ran again, undid those of another one."""
        by_path = defaultdict[str, set[GateState]](set)
        for change in self.rewrites:
            for path in change.paths:
                by_path[path].update(one for one in change.by if is_writer(one.gate))
        writers = ((path, by) for path, by in by_path.items() if len(by) > 1)
        return [TreeChange(by=tuple(by), paths=(path,)) for path, by in writers]


class _Watch(Struct, kw_only=True):
    """Observer of commands that emits events and keeps results."""

    lines: Sequence[tuple[GateState, str]]
    state: ValidationState
    tell: Callable[[GateState, GateResult], None]
    results: dict[int, GateResult] = field(default_factory=dict)

    def started(self, index: int) -> None:
        one, line = self.lines[index]
        shown = redact(line, self.state.plan.secrets)
        self.state.emit(GateStarted(gate=one.gate.name, command=shown))

    def progress(self, index: int, last_line: str, elapsed_s: float) -> None:
        name = self.lines[index][0].gate.name
        shown = redact(clean(last_line), self.state.plan.secrets)
        self.state.emit(GateProgress(gate=name, last_line=shown, elapsed_s=elapsed_s))

    def ended(self, index: int, completed: Completed) -> None:
        (one, _), plan = self.lines[index], self.state.plan
        result = result_of(one.gate, completed, plan)
        gone = plan.lost()
        if gone and result.status is not Status.BROKEN:
            # the files that it should judge are missing, whoever removed them
            result = replace(
                result,
                status=Status.BROKEN,
                success=False,
                required=True,
                triage="target_missing",
                error=gone,
            )
        if PLACEHOLDER in result.command:
            result = replace(result, command=typed(one.gate, result, plan.scope))
        self.results[index] = result
        plan.learned.cpu_s[result.name] = completed.cpu_s
        self.tell(one, result)
