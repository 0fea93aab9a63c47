"""How gates run in one workspace: flags, environment, the tree to judge. Runs nothing."""

import signal
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from atlas_retry.errors import WorkspaceError
from atlas_retry.gates.files import FileScope, names
from atlas_retry.gates.results import OutputContext
from atlas_retry.gates.watched import Watched
from atlas_retry.model import Gate, GateResult, Introduced, Validation
from atlas_retry.process import Command
from atlas_retry.text.file_names import PLACEHOLDER, arguments
from atlas_retry.workspace.git import GIT_LOCAL, tracked
from atlas_retry.workspace.snapshot.look import Look, moved

if TYPE_CHECKING:
    from atlas_retry.prompt import Traced


AGENT_KEYS = {"OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"}
"""Variables that a gate sees only if its `pass_env` names them."""
OF_AGENTS = ("ANTHROPIC_", "CLAUDE_CODE_")
"""Prefixes of further variables with secrets of agents."""


class Reuse(StrEnum):
    """Which results of an earlier validation of the same tree are used instead of running."""

    NONE = "none"
    PASSED = "passed"
    """Passed gates are not run; failed ones are."""
    BESIDE_FAILURES = "beside_failures"
    """Like `PASSED`, but only if a gate failed; that one runs its `recheck`, if it has one."""


class Learned(Struct, kw_only=True):
    """Facts about gates, collected by all validations while a workspace is open."""

    movers: set[Gate] = field(default_factory=set)
    """Readers that changed code or settings, or ran in parallel with one: now run alone, first."""
    passed: "dict[Gate, tuple[Look, GateResult]]" = field(default_factory=dict)
    """Gates with `inputs` that passed, with the tree and the result."""
    cpu_s: dict[str, float] = field(default_factory=dict)
    """CPU seconds of gates, by name."""
    at_base: dict[Gate, GateResult] = field(default_factory=dict)
    """Results of gates at `triage.baseline`, where each runs once."""
    traced: "dict[GateResult, tuple[Traced, ...]]" = field(default_factory=dict)
    """Traces of failing tests that ran again anyway, by their result."""
    introduced: Introduced | None = None
    """The part of the user's change with which a test began to fail, as of the first attempt."""
    untraced: set[str] = field(default_factory=set)
    """Names of gates whose failing tests could not be traced."""


class Plan(OutputContext, frozen=True, kw_only=True):
    """How to run gates in one workspace, and to read their results."""

    logs: Path
    """An existing folder for the full output of every gate."""
    environ: Mapping[str, str]
    jobs: int = 1
    check: bool = False
    """Whether a gate that changes files fails."""
    fail_fast: bool = False
    flake_reruns: int = 0
    before_money: bool = False
    """Whether an agent is asked next, so that a failure without a place is run again, too."""
    reuse: Reuse = Reuse.NONE
    learns: bool = True
    """Whether results are remembered; not after an agent's turn, which may have edited caches."""
    previous: Validation | None = None
    """The previous validation of the same gates; its failures try their `recheck` first."""
    watched: Watched | None = None
    traces: Callable[[GateResult], bool] | None = None
    """Traces the failing tests of a result; returns whether any failed again."""
    review: Callable[[Gate], GateResult] | None = None
    lost: Callable[[], str | None] = lambda: None
    """Message on what of the tree was deleted since the validation began, or None."""
    wrap: Callable[[Command], Command] | None = None
    """Wraps a command so that it runs on a changed copy of the workspace."""
    known_s: Mapping[str, float] = field(default_factory=dict)
    """Duration of gates in earlier runs, by name."""
    waiting: Collection[str] = frozenset()
    """Names of gates that mostly waited in earlier runs: they do not count towards `jobs`."""
    learned: Learned = field(default_factory=Learned)
    scope: FileScope = field(default_factory=FileScope)

    def keep_unstaged(self) -> Callable[[], str]:
        """See `Watched.keep_unstaged`."""
        return self.watched.keep_unstaged() if self.watched and not self.wrap else str

    def seen(self) -> "Look | None":
        """The tree as it is now."""
        return self.watched.tracker().look() if self.watched else None

    def between(self, before: "Look | None", after: "Look | None") -> tuple[str, ...]:
        """The paths that differ between two looks."""
        return moved(before, after) if before and after else ()

    def date_later(self, before: "Look", paths: Iterable[str]) -> bool:
        """Give changed files a time in a later second than before; returns whether one had none.

        Caches of tools go by that: Python's bytecode by size and whole seconds.
        """
        return self.watched.tracker().date(before, paths) if self.watched else False

    def tracked(self, paths: Collection[str]) -> frozenset[str]:
        """Those of these paths that git tracks."""
        if self.watched:
            ws = self.watched.tracker().ws
            with suppress(WorkspaceError):
                return tracked(ws.root, ws.environ, paths)
        return frozenset()


def environment(gate: Gate, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of a gate's command: the user's, without the secrets of agents."""
    secret = AGENT_KEYS | {name for name in environ if name.startswith(OF_AGENTS)}
    withheld = GIT_LOCAL | (secret - {*gate.pass_env})
    inherited = {name: value for name, value in environ.items() if name not in withheld}
    return inherited | dict(gate.env)


def command_of(gate: Gate, line: str, plan: Plan, log_name: str) -> Command:
    """The command that runs one of a gate's shell lines."""
    argv: tuple[str, ...] = ("/bin/sh", "-c", line)
    if PLACEHOLDER in line:
        batches, is_aside = plan.logs / f"{log_name}.files", plan.wrap is not None
        argv = arguments(line, names(gate, line, plan.scope), batches, aside=is_aside)
    command = Command(
        argv=argv,
        cwd=plan.root / gate.cwd,
        env=environment(gate, plan.environ),
        timeout_s=gate.timeout_s,
        log_dir=plan.logs / log_name,
        # pre-commit and its like put the user's unstaged work back on INT alone
        stop_signal=signal.SIGINT,
        keep_daemons=gate.keep_daemons,
        waits=gate.name in plan.waiting,
    )
    if not gate.network:
        from atlas_retry.workspace.isolation.layers import offline

        command = offline(command, plan.root)
    return plan.wrap(command) if plan.wrap else command


def log_name(position: int, gate: Gate, suffix: str = "") -> str:
    """Folder name for a gate's output: its position and the safe characters of its name."""
    safe = "".join(char if char.isalnum() else "-" for char in gate.name)[:40]
    return f"{position:02d}-{safe}{suffix}"


def losses(root: Path) -> Callable[[], str | None]:
    """A function that says which files were deleted since this call, or returns None."""
    was, had_git, before = _seen(root)

    def lost() -> str | None:
        now, has_git, there = _seen(root)
        if now != was:
            return f"{root} was deleted or replaced while it ran"
        if had_git and not has_git:
            return f"{root / '.git'} was deleted while it ran"
        if before and not before & there:
            return f"all files of {root} were deleted while it ran"
        return None

    return lost


def _seen(root: Path) -> tuple[tuple[int, int] | None, bool, frozenset[str]]:
    """Device and inode of a folder, whether it has `.git`, and its names that are not hidden."""
    try:
        stat = root.stat()
        names = frozenset(entry.name for entry in root.iterdir())
    except OSError:
        return None, False, frozenset()
    shown = frozenset(name for name in names if not name.startswith("."))
    return (stat.st_dev, stat.st_ino), ".git" in names, shown
