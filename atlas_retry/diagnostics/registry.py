"""Every parser by name. A tool is added here, with a golden of its true output."""

from collections.abc import Mapping

from atlas_retry.diagnostics import lines, lines_python
from atlas_retry.diagnostics.pytest_log import PYTEST
from atlas_retry.diagnostics.table import parser_of
from atlas_retry.diagnostics.traceback import PYTHON
from atlas_retry.diagnostics.unittest_log import UNITTEST
from atlas_retry.diagnostics.values import Parser

FALLBACKS: tuple[Parser, ...] = (PYTHON, *map(parser_of, lines.FALLBACKS))
"""Asked only when no tool was found to complain."""

_PARSERS = (
    PYTEST,
    UNITTEST,
    *map(parser_of, (*lines_python.ROWS, *lines.ROWS)),
    *FALLBACKS,
)

PARSERS: Mapping[str, Parser] = {parser.name: parser for parser in _PARSERS}
"""In the order in which they may claim lines: who reads whole blocks comes first."""
