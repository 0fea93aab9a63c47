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

    @property
    def gates(self) -> tuple[Proposed, ...]:
        """Proposals that can start here."""
        return tuple(choice for choice in self.choices if choice.obstacle is None)

    @property
    def idle(self) -> tuple[Proposed, ...]:
        """Proposals that cannot start here; they are written as comments."""
        return tuple(choice for choice in self.choices if choice.obstacle)
