"""True output of real tools, and what is made of it."""

import re
from pathlib import Path

import pytest

from atlas_retry.diagnostics import (
    PARSERS,
    REPORT_FORMATS,
    diagnose,
    lines,
)
from atlas_retry.diagnostics.table import LEVELS, LineFormat
from atlas_retry.diagnostics.values import Log
from tests.goldens import regenerate

GOLDENS = regenerate.cases()
PRINTED = [
    folder
    for folder in GOLDENS
    if regenerate.output_of(folder).report is None
    and not folder.name.startswith(("go-test-1.26-json", *REPORT_FORMATS))
]

ROWS = (*lines.ROWS, *lines.FALLBACKS)
WITH_SEVERITY = [row for row in ROWS if "(?P<level>" in f"{row.pattern}{row.more}"]


@pytest.mark.parametrize("folder", GOLDENS, ids=lambda folder: folder.name)
def test_real_output_is_parsed_as_expected(folder: Path) -> None:
    findings = diagnose(regenerate.output_of(folder))
    expected = (folder / "expected.json").read_text(encoding="utf-8")
    assert regenerate.expected(findings) == expected


@pytest.mark.parametrize("folder", PRINTED, ids=lambda folder: folder.name)
def test_a_diagnostic_quotes_the_tools_own_lines(folder: Path) -> None:
    output = regenerate.output_of(folder)
    printed = "\n".join(stream for stream in (output.stdout, output.stderr) if stream)
    for diagnostic in diagnose(output).diagnostics:
        assert diagnostic.text
        assert diagnostic.text in printed.replace("\r\n", "\n")


@pytest.mark.parametrize("name", sorted([*PARSERS, *REPORT_FORMATS]))
def test_every_parser_and_report_format_has_a_golden(name: str) -> None:
    assert any(folder.name.startswith(f"{name}-") for folder in GOLDENS)


@pytest.mark.parametrize("folder", GOLDENS, ids=lambda folder: folder.name)
def test_a_failed_command_has_a_problem_or_ran_no_test(folder: Path) -> None:
    output = regenerate.output_of(folder)
    findings = diagnose(output)
    is_explained = findings.vacuous or findings.not_installed
    assert output.exit_code == 0 or findings.diagnostics or is_explained


@pytest.mark.parametrize("row", WITH_SEVERITY, ids=lambda row: row.name)
def test_every_captured_severity_has_a_level(row: LineFormat) -> None:
    words = {*_captured(row), *_spelled_out(row)}
    assert words, "neither a golden nor the pattern shows a severity"
    assert words <= LEVELS.keys()


def _captured(row: LineFormat) -> set[str]:
    """The severities that the row reads in its goldens."""
    outputs = [regenerate.output_of(f) for f in GOLDENS if f.name.startswith(f"{row.name}-")]
    printed = [line for o in outputs for line in Log.of(f"{o.stdout}\n{o.stderr}").lines]
    patterns = [re.compile(pattern) for pattern in (row.pattern, row.more) if pattern]
    matches = [match for pattern in patterns for match in map(pattern.match, printed) if match]
    return {word.lower() for m in matches if (word := m.groupdict().get("level"))}


def _spelled_out(row: LineFormat) -> set[str]:
    """The severities that its pattern lists as plain words, `(?:fatal )?error` among them."""
    listed = re.findall(r"\(\?P<level>((?:\(\?:\w+ \)\?)?[\w |]+)\)", f"{row.pattern}{row.more}")
    words = "|".join(listed).replace("(?:", "").replace(")?", "").lower()
    return set(filter(None, words.split("|")))
