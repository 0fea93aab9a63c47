"""Input and output of the composition of a prompt. Values only."""

from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct, field

from atlas_retry.model import Attempt, Frame, Gate, Introduced, Validation
from atlas_retry.settings import Ask, PromptSettings

DEFAULT_BUDGET_CHARS = 16_000
DEFAULT_ERROR_CHARS = 2_000


class Traced(Struct, frozen=True, kw_only=True):
    """A function that failing tests ran."""

    frame: Frame
    """Its first line."""
    suspicion: float
    """1 if all failing tests ran a line of it and no passing one did."""


class Brief(Struct, frozen=True, kw_only=True):
    """Everything that a prompt may contain. Files are read only through `read`."""

    validation: Validation
    read: Callable[[str], bytes | None]
    """Returns the content of a file by path relative to the root; None if it does not exist."""
    paths: Callable[[], Iterable[str]] = tuple
    """Returns the paths of all files of the project."""
    gates: tuple[Gate, ...] = ()
    """Gates whose commands the agent may run."""
    attempt: int = 1
    ask: Ask = "fix"
    max_attempts: int | None = None
    """None = unlimited."""
    history: tuple[Attempt, ...] = ()
    """Earlier attempts of this run, in order."""
    protected: tuple[str, ...] = ()
    """Globs that the agent must not change."""
    learnings: tuple[str, ...] = ()
    trace: tuple[Traced, ...] = ()
    """Functions that the failing tests execute, most suspect first; empty without a trace."""
    introduced: Introduced | None = None
    changed: Mapping[str, tuple[range, ...]] = field(default_factory=dict)
    """Recently changed lines by path."""
    settings: PromptSettings = field(default_factory=PromptSettings)
    budget_chars: int = DEFAULT_BUDGET_CHARS
    error_chars: int = DEFAULT_ERROR_CHARS
    """Maximum characters of one error, cut in the middle."""
    marker: str = "0000"
    """Random text, so that quoted text cannot end its own fence."""
    redact: Callable[[str], str] = str


class Prompt(Struct, frozen=True, kw_only=True):
    """The text to send, never longer than the budget."""

    text: str
    stable_chars: int = 0
    """Length of the head that is the same in every attempt of a run."""
