"""Formats of the report files that gates can write, and of output for machines on stdout.

Each JSON format is one row; XML is in `report_xml`.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial

import msgspec
from msgspec import Struct

from atlas_retry.diagnostics.report_xml import XML_FORMATS, read_xml
from atlas_retry.diagnostics.table import LEVELS
from atlas_retry.diagnostics.values import Report, UnknownReportError
from atlas_retry.model import Diagnostic, Level, Region

_LEVELS = {
    **LEVELS,
    "1": Level.WARNING,
    **dict.fromkeys(("blocker", "critical", "major"), Level.ERROR),
}
"""ESLint uses numbers as severities, GitLab's Code Quality degrees of damage."""


class JsonFormat(Struct, frozen=True, kw_only=True):
    """Paths of a problem's fields: names joined by dots; of a list, the first item."""

    lists: tuple[str, ...]
    """The list that contains the problems, or two nested ones: a problem inherits the fields."""
    tool: str
    """The tool's name, or its path."""
    path: str
    message: str = "message"
    rule: str
    no_rule: str | None = None
    level: str = ""
    usual_level: Level = Level.ERROR
    place: str = ""
    """Start of the paths of its region."""
    region: str
    """Paths of line, column, end line and end column; `|` separates other ways to write one."""
    signature: str
    """Paths that a problem of this format has; with them the format is recognised."""
    zero_based: bool = False
    """Whether lines are counted from 0."""

    def read(self, content: bytes) -> Report:
        """Raises ValueError for other content."""
        return self.report(_decoded(content))

    def report(self, document: object) -> Report:
        """Raises ValueError for another document."""
        # in SARIF it is no problem if suppressed (§3.27.23) or not `fail` (§3.27.9)
        kept = (one for one in self.problems(document) if not one.get("suppressions"))
        failed = (one for one in kept if one.get("kind", "fail") == "fail")
        return Report(tuple(map(self._diagnostic, failed)))

    def problems(self, document: object) -> Iterator[dict[str, object]]:
        """Every problem, with the fields of what is around it."""
        name, *inner = self.lists
        whole = document if isinstance(document, dict) else {name: document}
        for one in msgspec.convert(whole.get(name), list[dict[str, object]]):
            # a SARIF run may have no results
            below = (
                msgspec.convert(one.get(inner[0]) or [], list[dict[str, object]]) if inner else [{}]
            )
            yield from (whole | one | problem for problem in below)

    def _diagnostic(self, one: Mapping[str, object]) -> Diagnostic:
        message = value_at(one, self.message)
        if not isinstance(message, str):
            raise ValueError("a problem without a message")  # noqa: TRY004 - not such a report
        level = value_at(one, self.level)
        is_usual = level in (None, "")
        line, column, end_line, end_column = (
            self._number(one, path) for path in self.region.split()
        )
        region = Region(
            start_line=line or 1, start_column=column, end_line=end_line, end_column=end_column
        )
        return Diagnostic(
            tool=(_text(one, self.tool) or self.tool).lower(),
            rule_id=_text(one, self.rule) or self.no_rule,
            level=self.usual_level if is_usual else _LEVELS.get(f"{level}".lower(), Level.ERROR),
            message=message,
            path=_text(one, self.path),
            region=region if line else None,
        )

    def _number(self, one: Mapping[str, object], path: str) -> int | None:
        """The number at the first of the ways to write it, counted from 1."""
        shift = 1 if self.zero_based and path.endswith("line") else 0
        for way in path.split("|"):
            value = value_at(one, self.place + way)
            if isinstance(value, int) and value + shift > 0:
                return value + shift
        return None


_FORMATS: Mapping[str, JsonFormat] = {
    # SARIF 2.1.0 §3.27
    "sarif": JsonFormat(
        lists=("runs", "results"),
        tool="tool.driver.name",
        path="locations.physicalLocation.artifactLocation.uri",
        message="message.text",
        rule="ruleId",
        level="level",
        usual_level=Level.WARNING,
        place="locations.physicalLocation.region.",
        region="startLine startColumn endLine endColumn",
        signature="message.text",
    ),
    # https://eslint.org/docs/latest/use/formatters/#json
    "eslint-json": JsonFormat(
        lists=("", "messages"),
        tool="eslint",
        path="filePath",
        rule="ruleId",
        level="severity",
        region="line column endLine endColumn",
        signature="filePath message",
    ),
    # https://docs.astral.sh/ruff/settings/#output-format
    "ruff-json": JsonFormat(
        lists=("",),
        tool="ruff",
        path="filename",
        rule="code",
        no_rule="invalid-syntax",
        region="location.row location.column end_location.row end_location.column",
        signature="filename message location.row",
    ),
    # https://mypy.readthedocs.io/en/stable/command_line.html#cmdoption-mypy-output
    "mypy-json": JsonFormat(
        lists=("",),
        tool="mypy",
        path="file",
        rule="code",
        level="severity",
        region="line column end_line end_column",
        signature="file line message severity",
    ),
    # https://microsoft.github.io/pyright/#/command-line?id=json-output
    "pyright-json": JsonFormat(
        lists=("generalDiagnostics",),
        tool="pyright",
        path="file",
        rule="rule",
        level="severity",
        region="range.start.line range.start.character range.end.line range.end.character",
        zero_based=True,
        signature="file message severity",
    ),
    # https://golangci-lint.run/docs/configuration/file/#output-configuration
    "golangci-json": JsonFormat(
        lists=("Issues",),
        tool="golangci-lint",
        path="Pos.Filename",
        message="Text",
        rule="FromLinter",
        level="Severity",
        region="Pos.Line Pos.Column LineRange.To -",
        signature="FromLinter Text Pos.Filename",
    ),
    # https://github.com/reviewdog/reviewdog/tree/master/proto/rdf
    "rdjson": JsonFormat(
        lists=("diagnostics",),
        tool="source.name",
        path="location.path",
        rule="code.value",
        level="severity",
        place="location.range.",
        region="start.line start.column end.line end.column",
        signature="message location.path",
    ),
    # https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
    "gitlab-codequality": JsonFormat(
        lists=("",),
        tool="codequality",
        path="location.path",
        message="description",
        rule="check_name",
        level="severity",
        place="location.",
        region="lines.begin|positions.begin.line positions.begin.column"
        " lines.end|positions.end.line positions.end.column",
        signature="description location.path",
    ),
}


def _decoded(content: bytes) -> object:
    """The document; of several lines with one each, all of them as a list."""
    try:
        document: object = msgspec.json.decode(content)
    except msgspec.DecodeError:
        lines = [line for line in content.splitlines() if line.startswith(b"{")]
        if not lines or len(lines) < sum(map(bool, map(bytes.strip, content.splitlines()))) / 2:
            raise
        return [msgspec.json.decode(line) for line in lines]
    has_list = isinstance(document, dict) and any(isinstance(v, list) for v in document.values())
    return [document] if isinstance(document, dict) and not has_list else document


def value_at(value: object, path: str) -> object:
    """The value at a path of names joined by dots, for a list in its first item; else None."""
    for name in path.split(".") if path else ("",):
        first = value[0] if isinstance(value, list) and value else value
        value = first.get(name) if name and isinstance(first, dict) else None
    return value


def _text(one: Mapping[str, object], path: str) -> str | None:
    value = value_at(one, path)
    return value if isinstance(value, str) and value else None


_CONTENT = {
    "sarif": ("runs",),
    "pyright-json": ("generalDiagnostics",),
    "golangci-json": ("Issues",),
    "rdjson": ("diagnostics",),
}
"""Lists that recognise a document, even if they are empty."""


def recognised(content: bytes) -> Report:
    """The report, by what it is. Raises UnknownReportError, which names what it is, for others."""
    plain = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if plain.startswith(b"<"):
        return read_xml(plain)
    document = _decoded(plain)
    for name, row in _FORMATS.items():
        lists = _CONTENT.get(name, ())
        is_listed = isinstance(document, dict) and any(key in document for key in lists)
        with suppress(ValueError, msgspec.ValidationError):
            first = next(row.problems(document), {})
            is_signed = all(value_at(first, path) is not None for path in row.signature.split())
            if is_listed or is_signed:
                return row.report(document)
    raise UnknownReportError(_described(document))


def _described(document: object) -> str:
    if document == []:
        return "an empty list"
    first = document[0] if isinstance(document, list) and document else document
    keys = ", ".join(list(first)[:4]) if isinstance(first, dict) else type(first).__name__
    return f"JSON with {keys}" if keys else "empty JSON"


REPORT_FORMATS: Mapping[str, Callable[[bytes], Report]] = {
    **{name: partial(read_xml, name=name) for name in XML_FORMATS},
    **{name: row.read for name, row in _FORMATS.items()},
}
"""Readers of the formats, which raise ValueError for other content."""


def read_report(name: str, content: bytes) -> Report | None:
    """The report, or None if the format is unknown or the content does not match it."""
    read = REPORT_FORMATS.get(name)
    try:
        return read(content.removeprefix(b"\xef\xbb\xbf")) if read else None
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def read_any(content: bytes) -> Report | None:
    """The report that the content is, whatever its format; None if it is none."""
    try:
        return recognised(content)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None


def kind_of(content: bytes) -> str | None:
    """What a report that is not read is, as a refusal names it; None for a known one."""
    try:
        recognised(content)
    except UnknownReportError as error:
        return str(error)
    except (ValueError, msgspec.DecodeError, RecursionError):
        return "neither XML nor JSON"
    return None
