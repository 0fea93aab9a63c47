"""Reads the JSON that tools write for machines. Each format is a few typed fields and one loop."""

from collections.abc import Iterator

import msgspec

from atlas_retry.diagnostics.table import LEVELS
from atlas_retry.model import Diagnostic, Level, Region


class _Camel(msgspec.Struct, rename="camel"):
    """Fields are camel case in the document; what is not named here is skipped."""


def _region(
    line: int | None, column: int | None, end_line: int | None = None, end_column: int | None = None
) -> Region | None:
    if not line or line < 1:
        return None
    return Region(
        start_line=line,
        start_column=column or None,
        end_line=end_line or None,
        end_column=end_column or None,
    )


def _level(word: str | None) -> Level:
    return LEVELS.get((word or "").lower(), Level.ERROR)


class _SarifText(_Camel):
    text: str = ""


class _SarifRegion(_Camel):
    start_line: int | None = None
    start_column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


class _SarifArtifact(_Camel):
    uri: str = ""


class _SarifPlace(_Camel):
    artifact_location: _SarifArtifact = msgspec.field(default_factory=_SarifArtifact)
    region: _SarifRegion = msgspec.field(default_factory=_SarifRegion)


class _SarifLocation(_Camel):
    physical_location: _SarifPlace = msgspec.field(default_factory=_SarifPlace)


class _SarifResult(_Camel):
    rule_id: str | None = None
    level: str = "warning"
    kind: str = "fail"
    message: _SarifText = msgspec.field(default_factory=_SarifText)
    locations: list[_SarifLocation] = msgspec.field(default_factory=list)
    suppressions: list[msgspec.Raw] | None = None


class _SarifDriver(_Camel):
    name: str = "sarif"


class _SarifTool(_Camel):
    driver: _SarifDriver = msgspec.field(default_factory=_SarifDriver)


class _SarifRun(_Camel):
    tool: _SarifTool = msgspec.field(default_factory=_SarifTool)
    results: list[_SarifResult] | None = None


class _Sarif(_Camel):
    runs: list[_SarifRun]


def sarif(content: bytes) -> Iterator[Diagnostic]:
    """SARIF 2.1.0 §3.13; what is suppressed (§3.27.23) or is no failure (§3.27.9) is left out."""
    for run in msgspec.json.decode(content, type=_Sarif).runs:
        for result in run.results or ():
            if result.kind == "fail" and not result.suppressions:
                yield _sarif_result(run.tool.driver.name, result)


def _sarif_result(tool: str, result: _SarifResult) -> Diagnostic:
    place = result.locations[0].physical_location if result.locations else _SarifPlace()
    told = place.region
    return Diagnostic(
        tool=tool.lower(),
        rule_id=result.rule_id,
        level=_level(result.level),
        message=result.message.text,
        path=place.artifact_location.uri or None,
        region=_region(told.start_line, told.start_column, told.end_line, told.end_column),
    )


class _EslintMessage(_Camel):
    message: str
    severity: int = 2
    rule_id: str | None = None
    line: int | None = None
    column: int | None = None
    end_line: int | None = None
    end_column: int | None = None


class _EslintFile(_Camel):
    file_path: str
    messages: list[_EslintMessage]


def eslint(content: bytes) -> Iterator[Diagnostic]:
    """https://eslint.org/docs/latest/use/formatters/#json."""
    for file in msgspec.json.decode(content, type=list[_EslintFile]):
        for told in file.messages:
            yield Diagnostic(
                tool="eslint",
                rule_id=told.rule_id,
                level=Level.WARNING if told.severity == 1 else Level.ERROR,
                message=told.message,
                path=file.file_path,
                region=_region(told.line, told.column, told.end_line, told.end_column),
            )


class _RuffPlace(msgspec.Struct):
    row: int
    column: int


class _RuffMessage(msgspec.Struct):
    message: str
    filename: str
    code: str | None = None
    location: _RuffPlace | None = None
    end_location: _RuffPlace | None = None


def ruff(content: bytes) -> Iterator[Diagnostic]:
    """https://docs.astral.sh/ruff/settings/#output-format."""
    for told in msgspec.json.decode(content, type=list[_RuffMessage]):
        start, end = told.location, told.end_location
        yield Diagnostic(
            tool="ruff",
            rule_id=told.code or "invalid-syntax",
            message=told.message,
            path=told.filename,
            region=_region(
                start.row if start else None,
                start.column if start else None,
                end.row if end else None,
                end.column if end else None,
            ),
        )


class _MypyMessage(msgspec.Struct):
    file: str
    line: int
    message: str
    column: int = -1
    hint: str | None = None
    code: str | None = None
    severity: str = "error"


def mypy(content: bytes) -> Iterator[Diagnostic]:
    """One object a line (`mypy -O json`), columns from 0; other lines are skipped."""
    for line in content.splitlines():
        if line.startswith(b'{"file":'):
            told = msgspec.json.decode(line, type=_MypyMessage)
            yield Diagnostic(
                tool="mypy",
                rule_id=told.code,
                level=_level(told.severity),
                message="\n".join(part for part in (told.message, told.hint) if part),
                path=told.file,
                region=_region(told.line, told.column + 1),
            )


class _PyrightPlace(msgspec.Struct):
    line: int
    character: int


class _PyrightRange(msgspec.Struct):
    start: _PyrightPlace
    end: _PyrightPlace


class _PyrightMessage(msgspec.Struct):
    file: str
    message: str
    severity: str = "error"
    rule: str | None = None
    range: _PyrightRange | None = None


class _Pyright(_Camel):
    general_diagnostics: list[_PyrightMessage]


def pyright(content: bytes) -> Iterator[Diagnostic]:
    """https://microsoft.github.io/pyright/#/command-line?id=json-output; counts from 0."""
    for told in msgspec.json.decode(content, type=_Pyright).general_diagnostics:
        start = told.range.start if told.range else None
        end = told.range.end if told.range else None
        yield Diagnostic(
            tool="pyright",
            rule_id=told.rule,
            level=_level(told.severity),
            message=told.message,
            path=told.file,
            region=_region(
                start.line + 1 if start else None,
                start.character + 1 if start else None,
                end.line + 1 if end else None,
                end.character + 1 if end else None,
            ),
        )


class _RdPosition(msgspec.Struct):
    line: int = 0
    column: int = 0


class _RdRange(msgspec.Struct):
    start: _RdPosition = msgspec.field(default_factory=_RdPosition)
    end: _RdPosition = msgspec.field(default_factory=_RdPosition)


class _RdLocation(msgspec.Struct):
    path: str = ""
    range: _RdRange = msgspec.field(default_factory=_RdRange)


class _RdCode(msgspec.Struct):
    value: str = ""


class _RdSource(msgspec.Struct):
    name: str = ""


class _RdDiagnostic(msgspec.Struct):
    message: str
    location: _RdLocation = msgspec.field(default_factory=_RdLocation)
    severity: str | int | None = None
    code: _RdCode = msgspec.field(default_factory=_RdCode)
    source: _RdSource = msgspec.field(default_factory=_RdSource)


class _RdResult(msgspec.Struct):
    diagnostics: list[_RdDiagnostic]
    severity: str | int | None = None
    source: _RdSource = msgspec.field(default_factory=_RdSource)


_RD_LEVELS: dict[str | int | None, Level] = {
    "WARNING": Level.WARNING,
    "INFO": Level.NOTE,
    2: Level.WARNING,
    3: Level.NOTE,
}


def rdjson(content: bytes) -> Iterator[Diagnostic]:
    """Reviewdog's diagnostic format, the exchange format of tools without one of their own.

    https://github.com/reviewdog/reviewdog/tree/master/proto/rdf
    """
    result = msgspec.json.decode(content, type=_RdResult)
    for told in result.diagnostics:
        start, end = told.location.range.start, told.location.range.end
        yield Diagnostic(
            tool=told.source.name or result.source.name or "rdjson",
            rule_id=told.code.value or None,
            level=_RD_LEVELS.get(told.severity or result.severity, Level.ERROR),
            message=told.message,
            path=told.location.path or None,
            region=_region(start.line, start.column, end.line, end.column),
        )
