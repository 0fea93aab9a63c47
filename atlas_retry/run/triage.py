"""Compare a validation with that of a base revision, or take one recorded by another runner."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.diagnostics import PARSERS
from atlas_retry.diagnostics.counting import only_new
from atlas_retry.diagnostics.tools import tool_of
from atlas_retry.errors import ConfigError, UsageError
from atlas_retry.events import Emit, Event, GateFinished, Notice
from atlas_retry.gates.plan import Learned, Plan
from atlas_retry.gates.results import OutputContext, skipped, with_diagnostics
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Diagnostic, Gate, GateResult, Kind, Status, Validation
from atlas_retry.run.open import OpenWorkspace, beside, failing_gates, plan
from atlas_retry.settings import Settings
from atlas_retry.text.redaction import redact
from atlas_retry.workspace.git import commit_id, user_environment
from atlas_retry.workspace.snapshot import trees


def check_baseline(root: Path, settings: Settings, environ: Mapping[str, str]) -> None:
    """Raise ConfigError if `triage.baseline` names no commit: before any gate runs."""
    if settings.triage_baseline is None:
        return
    try:
        commit_id(root, user_environment(environ), settings.triage_baseline)
    except UsageError as error:
        message, place = f"triage.baseline: {error}", settings.triage_place
        raise ConfigError(message, place=place, remedy=error.remedy) from error


def until_compared(gates: Sequence[Gate], emit: Emit) -> Emit:
    """An observer that is not told of failing gates which may accept the baseline.

    `against_baseline` tells it once it knows whether they pass.
    """
    names = {gate.name for gate in gates if gate.accepts_baseline}

    def observe(event: Event) -> None:
        ended = event.result if isinstance(event, GateFinished) else None
        if ended is None or ended.success or ended.name not in names:
            emit(event)

    return observe if names else emit


def against_baseline(
    opened: OpenWorkspace, ran: Sequence[Gate], validation: Validation, how: Plan, emit: Emit
) -> Validation:
    """The validation with each problem marked that the revision `triage.baseline` also has.

    A gate that accepts the baseline keeps only its new problems. Without that key, or if nothing
    fails, the validation is unchanged. Raises UsageError for an unknown revision, Interrupted.
    """
    revision = opened.settings.triage_baseline
    failing = failing_gates(ran, validation)
    if revision is None or not failing:
        return validation
    before = _at_base(opened, revision, failing, how)
    known = Validation(results=tuple(before.values())).fingerprints
    marked = [_marked(result, known) for result in validation.results]
    red = chain.from_iterable(result.diagnostics for result in marked if not result.success)
    there = [diagnostic.preexisting for diagnostic in red]
    if there:
        text = f"{sum(there)} of {len(there)} problems also exist at {revision}, without the change"
        emit(Notice(text=text))
    late = [gate for gate in failing if gate.accepts_baseline]  # as `until_compared`
    results = []
    for gate, result in zip(ran, marked, strict=True):
        results.append(_accepted(gate, result, before))
        if gate in late:
            emit(GateFinished(result=results[-1]))
    return replace(validation, results=tuple(results))


def _at_base(
    opened: OpenWorkspace, revision: str, gates: Sequence[Gate], how: Plan
) -> dict[Gate, GateResult]:
    known = opened.learned.at_base
    missing = [gate for gate in gates if gate not in known]
    if missing:
        base = trees.revision_tree(opened.root, revision, environ=opened.environ)
        now = trees.tree(opened.git, opened.tracker.snapshot().id)
        at_base = replace(
            plan(opened, how.logs / "baseline"),
            jobs=how.jobs,
            scope=how.scope,
            watched=None,
            learned=Learned(),
        )
        with beside(opened, missing, trees.as_in(base, now), at_base) as (aside, _):
            ran = run_gates(missing, aside).results
        known.update(zip(missing, ran, strict=True))
    return {gate: known[gate] for gate in gates}


def _accepted(gate: Gate, result: GateResult, before: Mapping[Gate, GateResult]) -> GateResult:
    base = before.get(gate)
    accepts = gate.accepts_baseline and base and not result.success
    return (only_new(result, base) if accepts and base else None) or result


def _marked(result: GateResult, known: frozenset[str]) -> GateResult:
    return replace(
        result,
        diagnostics=tuple(
            replace(diagnostic, preexisting=diagnostic.fingerprint in known)
            for diagnostic in result.diagnostics
        ),
    )


def completed(
    validation: Validation, root: Path, settings: Settings, hidden: frozenset[str]
) -> Validation:
    """The validation with diagnostics read from the output, if its runner had none."""
    reading = OutputContext(root=root, secrets=hidden, parsers=settings.parsers)
    results = tuple(with_diagnostics(result, reading) for result in validation.results)
    return replace(validation, results=results)


def aligned(validation: Validation, gates: Sequence[Gate]) -> Validation:
    """The results in the order of these gates, matched by command or name, else by tool.

    Another runner may call a tool differently, or several in one step: then each gate gets the
    problems of the tool that it runs. A gate without a result counts as skipped; the validation
    after the first attempt runs it. Costs are dropped, as this run did not pay them. Raises
    UsageError if no gate is in the record.
    """
    loose = [r for r in validation.failures if not any(_is_of(r, gate) for gate in gates)]
    results = tuple(_found(gate, validation, loose, gates) for gate in gates)
    if all(result.status is Status.SKIPPED for result in results):
        commands = ", ".join(gate.run for gate in gates)
        raise UsageError(
            "no gate of this configuration is in the report",
            remedy=f"the commands are: {commands}",
        )
    return replace(validation, results=results)


def _found(
    gate: Gate, validation: Validation, loose: Sequence[GateResult], gates: Sequence[Gate]
) -> GateResult:
    """The result of the gate, if it has several the first that failed; else its share of one."""
    own = [result for result in validation.results if _is_of(result, gate)]
    if own:
        return _named(min(own, key=lambda result: result.success), gate)
    shares = filter(None, (_share_of(gate, result, gates) for result in loose))
    return next(shares, skipped(gate, "not in the report"))


def _is_of(result: GateResult, gate: Gate) -> bool:
    by_name = result.name == gate.name and result.kind is gate.kind
    return result.command in (gate.run, redact(gate.run)) or by_name


def _named(result: GateResult, gate: Gate) -> GateResult:
    return replace(
        result,
        name=gate.name,
        kind=gate.kind,
        cwd=gate.cwd,
        required=gate.required,
        cost_usd=None,
    )


def _share_of(gate: Gate, result: GateResult, gates: Sequence[Gate]) -> GateResult | None:
    problems = tuple(d for d in result.diagnostics if _owner(d, gates) is gate)
    if problems:
        text = "\n".join(diagnostic.text for diagnostic in problems)
        result = replace(result, diagnostics=problems, stdout=text, stderr="", beyond=0)
        return _named(replace(result, command=redact(gate.run)), gate)
    is_only = len(gates) == 1 or gate.run in result.command.split("\n")
    if is_only and not result.diagnostics:
        return _named(replace(result, command=redact(gate.run)), gate)
    return None


def _owner(diagnostic: Diagnostic, gates: Sequence[Gate]) -> Gate | None:
    """The gate that runs the tool, else the first gate of a fitting kind with an unknown tool."""
    tools = [tool_of(gate.run) for gate in gates]
    if diagnostic.tool in tools:
        return gates[tools.index(diagnostic.tool)]
    kind = Kind.TEST if diagnostic.test_id else Kind.LINT
    for gate, tool in zip(gates, tools, strict=True):
        may_run_it = tool not in PARSERS or diagnostic.tool == "junit"
        if gate.kind is kind and may_run_it:
            return gate
    return gates[0] if len(gates) == 1 else None
