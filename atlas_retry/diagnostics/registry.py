"""Every parser by name. A tool is added here, with a golden of its true output."""

from collections.abc import Mapping

from atlas_retry.diagnostics import lines
from atlas_retry.diagnostics.compiled_logs import CARGO_TEST, GO_TEST, MAVEN
from atlas_retry.diagnostics.javascript_logs import JEST, MOCHA, NODE_TEST, VITEST
from atlas_retry.diagnostics.pre_commit_log import PRE_COMMIT
from atlas_retry.diagnostics.pytest_log import PYTEST
from atlas_retry.diagnostics.table import parser_of
from atlas_retry.diagnostics.traceback import PYTHON, UNITTEST
from atlas_retry.diagnostics.values import Parser

FALLBACKS: tuple[Parser, ...] = (PYTHON, *map(parser_of, lines.FALLBACKS))
"""Asked only when no tool was found to complain."""

_PARSERS = (
    PRE_COMMIT,
    parser_of(lines.COVERAGE),
    PYTEST,
    UNITTEST,
    JEST,
    VITEST,
    NODE_TEST,
    MOCHA,
    GO_TEST,
    CARGO_TEST,
    MAVEN,
    *map(parser_of, lines.ROWS),
    *FALLBACKS,
)

PARSERS: Mapping[str, Parser] = {parser.name: parser for parser in _PARSERS}
"""In the order in which they may claim lines: who reads whole blocks comes first."""
