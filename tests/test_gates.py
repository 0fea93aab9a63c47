import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.events import Event, GateFinished, GateRanAgain, GateStarted, Notice
from atlas_retry.gates.fixers import run_fixers
from atlas_retry.gates.plan import Plan, environment
from atlas_retry.gates.validation import run_gates
from atlas_retry.gates.watched import Watched
from atlas_retry.model import Gate, GateResult, Kind, Status
from atlas_retry.run.open import LastRun
from atlas_retry.workspace.discovery import unopened
from atlas_retry.workspace.snapshot.look import Tracker
from tests.processes import PYTHON
from tests.values import gate, result


@pytest.fixture
def plan(tmp_path: Path, environ: dict[str, str]) -> Plan:
    root, logs = tmp_path / "work", tmp_path / "logs"
    root.mkdir()
    logs.mkdir()
    return Plan(root=root, logs=logs, environ=environ, jobs=4, watched=watched(root))


def watched(root: Path) -> Watched:
    """What is seen without git; nothing can be held there."""
    tracker = Tracker(unopened(root, root.parent / "state", environ=os.environ))
    return Watched(tracker=lambda: tracker)


def status_of(run: str, plan: Plan, kind: Kind = Kind.LINT, **rest: object) -> Status:
    return run_gates([gate("it", kind, run, **rest)], plan).results[0].status


@pytest.mark.parametrize(
    ("run", "kind", "status"),
    [
        ("true", Kind.LINT, Status.PASSED),
        ("exit 1", Kind.LINT, Status.FAILED),
        ("no-such-tool-anywhere", Kind.LINT, Status.BROKEN),
        ("exit 126", Kind.TEST, Status.BROKEN),
        ("kill -SEGV $$", Kind.TEST, Status.FAILED),
        ("echo no tests ran in 0.01s; exit 5", Kind.TEST, Status.VACUOUS),
        ("echo 2 tests collected in 0.01s", Kind.TEST, Status.VACUOUS),
        ("echo '= 1/2 tests collected (1 deselected) in 0.01s ='", Kind.TEST, Status.VACUOUS),
        ("echo '===== 1 failed in 0.1s ====='", Kind.LINT, Status.PASSED),
    ],
)
def test_the_exit_code_decides_the_status(run: str, kind: Kind, status: Status, plan: Plan) -> None:
    assert status_of(run, plan, kind) is status


def test_a_missing_tool_is_named(plan: Plan) -> None:
    (result,) = run_gates([gate("it", Kind.LINT, "no-such-tool-anywhere --check")], plan).results
    assert result.error == "no-such-tool-anywhere: not found"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cd . && no-such-tool", "no-such-tool"),
        ("true; sh -c no-such-inner", "no-such-inner"),
        ("touch no-program; ./no-program", "./no-program"),
    ],
)
def test_the_missing_command_of_a_command_line_is_named(
    line: str, message: str, plan: Plan
) -> None:
    (result,) = run_gates([gate("it", Kind.LINT, line)], plan).results
    assert result.status is Status.BROKEN
    assert message in (result.error or "")


def test_processes_left_running_by_a_gate_are_ended_and_reported(plan: Plan) -> None:
    (result,) = run_gates([gate("it", Kind.LINT, "setsid sleep 60 & sleep 0.1")], plan).results
    assert result.status is Status.PASSED
    assert "sleep 60" in " ".join(result.notes)


def test_a_missing_undeclared_module_is_code(plan: Plan) -> None:
    (plan.root / "test_it.py").write_text("import helpers\n")
    line = f"{PYTHON} -S -m unittest test_it"
    assert run_gates([gate("it", Kind.TEST, line)], plan).results[0].triage == "code"


def test_the_same_error_on_two_lines_is_two_problems(plan: Plan) -> None:
    (plan.root / "a.py").write_text("def f():\n    go()\n    go()\n")
    line = "echo 'a.py:2:5: F821 Undefined name `go`'; echo 'a.py:3:5: F821 Undefined name `go`'"
    diagnostics = run_gates([gate("it", Kind.LINT, f"{line}; exit 1")], plan).results[0].diagnostics
    assert len({each.fingerprint for each in diagnostics}) == 2


def test_a_hanging_gate_is_timed_out(plan: Plan) -> None:
    assert status_of("sleep 60", plan, timeout_s=0.2) is Status.TIMED_OUT


def test_all_gates_run_although_one_failed(plan: Plan) -> None:
    gates = [gate("one", Kind.LINT, "exit 1"), gate("two", Kind.TEST, "exit 1"), gate("three")]
    statuses = [result.status for result in run_gates(gates, plan).results]
    assert statuses == [Status.FAILED, Status.FAILED, Status.PASSED]


def test_fail_fast_skips_gates_after_a_failure(plan: Plan) -> None:
    gates = [gate("one", Kind.FORMAT, "exit 1"), gate("two", Kind.TEST, "touch ran")]
    validation = run_gates(gates, replace(plan, fail_fast=True, watched=None))
    assert validation.results[1].status is Status.SKIPPED
    assert not (plan.root / "ran").exists()
    assert not validation.success


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    "first",
    [
        gate("optional", Kind.LINT, "exit 1", required=False),
        gate("flaky", run="test -e ../seen || { touch ../seen; exit 1; }"),
    ],
)
def test_fail_fast_continues_after_a_failure_that_does_not_count(
    first: Gate, jobs: int, plan: Plan
) -> None:
    gates = [first, gate("slow", run="sleep 0.2"), gate("required", run="exit 1")]
    how = replace(plan, fail_fast=True, flake_reruns=1, jobs=jobs)
    assert run_gates(gates, how).results[2].status is Status.FAILED


def test_a_failing_optional_gate_does_not_fail_the_validation(plan: Plan) -> None:
    validation = run_gates([gate("it", Kind.LINT, "exit 1", required=False), gate()], plan)
    assert validation.success
    assert validation.results[0].status is Status.FAILED


def test_a_writer_that_failed_and_changed_files_runs_again(plan: Plan) -> None:
    line = "test -e done || { touch done; exit 1; }"
    (result,) = run_gates([gate("it", Kind.PRE_COMMIT, line)], plan).results
    assert result.status is Status.PASSED
    assert result.changed == ("done",)


def test_a_writer_that_fails_twice_is_failed(plan: Plan) -> None:
    assert status_of("echo x >> log; exit 1", plan, Kind.FORMAT) is Status.FAILED
    assert (plan.root / "log").read_text() == "x\nx\n"


@pytest.mark.parametrize(("check", "status"), [(False, Status.PASSED), (True, Status.FAILED)])
def test_changed_files_are_reported_and_fail_with_check(
    check: bool, status: Status, plan: Plan
) -> None:
    (result,) = run_gates(
        [gate("it", Kind.FORMAT, "touch new")], replace(plan, check=check)
    ).results
    assert result.status is status
    assert result.changed == ("new",)


def test_writers_run_alone_and_readers_concurrently(plan: Plan) -> None:
    meet = "echo >> {me}; for i in $(seq 50); do test -e {other} && exit 0; sleep 0.1; done; exit 1"
    alone = "ls busy* 2>/dev/null && exit 1; touch busy-$$; sleep 0.1; rm busy-$$"
    gates = [
        gate("w1", Kind.FORMAT, alone),
        gate("w2", Kind.FORMAT, alone),
        gate("r1", Kind.LINT, meet.format(me="a", other="b")),
        gate("r2", Kind.TEST, meet.format(me="b", other="a")),
    ]
    validation = run_gates(gates, replace(plan, watched=None))
    assert [result.status for result in validation.results] == [Status.PASSED] * 4


def test_builds_run_before_the_gates_that_may_need_them(plan: Plan) -> None:
    (plan.root / "new.txt").write_text("new")
    gates = (
        gate(name="lint", run="test -e dist/a.txt", kind=Kind.LINT),
        gate(name="tests", run="test -e dist/a.txt", kind=Kind.TEST),
        gate(name="hooks", run="true", kind=Kind.PRE_COMMIT),
        gate(name="build", run="sleep 0.3; mkdir dist; cp new.txt dist/a.txt", kind=Kind.BUILD),
    )
    assert run_gates(gates, plan).success


def test_a_gate_runs_once_those_that_it_waits_for_have_ended(plan: Plan) -> None:
    gates = [
        gate("report", Kind.LINT, "echo report >> order", after=("tests", "unknown here")),
        gate("tests", Kind.TEST, "sleep 0.2; echo tests >> order; exit 1"),
        gate("upload", Kind.BUILD, "echo upload >> order", after=("report",)),
    ]
    results = run_gates(gates, replace(plan, flake_reruns=0)).results
    assert (plan.root / "order").read_text().split() == ["tests", "report", "upload"]
    assert [each.status for each in results] == [Status.PASSED, Status.FAILED, Status.PASSED]


def test_readers_run_again_after_a_later_writer_changed_files(plan: Plan) -> None:
    gates = [
        gate("lint", Kind.LINT, "! grep -q bad code.py"),
        gate("hooks", Kind.PRE_COMMIT, "echo bad > code.py"),
    ]
    (plan.root / "code.py").write_text("good\n")
    validation = run_gates(gates, plan)
    assert validation.results[0].status is Status.FAILED


@pytest.mark.parametrize("optional", [0, 1])
def test_an_optional_writer_that_keeps_undoing_another_ones_change_fails(
    plan: Plan, optional: int
) -> None:
    lines = ("echo 'a = 1' > code.py", "echo 'a=1' > code.py")
    gates = [
        gate(f"g{n}", Kind.FORMAT, line, required=n != optional) for n, line in enumerate(lines)
    ]
    assert not run_gates(gates, plan).success


def test_writers_that_keep_changing_files_fail(plan: Plan) -> None:
    gates = [
        gate("one", Kind.FORMAT, "echo 1 > code.py"),
        gate("other", Kind.PRE_COMMIT, "echo 2 > code.py"),
    ]
    last = run_gates(gates, plan).results[1]
    assert last.status is Status.FAILED
    assert last.error == "it changed 1 file again, after other gates had run on them: code.py"


def test_a_review_is_not_repeated_when_its_input_is_unchanged(plan: Plan) -> None:
    made: list[str] = []

    def counted(one: Gate) -> GateResult:
        made.append(one.name)
        return reviewed(one)

    gates = [
        gate("lint", Kind.LINT),
        gate("hooks", Kind.PRE_COMMIT, "test -e new.py || touch new.py"),
        gate("sense", Kind.REVIEW, ""),
    ]
    assert run_gates(gates, replace(plan, review=counted)).success
    assert made == ["sense"]


def test_the_cost_of_a_repeated_review_counts_twice(plan: Plan) -> None:
    late = gate("codegen", Kind.CUSTOM, "test -e new.py || touch new.py", writes=True)
    validation = run_gates([gate("sense", Kind.REVIEW, ""), late], replace(plan, review=reviewed))
    assert validation.results[0].cost_usd == 2.0


def reviewed(one: Gate) -> GateResult:
    return replace(result(one.name, kind=Kind.REVIEW), cost_usd=1.0)


def test_a_flaky_test_is_reported_and_passes(plan: Plan) -> None:
    (result,) = run_gates(
        [gate(run="test -e ../seen || { touch ../seen; exit 1; }")], replace(plan, flake_reruns=1)
    ).results
    assert result.status is Status.FLAKY
    assert result.success


FAILING_ALONE = """\
def test_first():
    open("../whole", "a").write("x")


def test_it():
    open("../runs", "a").write("x")
    assert 1 == 2
"""


def test_a_failing_test_that_fails_again_alone_is_not_flaky(plan: Plan) -> None:
    (plan.root / "test_it.py").write_text(FAILING_ALONE)
    events: list[Event] = []
    how = replace(plan, flake_reruns=1)
    validation = run_gates([gate(run=f"{PYTHON} -m pytest -q -s")], how, events.append)
    assert validation.results[0].status is Status.FAILED
    assert [(plan.root / ".." / name).read_text() for name in ("whole", "runs")] == ["x", "xx"]
    (extra,) = validation.extra_runs
    assert (extra.gate, extra.reason, extra.attempt) == ("tests", "it may be flaky", None)
    assert any(isinstance(event, GateRanAgain) for event in events)


@pytest.mark.parametrize("second", ["exit 0", "echo other; exit 1"])
def test_a_part_that_passes_or_fails_otherwise_makes_the_whole_gate_decide(
    plan: Plan, second: str
) -> None:
    whole = f"test -e ../seen || {{ touch ../seen; echo '{A_PROBLEM}'; exit 1; }}"
    (result,) = run_gates([gate(run=whole, recheck=second)], replace(plan, flake_reruns=1)).results
    assert result.status is Status.FLAKY


def test_a_recheck_without_a_file_to_take_is_no_part(plan: Plan) -> None:
    whole = f"test -e ../seen || {{ touch ../seen; echo '{A_PROBLEM}'; exit 1; }}"
    part = f"touch ../part; echo '{A_PROBLEM}' {{files}}; exit 1"
    (result,) = run_gates([gate(run=whole, recheck=part)], replace(plan, flake_reruns=1)).results
    assert result.status is Status.FLAKY
    assert not (plan.root / "../part").exists()


A_PROBLEM, ANOTHER = "src.py:1:1: F401 unused", "other.py:1:1: E999 no module"


@pytest.mark.parametrize(
    ("before", "now", "times"),
    [
        (f"echo '{A_PROBLEM}'; exit 1", A_PROBLEM, 1),
        (f"echo '{A_PROBLEM}'; exit 1", ANOTHER, 2),
        ("exit 1", ANOTHER, 1),
        ("true", A_PROBLEM, 2),
    ],
)
def test_a_test_is_run_again_only_if_it_did_not_fail_so_before(
    plan: Plan, before: str, now: str, times: int
) -> None:
    first = run_gates([gate(run=before)], plan)
    failing = gate(run=f"echo >> ../runs; echo '{now}'; exit 1")
    second = run_gates([failing], replace(plan, previous=first, flake_reruns=1))
    assert not second.success
    assert (plan.root / "../runs").read_text() == "\n" * times


def test_a_timed_out_test_is_not_run_again(plan: Plan) -> None:
    hang = gate(run="echo >> runs; sleep 60", timeout_s=0.2)
    run_gates([hang], replace(plan, flake_reruns=3))
    assert (plan.root / "runs").read_text() == "\n"


def test_a_passing_recheck_needs_a_pass_of_the_whole_gate(plan: Plan) -> None:
    failing = gate(run="exit 1", recheck="true")
    first = run_gates([failing], plan)
    second = run_gates([failing], replace(plan, previous=first))
    assert second.results[0].status is Status.FAILED


def test_a_failing_recheck_replaces_the_whole_gate(plan: Plan) -> None:
    failing = gate(run="echo >> whole; exit 1", recheck="exit 1")
    first = run_gates([failing], plan)
    run_gates([failing], replace(plan, previous=first))
    assert (plan.root / "whole").read_text() == "\n"


@pytest.mark.parametrize("printed", ["other.py:1:1: E999 no module", "unknown option"])
def test_a_recheck_without_the_earlier_problem_does_not_replace_the_whole_gate(
    plan: Plan, printed: str
) -> None:
    source = plan.root / "src.py"
    whole = "test ! -e src.py || { echo 'src.py:1:1: F401 unused'; exit 1; }"
    failing = gate(run=whole, recheck=f"echo '{printed}'; exit 1")
    source.write_text("x")
    first = run_gates([failing], plan)
    assert not first.success
    source.unlink()
    assert run_gates([failing], replace(plan, previous=first)).success


def test_secrets_are_removed_from_the_environment_unless_configured() -> None:
    seen = {"PATH": "/bin", "ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "o"}
    assert set(environment(gate(), seen)) == {"PATH"}
    assert "ANTHROPIC_API_KEY" in environment(gate(pass_env=("ANTHROPIC_API_KEY",)), seen)


def test_a_gate_uses_its_own_environment_and_directory(plan: Plan) -> None:
    (plan.root / "sub").mkdir()
    unwatched = replace(plan, watched=None)
    own = gate(run='test "$A" = b && test "${PWD##*/}" = sub', cwd="sub", env=(("A", "b"),))
    assert run_gates([own], unwatched).success


def test_variables_of_an_outer_git_hook_are_removed() -> None:
    assert "GIT_INDEX_FILE" not in environment(gate(), {"GIT_INDEX_FILE": ".git/index"})


def test_fixers_run_in_order_and_report_changed_files(plan: Plan) -> None:
    gates = [gate("a", fix="touch one"), gate("b"), gate("c", fix="touch two")]
    assert run_fixers(gates, plan) == ("one", "two")


def test_every_gate_is_announced_and_reported_exactly_once(plan: Plan) -> None:
    events: list[Event] = []
    gates = [
        gate("format", Kind.FORMAT),
        gate("lint", Kind.LINT, "exit 1"),
        gate("flaky", run="test -e ../seen || { touch ../seen; exit 1; }"),
    ]
    run_gates(gates, replace(plan, flake_reruns=1), events.append)
    assert sorted(names(events)) == ["flaky", "format", "lint"]
    assert {e.gate for e in events if isinstance(e, GateStarted)} == {"format", "lint", "flaky"}
    assert [e.text for e in events if isinstance(e, Notice)] == [
        "  flaky failed; running it again, because it may be flaky"
    ]


def names(events: Iterable[Event]) -> list[str]:
    return [event.result.name for event in events if isinstance(event, GateFinished)]


def test_secrets_are_redacted_in_results(plan: Plan) -> None:
    hidden = replace(plan, secrets=frozenset({"hunter2-and-more"}))
    (result,) = run_gates([gate(run="echo hunter2-and-more; exit 1")], hidden).results
    assert "hunter2" not in result.stdout


def test_both_streams_and_the_log_are_kept(plan: Plan) -> None:
    (result,) = run_gates([gate(run="echo out; echo err >&2; exit 1")], plan).results
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert result.log_path is not None
    assert (Path(result.log_path) / "stdout.log").read_text() == "out\n"


def test_results_have_the_order_of_the_gates(plan: Plan) -> None:
    gates: list[Gate] = [gate("slow", run="sleep 0.2"), gate("fast")]
    known = replace(plan, known_s={"fast": 9.0})
    assert [r.name for r in run_gates(gates, known).results] == ["slow", "fast"]


@pytest.mark.parametrize(
    ("duration_s", "cpu_s", "waited"), [(9.0, 0.5, True), (9.0, 8.0, False), (0.02, 0.001, False)]
)
def test_a_gate_with_little_processor_time_mostly_waited(
    duration_s: float, cpu_s: float, *, waited: bool
) -> None:
    assert LastRun(duration_s, cpu_s).mostly_waited is waited


def test_a_test_that_ran_in_a_folder_below_is_named_from_the_workspace(plan: Plan) -> None:
    (plan.root / "tests").mkdir()
    (plan.root / "tests" / "test_it.py").write_text("def test_it():\n    assert 1 == 2\n")
    (plan.root / "tox.ini").write_text("[pytest]\n")
    (plan.root / "run").write_text(f"mkdir .tox; cd .tox; {PYTHON} -m pytest -q ../tests\n")
    (found,) = run_gates([gate("it", Kind.TEST, "sh run")], plan).results[0].diagnostics
    assert found.test_id == "tests/test_it.py::test_it"
    assert found.path == "tests/test_it.py"
    assert [frame.path for frame in found.frames] == ["tests/test_it.py"]
