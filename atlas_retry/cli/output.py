"""Where a command's result goes: the screen, stdout as JSON, report files, GitHub's own places."""

import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from atlas_retry.errors import UsageError
from atlas_retry.model import TO_CHECK, Validation
from atlas_retry.reports.screen.console import screen
from atlas_retry.reports.screen.gate_lines import failure_lines, validation_summary
from atlas_retry.reports.screen.lines import Line
from atlas_retry.run.open import OpenWorkspace

if TYPE_CHECKING:
    from atlas_retry.cli.report_files import Destination
    from atlas_retry.reports.subject import Recorded, Subject

__all__ = ["last_lines", "publish", "recorded", "screen", "targets"]


def targets(arguments: Sequence[str]) -> "tuple[Destination, ...]":
    """What `--report FORMAT=PATH` asks for. Raises UsageError before anything runs."""
    if not arguments:
        return ()
    from atlas_retry.cli.report_files import destinations

    return destinations(arguments)


def recorded(path: Path | None) -> "Recorded | None":
    """What `--from` names; `-` is standard input. Raises UsageError."""
    if path is None:
        return None
    from atlas_retry.reports.reading import read_report

    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"--from {path}: {error.strerror}", remedy="atlas validate --json > report.json"
        ) from error
    return read_report(content, source=str(path))


def last_lines(
    validation: Validation, path: Path, *, verbosity: int, proposed: bool = False
) -> Iterator[Line]:
    """What failed, and the last lines; quiet leaves only the last lines.

    `proposed`: no configuration names the gates, so that is written first.
    """
    if verbosity >= 0:
        yield from failure_lines(validation, verbosity=verbosity)
    following = f"atlas init {shlex.quote(str(path))}" if proposed else None
    yield from validation_summary(validation, following or _next_command(validation, path))


def _next_command(validation: Validation, path: Path) -> str:
    if validation.broken:
        return f"atlas validate {shlex.quote(str(path))}"
    return f"atlas retry {shlex.quote(str(path))} --ai-fix" if validation.failures else TO_CHECK


def publish_validation(
    validation: Validation, opened: OpenWorkspace, wanted: "Sequence[Destination]", *, as_json: bool
) -> None:
    """Publish a validation, if anybody wants it: what nobody reads costs no start-up time."""
    if as_json or wanted or on_github():
        from atlas_retry.reports.subject import Subject

        publish(Subject(result=validation, workspace=opened.facts), wanted, as_json=as_json)


def publish(
    subject: "Subject",
    wanted: "Sequence[Destination]",
    *,
    as_json: bool,
    to_stderr: bool = False,
) -> None:
    """Write the document, the report files, and what GitHub Actions shows by itself.

    `to_stderr`: stdout holds another document already.
    """
    from atlas_retry.cli.report_files import write_reports
    from atlas_retry.reports.formats import REPORTS

    if as_json:
        print(REPORTS["json"](subject), end="")
    write_reports(subject, wanted)
    if on_github():
        _tell_github(subject, to_stderr=as_json or to_stderr)


def on_github() -> bool:
    """Whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def _tell_github(subject: "Subject", *, to_stderr: bool) -> None:
    from atlas_retry.reports.formats import REPORTS

    write_on_github(REPORTS["github"](subject), REPORTS["markdown"](subject), to_stderr=to_stderr)


def write_on_github(annotations: str, markdown: str, *, to_stderr: bool) -> None:
    """Annotations go to the log, Markdown to the step's summary.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    print(annotations, end="", file=sys.stderr if to_stderr else sys.stdout)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(markdown)
        except OSError as error:  # nobody asked us for it: the verdict is the same without
            print(f"warning: no step summary in {summary}: {error.strerror}", file=sys.stderr)
