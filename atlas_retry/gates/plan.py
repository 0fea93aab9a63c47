"""How gates run in one workspace: flags, environment, the tree they judge. Runs nothing."""

from collections.abc import Callable, Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from atlas_retry.gates.results import OutputContext
from atlas_retry.model import Gate, GateResult, Validation
from atlas_retry.process import Command

if TYPE_CHECKING:
    from atlas_retry.gates.memory import Memory
    from atlas_retry.workspace.look import Look, Lookout

AGENT_KEYS = {"OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "AWS_BEARER_TOKEN_BEDROCK"}
"""Variables that a gate sees only when its `pass_env` names them."""
OF_AGENTS = ("ANTHROPIC_", "CLAUDE_CODE_")
"""How the names of others begin."""


class Reuse(StrEnum):
    """Which results are taken from a validation of the same tree instead of running a gate."""

    NONE = "none"
    PASSED = "passed"
    """A failure runs again."""
    BESIDE_FAILURES = "beside_failures"
    """Only where a gate failed; that one runs again, by its `recheck` where it has one."""


class Watched(Struct, frozen=True, kw_only=True):
    """How a validation sees that files changed, and restores some; None where nobody can."""

    lookout: Callable[[], "Lookout"]
    """Looks at the work tree; made when it is first wanted."""
    memory: "Memory | None" = None
    """What gates found before."""
    hold: Callable[[], str] | None = None
    """Hold the content of all files; the id of a snapshot."""
    put_back: Callable[[str], object] | None = None
    """Make all files what they are in a snapshot, those that git ignores included."""


class Learned(Struct, kw_only=True):
    """What is learned of gates while a workspace is open; each validation adds to it."""

    movers: set[Gate] = field(default_factory=set)
    """Readers that moved code or settings, or ran beside one: alone from then on, and first."""
    passed: "dict[Gate, tuple[Look, GateResult]]" = field(default_factory=dict)
    """Gates with `inputs` that passed, and the tree on which they did."""
    cpu_s: dict[str, float] = field(default_factory=dict)
    """Processor time that gates took, by name."""
    at_base: dict[Gate, GateResult] = field(default_factory=dict)
    """What gates show at `triage.baseline`, each run there once."""
    untraced: set[str] = field(default_factory=set)
    """Names of gates whose failing tests were traced in vain."""


class Plan(OutputContext, frozen=True, kw_only=True):
    """How to run gates in one workspace, and to read their ends."""

    logs: Path
    """An existing folder for the whole output of every gate."""
    environ: Mapping[str, str]
    jobs: int = 1
    check: bool = False
    """A gate that changes files fails."""
    fail_fast: bool = False
    flake_reruns: int = 0
    reuse: Reuse = Reuse.NONE
    learns: bool = True
    """What the gates find is remembered: not of what an agent has left, whose caches have yet to be
    done without."""
    previous: Validation | None = None
    """The validation of the same gates before; its failures try their `recheck` first."""
    watched: Watched | None = None
    review: Callable[[Gate], GateResult] | None = None
    lost: Callable[[], str | None] = lambda: None
    """What has gone of the tree since the validation began, in one sentence."""
    wrap: Callable[[Command], Command] | None = None
    """What to run instead of a command: the same, on a changed workspace."""
    known_s: Mapping[str, float] = field(default_factory=dict)
    """How long a gate took before, by name."""
    waiting: Collection[str] = frozenset()
    """Names of gates that took next to no processor time before: they run beside the `jobs`."""
    learned: Learned = field(default_factory=Learned)

    def seen(self) -> "Look | None":
        return self.watched.lookout().take() if self.watched else None

    def between(self, before: "Look | None", after: "Look | None") -> tuple[str, ...]:
        """The paths that differ between two looks."""
        if not (self.watched and before and after):
            return ()
        return self.watched.lookout().between(before, after)


def environment(gate: Gate, environ: Mapping[str, str]) -> dict[str, str]:
    """What a gate's command sees: the user's environment without the agents' secrets."""
    from atlas_retry.workspace.git import GIT_LOCAL

    secret = AGENT_KEYS | {name for name in environ if name.startswith(OF_AGENTS)}
    withheld = GIT_LOCAL | (secret - {*gate.pass_env})
    inherited = {name: value for name, value in environ.items() if name not in withheld}
    return inherited | dict(gate.env)


def command_of(gate: Gate, line: str, plan: Plan, log_name: str) -> Command:
    """The process that stands for one of a gate's shell lines."""
    command = Command(
        argv=("/bin/sh", "-c", line),
        cwd=plan.root / gate.cwd,
        env=environment(gate, plan.environ),
        timeout_s=gate.timeout_s,
        log_dir=plan.logs / log_name,
        keep_daemons=gate.keep_daemons,
        waits=gate.name in plan.waiting,
    )
    if not gate.network:
        from atlas_retry.workspace.layers import offline

        command = offline(command, plan.root)
    return plan.wrap(command) if plan.wrap else command


def log_name(position: int, gate: Gate, suffix: str = "") -> str:
    """The folder of a gate's output: its position and as much of its name as is safe."""
    safe = "".join(char if char.isalnum() else "-" for char in gate.name)[:40]
    return f"{position:02d}-{safe}{suffix}"


def losses(root: Path) -> Callable[[], str | None]:
    """What tells which files have gone since now; None while there is something to judge."""
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
    """Device and inode of a folder, whether git is there, and what is not hidden."""
    try:
        stat = root.stat()
        names = frozenset(entry.name for entry in root.iterdir())
    except OSError:
        return None, False, frozenset()
    shown = frozenset(name for name in names if not name.startswith("."))
    return (stat.st_dev, stat.st_ino), ".git" in names, shown
