"""Input and output values of the parsers."""

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct

from atlas_retry.model import Diagnostic, Kind
from atlas_retry.patterns import regex

_BETWEEN_WORDS = regex(r"[\s/;&|()='\"]+")
_VERSION = regex(r"(?<=\w)@[\w.]+")

LINE_CHARS = 2_000
"""Longer lines are cut before parsing; only minified code has them, not messages."""

THRESHOLD_RULE = "fail-under"
"""Rule of the problem that coverage or a score is too low."""


Holds = Callable[[str], bool]
"""Whether the workspace has a file of this path."""


def no_file(_: str) -> bool:
    """Of a workspace that cannot be asked."""
    return False


def no_files(_: str) -> Sequence[str]:
    """Of a workspace that cannot be asked."""
    return ()


class Declared(Struct, frozen=True, kw_only=True):
    """Packages that the project's own files declare, and the commands that install them.

    A command is empty if no lock file identifies it.
    """

    python: frozenset[str] = frozenset()
    """Names of distributions, in lower case with hyphens."""
    npm: frozenset[str] = frozenset()
    """Packages that are not in `node_modules`."""
    gems: frozenset[str] = frozenset()
    own: frozenset[str] = frozenset()
    """Modules that installing the project itself makes importable."""
    services: tuple[tuple[int, str], ...] = ()
    """Ports and images of the services that CI starts, and that do not listen here."""
    install_python: str = ""
    install_npm: str = ""


class ToolOutput(Struct, frozen=True, kw_only=True):
    """The result of one command, without control sequences."""

    command: str
    kind: Kind = Kind.CUSTOM
    exit_code: int | None = None
    """Negative: ended by that signal. None: stopped by atlas."""
    stdout: str = ""
    stderr: str = ""
    parser: str | None = None
    """A key of `PARSERS` or a name in `custom`; None = recognise the tools."""
    custom: tuple[tuple[str, str], ...] = ()
    """Name and regular expression with the groups path, line, column, rule, level, message."""
    report: tuple[str, bytes] | None = None
    """A key of `REPORT_FORMATS` and the content of the file."""
    trusts_exit_code: bool = False
    """Whether exit code 0 is a pass, whatever a test runner counts."""
    root: str | None = None
    """Absolute path of the workspace; paths below it are made relative to it."""
    cwd: str = "."
    """Where the command ran, relative to the root."""
    holds: Holds = no_file
    """Called only with paths that may be relative to another folder than `cwd`."""
    packages: Callable[[], Mapping[str, str]] = dict
    """Folders of the workspace's packages by name."""
    endings: Callable[[str], Sequence[str]] = no_files
    """Files of the workspace whose path ends so."""
    project_names: Callable[[], frozenset[str]] = frozenset
    """Top-level modules of the project; a missing one is not the fault of the environment."""
    declared: Callable[[], Declared] = Declared
    """Both are called only if something is missing, because they read folders and manifests."""

    @property
    def is_open(self) -> bool:
        """Whether problems that no parser knows are read: it failed, and names no parser."""
        return self.parser is None and self.exit_code != 0


class NotInstalled(Struct, frozen=True, kw_only=True):
    """What is not installed but required."""

    sentence: str
    """Includes how to install it."""
    command: str | None = None
    """Installs it; None if none is known."""


class Findings(Struct, frozen=True, kw_only=True):
    """The parsed output."""

    diagnostics: tuple[Diagnostic, ...] = ()
    """In order, without duplicates; without symbol and fingerprint."""
    beyond: int = 0
    """Number of further problems in the output."""
    cut: bool = False
    """Whether part of the output was not read, so there may be more problems."""
    ran: bool | None = None
    """Whether any test ran; None if no test tool reported it."""
    vacuous: bool = False
    """Whether it is a test gate in which no test ran."""
    threshold: bool = False
    """Whether everything passed but a coverage or score threshold."""
    environment: bool = False
    """Whether the environment caused the failure, according to the output."""
    not_installed: NotInstalled | None = None
    counted: str = ""
    """Failures that a test runner counted although the command exited with 0: `1 failed`."""
    unknown_report: str | None = None
    """What the gate's report file is, if it is of no kind that is read."""


class Report(Struct, frozen=True):
    """The content of a report file."""

    diagnostics: tuple[Diagnostic, ...]
    ran: bool | None = None
    """Whether any test ran; None if the format has no tests."""


class UnknownReportError(ValueError):
    """A report of a kind that atlas does not read; its text names the kind."""


class Log(Struct, frozen=True):
    """The lines of one output, with command and exit code."""

    lines: tuple[str, ...]
    text: str
    command: str = ""
    exit_code: int | None = None

    @property
    def words(self) -> str:
        """The words of the command line, joined by spaces, without folders and versions."""
        return f" {' '.join(_BETWEEN_WORDS.split(_VERSION.sub('', self.command)))} "

    @classmethod
    def of(cls, text: str, command: str = "", exit_code: int | None = None) -> "Log":
        """Split text only at newlines, so that line numbers match those of editors."""
        lines = tuple(line.rstrip("\r")[:LINE_CHARS] for line in text.split("\n"))
        return cls(lines, text, command, exit_code)


class Located(Struct, frozen=True):
    """A diagnostic and the lines it was read from, 0-based and inclusive."""

    diagnostic: Diagnostic
    first: int
    last: int
    otherwise: bool = False
    """Whether it counts only if nothing else was read from these lines."""


class Parser(Struct, frozen=True, kw_only=True):
    """A tool and the parser of its output."""

    name: str
    commands: tuple[str, ...] = ()
    """Words that start the tool on a command line, `pytest` or `go test`; empty = its name."""
    marks: tuple[str, ...] = ()
    """Plain texts, one of which identifies the output of the tool if the command does not name it:
    `make lint`, `npm test`."""

    def read(self, log: Log) -> Iterable[Located]:
        """The problems found. Never raises; ignores other lines."""
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
    """A parser that is not a row of patterns."""

    by: Callable[[Log], Iterable[Located]]

    def read(self, log: Log) -> Iterable[Located]:
        return self.by(log)


def parses(
    name: str, *, commands: tuple[str, ...] = (), marks: tuple[str, ...] = ()
) -> Callable[[Callable[[Log], Iterable[Located]]], OwnParser]:
    """Make a function the parser of a tool, with names and marks as in `Parser`."""
    return lambda read: OwnParser(name=name, commands=commands, marks=marks, by=read)
