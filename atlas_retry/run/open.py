"""Open a workspace with its configuration, and plan how its gates run. Decides nothing."""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import config, state_dir
from atlas_retry.errors import UsageError, WorkspaceError, near
from atlas_retry.gates.files import FileScope
from atlas_retry.gates.memory import Memory
from atlas_retry.gates.plan import Learned, Plan
from atlas_retry.gates.watched import Watched
from atlas_retry.model import Contents, Gate, OpenReview, Validation, WorkspaceFacts
from atlas_retry.settings import Settings, in_ci
from atlas_retry.text.redaction import secret_values
from atlas_retry.workspace.discovery import (
    Workspace,
    facts,
    open_workspace,
    unopened,
)
from atlas_retry.workspace.snapshot.look import Tracker

if TYPE_CHECKING:
    from atlas_retry.history.reviews import Question
    from atlas_retry.workspace.isolation.isolated import Beside


KEPT_VALIDATION_LOGS = 10
MIN_WAIT_S, MAX_BUSY = 0.1, 0.25


class OpenWorkspace(Struct, frozen=True, kw_only=True, dict=True):
    root: Path
    """Root of the work tree; without git, the directory that was named."""
    settings: Settings
    state: Path
    environ: Mapping[str, str]

    @property
    def has_git(self) -> bool:
        return os.path.lexists(self.root / ".git")

    @cached_property
    def git(self) -> "Workspace":
        """The workspace of git, opened on first use: gates that only read need no git."""
        return open_workspace(self.root, self.state, environ=self.environ)

    @cached_property
    def tracker(self) -> "Tracker":
        """Tracker of the work tree, with or without git."""
        return Tracker(unopened(self.root, self.state, environ=self.environ))

    def open_reviews(self, unkept: "Sequence[Question]" = ()) -> tuple[OpenReview, ...]:
        """Changes in the workspace that a person must review; `unkept` is asked as well.

        Raises StateError.
        """
        if not unkept and not (self.state / "reviews").is_dir():
            return ()

        from atlas_retry.history import reviews

        every = (*reviews.kept(self.state, self.root), *unkept)
        return reviews.still_open(every, self.root, self.environ, self.settings.triage_baseline)

    @cached_property
    def learned(self) -> Learned:
        return Learned()

    @property
    def facts(self) -> WorkspaceFacts:
        """Facts for reports. Raises WorkspaceError if there is a git folder but it is unusable."""
        if self.has_git:
            return facts(self.git)
        return WorkspaceFacts(name=self.root.name, root=str(self.root))


def open_configured(
    path: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, object] | None = None,
    *,
    proposed: str | None = None,
    named: Collection[str] = (),
) -> OpenWorkspace:
    """Find the workspace of a directory and read its configuration, or `proposed` instead.

    Gates that only CI runs are left out elsewhere, unless they are `named`.

    Raises UsageError if there is no such directory, ConfigError, StateError.
    """
    root, home = _located(path, environ)
    if proposed is None:
        settings = config.load(path, environ=environ, overrides=overrides or {})
    else:
        settings = config.load_proposed(root, proposed, environ=environ)
    if not in_ci(environ):
        away = {gate.name for gate in settings.gates if gate.only_in_ci}.difference(named)
        here = tuple(gate for gate in settings.gates if gate.name not in away)
        settings = replace(settings, gates=here)
    return OpenWorkspace(root=root, settings=settings, state=home, environ=dict(environ))


def _located(path: Path, environ: Mapping[str, str]) -> tuple[Path, Path]:
    """Root and state directory of a workspace, after undoing what a killed atlas left there."""
    if not path.is_dir():
        raise UsageError(f"{path} is not a directory")
    home = state_dir.locate(environ)
    if (home / "workspaces").is_dir():
        from atlas_retry.workspace.discovery import put_back_gitfile_around

        put_back_gitfile_around(Path(os.path.realpath(path)), home)
    root = config.root_of(path)
    notes = (home / "workspaces" / state_dir.key_of(root)).glob("*.note")
    if any(notes):
        from atlas_retry.workspace.isolation.isolated import lock

        # what it was changing may include the configuration
        with suppress(WorkspaceError), lock(open_workspace(root, home, environ=environ)):
            pass
    return root, home


def validation_logs(opened: OpenWorkspace) -> Path:
    """A new folder for the output of one validation; removes old ones, see `state_dir.trim`."""
    parent = state_dir.folder(opened.state, "validations", state_dir.key_of(opened.root))
    state_dir.trim(parent, keep=KEPT_VALIDATION_LOGS - 1)
    return state_dir.folder(parent, state_dir.new_run_id())


class LastRun(Struct, frozen=True, array_like=True):
    duration_s: float
    cpu_s: float

    @property
    def mostly_waited(self) -> bool:
        """Whether it mostly waited, for a server or a timer, and left the processor free."""
        return self.duration_s >= MIN_WAIT_S and self.cpu_s < self.duration_s * MAX_BUSY


def plan(opened: OpenWorkspace, logs: Path) -> Plan:
    """How gates run in a workspace, without a command's flags."""
    last, automatic = last_runs(opened), opened.settings.auto_jobs
    return Plan(
        root=opened.root,
        logs=logs,
        environ=opened.environ,
        jobs=opened.settings.jobs,
        watched=Watched(
            tracker=lambda: opened.tracker,
            git=(lambda: opened.git) if opened.has_git else None,
            memory=Memory(answers(opened.state, opened.root), opened.root, opened.environ),
        ),
        parsers=opened.settings.parsers,
        secrets=secret_values(opened.environ),
        known_s={name: run.duration_s for name, run in last.items()},
        waiting={name for name, run in last.items() if run.mostly_waited} if automatic else set(),
        learned=opened.learned,
        scope=FileScope(
            listed=lambda: opened.tracker.files()[1],
            uncommitted=lambda: opened.tracker.uncommitted().paths if opened.has_git else (),
        ),
    )


@contextmanager
def beside(
    opened: OpenWorkspace,
    gates: Iterable[Gate],
    files: Contents,
    how: Plan,
    *,
    in_place: bool = False,
) -> Iterator[tuple[Plan, "Beside"]]:
    """The plan by which gates run with these files in place, and what it runs them in.

    All is restored when the context ends. Raises as `isolated.beside` does.
    """
    from atlas_retry.workspace.isolation import isolated

    lines = [gate.run for gate in gates]
    changed = isolated.beside(opened.git, files, lines, in_place=in_place)
    with opened.tracker.elsewhere(), changed as there:
        yield replace(how, wrap=there.wrap, locate=there.file), there


def last_runs(opened: OpenWorkspace) -> dict[str, LastRun]:
    """Last run of each gate, by name; empty if not recorded."""
    try:
        return msgspec.json.decode(_durations(opened).read_bytes(), type=dict[str, LastRun])
    except (OSError, msgspec.DecodeError):
        return {}


def remember(opened: OpenWorkspace, validation: Validation) -> None:
    """Record the duration of each gate, so that the longest starts first next time.

    If the state directory is full or read-only, nothing is recorded; nor is it for a single gate or
    for a change only.
    """
    if len(opened.settings.gates) == 1 or validation.is_limited:
        return
    ran = (result for result in validation.results if result.started_at)
    took = last_runs(opened) | {
        result.name: LastRun(result.duration_ms / 1000, opened.learned.cpu_s[result.name])
        for result in ran
        if result.name in opened.learned.cpu_s
    }
    with suppress(OSError):
        state_dir.replace_file(_durations(opened), msgspec.json.encode(took))


def _durations(opened: OpenWorkspace) -> Path:
    return state_dir.folder(opened.state, "durations") / f"{state_dir.key_of(opened.root)}.json"


def answers(home: Path, root: Path) -> Path:
    """File that holds the last validation of a workspace."""
    return state_dir.folder(home, "answers") / f"{state_dir.key_of(root)}.msgpack"


def select(gates: Sequence[Gate], only: Sequence[str]) -> tuple[Gate, ...]:
    """The gates of these kinds or names; all gates if `only` is empty. Raises UsageError.

    If all the named ones are optional, they are required.
    """
    for word in only:
        if not any(word in (gate.kind, gate.name) for gate in gates):
            known = list(dict.fromkeys([*(g.kind for g in gates), *(g.name for g in gates)]))
            meant = near(word, known)
            message = f"no gate has the kind or name {word!r}{meant}"
            raise UsageError(message, remedy=f"one of: {', '.join(known)}")
    if not only:
        return tuple(gates)
    chosen = tuple(gate for gate in gates if not {gate.kind, gate.name}.isdisjoint(only))
    if any(gate.required for gate in chosen):
        return chosen
    return tuple(replace(gate, required=True) for gate in chosen)


def failing_gates(gates: Iterable[Gate], validation: Validation) -> tuple[Gate, ...]:
    """Those of the validation's gates whose results are not a success."""
    pairs = zip(gates, validation.results, strict=True)
    return tuple(gate for gate, result in pairs if not result.success)
