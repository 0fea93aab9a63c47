"""Which failures are there without the change: what fails now, run on a revision before it."""

from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import workspace
from atlas_retry.diagnostics.counting import only_new
from atlas_retry.events import Emit, Notice
from atlas_retry.gates.plan import Plan, moved_to
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Gate, GateResult, Validation
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.workspace.trees import laid_out


def against_baseline(
    opened: OpenWorkspace, ran: Sequence[Gate], validation: Validation, how: Plan, emit: Emit
) -> Validation:
    """The validation with each problem marked that the revision `triage.baseline` has as well.

    Of a gate that accepts the baseline only what is new is left.
    Without that key, or when nothing fails, the validation as it is. Raises GitError for a
    revision that is none, Interrupted.
    """
    revision = opened.settings.triage_baseline
    pairs = zip(ran, validation.results, strict=True)
    failing = [gate for gate, result in pairs if not result.success]
    if revision is None or not failing:
        return validation
    before = _at_base(opened, revision, failing, how)
    known = Validation(results=tuple(before.values())).fingerprints
    marked = [_marked(result, known) for result in validation.results]
    red = (result.diagnostics for result in marked if not result.success)
    problems = list(chain.from_iterable(red))
    there = sum(diagnostic.preexisting for diagnostic in problems)
    if problems:
        text = (
            f"{there} of {len(problems)} problems are there at {revision} too, without the change"
        )
        emit(Notice(text=text))
    results = (_accepted(gate, r, before) for gate, r in zip(ran, marked, strict=True))
    return replace(validation, results=tuple(results))


def _at_base(
    opened: OpenWorkspace, revision: str, gates: Sequence[Gate], how: Plan
) -> dict[Gate, GateResult]:
    known = opened.learned.at_base
    missing = [gate for gate in gates if gate not in known]
    if missing:
        tree = workspace.revision_tree(opened.root, revision, environ=opened.environ)
        tree.preload(tuple(tree.paths()))
        with laid_out(tree.paths(), lambda _: tree, opened.root) as scratch:
            ran = run_gates(missing, _moved(how, scratch)).results
        known.update(zip(missing, ran, strict=True))
    return {gate: known[gate] for gate in gates}


def _accepted(gate: Gate, result: GateResult, before: Mapping[Gate, GateResult]) -> GateResult:
    base = before.get(gate)
    accepts = gate.accepts_baseline and base and not result.success
    return (only_new(result, base) if accepts and base else None) or result


def _moved(how: Plan, scratch: Path) -> Plan:
    return replace(
        moved_to(how, scratch),
        logs=how.logs / "baseline",
        watched=None,
        check=False,
        previous=None,
        after_attempt=True,
        flake_reruns=0,
        wrap=None,
        locate=None,
    )


def _marked(result: GateResult, known: frozenset[str]) -> GateResult:
    return replace(
        result,
        diagnostics=tuple(
            replace(diagnostic, preexisting=diagnostic.fingerprint in known)
            for diagnostic in result.diagnostics
        ),
    )
