"""Of what a gate prints without end nothing is lost in silence."""

from pathlib import Path

import pytest

from atlas_retry.diagnostics.reader import MAX_DIAGNOSTICS
from atlas_retry.gates.logs import MAX_READ_BYTES, logged
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.results import OutputContext, result_of
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import GateResult, Kind, Status, Validation
from atlas_retry.process import Command, Completed, Ended
from atlas_retry.process.values import Output
from atlas_retry.reports.screen.gate_lines import failure_lines
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


def test_kept_problems_of_a_long_output_are_limited(long: GateResult) -> None:
    assert len(long.diagnostics) == MAX_DIAGNOSTICS
    assert long.beyond == PROBLEMS - MAX_DIAGNOSTICS


def test_the_screen_counts_problems_it_does_not_show(long: GateResult) -> None:
    text = "\n".join(line for line, _ in failure_lines(Validation(results=(long,))))
    assert f"... and {PROBLEMS - 20} more problems (-v shows {MAX_DIAGNOSTICS})" in text


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


LINES = "".join(f"a.py:{n}:1: F821 Undefined name `n{n}` {SECRET}\n" for n in range(1, 101))


def read(done: Completed, root: Path) -> GateResult:
    reading = OutputContext(root=root, secrets=frozenset({SECRET}))
    return result_of(gate("it", Kind.LINT, "ruff check"), done, reading)


def test_a_secret_in_the_middle_of_a_long_output_is_redacted(tmp_path: Path) -> None:
    result = read(completed(tmp_path, LINES), tmp_path)
    assert result.problems == 100
    assert not any(SECRET in d.message + d.text for d in result.diagnostics)


def test_a_long_output_without_its_log_is_counted_as_at_least(tmp_path: Path) -> None:
    result = read(completed(None, LINES), tmp_path)
    assert result.at_least
    assert "at least" in (result.error or "")


def test_an_incomplete_log_is_counted_as_at_least(tmp_path: Path) -> None:
    done = completed(tmp_path, LINES)
    (tmp_path / "stdout.log").write_text(LINES[:2_000])
    assert read(done, tmp_path).at_least


def test_only_head_and_tail_of_a_huge_log_are_read(tmp_path: Path) -> None:
    text = "".join(f"{n:0100}\n" for n in range(60_000))
    stdout, _, is_whole = logged(completed(tmp_path, text))
    assert not is_whole
    assert stdout.startswith(text[:1_000])
    assert stdout.endswith(text[-1_000:])
    assert len(stdout) < MAX_READ_BYTES + 100


def test_a_passed_gate_never_says_at_least(tmp_path: Path, environ: dict[str, str]) -> None:
    plan = Plan(root=tmp_path, logs=tmp_path, environ=environ)
    line = "yes | head -c 300000; exit 0"
    (result,) = run_gates([gate("it", Kind.LINT, line)], plan).results
    assert (result.status, result.at_least) == (Status.PASSED, False)
