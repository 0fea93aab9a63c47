"""Run the command of `retry.on_failure` after a run that did not end green. Changes no outcome."""

from collections.abc import Mapping
from pathlib import Path

from atlas_retry.events import Emit, Notice
from atlas_retry.gates.plan import environment
from atlas_retry.model import Gate, Kind, Level, Outcome
from atlas_retry.process import Command, run
from atlas_retry.reports.documents import encode, run_document

TIMEOUT_S = 60.0


def tell(line: str | None, outcome: Outcome, environ: Mapping[str, str], emit: Emit) -> None:
    """Run the line by /bin/sh in the workspace, with the run's JSON on stdin.

    It has the environment of a gate. If it fails, or takes over a minute, that is only reported.
    """
    if line is None or outcome.verdict.is_green:
        return
    done = run(
        Command(
            argv=("/bin/sh", "-c", line),
            cwd=Path(outcome.workspace.root),
            env=environment(Gate(name="on_failure", kind=Kind.CUSTOM, run=line), environ),
            stdin=encode(run_document(outcome)).encode(),
            timeout_s=TIMEOUT_S,
        )
    )
    if done.exit_code != 0:
        why = done.error or f"exit code {done.exit_code}: {done.stderr.tail or done.stderr.head}"
        emit(Notice(level=Level.WARNING, text=f"retry.on_failure: {why.strip()}"))
