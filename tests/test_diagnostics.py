"""True output of real tools, and what is made of it."""

from pathlib import Path

import pytest

from atlas_retry.diagnostics import PARSERS, REPORT_FORMATS, diagnose
from tests.goldens import regenerate

GOLDENS = regenerate.cases()
PRINTED = [
    folder
    for folder in GOLDENS
    if regenerate.output_of(folder).report is None and "json" not in folder.name
]


@pytest.mark.parametrize("folder", GOLDENS, ids=lambda folder: folder.name)
def test_output_is_read_as_its_golden_says(folder: Path) -> None:
    findings = diagnose(regenerate.output_of(folder))
    expected = (folder / "expected.json").read_text(encoding="utf-8")
    assert regenerate.expected(findings) == expected


@pytest.mark.parametrize("folder", PRINTED, ids=lambda folder: folder.name)
def test_a_diagnostic_keeps_the_lines_of_the_tool(folder: Path) -> None:
    output = regenerate.output_of(folder)
    printed = "\n".join(part for part in (output.stdout, output.stderr) if part)
    for diagnostic in diagnose(output).diagnostics:
        assert diagnostic.text
        assert diagnostic.text in printed.replace("\r\n", "\n")


@pytest.mark.parametrize("name", sorted([*PARSERS, *REPORT_FORMATS]))
def test_every_parser_and_report_format_has_a_golden(name: str) -> None:
    assert any(folder.name.startswith(f"{name}-") for folder in GOLDENS)
