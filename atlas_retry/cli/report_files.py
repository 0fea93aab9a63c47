"""Reports into files, each whole or not at all; what stands in them is `reports`' work."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.errors import AtlasError, UsageError, near
from atlas_retry.model import OWN_JUNIT
from atlas_retry.reports.formats import REPORTS
from atlas_retry.reports.subject import Subject

Destination = tuple[str, Path]
"""A key of `REPORTS` and the file it is written to."""


def destination(option: str) -> Destination:
    """What `FORMAT=PATH` names.

    Raises UsageError that lists the formats, or says why no file can be there: before anything has
    run, for then nothing is lost by it.
    """
    name, _, path = option.partition("=")
    formats = ", ".join(REPORTS)
    if name not in REPORTS:
        raise UsageError(
            f"--report {option}: unknown format{near(name, REPORTS)}; use one of {formats}"
        )
    if not path:
        raise UsageError(f"--report {option}: no path; write --report {name}=PATH")
    if why := _why_no_file(Path(path).absolute()):
        raise UsageError(f"--report {option}: {why}")
    return name, Path(path)


def destinations(options: Sequence[str]) -> tuple[Destination, ...]:
    """The same of several. Raises UsageError for a file that is named twice as well."""
    found = tuple(destination(option) for option in options)
    paths = [os.path.abspath(path) for _, path in found]  # noqa: PTH100 - follows no link
    if twice := next((path for path in paths if paths.count(path) > 1), None):
        raise UsageError(f"two reports go to {twice}", remedy="give each --report its own file")
    return found


def _why_no_file(path: Path) -> str | None:
    # Not `Path.exists`: behind a folder that may not be searched it raises.
    if os.path.isdir(path):  # noqa: PTH112 - as said
        return f"{path} is a folder"
    if os.path.exists(path):  # noqa: PTH110 - as said
        return None if os.access(path, os.W_OK) else f"{path} cannot be written"
    above = next(folder for folder in path.parents if os.path.lexists(folder))
    if not above.is_dir():
        return f"{above} is no folder"
    return None if os.access(above, os.W_OK | os.X_OK) else f"{above} cannot be written"


def write_reports(subject: Subject, destinations: Iterable[Destination]) -> tuple[Path, ...]:
    """Write every report and return the files. A reader sees the old file or the new, never half.

    Missing folders are made. Raises AtlasError naming the files that could not be written, once all
    others are.
    """
    wanted = tuple(destinations)
    if any(name == "junit" for name, _ in wanted):
        subject = replace(subject, junit=dict(_own_junit(subject)))
    rendered = [(path, REPORTS[name](subject)) for name, path in wanted]
    faults = []
    for path, text in rendered:
        try:
            _write(path, text.encode())
        except OSError as error:
            faults.append(f"{path} ({error.strerror})")
    if faults:
        raise AtlasError(
            f"a report cannot be written: {', '.join(faults)}",
            remedy="make room there, or name another place; the same result is above",
        )
    return tuple(path for path, _ in rendered)


def _own_junit(subject: Subject) -> Iterator[tuple[str, bytes]]:
    """What the gates' runners wrote, as it was kept beside their logs when they ended."""
    for result in subject.validation.results:
        with suppress(OSError):
            if result.log_path:
                yield result.log_path, (Path(result.log_path) / OWN_JUNIT).read_bytes()


def _write(path: Path, content: bytes) -> None:
    path = path.resolve()
    if path.exists() and not path.is_file():
        path.write_bytes(content)  # A pipe or /dev/stdout has no half to hide.
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name[:200]}.{os.getpid()}.unfinished")
    try:
        unfinished.write_bytes(content)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
