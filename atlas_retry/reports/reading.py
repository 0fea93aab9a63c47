"""Reads the input of `--from`: a report of atlas or another runner, JUnit, SARIF, or a log."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from atlas_retry.diagnostics import report_formats
from atlas_retry.diagnostics.tools import tool_of
from atlas_retry.diagnostics.values import UnknownReportError
from atlas_retry.errors import UsageError
from atlas_retry.model import (
    Diagnostic,
    Gate,
    GateResult,
    Kind,
    Status,
    Validation,
    WorkspaceFacts,
)
from atlas_retry.reports import job_log
from atlas_retry.reports.documents import BATCH, LISTS, OWN_LIST, REPORT, RUN
from atlas_retry.reports.subject import Recorded

_T = TypeVar("_T")

STEMS = {
    Kind.FORMAT: ("format", "fmt", "style"),
    Kind.LINT: ("lint", "check", "type"),
    Kind.TEST: ("test", "unit"),
    Kind.PRE_COMMIT: ("precommit", "hook"),
    Kind.BUILD: ("build", "compile"),
    Kind.REVIEW: ("review",),
}
"""Prefixes of other names for the kinds."""

FOREIGN_KEYS = {"command", "kind", "exit_code", "stdout", "stderr", "name", "required"}
"""Keys read from another runner's result; other keys may have another meaning there."""


_OURS = {"results", *LISTS, "schema"}
"""Keys of a report of results; one that has nothing is meant as such, too."""
_KINDS = {name: kind.value for kind, name in OWN_LIST.items()}
"""Kind of the results in a list, for those that have none of their own."""


class _Result(msgspec.Struct, frozen=True):
    """Required keys of a result; other keys are optional."""

    command: str
    exit_code: int | None
    stdout: str | None
    stderr: str | None
    kind: str | None = None


class _Gate(msgspec.Struct, frozen=True):
    kind: str
    command: str = ""
    run: str = ""
    name: str = ""
    required: bool = True


class _Report(msgspec.Struct, frozen=True):
    workspace: WorkspaceFacts | None = None
    started_at: str = ""
    completed_at: str = ""
    duration_ms: int = 0
    gates: tuple[_Gate, ...] = ()


def kind_of(word: str) -> Kind:
    """The kind that a loosely spelled word means; `CUSTOM` if none."""
    plain = re.sub(r"[-_\s]", "", word.lower())
    return next((kind for kind, stems in STEMS.items() if plain.startswith(stems)), Kind.CUSTOM)


def read_report(content: bytes, *, source: str = "report") -> Recorded:
    """The failures in a report, JUnit, SARIF, the log of a CI job, or any log.

    A report's result needs only command, exit_code, stdout, stderr, and its kind if the list does
    not name one; unknown keys are ignored. JUnit, SARIF and plain logs have no command: theirs is
    empty. Raises UsageError with `source` and the place in it.
    """
    plain = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if plain.startswith(b"<"):
        return _machine_format(plain, source)
    document = _decoded(plain, source) if plain[:1] in (b"{", b"[", b"") else None
    if document is None:
        is_report = plain.startswith(b"{") and report_formats.read_any(plain) is not None
        return _machine_format(plain, source) if is_report else _log(content, source)
    if not isinstance(document, dict) or (document and document.keys().isdisjoint(_OURS)):
        return _machine_format(plain, source)
    return _recorded(document, source)


def _recorded(document: Mapping[str, object], source: str) -> Recorded:
    if document.get("schema") == BATCH:
        raise _refused(source, "a batch has several runs: use the report of one of them")
    if document.get("schema") == RUN:
        if not isinstance(final := document.get("final"), dict):
            raise _refused(f"{source}: $.final", "expected the run's last report")
        document = final
    report = _converted(document, _Report, source, "$")
    validation = Validation(
        results=tuple(_results(document, source)),
        started_at=report.started_at,
        completed_at=report.completed_at,
        duration_ms=report.duration_ms,
    )
    gates = []
    for gate in report.gates:
        kind, run = kind_of(gate.kind), gate.command or gate.run
        name = gate.name or kind.value
        gates.append(Gate(name=name, kind=kind, run=run, required=gate.required))
    return Recorded(validation=validation, workspace=report.workspace, gates=tuple(gates))


def _machine_format(content: bytes, source: str) -> Recorded:
    """One failed result for each tool that found a problem."""
    text = job_log.without_checkout(content.decode("utf-8", "replace"))
    try:
        report = report_formats.recognised(text.encode())
    except UnknownReportError as error:
        raise _refused(source, f"is {error}, a format that atlas does not read") from error
    except (ValueError, msgspec.DecodeError, RecursionError) as error:
        raise _refused(source, f"cannot be read: {error}") from error
    by_tool: dict[str, list[Diagnostic]] = {}
    for diagnostic in report.diagnostics:
        by_tool.setdefault(diagnostic.tool, []).append(diagnostic)
    failed = replace(FAILED, kind=Kind.LINT if report.ran is None else Kind.TEST)
    results = [
        replace(failed, name=tool, diagnostics=tuple(problems))
        for tool, problems in by_tool.items()
    ]
    return Recorded(validation=Validation(results=tuple(results)))


def _log(content: bytes, source: str) -> Recorded:
    if b"\0" in content:
        raise _refused(source, "is not a text file")
    text = content.decode("utf-8", "replace")
    results, before = tuple[GateResult, ...](), ""
    for step in job_log.steps(text):
        # `cmd || EXIT=$?` in one step and `exit $EXIT` in a later one keep the others running:
        # one that fails silently has the output of those before it
        is_silent = step.exit_code != 0 and not step.output.strip()
        results += (_step_result(replace(step, output=before) if is_silent else step),)
        before += step.output
    if results and all(result.success for result in results):
        if not job_log.says_failed(text):
            raise _refused(source, "is the log of a job in which no command failed")
        results = ()
    results = results or (replace(FAILED, name="log", stdout=job_log.unwrapped(text)),)
    return Recorded(validation=Validation(results=results))


def _step_result(step: job_log.JobStep) -> GateResult:
    name = tool_of(step.command.partition("\n")[0]) or "step"
    result = replace(FAILED, name=name, command=step.command, exit_code=step.exit_code)
    if step.exit_code == 0:
        return replace(result, status=Status.PASSED, success=True)
    status = Status.TIMED_OUT if step.exit_code is None else Status.FAILED
    return replace(result, status=status, stdout=step.output, error=step.why or None)


FAILED = GateResult(name="", kind=Kind.CUSTOM, command="", status=Status.FAILED, success=False)
"""A failure with an unknown command."""


def _decoded(content: bytes, source: str) -> object:
    """The document; None for a log, which may start like JSON."""
    # The standard library accepts lone surrogates and NaN, which other runners write.
    try:
        document = json.loads(content.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _refused(source, f"byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        if content.startswith(b"[") or error.msg == "Extra data":
            return None
        raise _refused(f"{source}:{error.lineno}:{error.colno}", f"{error.msg}") from error
    except (RecursionError, ValueError) as error:
        raise _refused(source, f"cannot be read as JSON: {error}") from error
    if not isinstance(document, dict | list):
        raise _refused(source, "expected an object")
    return document


def _results(document: Mapping[str, object], source: str) -> Iterator[GateResult]:
    ours = document.get("schema") == REPORT
    present = [name for name in (*LISTS, "results") if name in document]
    if not present:
        raise _refused(source, 'has neither "results" nor the lists of an atlas.report/1')
    for name in present:
        entries = _converted(document[name], list[dict[str, object]], source, f"$.{name}")
        for index, entry in enumerate(entries):
            foreign = {key: value for key, value in entry.items() if key in FOREIGN_KEYS}
            place = f"$.{name}[{index}]"
            yield _result(entry if ours else foreign, source, place, _KINDS.get(name, ""))


def _result(entry: dict[str, object], source: str, place: str, listed: str) -> GateResult:
    needed = _converted(entry, _Result, source, place)
    kind = kind_of(needed.kind or listed)
    status = entry.get("status")
    if status not in tuple(Status):
        status = Status.PASSED if needed.exit_code == 0 else Status.FAILED
    ours = entry | {
        "name": entry.get("name") or kind.value,
        "kind": kind,
        "stdout": needed.stdout or "",
        "stderr": needed.stderr or "",
        "status": status,
        "success": status in (Status.PASSED, Status.FLAKY, Status.SKIPPED),
    }
    return _converted(ours, GateResult, source, place)


def _converted(value: object, wanted: type[_T], source: str, place: str) -> _T:
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        reason, _, inner = str(error).partition(" - at `$")
        raise _refused(f"{source}: {place}{inner.rstrip('`')}", reason) from error


def _refused(place: str, why: str) -> UsageError:
    return UsageError(
        f"{place}: {why}",
        remedy='give a report of `atlas validate --json`, {"results": [{"kind", "command", '
        '"exit_code", "stdout", "stderr"}]}, JUnit, SARIF or another report that `atlas schema` '
        "lists, or the log of what failed",
    )
