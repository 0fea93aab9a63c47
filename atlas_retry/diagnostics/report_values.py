"""What a report written for machines holds, and how one that is not read is refused."""

from msgspec import Struct

from atlas_retry.model import Diagnostic


class Report(Struct, frozen=True):
    """The content of a report file."""

    diagnostics: tuple[Diagnostic, ...]
    ran: bool | None = None
    """Whether any test ran; None if the format has no tests."""


class UnknownReportError(ValueError):
    """A report of a kind that atlas does not read; its text names the kind."""
