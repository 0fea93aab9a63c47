"""What comes in by `--from`: a report of ours or another runner's, JUnit, SARIF, or a log."""

import json
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TypeVar

import msgspec

from atlas_retry.diagnostics import report_formats
from atlas_retry.diagnostics.stamps import unstamped
from atlas_retry.diagnostics.tools import tool_of
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
from atlas_retry.reports.documents import BATCH, LISTS, REPORT, RUN
from atlas_retry.reports.subject import Recorded

_T = TypeVar("_T")

KINDS = {
    "formatter": Kind.FORMAT,
    "formatting": Kind.FORMAT,
    "fmt": Kind.FORMAT,
    "style": Kind.FORMAT,
    "linter": Kind.LINT,
    "linting": Kind.LINT,
    "check": Kind.LINT,
    "type-check": Kind.LINT,
    "typecheck": Kind.LINT,
    "types": Kind.LINT,
    "tests": Kind.TEST,
    "testing": Kind.TEST,
    "unit-test": Kind.TEST,
    "unit-tests": Kind.TEST,
    "precommit": Kind.PRE_COMMIT,
    "hook": Kind.PRE_COMMIT,
    "hooks": Kind.PRE_COMMIT,
    "compile": Kind.BUILD,
    "builds": Kind.BUILD,
}
"""Other people's words for our kinds; a word that is neither ours nor here is a custom gate."""

FOREIGN_KEYS = {"command", "kind", "exit_code", "stdout", "stderr", "name", "required"}
"""What is read of another runner's result; the same word may mean anything else there."""


class _Result(msgspec.Struct, frozen=True):
    """What every result must hold; the rest of ours is read if it is there."""

    command: str
    kind: str
    exit_code: int | None
    stdout: str | None
    stderr: str | None


class _Gate(msgspec.Struct, frozen=True):
    kind: str
    command: str = ""
    run: str = ""
    name: str = ""
    required: bool = True


class _Times(msgspec.Struct, frozen=True):
    workspace: WorkspaceFacts | None = None
    started_at: str = ""
    completed_at: str = ""
    duration_ms: int = 0


def kind_of(word: str) -> Kind:
    """The kind that a loosely spelled word means, `CUSTOM` if none."""
    plain = "-".join(word.lower().replace("_", " ").replace("-", " ").split())
    plain = plain.removesuffix("-results").removesuffix("-commands")
    known = next((kind for kind in Kind if kind.value == plain), Kind.CUSTOM)
    return KINDS.get(plain, known)


def read_report(content: bytes, *, source: str = "report") -> Recorded:
    """What failed, as `content` says: a report, JUnit, SARIF, the log of a CI job, or any log.

    Of a report's result only command, kind, exit_code, stdout and stderr are required; unknown keys
    are ignored. JUnit, SARIF and a plain log name no command: their results have an empty one.
    Raises UsageError naming `source` and the place within it.
    """
    plain = content.removeprefix(b"\xef\xbb\xbf").lstrip()
    if plain.startswith(b"<"):
        return _machine_format("junit", plain, source)
    document = _decoded(plain, source) if plain[:1] in (b"{", b"[", b"") else None
    if document is None:
        return _log(content, source)
    if "runs" in document and document.get("schema") != BATCH:
        return _machine_format("sarif", plain, source)
    return _report(document, source)


def _report(document: Mapping[str, object], source: str) -> Recorded:
    document = _final(document, source)
    head = _converted(document, _Times, source, "$")
    results = tuple(_results(document, source))
    return Recorded(
        validation=Validation(
            results=results,
            started_at=head.started_at,
            completed_at=head.completed_at,
            duration_ms=head.duration_ms,
        ),
        workspace=head.workspace,
        gates=tuple(_gates(document, source)),
    )


def _machine_format(name: str, content: bytes, source: str) -> Recorded:
    """One failed result for each tool that found a problem."""
    text = job_log.without_checkout(content.decode("utf-8", "replace"))
    report = report_formats.read_report(name, text.encode())
    if report is None:
        raise _refused(source, f"cannot be read as {name}")
    kind = Kind.TEST if name == "junit" else Kind.LINT
    by_tool: dict[str, list[Diagnostic]] = {}
    for diagnostic in report.diagnostics:
        by_tool.setdefault(diagnostic.tool, []).append(diagnostic)
    return Recorded(
        validation=Validation(
            results=tuple(
                _failed(tool, kind, diagnostics=tuple(found)) for tool, found in by_tool.items()
            )
        )
    )


def _log(content: bytes, source: str) -> Recorded:
    if b"\0" in content:
        raise _refused(source, "is no text")
    text = content.decode("utf-8", "replace")
    found = tuple(_step_result(step) for step in job_log.steps(text))
    if found and all(result.success for result in found):
        raise _refused(source, "is the log of a job in which no command failed")
    plain = job_log.without_checkout(unstamped(text.replace("\r\n", "\n")))
    results = found or (_failed("log", Kind.CUSTOM, stdout=plain),)
    return Recorded(validation=Validation(results=results))


def _step_result(step: job_log.JobStep) -> GateResult:
    status = Status.TIMED_OUT if step.exit_code is None else Status.FAILED
    passed = step.exit_code == 0
    return GateResult(
        name=tool_of(step.command.partition("\n")[0]) or "step",
        kind=Kind.CUSTOM,
        command=step.command,
        status=Status.PASSED if passed else status,
        success=passed,
        exit_code=step.exit_code,
        stdout="" if passed else step.output,
        error=step.why or None,
    )


def _failed(
    name: str, kind: Kind, *, stdout: str = "", diagnostics: tuple[Diagnostic, ...] = ()
) -> GateResult:
    """A failure of which nobody knows the command."""
    return GateResult(
        name=name,
        kind=kind,
        command="",
        status=Status.FAILED,
        success=False,
        stdout=stdout,
        diagnostics=diagnostics,
    )


def _decoded(content: bytes, source: str) -> Mapping[str, object] | None:
    """The document; None for a log, whose first line or lines may look like JSON."""
    # The standard library takes lone surrogates and NaN, which other runners do write.
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
    if not isinstance(document, dict):
        raise _refused(source, "expected an object")
    return document


def _final(document: Mapping[str, object], source: str) -> Mapping[str, object]:
    schema = document.get("schema")
    if schema == BATCH:
        raise _refused(source, "a batch holds several runs: give the report of one of them")
    if schema != RUN:
        return document
    final = document.get("final")
    if not isinstance(final, dict):
        raise _refused(f"{source}: $.final", "expected the run's last report")
    return final


def _results(document: Mapping[str, object], source: str) -> Iterator[GateResult]:
    ours = document.get("schema") == REPORT
    present = [name for name in (*LISTS, "results") if name in document]
    if not present:
        raise _refused(source, 'holds neither "results" nor the lists of an atlas.report/1')
    entries = chain.from_iterable(_entries(document, name, source) for name in present)
    for place, entry in entries:
        yield _result(entry if ours else _readable(entry), source, place)


def _readable(entry: dict[str, object]) -> dict[str, object]:
    return {key: entry[key] for key in FOREIGN_KEYS & entry.keys()}


def _entries(
    document: Mapping[str, object], name: str, source: str
) -> Iterator[tuple[str, dict[str, object]]]:
    entries = document.get(name, [])
    if not isinstance(entries, list):
        raise _refused(f"{source}: $.{name}", "expected a list")
    for index, entry in enumerate(entries):
        place = f"$.{name}[{index}]"
        yield place, _converted(entry, dict[str, object], source, place)


def _result(entry: dict[str, object], source: str, place: str) -> GateResult:
    needed = _converted(entry, _Result, source, place)
    kind = kind_of(needed.kind)
    status = _status(entry, needed.exit_code)
    ours = entry | {
        "name": entry.get("name") or kind.value,
        "kind": kind,
        "stdout": needed.stdout or "",
        "stderr": needed.stderr or "",
        "status": status,
        "success": status in (Status.PASSED, Status.FLAKY, Status.SKIPPED),
    }
    return _converted(ours, GateResult, source, place)


def _status(entry: Mapping[str, object], exit_code: int | None) -> object:
    if entry.get("status") in tuple(Status):
        return entry["status"]
    return Status.PASSED if exit_code == 0 else Status.FAILED


def _gates(document: Mapping[str, object], source: str) -> Iterator[Gate]:
    for place, entry in _entries(document, "gates", source):
        gate = _converted(entry, _Gate, source, place)
        kind = kind_of(gate.kind)
        run = gate.command or gate.run
        yield Gate(name=gate.name or kind.value, kind=kind, run=run, required=gate.required)


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
        '"exit_code", "stdout", "stderr"}]}, JUnit, SARIF, or the log of what failed',
    )
