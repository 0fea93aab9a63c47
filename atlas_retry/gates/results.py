"""Turn the end of a gate's command into status, triage and diagnostics. Runs nothing."""

import os
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path, PurePosixPath

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics import Declared, Findings, ToolOutput, diagnose, missing_program
from atlas_retry.diagnostics.paths import ToolPaths
from atlas_retry.errors import near
from atlas_retry.events import seconds_of
from atlas_retry.gates.logs import logged
from atlas_retry.gates.packages import Layout
from atlas_retry.model import (
    CANNOT_EXECUTE,
    NOT_FOUND,
    OWN_JUNIT,
    Diagnostic,
    Gate,
    GateResult,
    Kind,
    Status,
)
from atlas_retry.process import Completed, Ended
from atlas_retry.reading import read_file, read_text
from atlas_retry.text.redaction import clean, redact
from atlas_retry.text.units import counted

LISTEN_S = 0.2
_LOST = "is the exit code lost in a pipe? (`set -o pipefail`, or `exit_code: trust` on the gate)"
MAX_REPORT_BYTES = 16 << 20


class OutputContext(Struct, frozen=True, kw_only=True):
    """Context to read a gate's output in."""

    root: Path
    secrets: frozenset[str] = frozenset()
    """Values of secret-looking variables, which are redacted in results."""
    parsers: tuple[tuple[str, str], ...] = ()
    locate: Callable[[str], Path | None] | None = None
    """Finds a file of the workspace that a gate wrote in a copy."""


def redacted_gate(gate: Gate, secrets: frozenset[str] = frozenset()) -> Gate:
    """The gate as it may be printed and logged: without the secrets in its commands."""
    run, fix, recheck = (
        line and redact(line, secrets) for line in (gate.run, gate.fix, gate.recheck)
    )
    env = tuple(
        (name, redact(f"{name}={text}", secrets).partition("=")[2]) for name, text in gate.env
    )
    return replace(gate, run=run or "", fix=fix, recheck=recheck, env=env)


def result_of(gate: Gate, completed: Completed, reading: OutputContext) -> GateResult:
    """The result of a gate whose command has ended."""
    stdout = redact(clean(completed.stdout.text), reading.secrets)
    stderr = redact(clean(completed.stderr.text), reading.secrets)
    findings = _findings(gate, completed, reading, stdout, stderr)
    broken = _why_broken(gate, completed, stderr, findings)
    status = Status.FAILED
    if broken:
        status = Status.BROKEN
    elif completed.ended in (Ended.TIMED_OUT, Ended.IDLE):
        status = Status.TIMED_OUT
    elif gate.kind is Kind.TEST and findings.vacuous:
        status = Status.VACUOUS
    elif completed.exit_code == 0 and not findings.counted:
        status = Status.PASSED
    log_dir = completed.command.log_dir
    return GateResult(
        name=gate.name,
        kind=gate.kind,
        command=redact(gate.run, reading.secrets),
        cwd=gate.cwd,
        required=gate.required,
        status=status,
        success=status is Status.PASSED,
        exit_code=completed.exit_code,
        stdout=stdout,
        stderr=stderr,
        output_omitted_bytes=completed.stdout.omitted_bytes + completed.stderr.omitted_bytes,
        log_path=str(log_dir) if log_dir and log_dir.is_dir() else None,
        duration_ms=round(completed.duration_s * 1000),
        error=_error(status, completed, findings, broken),
        remedy=findings.not_installed.command if broken and findings.not_installed else None,
        started_at=completed.started_at,
        completed_at=completed.completed_at,
        diagnostics=_anchored(findings.diagnostics, reading.root),
        beyond=findings.beyond,
        at_least=findings.cut,
        notes=tuple(_notes(gate, findings, completed.survivors)),
        triage=_triage(status, findings),
    )


def _notes(gate: Gate, findings: Findings, left: Sequence[str]) -> Iterator[str]:
    if gate.cannot_fail:
        yield f"optional: `{gate.cannot_fail}` makes it exit with 0 whatever it finds"
    if left:
        yield f"processes still running after its end were stopped: {', '.join(left)}"
    if gate.report and findings.unknown_report:
        kind = findings.unknown_report
        yield f"{gate.report.path} is {kind}, which atlas does not read: only the output counts"


def skipped(gate: Gate, why: str) -> GateResult:
    """The result of a gate that was not run, which fails nothing."""
    return GateResult(
        name=gate.name,
        kind=gate.kind,
        command=redact(gate.run),
        cwd=gate.cwd,
        required=gate.required,
        status=Status.SKIPPED,
        success=True,
        error=why,
    )


def changing(
    result: GateResult, paths: Sequence[str], how: str = "", *, who: str = "it"
) -> GateResult:
    """The result of a gate that fails because it changed files."""
    files = "1 file" if len(paths) == 1 else f"{len(paths)} files"
    return replace(
        result,
        status=Status.FAILED,
        success=False,
        triage="code",
        error=f"{who} changed {files}{how}: {', '.join(paths[:5])}",
    )


def with_diagnostics(result: GateResult, reading: OutputContext) -> GateResult:
    """A result that another runner recorded, with its output parsed."""
    if result.success or any(d.fingerprint for d in result.diagnostics):
        return result
    if result.diagnostics:  # from a machine-readable format
        layout, holds = Layout(reading.root), partial(_holds, reading.root)
        paths = ToolPaths(root=str(reading.root), holds=holds, endings=layout.endings)
        placed = tuple(map(paths.placed, result.diagnostics))
        return replace(result, diagnostics=_anchored(placed, reading.root))
    stdout, stderr = (
        redact(clean(text), reading.secrets) for text in (result.stdout, result.stderr)
    )
    output = _output(result.command, result.kind, result.exit_code, reading)
    findings = diagnose(replace(output, stdout=stdout, stderr=stderr))
    return replace(
        result,
        stdout=stdout,
        stderr=stderr,
        diagnostics=_anchored(findings.diagnostics, reading.root),
        beyond=findings.beyond,
        at_least=findings.cut or result.output_omitted_bytes > 0,
        triage=_triage(result.status, findings),
    )


def _findings(
    gate: Gate, completed: Completed, reading: OutputContext, stdout: str, stderr: str
) -> Findings:
    """Findings in the tool's output; none if it passed and is not a test gate with output."""
    silent = not (stdout or stderr or gate.report)
    if completed.exit_code == 0 and (gate.kind is not Kind.TEST or silent):
        return Findings()

    output = replace(
        _output(gate.run, gate.kind, completed.exit_code, reading, gate.cwd),
        stdout=stdout,
        stderr=stderr,
        parser=gate.parser,
        report=_report_of(gate, reading, completed),
        trusts_exit_code=gate.trusts_exit_code,
        declared=cache(partial(_declared, reading.root, gate.cwd)),
    )
    is_long = completed.stdout.omitted_bytes or completed.stderr.omitted_bytes
    if not is_long or completed.exit_code == 0 or output.report:
        return diagnose(output)
    if completed.exit_code is None:
        return replace(diagnose(output), cut=True)  # it was stopped while it was still printing
    # a long output is read from its logs, and only the diagnostics are redacted
    stdout, stderr, is_whole = logged(completed)
    findings = diagnose(replace(output, stdout=stdout, stderr=stderr))
    redacted = tuple(
        replace(
            diagnostic,
            message=redact(diagnostic.message, reading.secrets),
            text=redact(diagnostic.text, reading.secrets),
            test_id=diagnostic.test_id and redact(diagnostic.test_id, reading.secrets),
        )
        for diagnostic in findings.diagnostics
    )
    return replace(findings, diagnostics=redacted, cut=not is_whole)


def _output(
    command: str, kind: Kind, exit_code: int | None, reading: OutputContext, cwd: str = "."
) -> ToolOutput:
    """An empty output, with what its readers may ask about the workspace."""
    layout = Layout(reading.root)
    return ToolOutput(
        command=command,
        kind=kind,
        exit_code=exit_code,
        stdout="",
        stderr="",
        custom=reading.parsers,
        root=str(reading.root),
        cwd=cwd,
        holds=partial(_holds, reading.root),
        packages=layout.packages,
        endings=layout.endings,
        project_names=cache(partial(_project_names, reading.root, cwd)),
    )


def _holds(root: Path, path: str) -> bool:
    try:
        return (root / path).is_file()
    except (OSError, ValueError):  # too long, or not a name
        return False


def _project_names(root: Path, cwd: str) -> frozenset[str]:
    """Top-level modules: names in the usual folders of Python projects, and the project's own."""
    names = set()
    for folder in (root, root / "src", root / "lib", root / cwd, root / cwd / "src"):
        if folder.is_dir():
            names |= {entry.stem for entry in folder.iterdir() if entry.suffix in ("", ".py")}

    try:
        own = tomllib.loads(read_text(root / "pyproject.toml"))["project"]["name"]
    except (OSError, ValueError, KeyError, TypeError):
        return frozenset(names)
    return frozenset(names | {str(own).replace("-", "_").lower()})


def _declared(root: Path, cwd: str) -> Declared:
    """What the project declares, without the services that answer on this machine."""
    import socket  # start-up

    from atlas_retry.config.init.dependencies import declared

    found, silent = declared(root, cwd), []
    for service in found.services:
        try:
            socket.create_connection(("127.0.0.1", service[0]), timeout=LISTEN_S).close()
        except OSError:
            silent.append(service)
    return replace(found, services=tuple(silent))


def _report_of(
    gate: Gate, reading: OutputContext, completed: Completed
) -> tuple[str, bytes] | None:
    """The gate's report; JUnit is copied to the logs, because the next run overwrites it.

    None for a passed gate if an earlier run wrote it.
    """
    logs = completed.command.log_dir
    if gate.report is None:
        return None
    named = (PurePosixPath(gate.cwd) / gate.report.path).as_posix()
    path = reading.locate(named) if reading.locate else reading.root / named
    if path is None:
        return None
    try:
        is_earlier = path.stat().st_mtime + 1 < seconds_of(completed.started_at)
        content = read_file(path, MAX_REPORT_BYTES)
    except OSError:
        return None
    if completed.exit_code == 0 and is_earlier:
        return None
    if logs and gate.report.format == "junit":
        with suppress(OSError):
            logs.mkdir(mode=0o700, parents=True, exist_ok=True)
            (logs / OWN_JUNIT).write_bytes(content)
    return gate.report.format, content


def _anchored(diagnostics: tuple[Diagnostic, ...], root: Path) -> tuple[Diagnostic, ...]:
    if not diagnostics:
        return ()
    # start-up: tree-sitter is needed only if something failed

    from atlas_retry.source.excerpt import anchor
    from atlas_retry.workspace.snapshot.trees import source_tree

    return anchor(diagnostics, source_tree(root).read)


def _why_broken(gate: Gate, completed: Completed, stderr: str, findings: Findings) -> str | None:
    if completed.ended is Ended.NOT_STARTED:
        return completed.error or "it could not be started"
    if findings.not_installed:
        return findings.not_installed.sentence
    if completed.exit_code not in (NOT_FOUND, CANNOT_EXECUTE):
        return None

    last = stderr.strip().rpartition("\n")[2]
    what = missing_program(stderr) or last or f"of `{redact(gate.run)}`"
    if completed.exit_code == NOT_FOUND:
        if not what.endswith("not found"):
            return f"a command was not found ({what})"
        program = what.rsplit(": ", 2)[-2]  # of `sh: 1: tool: not found`
        return f"{program}: not found{'' if '/' in program else near(program, _programs())}"
    return f"a command cannot be executed ({what}): check its permissions"


def _programs() -> Iterator[str]:
    """The names of all programs on PATH."""
    for folder in os.get_exec_path():
        with suppress(OSError):
            yield from os.listdir(folder)  # noqa: PTH208 - thousands of names, no paths


def _error(
    status: Status, completed: Completed, findings: Findings, broken: str | None
) -> str | None:
    if status is Status.PASSED:
        return None
    if status is Status.VACUOUS:
        return "no test ran"
    if broken or completed.error:
        return broken or completed.error
    if findings.counted:
        return f"exit code 0, but it reports {findings.counted}: {_LOST}"
    count = sum(d.count for d in findings.diagnostics) + findings.beyond
    least = "at least " if findings.cut else ""
    problems = f", {least}{counted(count, 'problem')}" if count else ""
    return f"exit code {completed.exit_code}{problems}"


def _triage(status: Status, findings: Findings) -> str | None:
    """Cause of the failure, known before any money is spent."""
    if status is Status.PASSED:
        return None
    if status is Status.VACUOUS:
        return "vacuous"
    if findings.counted and not findings.diagnostics:
        return "exit-code"
    if status is Status.BROKEN or findings.environment:
        return "environment"
    return "threshold" if findings.threshold else "code"
