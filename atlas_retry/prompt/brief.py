"""What a prompt is made of and what comes out. Values only."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from atlas_retry.model import Attempt, Frame, Gate, Validation
from atlas_retry.settings import Ask, PromptSettings

DEFAULT_BUDGET_CHARS = 16_000
DEFAULT_ERROR_CHARS = 2_000


class Traced(Struct, frozen=True, kw_only=True):
    """A function that failing tests ran."""

    frame: Frame
    """Its first line."""
    suspicion: float
    """1: all failing tests ran a line of it, and no passing one did."""


class Brief(Struct, frozen=True, kw_only=True):
    """Everything that a prompt may speak of. Composing it reads files, and only through `read`."""

    validation: Validation
    read: Callable[[str], bytes | None]
    """Content of a file by its path relative to the root; None where there is nothing."""
    paths: Callable[[], Iterable[str]] = tuple
    """Every file of the project."""
    gates: tuple[Gate, ...] = ()
    """Whose commands the agent may run."""
    attempt: int = 1
    ask: Ask = "fix"
    max_attempts: int | None = None
    """None = unlimited."""
    history: tuple[Attempt, ...] = ()
    """Earlier attempts of this run, in order."""
    protected: tuple[str, ...] = ()
    """Globs that may not be touched."""
    learnings: tuple[str, ...] = ()
    trace: tuple[Traced, ...] = ()
    """Functions that the failing tests execute, most suspect first; empty: nothing was traced."""
    changed: Mapping[str, tuple[range, ...]] = field(default_factory=dict)
    """Lines by path that somebody has just changed."""
    settings: PromptSettings = field(default_factory=PromptSettings)
    budget_chars: int = DEFAULT_BUDGET_CHARS
    error_chars: int = DEFAULT_ERROR_CHARS
    """The most that one error may take; cut in the middle."""
    marker: str = "0000"
    """Random, so that what is quoted cannot end its own fence."""
    redact: Callable[[str], str] = str


class Prompt(Struct, frozen=True, kw_only=True):
    """The text that is sent, never longer than the budget."""

    text: str
    stable_chars: int = 0
    """The head up to the line with the marker: the same in every attempt of a run."""
    left_out: tuple[str, ...] = ()
    """For a person: what the budget did not allow."""
    ranking: tuple[str, ...] = ()
    """The code that was considered, likeliest first, as `path:line name (why)`."""
