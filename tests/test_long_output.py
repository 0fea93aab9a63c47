"""Of what a gate prints without end nothing is lost in silence."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics import Findings, ToolOutput, combined, diagnose
from atlas_retry.diagnostics.reader import MAX_DIAGNOSTICS
from atlas_retry.gates.log_parts import MAX_READ_LINES, PART_BYTES, is_held, parts
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.results import OutputContext, result_of
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import GateResult, Kind, Status, Validation
from atlas_retry.process import Command, Completed, Ended
from atlas_retry.process.values import Output
from atlas_retry.reports.screen.gate_lines import failure_lines
from tests.goldens import regenerate
from tests.values import gate

PROBLEMS = 30_000
PRINT = (
    "awk 'BEGIN { for (i = 1; i <= %d; i++)"
    ' printf "src/m%%d.py:%%d:1: F821 Undefined name `n%%d`\\n", i %% 9, i, i }\'; exit 1'
)
SECRET = "hunter2-hunter2"


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> GateResult:
    folder = tmp_path_factory.mktemp("long")
    plan = Plan(root=folder, logs=folder, environ={"PATH": "/usr/bin:/bin"})
    line = PRINT % PROBLEMS
    return run_gates([gate("it", Kind.LINT, line)], plan).results[0]


def test_every_problem_of_a_long_output_is_counted(long: GateResult) -> None:
    assert long.output_omitted_bytes > 0
    assert long.problems == PROBLEMS
    assert long.error == f"exit code 1, {PROBLEMS} problems"
    assert not long.at_least


def test_what_is_kept_of_a_long_output_is_bounded(long: GateResult) -> None:
    assert len(long.diagnostics) == MAX_DIAGNOSTICS
    assert long.beyond == PROBLEMS - MAX_DIAGNOSTICS


def test_the_screen_counts_what_it_does_not_show(long: GateResult) -> None:
    text = "\n".join(line for line, _ in failure_lines(Validation(results=(long,))))
    assert f"... and {PROBLEMS - 20} more problems (-v shows the first {MAX_DIAGNOSTICS})" in text


def completed(folder: Path | None, text: str) -> Completed:
    """A command that failed and printed `text`, of which the middle was not kept."""
    head, tail = text[:200], text[-200:]
    if folder:
        (folder / "stdout.log").write_text(text)
        (folder / "stderr.log").write_text("")
    return Completed(
        command=Command(argv=("sh",), cwd=Path(), env={}, log_dir=folder),
        ended=Ended.EXITED,
        exit_code=1,
        stdout=Output(head=head, tail=tail, omitted_bytes=len(text) - 400, size_bytes=len(text)),
    )


def test_no_more_lines_are_read_than_anybody_waits_for(tmp_path: Path) -> None:
    done = completed(tmp_path, "y\n" * (MAX_READ_LINES + 10))
    assert not is_held(done)
    assert sum(out.count("\n") for out, _ in parts(done)) < MAX_READ_LINES


LINES = "".join(f"a.py:{n}:1: F821 Undefined name `n{n}` {SECRET}\n" for n in range(1, 101))


def read(done: Completed, root: Path) -> GateResult:
    reading = OutputContext(root=root, secrets=frozenset({SECRET}))
    return result_of(gate("it", Kind.LINT, "ruff check"), done, reading)


def test_a_secret_in_the_middle_of_a_long_output_is_redacted(tmp_path: Path) -> None:
    result = read(completed(tmp_path, LINES), tmp_path)
    assert result.problems == 100
    assert not any(SECRET in d.message + d.text for d in result.diagnostics)


def test_without_its_log_a_long_output_is_counted_as_at_least(tmp_path: Path) -> None:
    result = read(completed(None, LINES), tmp_path)
    assert result.at_least
    assert "at least" in (result.error or "")


def test_a_log_that_is_incomplete_is_counted_as_at_least(tmp_path: Path) -> None:
    done = completed(tmp_path, LINES)
    (tmp_path / "stdout.log").write_text(LINES[:2_000])
    assert read(done, tmp_path).at_least


def test_a_log_is_read_in_parts_that_end_at_a_line(tmp_path: Path) -> None:
    text = "".join(f"line {n:80}\n" for n in range(PART_BYTES // 50))
    done = completed(tmp_path, text)
    assert is_held(done)
    read_ = [out for out, _ in parts(done)]
    assert "".join(read_) == text
    assert len(read_) > 1
    assert all(part.endswith("\n") for part in read_)


def in_parts(text: str, number: int, command: str) -> Findings:
    lines = text.splitlines(keepends=True)
    size = len(lines) // number + 1
    cut = ["".join(lines[at : at + size]) for at in range(0, len(lines), size)]
    output = ToolOutput(command=command, kind=Kind.TEST, exit_code=1)
    return combined(diagnose(replace(output, stdout=part)) for part in cut)


def test_problems_of_several_parts_are_told_once_and_as_at_least() -> None:
    text = "".join(f"a.py:{n % 30 + 1}:1: F821 Undefined name `x`\n" for n in range(90))
    findings = in_parts(text, 3, "ruff check")
    assert len(findings.diagnostics) == 30
    assert sum(d.count for d in findings.diagnostics) + findings.beyond == 90
    assert findings.cut


def test_no_failing_test_is_lost_where_a_log_is_parted(tmp_path: Path) -> None:
    golden = regenerate.output_of(regenerate.FOLDER / "pytest-9.2.0-plain")
    done = completed(tmp_path, golden.stdout)
    torn = [replace(golden, stdout=out) for out, _ in parts(done, part_bytes=4_000)]
    assert len(torn) > 2
    told = {d.test_id for d in combined(map(diagnose, torn)).diagnostics}
    assert told >= {d.test_id for d in diagnose(golden).diagnostics}


def test_one_part_in_which_tests_ran_is_enough() -> None:
    output = ToolOutput(command="mocha", kind=Kind.TEST, exit_code=0)
    told = [replace(output, stdout=f"  {n} passing (1ms)\n") for n in (0, 3)]
    assert not combined(map(diagnose, told)).vacuous


def test_a_passed_gate_says_nothing_of_more(tmp_path: Path, environ: dict[str, str]) -> None:
    plan = Plan(root=tmp_path, logs=tmp_path, environ=environ)
    line = "yes | head -c 300000; exit 0"
    (result,) = run_gates([gate("it", Kind.LINT, line)], plan).results
    assert (result.status, result.at_least) == (Status.PASSED, False)


FAILING = [case for case in regenerate.cases() if regenerate.output_of(case).exit_code]


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.name)
def test_what_is_torn_between_two_parts_is_counted_once(case: Path, tmp_path: Path) -> None:
    golden = replace(regenerate.output_of(case), stderr="", report=None)
    size = max(2_000, len(golden.stdout) // 3)
    done = completed(tmp_path, golden.stdout)
    torn = [replace(golden, stdout=out) for out, _ in parts(done, part_bytes=size)]
    assert problems(combined(map(diagnose, torn))) <= problems(diagnose(golden))


def problems(findings: Findings) -> int:
    return sum(d.count for d in findings.diagnostics) + findings.beyond


def test_what_looks_like_a_problem_does_not_count_beside_what_a_tool_names() -> None:
    tool = "a.py:1:1: F821 Undefined name `x`\n"
    printed = "b.py:3: in y\n"
    torn = [ToolOutput(command="sh x", exit_code=1, stdout=out) for out in (tool, printed)]
    assert problems(combined(map(diagnose, torn))) == 1
