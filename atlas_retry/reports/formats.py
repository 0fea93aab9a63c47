"""Validations and runs as text for people and machines; pure, one module per format."""

from collections.abc import Callable
from importlib import import_module

from atlas_retry.reports.subject import Subject

Report = Callable[[Subject], str]


def _of(module: str) -> Report:
    """Its `report`, imported when it is asked for: most runs write one format or none."""

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
"""A format of `--report FORMAT=PATH`, and the function that writes it."""
