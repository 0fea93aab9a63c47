"""Where a command's result goes: the screen, stdout as JSON, report files, GitHub Actions."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.errors import AtlasError, Interrupted, UsageError, near
from atlas_retry.events import Emit, Event, GateFinished, GateStarted, ValidationStarted, fan_out
from atlas_retry.model import NOT_FOUND, OWN_JUNIT, TO_CHECK, GateResult, OpenReview, Validation
from atlas_retry.reports.screen.console import Printer, screen
from atlas_retry.reports.screen.gate_lines import failure_lines, validation_summary
from atlas_retry.reports.screen.lines import Line, below_others
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.text.units import counted, first_few, labelled

if TYPE_CHECKING:
    from atlas_retry.reports.subject import Recorded, Subject

__all__ = ["last_lines", "publish", "recorded", "screen", "targets"]

Target = tuple[str, Path]
"""A key of `REPORTS` and the file to write."""


def print_commands(label: str, *commands: str, to: TextIO | None = None) -> None:
    """Print commands to copy, one a line; on standard error by default."""
    print(*labelled(label, *commands), sep="\n", file=to or sys.stderr)


def limited_to(only: Sequence[str] | None) -> list[str]:
    """The options that choose these gates."""
    return [*chain.from_iterable(("--only", name) for name in only or ())]


def targets(options: Sequence[str] | None) -> tuple[Target, ...]:
    """The values of `--report FORMAT=PATH`. Raises UsageError before anything runs."""
    if not options:
        return ()
    known = tuple(_target(option) for option in options)
    paths = [os.path.abspath(path) for _, path in known]  # noqa: PTH100 - follows no link
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise UsageError(f"two reports are written to {twice}", remedy="use one file per --report")
    return known


def _target(option: str) -> Target:
    name, _, path = option.partition("=")
    why = None
    from atlas_retry.reports.formats import REPORTS

    if name not in REPORTS:
        why = f"unknown format{near(name, REPORTS)}; use one of {', '.join(REPORTS)}"
    elif not path:
        why = f"no path; write --report {name}=PATH"
    if why := why or _why_no_file(Path(path).absolute()):
        raise UsageError(f"--report {option}: {why}")
    return name, Path(path)


def _why_no_file(path: Path) -> str | None:
    # `Path.exists` raises inside a folder without search permission.
    if os.path.isdir(path):  # noqa: PTH112 - see above
        return f"{path} is a folder"
    if os.path.exists(path):  # noqa: PTH110 - see above
        return None if os.access(path, os.W_OK) else f"{path} cannot be written"
    above = next(folder for folder in path.parents if os.path.lexists(folder))
    if not above.is_dir():
        return f"{above} is not a folder"
    return None if os.access(above, os.W_OK | os.X_OK) else f"{above} cannot be written"


def recorded(path: Path | None) -> "Recorded | None":
    """The report that `--from` names; `-` is standard input. Raises UsageError."""
    if path is None:
        return None

    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise UsageError(
            f"--from {path}: {error.strerror}", remedy="atlas validate --json > report.json"
        ) from error
    from atlas_retry.reports.reading import read_report

    return read_report(content, source=str(path))


class Closing(Struct, frozen=True, kw_only=True):
    """A validation and what a person has yet to review."""

    validation: Validation
    open_reviews: tuple[OpenReview, ...]
    place: str
    """The words of the next command that say where."""
    origins: Mapping[str, str] = field(default_factory=dict)
    """Where the command of a broken gate is written, `file:line`, by the command."""

    def remedy_of(self, broken: GateResult) -> str | None:
        """What has to be done before such a gate can run."""
        if broken.remedy or broken.exit_code != NOT_FOUND:
            return broken.remedy
        if not (origin := self.origins.get(broken.command)):
            return None
        program, said, _ = (broken.error or "").partition(": not found")
        return f"correct {origin}, or install {program if said else 'what is missing'}"


def last_lines(end: Closing, *, verbosity: int, proposed: bool = False) -> Iterator[Line]:
    """The failures and the summary, of which quiet leaves one line or none.

    With `proposed` gates, the next command is `atlas init`.
    """
    validation, place = end.validation, end.place
    if verbosity >= 0:
        yield from failure_lines(validation, verbosity=verbosity)
    next_command = TO_CHECK
    if proposed:
        next_command = f"atlas init {place}"
    elif validation.broken:
        remedies = dict.fromkeys(map(end.remedy_of, validation.broken))
        next_command = "\n".join((*filter(None, remedies), f"atlas validate {place}"))
    elif validation.failures and all(map(_is_only_rewritten, validation.failures)):
        next_command = f"atlas validate {place}"
    elif validation.failures:
        next_command = f"atlas retry {place} --ai-fix"
    summary = validation_summary(validation, next_command, is_reviewed=not end.open_reviews)
    yield from below_others(summary, verbosity=verbosity)
    if end.open_reviews and verbosity >= 0:
        from atlas_retry.history.reviews import one_line

        yield one_line(end.open_reviews), "warn"


def _is_only_rewritten(result: GateResult) -> bool:
    """Whether a formatter failed just because it is not to change files: it has done its work."""
    return bool(result.changed) and result.exit_code == 0


def only_here_lines(
    opened: OpenWorkspace, validation: Validation, *, verbosity: int
) -> Iterator[Line]:
    """One line with what a green may be due to that no commit holds, if there is anything."""
    if not validation.success or verbosity < 0 or not opened.has_git:
        return

    with suppress(AtlasError):  # it only warns, and the gates ran without git
        from atlas_retry.run.only_here import only_here

        if text := only_here(opened.git, opened.environ).sentence():
            yield f"{text} (atlas validate --as-committed)", "warn"


def publish_validation(
    validation: Validation,
    opened: OpenWorkspace,
    wanted: Sequence[Target],
    open_reviews: tuple[OpenReview, ...],
    *,
    as_json: bool,
) -> None:
    """Publish a validation if anything asks for it; otherwise the formats are not imported."""
    if as_json or wanted or on_github():
        from atlas_retry.reports.subject import Subject

        subject = Subject(result=validation, workspace=opened.facts, open_reviews=open_reviews)
        publish(subject, wanted, as_json=as_json)


def publish(
    subject: "Subject", wanted: Sequence[Target], *, as_json: bool, to_stderr: bool = False
) -> None:
    """Write the JSON document, the report files, and the annotations of GitHub Actions.

    `to_stderr`: stdout already has another document.
    """
    from atlas_retry.reports.formats import REPORTS

    if as_json:
        print(REPORTS["json"](subject), end="")
    write_reports(subject, wanted)
    if on_github():
        annotations, markdown = REPORTS["github"](subject), REPORTS["markdown"](subject)
        write_on_github(annotations, markdown, to_stderr=as_json or to_stderr)


def write_reports(subject: "Subject", wanted: Sequence[Target]) -> None:
    """Write every report, each atomically.

    Makes missing folders. After the last report, raises AtlasError naming those that could not be
    written.
    """
    if any(name == "junit" for name, _ in wanted):
        subject = replace(subject, junit=dict(_own_junit(subject)))
    faults = []
    for name, path in wanted:
        from atlas_retry.reports.formats import REPORTS

        content = REPORTS[name](subject).encode()
        try:
            _write(path.resolve(), content)
        except OSError as error:
            faults.append(f"{path} ({error.strerror})")
    if faults:
        raise AtlasError(
            f"a report cannot be written: {', '.join(faults)}",
            remedy="free some space there, or use another path; the same result is above",
        )


def _own_junit(subject: "Subject") -> Iterator[tuple[str, bytes]]:
    """The JUnit files that test runners wrote, kept next to the logs of their gates."""
    for result in subject.validation.results:
        with suppress(OSError):
            if result.log_path:
                yield result.log_path, (Path(result.log_path) / OWN_JUNIT).read_bytes()


def _write(path: Path, content: bytes) -> None:
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # a pipe or /dev/stdout cannot be replaced
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    state_dir.replace_file(path, content)


def on_github() -> bool:
    """Whether this is a job of GitHub Actions."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def write_on_github(annotations: str, markdown: str, *, to_stderr: bool) -> None:
    """Write annotations to the log, and Markdown to the step summary.

    Source: docs.github.com, "Workflow commands for GitHub Actions".
    """
    print(annotations, end="", file=sys.stderr if to_stderr else sys.stdout)
    if summary := os.environ.get("GITHUB_STEP_SUMMARY"):
        try:
            with Path(summary).open("a", encoding="utf-8") as file:
                file.write(markdown)
        except OSError as error:  # the summary is optional: the verdict stays the same
            print(f"warning: no step summary in {summary}: {error.strerror}", file=sys.stderr)


class _GateCount(Struct):
    """Gates that have ended, and those that still run, by the events so far."""

    of: int = 0
    """Number of gates of the validation."""
    ended: set[str] = field(default_factory=set)
    running: list[str] = field(default_factory=list)

    def follow(self, event: Event) -> None:
        match event:
            case ValidationStarted():
                self.of = len(event.gates)
            case GateStarted():
                self.running.append(event.gate)
            case GateFinished():
                name = event.result.name
                self.ended.add(name)
                self.running = [other for other in self.running if other != name]
            case _:
                pass

    @property
    def sentence(self) -> str:
        if not self.of:
            return "interrupted before any gate ran"
        stopped = f"; stopped: {first_few(dict.fromkeys(self.running))}" if self.running else ""
        return f"interrupted: {len(self.ended)} of {counted(self.of, 'gate')} had ended{stopped}"


@contextmanager
def naming_interruption(shown: Printer) -> Iterator[Emit]:
    """An observer for gates; if they are interrupted, the last line says which were stopped."""
    count = _GateCount()
    try:
        yield fan_out((count.follow, shown))
    except Interrupted:
        shown.write([(count.sentence, "warn")])
        raise


def verbosity(quiet: int, verbose: int) -> int:
    """Number of `-v` flags; below 0: that of `-q` flags."""
    return -quiet or verbose
