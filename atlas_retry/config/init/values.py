"""Values of the detection: slots and proposals."""

from enum import StrEnum

from msgspec import Struct

from atlas_retry.model import Kind


class Slot(StrEnum):
    """Purpose of a gate; two gates of one slot do the same work twice."""

    FORMAT = "format"
    LINT = "lint"
    TYPES = "types"
    TEST = "test"
    HOOKS = "hooks"
    BUILD = "build"
    CUSTOM = "custom"

    @property
    def kind(self) -> Kind:
        kinds = {Slot.TYPES: Kind.LINT, Slot.HOOKS: Kind.PRE_COMMIT}
        return kinds.get(self) or Kind(self.value)

    @property
    def key(self) -> str:
        """Key of the list below `validation`."""
        return self.kind.value.replace("-", "_")


class Proposed(Struct, frozen=True, kw_only=True):
    """One gate that the project seems to use, with the reason."""

    slot: Slot
    run: str
    reason: str
    tool: str = ""
    """Name of the tool in hooks and CI."""
    fix: str | None = None
    recheck: str | None = None
    files: tuple[str, ...] = ()
    """Globs of the files that `recheck` takes, from the root of the repository."""
    inputs: tuple[str, ...] = ()
    """Globs of all that the result depends on, if that is known."""
    timeout: str | None = None
    """Duration in the configuration's format; None = the default."""
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = "."
    writes: bool = False
    """Whether it changes files although gates of its slot usually do not."""
    weak: bool = False
    """Whether it is a language's default, which anything in the project replaces."""
    task: bool = False
    """Whether it is a target of a task runner, used only if its slot has no tool."""
    key: str = ""
    """Identity of a line of CI."""
    follows: tuple[str, ...] = ()
    """Keys of the lines that CI runs before it, and that it may need."""
    only_in_ci: bool = False
    """Whether it is left to CI, because there are too many gates or it takes too long."""
    barred: str | None = None
    """Why only CI can run it."""
    body: str = ""
    """Commands that a target or script runs, if known."""
    language: str = ""
    """Language that it checks; empty for a target, which may check several."""
    in_ci: bool = False
    """Whether it is a literal line of CI."""
    required: bool = True
    note: str = ""
    """Comment for the configuration about the trial run."""
    installs: str | None = None
    """Line that it runs, itself or by a target, which installs something on this machine."""
    in_hooks: bool = False
    """Whether the project's hooks run it already."""
    obstacle: str | None = None
    """Why it cannot start here; None if it can."""
    doubled: bool = False
    """Whether the obstacle is only another formatter of the same files."""
    remedy: str | None = None
    """The command that installs what its trial run lacked; None if none is known."""


class Proposal(Struct, frozen=True, kw_only=True):
    """The configuration that `atlas init` would write."""

    choices: tuple[Proposed, ...]
    notes: tuple[str, ...] = ()
    """Messages to the user about unreadable files and tools that were not understood."""
    unknown: tuple[str, ...] = ()
    """Lines of CI that were not understood, each with its file."""
    left_out: tuple[str, ...] = ()
    """Lines of CI that nobody runs here, each with the reason."""
    folder: str = "."
    """Folder of the repository that the configuration is for; gates name theirs from the root."""

    @property
    def gates(self) -> tuple[Proposed, ...]:
        """Proposals that can start here."""
        return tuple(choice for choice in self.choices if choice.obstacle is None)

    @property
    def rest_of_ci(self) -> str:
        """How many lines of CI were not understood, in one line; empty if none."""
        count = len(self.unknown)
        lines = "line" if count == 1 else "lines"
        return f"CI runs {count} more {lines} that atlas does not know (-v)" if count else ""

    @property
    def idle(self) -> tuple[Proposed, ...]:
        """Proposals that cannot start here; they are written as comments."""
        return tuple(choice for choice in self.choices if choice.obstacle)
