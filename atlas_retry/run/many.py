"""Run several workspaces: one budget, one screen; a failed one never stops the rest."""

import tempfile
import threading
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry import config, process, state_dir
from atlas_retry.errors import AtlasError, ConfigError
from atlas_retry.events import Emit, Event, Notice, WorkspaceFinished
from atlas_retry.model import Level, Outcome, Validation, Verdict, WorkspaceFacts
from atlas_retry.reports.documents import Cascade
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.cascade import detect
from atlas_retry.run.concurrent import side_by_side
from atlas_retry.run.folders import labels
from atlas_retry.run.one import Asked, Done, Finished, budget_of, opened_with, run_one
from atlas_retry.run.waiting import Waiting, note
from atlas_retry.settings import BatchSettings, OnCascade
from atlas_retry.text.commands import copyable

GO_ON = "atlas resume --all"


def run(
    folders: Sequence[Path],
    asked: Asked,
    environ: Mapping[str, str],
    emit: Emit,
    *,
    jobs: int | None = None,
) -> Done:
    """Run every workspace, `jobs` at a time; what is not started is kept for `atlas resume --all`.

    An error ends a batch of one that begins; else it is how that workspace ended. Raises
    Interrupted after all have ended.
    """
    if len(folders) == 1 and asked.order.batch is None:
        opened = opened_with(folders[0], asked, environ)
        outcome = run_one(opened, asked, emit)
        _keep(folders, (), asked, environ)
        return Done(finished=(Finished(opened=opened, outcome=outcome),))
    settings = _settings(folders[0], asked, environ)
    jobs = min(jobs or settings.jobs, len(folders))
    budget = budget_of(state_dir.locate(environ), asked.order.batch, runs=len(folders), jobs=jobs)
    batch = asked.order.batch or state_dir.new_run_id()
    asked = replace(asked, order=replace(asked.order, batch=batch))
    course = _Course(settings=settings, total=len(folders), emit=_in_turn(emit))
    crew = _Crew(
        asked=asked,
        environ=environ,
        emit=course.emit,
        budget=budget,
        labels=labels(folders),
    )
    queue = iter(folders)
    left: tuple[Path, ...] = ()
    with process.orderly():  # whoever waits for the runs here waits until all is restored
        try:
            for folder, one in side_by_side(crew.run, queue, jobs=jobs, may_start=course.may_start):
                course.take(folder, one, crew.labels[folder])
        finally:
            left = tuple(queue)
            _keep(folders, left, asked, environ)
            if left:
                names = [crew.labels[folder] for folder in left]
                course.emit(_not_started(names, _next(ai_fix=asked.order.ai_fix)))
    return Done(
        finished=tuple(course.finished[folder] for folder in folders if folder in course.finished),
        not_started=tuple(str(folder) for folder in left),
        next_command=_next(ai_fix=asked.order.ai_fix),
        cascade=course.cascade,
    )


def go_on(
    waiting: Sequence[Waiting],
    environ: Mapping[str, str],
    emit: Emit,
    *,
    ai_fix: bool = False,
) -> Done:
    """Run what earlier batches have not started, each as it was asked for, until one pauses again.

    `ai_fix` asks for the agent where the batch had not; without it those wait on that may spend
    money.
    """
    finished: list[Finished] = []
    unpaid: list[Path] = []
    left: list[Path] = []
    done = Done(finished=())
    for order, group in groupby(waiting, key=lambda one: one.order):
        folders = [Path(one.root) for one in group if Path(one.root).is_dir()]
        if order.ai_fix and not ai_fix:
            unpaid += folders
        elif done.not_started:
            left += folders
        elif folders:
            done = run(
                folders, Asked(order=replace(order, ai_fix=ai_fix or order.ai_fix)), environ, emit
            )
            finished += done.finished
    if unpaid:
        emit(_not_started([*labels(unpaid).values()], _next(ai_fix=True)))
    return replace(
        done,
        finished=tuple(finished),
        not_started=(*done.not_started, *map(str, (*left, *unpaid))),
        next_command=_next(ai_fix=ai_fix or bool(unpaid)),
    )


def _next(*, ai_fix: bool) -> str:
    return f"{GO_ON} --ai-fix" if ai_fix else GO_ON


def _settings(folder: Path, asked: Asked, environ: Mapping[str, str]) -> BatchSettings:
    """The `batch` section of the first workspace; where it cannot be read that will be told."""
    try:
        return config.load(folder, environ=environ, overrides=asked.order.overrides).batch
    except ConfigError:
        return BatchSettings()


class _Course(Struct, kw_only=True):
    """How a batch goes: who has ended, and whether more may start."""

    settings: BatchSettings
    total: int
    emit: Emit
    finished: dict[Path, Finished] = field(default_factory=dict)
    """In the order they ended."""
    cascade: Cascade = field(default_factory=Cascade)

    def may_start(self) -> bool:
        pauses = self.settings.cascade_detection.on_cascade is OnCascade.PAUSE_AND_ALERT
        is_paused = self.cascade.cascade_detected and pauses
        return not is_paused and process.stop_requested() is None

    def take(self, folder: Path, one: Finished, label: str) -> None:
        self.finished[folder] = one
        told = WorkspaceFinished(outcome=one.outcome, number=len(self.finished), total=self.total)
        _labelled(self.emit, label)(told)
        now = detect(
            [each.outcome for each in self.finished.values()], self.settings.cascade_detection
        )
        if now.cascade_detected and not self.cascade.cascade_detected:
            self.emit(Notice(level=Level.WARNING, text=f"cascade: {now.diagnosis}"))
        if now.cascade_detected or not self.cascade.cascade_detected:
            self.cascade = now


class _Crew(Struct, frozen=True, kw_only=True):
    """What every run of a batch is given."""

    asked: Asked
    environ: Mapping[str, str]
    emit: Emit
    budget: SharedBudget
    labels: Mapping[Path, str]

    def run(self, folder: Path) -> tuple[Path, Finished]:
        """One run with a folder of its own for temporary files, however it ends."""
        told = _labelled(self.emit, self.labels[folder])
        wanted = self.environ.get("TMPDIR")
        place = wanted if wanted and Path(wanted).is_dir() else None
        try:
            with tempfile.TemporaryDirectory(
                prefix="atlas-", dir=place, ignore_cleanup_errors=True
            ) as scratch:
                asked = self._asked(folder)
                opened = opened_with(folder, asked, {**self.environ, "TMPDIR": scratch})
                outcome = run_one(opened, asked, told, self.budget)
            # the folder is gone, so whoever asks for it later needs another
            return folder, Finished(opened=replace(opened, environ=self.environ), outcome=outcome)
        except (AtlasError, OSError) as error:
            return folder, Finished(opened=None, outcome=_broken(folder, error))
        finally:
            self.budget.leave(str(config.root_of(folder)))

    def _asked(self, folder: Path) -> Asked:
        """The same of every workspace, but for where it is recorded."""
        record = self.asked.record
        return replace(self.asked, record=record / self.labels[folder]) if record else self.asked


def _broken(folder: Path, error: AtlasError | OSError) -> Outcome:
    """The outcome of a run that an error kept from starting, or ended."""
    return Outcome(
        run_id=state_dir.new_run_id(),
        verdict=Verdict.BROKEN,
        workspace=WorkspaceFacts(name=folder.name, root=str(folder)),
        baseline=Validation(),
        final=Validation(),
        final_error=" ".join(str(error).split()),
        remedy=error.remedy if isinstance(error, AtlasError) else None,
    )


def _in_turn(emit: Emit) -> Emit:
    """The same for several threads at once."""
    lock = threading.Lock()

    def told(event: Event) -> None:
        with lock:
            emit(event)

    return told


def _labelled(emit: Emit, label: str) -> Emit:
    """The same, with every event saying which of the workspaces it is about."""

    def told(event: Event) -> None:
        emit(replace(event, scope=replace(event.scope, workspace=label)))

    return told


def _keep(
    folders: Sequence[Path], left: Sequence[Path], asked: Asked, environ: Mapping[str, str]
) -> None:
    note(
        state_dir.locate(environ),
        [str(folder) for folder in folders],
        [Waiting(root=str(folder), order=asked.order) for folder in left],
    )


def _not_started(names: Sequence[str], command: str) -> Notice:
    lines = (f"not started: {', '.join(names)}", *copyable("to go on", command))
    return Notice(level=Level.WARNING, text="\n".join(lines))
