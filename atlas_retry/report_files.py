"""Reports into files, each whole or not at all; what stands in them is `reports`' work."""

import os
from collections.abc import Iterable
from pathlib import Path

from atlas_retry.errors import UsageError
from atlas_retry.reports import REPORTS, Subject

Destination = tuple[str, Path]
"""A key of `REPORTS` and the file it is written to."""


def destination(option: str) -> Destination:
    """What `FORMAT=PATH` names. Raises UsageError that lists the formats."""
    name, _, path = option.partition("=")
    formats = ", ".join(REPORTS)
    if name not in REPORTS:
        raise UsageError(f"--report {option}: unknown format; use one of {formats}")
    if not path:
        raise UsageError(f"--report {option}: no path; write --report {name}=PATH")
    return name, Path(path)


def write_reports(subject: Subject, destinations: Iterable[Destination]) -> tuple[Path, ...]:
    """Write every report and return the files. A reader sees the old file or the new, never half.

    Missing folders are made. Raises UsageError naming the first file that cannot be written.
    """
    rendered = [(path, REPORTS[name](subject)) for name, path in destinations]
    for path, text in rendered:
        try:
            _write(path, text.encode())
        except OSError as error:
            raise UsageError(f"cannot write the report {path}: {error.strerror}") from error
    return tuple(path for path, _ in rendered)


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
