"""Errors that the user must fix; expected ends (a failing gate, an agent that errs) are values.

AtlasError                  something a person must change; `remedy` is the next thing to type
├── UsageError              exit 2: the command line asks for something impossible
├── ConfigError             exit 2: a configuration that cannot be used, with its place
├── WorkspaceError          exit 3: git, the work tree or its lock
├── StateError              exit 3: the state directory or its database
└── AgentError              exit 3: no agent is available
Interrupted                 ended by a signal; not an error
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import ClassVar

from msgspec import Struct


class ExitCode(IntEnum):
    """How a command ended; a signal ends it with 128 + its number."""

    OK = 0
    FAILED = 1
    """Gates fail, or what was asked for is not so."""
    USAGE = 2
    """The command line or the configuration cannot be used."""
    BROKEN = 3
    """What it needs is not there: an agent, git, a program of a gate."""


class AtlasError(Exception):
    """Something the user must fix; the message says what and where, the remedy what to do next."""

    exit_code: ClassVar[ExitCode] = ExitCode.BROKEN

    def __init__(self, message: str, *, remedy: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class UsageError(AtlasError):
    """The command line asks for something impossible."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE


class Place(Struct, frozen=True):
    """Place in a configuration: a file with 1-based line and column, or the name of a source."""

    source: str
    line: int | None = None
    column: int | None = None
    text: str | None = None
    """The offending line itself."""

    def __str__(self) -> str:
        return ":".join(str(value) for value in (self.source, self.line, self.column) if value)


class ConfigError(AtlasError):
    """A configuration that cannot be used. It is never replaced by defaults."""

    exit_code: ClassVar[ExitCode] = ExitCode.USAGE

    def __init__(
        self,
        message: str,
        *,
        place: Place,
        remedy: str | None = None,
        also: "Sequence[ConfigError]" = (),
    ) -> None:
        super().__init__(message, remedy=remedy)
        self.place = place
        self.also = tuple(also)
        """Further errors, in the order of the file."""

    def __str__(self) -> str:
        shown = f"\n    {self.place.text}" if self.place.text else ""
        return "\n".join((f"{self.place}: {self.message}{shown}", *map(str, self.also)))


class WorkspaceError(AtlasError):
    """Git, the work tree or its lock does not allow the operation."""


class StateError(AtlasError):
    """The state directory cannot be read or written."""


class AgentError(AtlasError):
    """The configured agent is not available."""


class Interrupted(BaseException):
    """Raised after HUP, INT or TERM, once all child processes have ended.

    Not an `Exception`, so that no `except Exception` on the way swallows it.
    """

    def __init__(self, signum: int) -> None:
        super().__init__(signum)
        self.signum = signum
        self.reverted: int | None = None
        """Number of the attempt whose changes were reverted; None if none was running."""

    @property
    def exit_code(self) -> int:
        return 128 + self.signum


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like this one, or None."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(word, list(known), n=1)), None)


def near(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing if no known word is similar."""
    meant = nearest(word, known)
    return f"; did you mean {meant}?" if meant else ""
