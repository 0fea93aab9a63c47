"""How a run runs gates: all of them, again, aside, alone, as if staged."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractContextManager

from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.diagnostics.cached import without_cache
from atlas_retry.events import (
    Emit,
    Event,
    GateFinished,
    GateRanAgain,
    Notice,
    ValidationFinished,
    ValidationStarted,
)
from atlas_retry.gates.fixers import run_fixers
from atlas_retry.gates.plan import Plan, Reuse
from atlas_retry.gates.trace import ranked
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Contents, Gate, GateResult, Kind, Level, Validation
from atlas_retry.run import staging
from atlas_retry.run.briefing import trace_again
from atlas_retry.run.effects.tree import BesideTree
from atlas_retry.run.open import beside, failing_gates, plan, remember
from atlas_retry.run.progress import Progress
from atlas_retry.run.reviewer import reviewer
from atlas_retry.run.triage import against_baseline, until_compared
from atlas_retry.text.redaction import redact
from atlas_retry.workspace.isolation.isolated import ASKED, Beside
from atlas_retry.workspace.outside import go_settings


class GateEffects(BesideTree, frozen=True):
    """The gates of a run."""

    def validate(self, previous: Validation | None) -> Validation:
        """Run the gates; `previous` is None before the first attempt."""
        settings, number = self.opened.settings, next(self.of.validations)
        with_agent = self.of.run.limits.with_agent
        review = None
        if with_agent and any(gate.kind is Kind.REVIEW for gate in settings.gates):
            attempt = max(number, 1)
            scratch, ask = self.of.attempt_folder(attempt), self.of.reviewer
            review = reviewer(self.opened, ask, self.of.budget, scratch=scratch, attempt=attempt)
        chosen = replace(
            plan(self.opened, self.of.logs("logs", number)),
            review=review,
            flake_reruns=settings.retry.flake_reruns,
            traces=self._fails_traced if with_agent and previous is None else None,
            before_money=with_agent and previous is None,
            previous=previous,
            learns=previous is None and not with_agent,
            reuse=Reuse.BESIDE_FAILURES if previous is None else Reuse.NONE,
        )
        emit = until_compared(settings.gates, self.of.emit)
        validation = run_gates(settings.gates, chosen, emit)
        if previous is None or any(gate.accepts_baseline for gate in settings.gates):
            validation = against_baseline(
                self.opened, settings.gates, validation, chosen, self.of.emit
            )
        remember(self.opened, validation)
        return validation

    def fix(self, failed: Validation) -> tuple[str, ...]:
        """Run the fixers of the required gates that failed; returns the changed paths."""
        red = failing_gates(self.opened.settings.gates, failed)
        gates = [gate for gate in red if gate.required]
        return run_fixers(gates, plan(self.opened, self.of.logs("logs", 0)), self.of.emit)

    def alone(self, gate: Gate, previous: GateResult) -> GateResult:
        """Run one test of a gate by itself; its end is no result of a gate, so it is not shown."""
        before, reason = Validation(results=(previous,)), "a test that failed may be skipped now"
        return self._aside((gate,), {}, before, reason, self._emit_no_ends).results[0]

    def uncached(self, gate: Gate, result: GateResult) -> Gate | None:
        """The gate with the cache of its tool switched off; None if its result is not from one."""
        environ = {**go_settings(self.opened.environ), **self.opened.environ}
        return without_cache(gate, result, environ) if result.success else None

    def aside(
        self, chosen: Sequence[Gate], files: Contents, previous: Validation, reason: str
    ) -> Validation:
        """Run these gates with these files in place, and restore everything afterwards.

        `previous` is the result of the same gates without these files.
        """
        return self._aside(chosen, files, previous, reason, self.of.emit)

    def staged(self, paths: Iterable[str]) -> tuple[str, ...]:
        """Those of these paths whose staged content differs from the last commit."""
        return tuple(sorted(staging.staged_paths(self.opened.git).intersection(paths)))

    def as_if_staged(
        self, chosen: Sequence[Gate], paths: Collection[str], previous: Validation
    ) -> Validation:
        """Run these gates with a copy of the index in which these files are staged as they are."""
        scratch = state_dir.folder(self.of.folder, "staging")
        line = staging.staging(self.opened.git, paths, scratch)
        gates = [replace(gate, run=f"{line}\n{gate.run}") for gate in chosen]
        reason = "as if the changed files were staged"
        seen = self._aside(gates, {}, previous, reason, self._emit_no_ends)
        pairs = zip(chosen, seen.results, strict=True)
        return replace(seen, results=tuple(replace(r, command=redact(g.run)) for g, r in pairs))

    def unproven(self, progress: Progress) -> tuple[str, ...]:
        """Faults in what attempts changed with which no test fails, if that is asked for."""
        if self.opened.settings.retry.prove == "off":
            return ()
        from atlas_retry.run.proving import unproven
        from atlas_retry.source.hunks import hunks_of

        span = progress.origin, progress.current
        paths = sorted(self.tree.moved(*span))
        before, after = (self.tree.read(one, paths) for one in span)
        touched = {path: [*hunks_of(path, before[path], after[path])] for path in paths}
        base = dict(zip(self.opened.settings.gates, progress.latest.results, strict=True))
        unseen = unproven(self.opened, self.plan_aside(None), base, touched)
        for fault in unseen:
            self.warn(f"no test fails with {fault}")
        return unseen

    def plan_aside(self, previous: Validation | None) -> Plan:
        how = plan(self.opened, self.of.logs("asides", next(self.of.asides)))
        return replace(how, previous=previous)

    def _fails_traced(self, result: GateResult) -> bool:
        """Trace a failed gate's tests for the first prompt; returns whether any failed again."""
        scratch = state_dir.folder(self.of.attempt_folder(1), "again")
        seen = trace_again(self.opened, (result,), scratch, self.of.emit)
        self.opened.learned.traced[result] = ranked(seen)
        return any(one.failed for one in seen)

    def _aside(
        self,
        chosen: Sequence[Gate],
        files: Contents,
        previous: Validation,
        reason: str,
        emit: Emit,
    ) -> Validation:
        """See `aside`; only the gates' own events are emitted."""
        how, finished = self.plan_aside(previous), list[Event]()

        def put_off(event: Event) -> None:
            (finished.append if isinstance(event, GateFinished) else emit)(event)

        seen, why_in_place = self._beside(
            chosen, how, put_off, beside(self.opened, chosen, files, how)
        )
        if previous.success and not seen.success and not why_in_place:
            # in an overlay no gate sees what another wrote, so only a red in place counts
            in_place = beside(self.opened, chosen, files, how, in_place=True)
            seen, _ = self._beside(chosen, how, emit, in_place)
            finished = []
        for event in finished:
            emit(event)
        for result in seen.results:
            took_ms = result.duration_ms
            self.of.emit(GateRanAgain(gate=result.name, reason=reason, duration_ms=took_ms))
        return seen

    def _beside(
        self,
        chosen: Sequence[Gate],
        how: Plan,
        emit: Emit,
        changed: AbstractContextManager[tuple[Plan, Beside]],
    ) -> tuple[Validation, str]:
        """The validation, and why it ran in place, if it did."""

        def gates_only(event: Event) -> None:
            if not isinstance(event, ValidationStarted | ValidationFinished):
                emit(event)

        with changed as (wrapped, there):
            if there.reason not in ("", ASKED):
                emit(Notice(level=Level.NOTE, text=f"gates run in place: {there.reason}"))
            seen = run_gates(chosen, wrapped, gates_only)
        if any(gate.accepts_baseline for gate in chosen):
            seen = against_baseline(self.opened, chosen, seen, how, gates_only)
        return seen, there.reason

    def _emit_no_ends(self, event: Event) -> None:
        """Emit the event, unless it is the end of a gate."""
        if not isinstance(event, GateFinished):
            self.of.emit(event)
