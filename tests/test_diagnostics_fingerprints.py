"""A problem is known again after lines have moved, and told apart from every other."""

import pytest

from atlas_retry.diagnostics import diagnose
from atlas_retry.diagnostics.fingerprints import fingerprint, normalised
from atlas_retry.model import Diagnostic, Region
from tests.goldens import regenerate

BASE = Diagnostic(tool="mypy", rule_id="arg-type", message='expected "int"', path="a.py")


def prints(case: str) -> set[str]:
    findings = diagnose(regenerate.output_of(regenerate.FOLDER / case))
    return {fingerprint(d, symbol=None, line_text=None) for d in findings.diagnostics}


def lines(case: str) -> list[Region | None]:
    findings = diagnose(regenerate.output_of(regenerate.FOLDER / case))
    return [d.region for d in findings.diagnostics]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("pytest-9.2.0-plain", "pytest-9.2.0-shifted"),
        ("mypy-2.4.1-strict", "mypy-2.4.1-shifted"),
        ("pyright-1.1.414-default", "pyright-1.1.414-shifted"),
    ],
)
def test_fingerprints_survive_shifted_lines(before: str, after: str) -> None:
    assert lines(before) != lines(after)
    assert prints(before) == prints(after)


def test_shifting_lines_fixes_nothing() -> None:
    assert prints("ruff-0.17.6-full") <= prints("ruff-0.17.6-shifted")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("line 12 is longer than 88", "line 7 is longer than 100"),
        ("<Cart object at 0x7fb6397cdcd0>", "<Cart object at 0x11>"),
        ("cannot open /home/a/shop/cart.py", "cannot open /work/b/cart.py"),
        ("cannot find `total'", "cannot find ‘total’"),  # noqa: RUF001 - gcc quotes by locale
        ("took 1.25 s", "took 13 s"),
        ("too   many\n  words", "too many words"),
    ],
)
def test_values_that_differ_between_runs_are_normalised(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [("name 'x1' is unknown", "name 'x2' is unknown"), ("expected int", "expected str")],
)
def test_names_are_not_normalised(one: str, other: str) -> None:
    assert normalised(one) != normalised(other)


@pytest.mark.parametrize(
    "other",
    [
        Diagnostic(tool="pyright", rule_id="arg-type", message='expected "int"', path="a.py"),
        Diagnostic(tool="mypy", rule_id="call-arg", message='expected "int"', path="a.py"),
        Diagnostic(tool="mypy", rule_id="arg-type", message='expected "str"', path="a.py"),
        Diagnostic(tool="mypy", rule_id="arg-type", message='expected "int"', path="b.py"),
    ],
)
def test_problems_differ_by_tool_rule_message_or_file(other: Diagnostic) -> None:
    one = fingerprint(BASE, symbol="f", line_text="f(1)")
    assert one != fingerprint(other, symbol="f", line_text="f(1)")


def test_problems_differ_by_symbol_line_text_or_occurrence() -> None:
    fingerprints = {
        fingerprint(BASE, symbol="f", line_text="f(1)"),
        fingerprint(BASE, symbol="g", line_text="f(1)"),
        fingerprint(BASE, symbol="f", line_text="f(2)"),
        fingerprint(BASE, symbol="f", line_text="f(1)", occurrence=2),
    }
    assert len(fingerprints) == 4


def test_indentation_does_not_change_the_fingerprint() -> None:
    deep = fingerprint(BASE, symbol="f", line_text="\t\tf( 1 )")
    assert deep == fingerprint(BASE, symbol="f", line_text="f( 1 )")


def test_a_path_with_invalid_bytes_has_a_fingerprint() -> None:
    odd = Diagnostic(tool="x", message="m", path=b"\xff.py".decode("utf-8", "surrogateescape"))
    assert len(fingerprint(odd, symbol=None, line_text=None)) == 16
