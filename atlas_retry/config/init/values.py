"""What detection speaks in: slots and proposals. It looks at nothing."""

from enum import StrEnum

from msgspec import Struct

from atlas_retry.model import Kind


class Slot(StrEnum):
    """What a gate is for; two gates of one slot do the same work twice."""

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
        """Of the list below `validation`."""
        return self.kind.value.replace("-", "_")


class Proposed(Struct, frozen=True, kw_only=True):
    """One gate that the project seems to use, and why."""

    slot: Slot
    run: str
    reason: str
    tool: str = ""
    """What does the work, as hooks and CI name it."""
    fix: str | None = None
    recheck: str | None = None
    timeout: str | None = None
    """As the configuration writes it; None = its default."""
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = "."
    writes: bool = False
    """It changes files although its slot is for readers."""
    weak: bool = False
    """A language's default, which anything that the project says itself replaces."""
    task: bool = False
    """A target of a task runner: only where no tool was found for its slot."""
    body: str = ""
    """What a target or script starts, as far as the project says it."""
    language: str = ""
    """Whose gate it is; empty for a target, which may check several."""
    in_ci: bool = False
    """A line of CI's, as it stands there."""
    required: bool = True
    note: str = ""
    """What was seen when it was tried, for the configuration."""
    installs: str | None = None
    """A line of its own, or of a target that it runs, which installs something on this machine."""
    in_hooks: bool = False
    """Already run by the project's hooks."""
    obstacle: str | None = None
    """Why it cannot start here."""


class Proposal(Struct, frozen=True, kw_only=True):
    """What `atlas init` would write."""

    choices: tuple[Proposed, ...]
    notes: tuple[str, ...] = ()
    """What a person should know: files that cannot be read, what was not understood."""

    @property
    def gates(self) -> tuple[Proposed, ...]:
        """Those that can start here."""
        return tuple(choice for choice in self.choices if choice.obstacle is None)

    @property
    def idle(self) -> tuple[Proposed, ...]:
        """Those that cannot; they are written as comments."""
        return tuple(choice for choice in self.choices if choice.obstacle)
