"""Parses the output of tools into problems with places. Pure: no files, no processes."""

from atlas_retry.diagnostics.environment import missing_program
from atlas_retry.diagnostics.fingerprints import fingerprint
from atlas_retry.diagnostics.reader import PARSERS, diagnose
from atlas_retry.diagnostics.report_formats import REPORT_FORMATS
from atlas_retry.diagnostics.values import Declared, Findings, ToolOutput

__all__ = [
    "PARSERS",
    "REPORT_FORMATS",
    "Declared",
    "Findings",
    "ToolOutput",
    "diagnose",
    "fingerprint",
    "missing_program",
]
