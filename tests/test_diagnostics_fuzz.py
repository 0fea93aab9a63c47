"""No text makes a parser raise, and none makes it slow."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atlas_retry.diagnostics import (
    PARSERS,
    REPORT_FORMATS,
    Findings,
    ToolOutput,
    diagnose,
    fingerprint,
)
from atlas_retry.diagnostics.values import Log
from atlas_retry.model import Kind
from tests.goldens import regenerate

OUTPUTS = [regenerate.output_of(folder) for folder in regenerate.cases()]
LINES = sorted({line for o in OUTPUTS for line in (o.stdout + o.stderr).split("\n")})
REPORTS = [output.report for output in OUTPUTS if output.report]
WITHIN_S = 20.0
"""A bound on hangs: the machine may be busy. Unloaded each takes well below a second."""

line = st.one_of(st.sampled_from(LINES), st.text(max_size=80))
text = st.lists(line, max_size=40).map("\n".join)
outputs = st.builds(
    ToolOutput,
    command=st.sampled_from([output.command for output in OUTPUTS] + ["make", ""]),
    kind=st.sampled_from(list(Kind)),
    exit_code=st.sampled_from([None, -9, 0, 1, 2, 5]),
    stdout=text,
    stderr=text,
    root=st.sampled_from([None, "/w", "/"]),
)


def sound(findings: Findings) -> bool:
    """What every reading promises."""
    for diagnostic in findings.diagnostics:
        assert diagnostic.message.strip()
        assert diagnostic.count >= 1
        assert diagnostic.region is None or diagnostic.region.start_line >= 1
        fingerprint(diagnostic, symbol=None, line_text=None)
    return True


@settings(max_examples=300)
@given(output=outputs)
def test_shuffled_lines_are_parsed_without_an_error(output: ToolOutput) -> None:
    assert sound(diagnose(output))


@settings(max_examples=200)
@given(index=st.integers(0, len(OUTPUTS) - 1), start=st.floats(0, 1), end=st.floats(0, 1))
def test_truncated_output_is_parsed_without_an_error(index: int, start: float, end: float) -> None:
    whole = OUTPUTS[index].stdout + OUTPUTS[index].stderr
    first, last = sorted((int(start * len(whole)), int(end * len(whole))))
    cut = f"{whole[:first]}\n[... 123 bytes left out ...]\n{whole[last:]}"
    assert sound(diagnose(ToolOutput(command=OUTPUTS[index].command, exit_code=1, stdout=cut)))


@settings(max_examples=100)
@given(name=st.sampled_from(sorted(PARSERS)), stdout=text)
def test_every_parser_accepts_any_text(name: str, stdout: str) -> None:
    problems = PARSERS[name].read(Log.of(stdout, name, 1))
    lines = stdout.count("\n") + 1
    assert all(0 <= f.first <= f.last < lines for f in problems)


@settings(max_examples=200)
@given(index=st.integers(0, len(REPORTS) - 1), at=st.floats(0, 1), junk=st.binary(max_size=20))
def test_a_damaged_report_is_parsed_without_an_error(index: int, at: float, junk: bytes) -> None:
    name, content = REPORTS[index]
    cut = int(at * len(content))
    report = (name, content[:cut] + junk + content[cut + len(junk) :])
    assert sound(diagnose(ToolOutput(command="./x", exit_code=1, report=report)))


@settings(max_examples=100)
@given(name=st.sampled_from(sorted(REPORT_FORMATS)), content=st.binary(max_size=200))
def test_any_bytes_as_report_are_parsed_without_an_error(name: str, content: bytes) -> None:
    assert sound(diagnose(ToolOutput(command="./x", exit_code=1, report=(name, content))))


def took(output: ToolOutput) -> float:
    start = time.process_time()
    diagnose(output)
    return time.process_time() - start


@pytest.mark.parametrize(
    "unit",
    [
        "a:1:",
        "___ ",
        "=== ",
        ' File "',
        "    at f (",
        "error: ",
        " [*] ",
        "1 passed, ",
        "^-",
        "x.py:1: ",
        "(1,1): error TS1: ",
        " " * 7,
        "\t",
        "'",
        "_",
        "0",
    ],
)
def test_no_line_causes_catastrophic_backtracking(unit: str) -> None:
    wide = (unit * (4_000 // len(unit)) + "\n") * 50
    assert took(ToolOutput(command="make", exit_code=1, stdout=wide)) < WITHIN_S


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_no_parser_is_slow_on_partial_matches(name: str) -> None:
    begun = re.sub(r"\w+$", "", name)
    lines = "".join(f"{begun}{'a' * 900}:1:{' ' * 900}x\n" for _ in range(100))
    start = time.process_time()
    assert list(PARSERS[name].read(Log.of(lines, name, 1))) is not None
    assert time.process_time() - start < WITHIN_S


@pytest.mark.parametrize(
    ("command", "block"),
    [
        ("pytest", "____ test_{0} ____\nE   assert 1 == {0}\n\nt.py:{0}: AssertionError\n"),
        ("pytest", "FAILED t.py::test_{0} - assert 1\n"),
        ("flake8", "a.py:{0}:1: F401 'x' unused\n"),
        ("ruff check", "F401 [*] `os` unused\n --> a.py:{0}:8\n  |\n1 | x\n\n"),
        ("python", "Traceback (most recent call last):\n"),
        ("python", 'Traceback (most recent call last):\n  File "a.py", line {0}, in f\n'),
        ("jest", "FAIL a.js\n  ● test {0}\n\n    broken\n\n"),
        ("go test", "--- FAIL: Test{0} (0.00s)\n    a_test.go:1: no\n"),
        ("cargo test", "---- test{0} stdout ----\nbroken\n"),
        ("node --test", "not ok {0} - x\n"),
        ("pre-commit", "x....Failed\n- hook id: x{0}\n"),
        ("mvn", "[ERROR] a.B.c{0} -- Time elapsed: 0.1 s <<< FAILURE!\nx\n"),
        ("python -m unittest", "{1}\nFAIL: test_{0} (a.B)\n{2}\nx\n"),
    ],
)
def test_parsing_time_is_linear_in_the_length_of_a_log(command: str, block: str) -> None:
    def log(count: int) -> ToolOutput:
        blocks = (block.format(n + 1, "=" * 70, "-" * 70) for n in range(count))
        return ToolOutput(command=command, exit_code=1, stdout="".join(blocks))

    small, large = took(log(500)), took(log(4_000))
    assert large < max(40 * small, 2.0)


def test_many_problems_in_files_of_one_name_are_placed_without_a_hang() -> None:
    files = ("a/src/index.py", "b/src/index.py")
    printed = "".join(f"src/index.py:{n}:1: E501 too long\n" for n in range(1, 5_001))
    output = ToolOutput(
        command="make lint",
        exit_code=1,
        stdout=f"{printed}=== b\n{printed}",
        root="/w",
        holds=files.__contains__,
        endings=lambda path: [file for file in files if file.endswith(f"/{path}")],
    )
    started = time.monotonic()
    found = diagnose(output).diagnostics
    assert time.monotonic() - started < WITHIN_S
    assert [d.path for d in found[::5_000]] == ["src/index.py", "b/src/index.py"]
