"""Run several workspaces with one budget and one screen; a failed one never stops the rest."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry import config, process, state_dir
from atlas_retry.errors import AtlasError, ConfigError
from atlas_retry.events import Emit, Event, Notice, WorkspaceFinished
from atlas_retry.guard.decides import is_code_or_setting
from atlas_retry.model import Level, Outcome, Validation, Verdict, WorkspaceFacts
from atlas_retry.reports.documents import Cascade
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.cascade import detect
from atlas_retry.run.folders import Waiting, labels, note
from atlas_retry.run.one import BatchResult, Finished, RunOptions, budget_of, opened_with, run_one
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.settings import BatchSettings
from atlas_retry.text.units import first_few, labelled
from atlas_retry.workspace.files import Stat, differing

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")
R = TypeVar("R")


def run(
    folders: Sequence[Path],
    asked: RunOptions,
    environ: Mapping[str, str],
    emit: Emit,
    *,
    jobs: int | None = None,
) -> BatchResult:
    """Run every workspace, `jobs` at a time; those not started are kept for `atlas resume --all`.

    An error of a single workspace is raised; in a batch it is the outcome of that workspace. Raises
    Interrupted after all have ended.
    """
    home = state_dir.locate(environ)
    if len(folders) == 1 and asked.order.batch is None:
        opened = opened_with(folders[0], asked, environ)
        outcome = run_one(opened, asked, emit)
        note(home, folders)
        return BatchResult(finished=(Finished(opened=opened, outcome=outcome),))
    settings = BatchSettings()
    with suppress(ConfigError):  # the run of the first workspace reports it
        settings = config.load(folders[0], environ=environ, overrides=asked.order.overrides).batch
    jobs = min(jobs or settings.jobs, len(folders))
    budget = budget_of(home, asked.order.batch, runs=len(folders), jobs=jobs)
    batch = asked.order.batch or state_dir.new_run_id()
    state = _Batch(
        asked=replace(asked, order=replace(asked.order, batch=batch)),
        environ=environ,
        emit=emit,
        budget=budget,
        settings=settings,
        labels=labels(folders),
    )
    queue = iter(folders)
    left: tuple[Path, ...] = ()
    next_command = _next(ai_fix=asked.order.ai_fix)
    with process.orderly():  # wait for the runs until all is restored
        try:
            ended = side_by_side(state.run, queue, jobs=jobs, may_start=state.may_start)
            for folder, one in ended:
                state.take(folder, one)
            for folder in state.finished:
                state.confirm(folder)
        finally:
            left = tuple(queue)
            order = state.asked.order
            note(home, folders, [Waiting(root=str(folder), order=order) for folder in left])
            if left:
                names = [state.labels[folder] for folder in left]
                emit(_not_started(names, next_command))
    return BatchResult(
        finished=tuple(state.finished[folder] for folder in folders if folder in state.finished),
        not_started=tuple(map(str, left)),
        next_command=next_command,
        cascade=state.cascade,
    )


def go_on(
    waiting: Sequence[Waiting],
    environ: Mapping[str, str],
    emit: Emit,
    *,
    ai_fix: bool = False,
) -> BatchResult:
    """Run what earlier batches did not start, each with its own order, until one pauses again.

    `ai_fix` allows the agent for all; without it, workspaces that may spend money keep waiting.
    """
    finished: list[Finished] = []
    unpaid: list[Path] = []
    left: list[Path] = []
    done = BatchResult(finished=())
    for order, group in groupby(waiting, key=lambda one: one.order):
        folders = [Path(one.root) for one in group if Path(one.root).is_dir()]
        if order.ai_fix and not ai_fix:
            unpaid += folders
        elif done.not_started:
            left += folders
        elif folders:
            asked = RunOptions(order=replace(order, ai_fix=ai_fix or order.ai_fix))
            done = run(folders, asked, environ, emit)
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
    return "atlas resume --all --ai-fix" if ai_fix else "atlas resume --all"


class _Batch(Struct, kw_only=True):
    """State of a batch: the input of every run, the finished ones, and whether more may start."""

    asked: RunOptions
    environ: Mapping[str, str]
    emit: Emit
    budget: SharedBudget
    settings: BatchSettings
    labels: Mapping[Path, str]
    lock: threading.Lock = field(default_factory=threading.Lock)
    finished: dict[Path, Finished] = field(default_factory=dict)
    """In the order they ended."""
    passed: dict[Path, Mapping[str, Stat]] = field(default_factory=dict)
    """The files of the workspaces that ended green, as their gates left them."""
    cascade: Cascade = field(default_factory=Cascade)

    def may_start(self) -> bool:
        pauses = self.settings.cascade_detection.on_cascade == "pause_and_alert"
        is_paused = self.cascade.cascade_detected and pauses
        return not is_paused and process.stop_requested() is None

    def take(self, folder: Path, one: Finished) -> None:
        self.finished[folder] = one
        number, total = len(self.finished), len(self.labels)
        self._emit_for(folder, WorkspaceFinished(outcome=one.outcome, number=number, total=total))
        now = detect(
            [each.outcome for each in self.finished.values()], self.settings.cascade_detection
        )
        if now.cascade_detected and not self.cascade.cascade_detected:
            with self.lock:
                self.emit(Notice(level=Level.WARNING, text=f"cascade: {now.diagnosis}"))
        if now.cascade_detected or not self.cascade.cascade_detected:
            self.cascade = now

    def confirm(self, folder: Path) -> None:
        """Run the gates of a green workspace again if its code has changed since they passed.

        The agent of another workspace may have edited it, or a person.
        """
        one = self.finished[folder]
        if folder not in self.passed or one.opened is None:
            return
        moved = differing(self.passed[folder], _files(one.opened))
        paths = sorted(filter(is_code_or_setting, moved))
        if not paths:
            return
        text = f"changed since its gates passed: {first_few(paths)}; running them again"
        self._emit_for(folder, Notice(level=Level.WARNING, text=text))
        asked = replace(self.asked, order=replace(self.asked.order, ai_fix=False), record=None)
        later = self._finished(folder, asked, one.opened).outcome
        if not later.verdict.is_green:
            outcome = replace(
                one.outcome,
                verdict=later.verdict,
                final=later.final,
                final_error=later.final_error,
                remedy=later.remedy,
            )
            self.finished[folder] = replace(one, outcome=outcome)

    def _emit_for(self, folder: Path, event: Event) -> None:
        """Emit an event with its workspace; thread-safe."""
        event = replace(event, scope=replace(event.scope, workspace=self.labels[folder]))
        with self.lock:
            self.emit(event)

    def run(self, folder: Path) -> tuple[Path, Finished]:
        record = self.asked.record
        asked = replace(self.asked, record=record and record / self.labels[folder])
        try:
            return folder, self._finished(folder, asked)
        finally:
            self.budget.leave(str(config.root_of(folder)))

    def _finished(
        self, folder: Path, asked: RunOptions, known: OpenWorkspace | None = None
    ) -> Finished:
        """One run with its own folder for temporary files; errors become an outcome.

        With the configuration of `known`, if given.
        """
        wanted = self.environ.get("TMPDIR")
        place = wanted if wanted and Path(wanted).is_dir() else None
        from tempfile import TemporaryDirectory  # start-up

        try:
            with TemporaryDirectory(
                prefix="atlas-", dir=place, ignore_cleanup_errors=True
            ) as scratch:
                environ = {**self.environ, "TMPDIR": scratch}
                opened = known and replace(known, environ=environ)
                opened = opened or opened_with(folder, asked, environ)
                emit = partial(self._emit_for, folder)
                outcome = run_one(opened, asked, emit, self.budget)
                if outcome.verdict.is_green:
                    self.passed[folder] = _files(opened)
            # the temporary folder is gone, so later users need the original environment
            return Finished(opened=replace(opened, environ=self.environ), outcome=outcome)
        except (AtlasError, OSError) as error:
            return Finished(opened=None, outcome=_broken(folder, error))


def _files(opened: OpenWorkspace) -> Mapping[str, Stat]:
    """Stat data of a workspace's files, as they are now."""
    opened.tracker.moved()
    return opened.tracker.files()[1]


def _broken(folder: Path, error: AtlasError | OSError) -> Outcome:
    """The outcome of a run that could not start, or that an error ended."""
    return Outcome(
        run_id=state_dir.new_run_id(),
        verdict=Verdict.BROKEN,
        workspace=WorkspaceFacts(name=folder.name, root=str(folder)),
        baseline=Validation(),
        final=Validation(),
        final_error=" ".join(str(error).split()),
        remedy=error.remedy if isinstance(error, AtlasError) else None,
    )


def _not_started(names: Sequence[str], command: str) -> Notice:
    lines = (f"not started: {', '.join(names)}", *labelled("to continue", command))
    return Notice(level=Level.WARNING, text="\n".join(lines))


def side_by_side(
    work: Callable[[T], R], items: Iterator[T], *, jobs: int, may_start: Callable[[], bool]
) -> Iterator[R]:
    """Yield results in order of completion. What is left in `items` afterwards was not started.

    `may_start` is called before each start, once the results so far are consumed. An exception of
    `work` is raised once everything that runs has ended.
    """
    from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait

    with ThreadPoolExecutor(max_workers=jobs) as pool:
        running: set[Future[R]] = set()
        while True:
            while len(running) < jobs and may_start() and (item := next(items, None)) is not None:
                running.add(pool.submit(work, item))
            if not running:
                return
            ended, running = wait(running, return_when=FIRST_COMPLETED)
            yield from (future.result() for future in ended)
