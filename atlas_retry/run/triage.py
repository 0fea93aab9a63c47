"""Which failures are there without the change: what fails now, run on a revision before it."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import workspace
from atlas_retry.events import Emit, Notice
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Gate, GateResult, Validation
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.workspace.scratch import laid_out


def against_baseline(
    opened: OpenWorkspace, ran: Sequence[Gate], validation: Validation, how: Plan, emit: Emit
) -> Validation:
    """The validation with each complaint marked that the revision `triage.baseline` has as well.

    Without that key, or when nothing fails, the validation as it is. Raises GitError for a
    revision that is none, Interrupted.
    """
    revision = opened.settings.triage_baseline
    pairs = zip(ran, validation.results, strict=True)
    failing = [gate for gate, result in pairs if not result.success]
    if revision is None or not failing:
        return validation
    tree = workspace.revision_tree(opened.root, revision, environ=opened.environ)
    tree.preload(tuple(tree.paths()))
    with laid_out(tree.paths(), lambda _: tree, opened.root) as scratch:
        before = run_gates(failing, _moved(how, scratch))
    known = before.fingerprints
    results = tuple(_marked(result, known) for result in validation.results)
    told = [d for result in results if not result.success for d in result.diagnostics]
    there = sum(diagnostic.preexisting for diagnostic in told)
    if told:
        text = f"{there} of {len(told)} complaints are there at {revision} too, without the change"
        emit(Notice(text=text))
    return replace(validation, results=results)


def _moved(how: Plan, scratch: Path) -> Plan:
    """The same plan in the copy; an installed package must not lead back to the changed sources."""
    own = f"{scratch}:{scratch / 'src'}"
    inherited = how.environ.get("PYTHONPATH")
    path = f"{own}:{inherited}" if inherited else own
    return replace(
        how,
        root=scratch,
        logs=how.logs / "baseline",
        environ={**how.environ, "PYTHONPATH": path},
        watched=None,
        check=False,
        previous=None,
        after_attempt=True,
    )


def _marked(result: GateResult, known: frozenset[str]) -> GateResult:
    return replace(
        result,
        diagnostics=tuple(
            replace(diagnostic, preexisting=diagnostic.fingerprint in known)
            for diagnostic in result.diagnostics
        ),
    )
