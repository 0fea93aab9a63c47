"""Validations and runs as text for people and machines; pure, one function per format."""

from collections.abc import Callable

from atlas_retry.reports import documents, github, gitlab, junit, markdown, page, sarif
from atlas_retry.reports.documents import schema
from atlas_retry.reports.reading import Recorded, read_report
from atlas_retry.reports.subject import Subject, of_run

Report = Callable[[Subject], str]

REPORTS: dict[str, Report] = {
    "json": documents.report,
    "junit": junit.report,
    "sarif": sarif.report,
    "gitlab": gitlab.report,
    "markdown": markdown.report,
    "github": github.report,
    "html": page.report,
}
"""A format of `--report FORMAT=PATH`, and the function that writes it."""

__all__ = ["REPORTS", "Recorded", "Report", "Subject", "of_run", "read_report", "schema"]
