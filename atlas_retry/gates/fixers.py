"""Run the gates' own fixers, before any money is spent. Judges nothing by what they say."""

from collections.abc import Iterable

from atlas_retry.events import Emit, FixerFinished, unseen
from atlas_retry.gates.plan import Plan, command_of, log_name
from atlas_retry.model import Gate
from atlas_retry.process import Ended, run


def run_fixers(gates: Iterable[Gate], plan: Plan, emit: Emit = unseen) -> tuple[str, ...]:
    """Run the `fix` commands of these gates, in order; the paths that changed."""
    changed: list[str] = []
    for number, gate in enumerate(gates):
        if gate.fix:
            changed += _run_fixer(gate, gate.fix, number, plan, emit)
    return tuple(dict.fromkeys(changed))


def _run_fixer(gate: Gate, line: str, number: int, plan: Plan, emit: Emit) -> tuple[str, ...]:
    before = plan.seen()
    completed = run(command_of(gate, line, plan, log_name(number, gate, "-fix")))
    changed = plan.changed_since(before)
    success = completed.ended is Ended.EXITED and completed.exit_code == 0
    emit(FixerFinished(gate=gate.name, command=line, success=success, changed=changed))
    return changed
