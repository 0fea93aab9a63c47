"""Run the gates' own fixers, and restore unstaged work that a stopped command had put aside."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from atlas_retry.errors import Interrupted
from atlas_retry.events import Emit, FixerFinished, Notice, unseen
from atlas_retry.gates.files import can_run
from atlas_retry.gates.plan import Plan, command_of, log_name
from atlas_retry.model import Gate, Level
from atlas_retry.process import Ended, orderly, run
from atlas_retry.text.redaction import redact


@contextmanager
def restoring(restore: Callable[[], str], emit: Emit) -> Iterator[list[Ended]]:
    """Run commands within; unstaged work that a stopped one had put aside is restored, and named.

    Takes how the commands ended; `restore` is what `Plan.keep_unstaged` returned before.
    """
    ends: list[Ended] = []
    with orderly():  # a second signal between the end of the commands and the restoring waits
        try:
            yield ends
        except Interrupted:
            _warn(restore(), emit)
            raise
        if not {Ended.TIMED_OUT, Ended.IDLE}.isdisjoint(ends):
            _warn(restore(), emit)


def _warn(text: str, emit: Emit) -> None:
    if text:
        emit(Notice(level=Level.WARNING, text=text))


def run_fixers(gates: Iterable[Gate], plan: Plan, emit: Emit = unseen) -> tuple[str, ...]:
    """Run the gates' own `fix` commands, in order; returns the changed paths."""
    every: list[str] = []
    for number, gate in enumerate(gates):
        if not gate.fix or not can_run(gate, gate.fix, plan.scope):
            continue
        before, restore = plan.seen(), plan.keep_unstaged()
        command = command_of(gate, gate.fix, plan, log_name(number, gate, "-fix"))
        with restoring(restore, emit) as ends:
            done = run(command)
            ends.append(done.ended)
        changed = plan.between(before, plan.seen())
        success = done.ended is Ended.EXITED and done.exit_code == 0
        shown = redact(gate.fix, plan.secrets)
        emit(FixerFinished(gate=gate.name, command=shown, success=success, changed=changed))
        every += changed
    return tuple(dict.fromkeys(every))
