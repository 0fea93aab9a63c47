"""The table of report formats. Pure."""

from collections.abc import Callable
from importlib import import_module

from atlas_retry.reports.subject import Subject

Report = Callable[[Subject], str]


def _of(module: str) -> Report:
    """The function `report` of a module, imported on the first call."""

    def report(subject: Subject) -> str:
        write: Report = import_module(f"atlas_retry.reports.{module}").report
        return write(subject)

    return report


REPORTS: dict[str, Report] = {
    "json": _of("documents"),
    "junit": _of("junit"),
    "sarif": _of("sarif"),
    "gitlab": _of("gitlab"),
    "markdown": _of("markdown"),
    "github": _of("github"),
    "html": _of("page"),
}
"""Formats of `--report FORMAT=PATH` and their functions."""
