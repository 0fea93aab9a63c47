"""Run shell lines of gates in parallel, and read each result. Decides nothing on a validation."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.errors import Interrupted
from atlas_retry.events import (
    Emit,
    FixerFinished,
    GateProgress,
    GateStarted,
    Notice,
    unseen,
)
from atlas_retry.gates.files import can_run, typed
from atlas_retry.gates.plan import Plan, command_of, log_name
from atlas_retry.gates.results import result_of, skipped
from atlas_retry.model import Gate, GateResult, Kind, Level, Status
from atlas_retry.process import Completed, Ended, orderly, run, run_all
from atlas_retry.text.file_names import PLACEHOLDER
from atlas_retry.text.redaction import clean, redact


class Job(Struct, frozen=True, kw_only=True):
    gate: Gate
    line: str
    log_name: str


def run_lines(
    jobs: Sequence[Job],
    plan: Plan,
    emit: Emit,
    tell: Callable[[GateResult], None] | None = None,
    *,
    restore: Callable[[], str] = str,
) -> list[GateResult]:
    """Run these in parallel; `tell` gets each result at once. Returns them in the given order.

    `restore` is what `Plan.keep_unstaged` returned before.
    """
    watch = _Watch(jobs=jobs, plan=plan, emit=emit, tell=tell)
    commands = [command_of(job.gate, job.line, plan, job.log_name) for job in jobs]
    decisive = set()
    for job, command in zip(jobs, commands, strict=True):
        # its first failure ends the validation; not if a flaky rerun may still pass
        may_be_flaky = plan.flake_reruns > 0 and job.gate.kind is Kind.TEST
        if plan.fail_fast and job.gate.required and not may_be_flaky:
            decisive.add(command.log_dir)
    with _restoring(restore, emit) as ends:
        ended = run_all(
            commands,
            jobs=plan.jobs,
            watch=watch,
            stop_when=lambda ended: ended.exit_code != 0 and ended.command.log_dir in decisive,
        )
        ends += [each.ended for each in ended if each]
    return [
        watch.results.get(index) or skipped(job.gate, "an earlier gate failed")
        for index, job in enumerate(jobs)
    ]


class _Watch(Struct, kw_only=True):
    """Observer of commands that emits events and keeps results."""

    jobs: Sequence[Job]
    plan: Plan
    emit: Emit
    tell: Callable[[GateResult], None] | None
    results: dict[int, GateResult] = field(default_factory=dict)

    def started(self, index: int) -> None:
        job = self.jobs[index]
        self.emit(GateStarted(gate=job.gate.name, command=redact(job.line, self.plan.secrets)))

    def progress(self, index: int, last_line: str, elapsed_s: float) -> None:
        gate = self.jobs[index].gate
        shown = redact(clean(last_line), self.plan.secrets)
        self.emit(GateProgress(gate=gate.name, last_line=shown, elapsed_s=elapsed_s))

    def ended(self, index: int, completed: Completed) -> None:
        job = self.jobs[index]
        result = result_of(job.gate, completed, self.plan)
        gone = self.plan.lost()
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
            result = replace(result, command=typed(job.gate, result, self.plan.scope))
        self.results[index] = result
        self.plan.learned.cpu_s[result.name] = completed.cpu_s
        if self.tell:
            self.tell(result)


@contextmanager
def _restoring(restore: Callable[[], str], emit: Emit) -> Iterator[list[Ended]]:
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
        with _restoring(restore, emit) as ends:
            done = run(command)
            ends.append(done.ended)
        changed = plan.between(before, plan.seen())
        success = done.ended is Ended.EXITED and done.exit_code == 0
        shown = redact(gate.fix, plan.secrets)
        emit(FixerFinished(gate=gate.name, command=shown, success=success, changed=changed))
        every += changed
    return tuple(dict.fromkeys(every))
