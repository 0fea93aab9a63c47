"""Where a command's result goes: the screen, stdout as JSON, report files, GitHub's own places."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from atlas_retry.console import screen
from atlas_retry.errors import UsageError
from atlas_retry.model import Validation
from atlas_retry.report_files import Destination, destination, write_reports
from atlas_retry.reports import REPORTS, Recorded, Subject, read_report
from atlas_retry.wording import Line, failure_lines, validation_summary

__all__ = ["publish", "recorded", "screen", "targets", "told"]


def targets(arguments: Sequence[str]) -> tuple[Destination, ...]:
    """What `--report FORMAT=PATH` asks for. Raises UsageError before anything runs."""
    return tuple(destination(argument) for argument in arguments)


def recorded(path: Path | None) -> Recorded | None:
    """What `--from` names; `-` is standard input. Raises UsageError."""
    if path is None:
        return None
    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"--from {path}: {error.strerror}", remedy="atlas validate --json > report.json"
        ) from error
    return read_report(content, source=str(path))


def told(validation: Validation, path: Path, *, verbosity: int) -> Iterator[Line]:
    """What failed, and the last lines; quiet leaves the last lines alone."""
    if verbosity >= 0:
        yield from failure_lines(validation, verbosity=verbosity)
    yield from validation_summary(validation, _next_command(validation, path))


def _next_command(validation: Validation, path: Path) -> str:
    if validation.broken:
        return f"{validation.broken[0].error}; then: atlas validate {shlex.quote(str(path))}"
    return f"atlas retry {shlex.quote(str(path))} --ai-fix"


def publish(subject: Subject, wanted: Sequence[Destination], *, as_json: bool) -> None:
    """Write the document, the report files, and what GitHub Actions shows by itself."""
    if as_json:
        print(REPORTS["json"](subject))
    write_reports(subject, wanted)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        _tell_github(subject, as_json=as_json)


def _tell_github(subject: Subject, *, as_json: bool) -> None:
    """Annotations go to the log, Markdown to the step's summary.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    print(REPORTS["github"](subject), end="", file=sys.stderr if as_json else sys.stdout)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        with Path(summary).open("a", encoding="utf-8") as file:
            file.write(REPORTS["markdown"](subject))
