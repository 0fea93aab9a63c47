"""Formats that a gate can name for the file it writes. Recognises nothing by itself."""

from collections.abc import Callable, Iterator, Mapping

import msgspec
from msgspec import Struct

from atlas_retry.diagnostics import reports_json
from atlas_retry.model import Diagnostic


class Report(Struct, frozen=True):
    """What a report file says."""

    diagnostics: tuple[Diagnostic, ...]
    tests_run: int | None = None


def _of_json(read: Callable[[bytes], Iterator[Diagnostic]]) -> Callable[[bytes], Report]:
    return lambda content: Report(tuple(read(content)))


def _junit(content: bytes) -> Report:
    from atlas_retry.diagnostics.reports_junit import junit  # start-up: it brings an XML parser

    return Report(*junit(content))


REPORT_FORMATS: Mapping[str, Callable[[bytes], Report]] = {
    "junit": _junit,
    "sarif": _of_json(reports_json.sarif),
    "eslint-json": _of_json(reports_json.eslint),
    "ruff-json": _of_json(reports_json.ruff),
    "mypy-json": _of_json(reports_json.mypy),
    "pyright-json": _of_json(reports_json.pyright),
    "rdjson": _of_json(reports_json.rdjson),
}
"""Each raises ValueError for content that is not of its format."""


def read_report(name: str, content: bytes) -> Report | None:
    """The report, or None when the format is unknown or the file is not of it."""
    read = REPORT_FORMATS.get(name)
    try:
        return read(content.removeprefix(b"\xef\xbb\xbf")) if read else None
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
