"""What goes into and comes out of reading a tool's output. No parsing here."""

from collections.abc import Callable, Iterable

from msgspec import Struct

from atlas_retry.model import Diagnostic, Kind
from atlas_retry.patterns import regex

_BETWEEN_WORDS = regex(r"[\s/;&|()='\"]+")
_VERSION = regex(r"(?<=\w)@[\w.]+")

LINE_CHARS = 2_000
"""Longer lines are cut before a pattern sees them: minified code needs more, no message does."""

THRESHOLD_RULE = "fail-under"
"""Rule of the problem that too little is covered or too low a score reached."""


class Declared(Struct, frozen=True, kw_only=True):
    """Packages that the project's own files ask for, and the command that installs them all.

    The command is empty where no lock file tells which it is.
    """

    python: frozenset[str] = frozenset()
    """Names of distributions, in lower case with hyphens."""
    npm: frozenset[str] = frozenset()
    """Those that are not in `node_modules`."""
    gems: frozenset[str] = frozenset()
    install_python: str = ""
    install_npm: str = ""


class ToolOutput(Struct, frozen=True, kw_only=True):
    """What one command left behind, cleaned of control sequences by the caller."""

    command: str
    kind: Kind = Kind.CUSTOM
    exit_code: int | None = None
    """Negative: ended by that signal. None: ended by us."""
    stdout: str = ""
    stderr: str = ""
    parser: str | None = None
    """A key of `PARSERS` or a name of `custom`; None = recognise the tools."""
    custom: tuple[tuple[str, str], ...] = ()
    """Name and regular expression with the groups path, line, column, rule, level, message."""
    report: tuple[str, bytes] | None = None
    """A key of `REPORT_FORMATS` and the content of the file."""
    root: str | None = None
    """Absolute path of the workspace; paths below it are made relative to it."""
    cwd: str = "."
    """Where the command ran, relative to the root."""
    project_names: frozenset[str] = frozenset()
    """Top-level modules of the project: one that is missing is no fault of the environment."""
    declared: Callable[[], Declared] = Declared
    """Asked only where something is missing: the manifests are looked for and read."""


class Findings(Struct, frozen=True, kw_only=True):
    """What the output says."""

    diagnostics: tuple[Diagnostic, ...] = ()
    """In the order of the output, each once; without symbol and fingerprint."""
    beyond: int = 0
    """Problems that are told of beyond those: nobody reads so many."""
    cut: bool = False
    """Not all of the output was read as one: there may be more problems."""
    ran: bool | None = None
    """Whether any test ran; None: no test tool said."""
    vacuous: bool = False
    """A test gate in which no test ran."""
    threshold: bool = False
    """Everything passed, but a coverage or score threshold is not reached."""
    environment: bool = False
    """It is the fault of the environment, as far as the output shows."""
    lack: str | None = None
    """What is not installed, without which the command cannot pass, and how to get it."""


class Log(Struct, frozen=True):
    """The lines of one output and how they came to be."""

    lines: tuple[str, ...]
    text: str
    command: str = ""
    exit_code: int | None = None

    @property
    def words(self) -> str:
        """The words of the command line between single spaces, without folders and versions."""
        return f" {' '.join(_BETWEEN_WORDS.split(_VERSION.sub('', self.command)))} "

    @classmethod
    def of(cls, text: str, command: str = "", exit_code: int | None = None) -> "Log":
        """Lines end at a newline alone, so that their numbers agree with any editor's."""
        lines = tuple(line.rstrip("\r")[:LINE_CHARS] for line in text.split("\n"))
        return cls(lines, text, command, exit_code)


class Located(Struct, frozen=True):
    """A diagnostic and the lines it was read from, 0-based and inclusive."""

    diagnostic: Diagnostic
    first: int
    last: int
    otherwise: bool = False
    """It counts only where nothing else was read from these lines."""


class Parser(Struct, frozen=True, kw_only=True):
    """A tool, and how its output is read."""

    name: str
    commands: tuple[str, ...] = ()
    """Words that start the tool on a command line, `pytest` or `go test`; none = its name."""
    marks: tuple[str, ...] = ()
    """Texts, not patterns. The output is the tool's where it holds any of them, although the
    command does not name the tool: `make lint`, `npm test`."""

    def read(self, log: Log) -> Iterable[Located]:
        """What it finds. Never raises; what it does not know it leaves alone."""
        raise NotImplementedError

    @property
    def programs(self) -> tuple[str, ...]:
        return self.commands or (self.name,)

    def recognises(self, log: Log) -> bool:
        return self.starts(log) or any(mark in log.text for mark in self.marks)

    def starts(self, log: Log) -> bool:
        """Whether the command line names the tool."""
        words = log.words
        return any(f" {name} " in words for name in self.programs)


class OwnParser(Parser, frozen=True, kw_only=True):
    """A parser that no row describes."""

    by: Callable[[Log], Iterable[Located]]

    def read(self, log: Log) -> Iterable[Located]:
        return self.by(log)
