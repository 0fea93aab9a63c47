"""Exit code 0 is not enough for a test gate whose runner says that it failed."""

from pathlib import Path

import pytest

from atlas_retry.config.neutralised import neutraliser
from atlas_retry.diagnostics.summaries import failures_counted
from atlas_retry.model import Status, Verdict
from tests.miniatures import ADD, CALC, PYTEST, REPAIR, TEST_ADD, miniature
from tests.needs import needs
from tests.projects import atlas

Environ = dict[str, str]

JUNIT = """<?xml version="1.0"?><testsuite name="s" tests="1" failures="1"><testcase
classname="test_calc" name="test_add"><failure message="assert -1 == 3">no</failure></testcase>
</testsuite>"""
NODE = {
    "calc.test.js": "const test = require('node:test');\n"
    "test('adds', () => require('node:assert').strictEqual(1, 2));\n"
}
GO = {
    "go.mod": "module example.org/calc\n\ngo 1.19\n",
    "calc_test.go": 'package calc\n\nimport "testing"\n\n'
    'func TestAdd(t *testing.T) { t.Fatal("no") }\n',
}
UNITTEST = {
    "test_calc.py": "import unittest\n\n\nclass Add(unittest.TestCase):\n"
    "    def test_add(self):\n        self.fail('no')\n"
}
TAP = {"known.t": 'print "1..2\\nok 1 - good\\nnot ok 2 - bad\\n";\n'}

SHAPES = {
    "a pipe into tee": (CALC, f"{PYTEST} | tee out.log"),
    "an echo after it": (CALC, f"{PYTEST}; echo done"),
    "a script without set -e": (
        CALC | {"run.sh": f"{PYTEST}\necho ran the tests\n"},
        "sh run.sh",
    ),
    "make with a pipe": (CALC | {"Makefile": f"test:\n\t@{PYTEST} | cat\n"}, "make test"),
    "colours through a pager": (CALC, f"{PYTEST} 2>&1 | cat"),
    "unittest": (UNITTEST, "python -m unittest 2>&1 | tee out.log"),
    "unittest on stderr": (UNITTEST, "python -m unittest; echo done"),
    "node": (NODE, "node --test | cat"),
    "npm": (
        NODE | {"package.json": '{"name": "a", "scripts": {"test": "node --test | cat"}}'},
        "npm test --silent",
    ),
    "go": (GO, "go test ./... | cat"),
    "prove": (TAP, "prove . | cat"),
    "the Test Anything Protocol": (TAP, "perl known.t"),
}


OTHERS = {"node": ["node"], "npm": ["node", "npm"], "go": ["go"], "prove": ["prove"]}
"""The programs that a shape needs."""


@pytest.mark.parametrize(
    "shape", [pytest.param(shape, marks=needs(*OTHERS.get(shape, ()))) for shape in SHAPES]
)
def test_a_lost_exit_code_is_found(tmp_path: Path, environ: Environ, shape: str) -> None:
    files, command = SHAPES[shape]
    project = miniature(tmp_path, environ, files, [], validation={"test": [command]})
    ended = atlas(project, "validate")
    assert ended.code == 1
    assert "exit code 0, but it reports" in ended.out
    assert "exit_code: trust" in ended.out


def test_a_report_that_counts_failures_fails_the_gate(tmp_path: Path, environ: Environ) -> None:
    gate = {
        "run": "cp made.xml out.xml",
        "report": {"format": "junit", "path": "out.xml"},
    }
    project = miniature(tmp_path, environ, {"made.xml": JUNIT}, [], validation={"test": [gate]})
    ended = atlas(project, "validate")
    assert ended.code == 1
    assert "reports 1 failed" in ended.out


def test_a_report_that_an_earlier_run_wrote_fails_nothing(tmp_path: Path, environ: Environ) -> None:
    gate = {
        "run": "touch -d '1 hour ago' out.xml",
        "report": {"format": "junit", "path": "out.xml"},
    }
    files = {"out.xml": JUNIT}
    project = miniature(tmp_path, environ, files, [], validation={"test": [gate]})
    assert atlas(project, "validate").code == 0


def test_trust_switches_the_check_off(tmp_path: Path, environ: Environ) -> None:
    gate = {"run": f"{PYTEST} | cat", "exit_code": "trust"}
    project = miniature(tmp_path, environ, CALC, [], validation={"test": [gate]})
    assert atlas(project, "validate").code == 0


def test_an_agent_fixes_what_a_pipe_hides(tmp_path: Path, environ: Environ) -> None:
    project = miniature(
        tmp_path, environ, CALC, [REPAIR], validation={"test": [f"{PYTEST} | tee /dev/null"]}
    )
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert "test_add" in (outcome.baseline.results[0].diagnostics[0].test_id or "")


def test_no_agent_is_asked_where_no_failure_is_named(tmp_path: Path, environ: Environ) -> None:
    gate = "echo '1 failed, 3 passed in 0.10s'"
    project = miniature(tmp_path, environ, {"calc.py": ADD}, [REPAIR], validation={"test": [gate]})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FAILED
    assert not outcome.attempts
    assert "no failure is named" in (outcome.final_error or "")


@pytest.mark.parametrize(
    ("kind", "command", "part"),
    [
        ("test", f"{PYTEST} || true", "|| true"),
        ("test", f"{PYTEST}; exit 0", "; exit 0"),
        ("lint", "ruff check --exit-zero .", "--exit-zero"),
    ],
)
def test_a_gate_that_cannot_fail_is_optional_and_says_so(
    tmp_path: Path, environ: Environ, kind: str, command: str, part: str
) -> None:
    files = {"calc.py": ADD, "test_calc.py": TEST_ADD}
    gates = {kind: [command], "custom": [{"run": "true", "max_retries": 1}]}
    project = miniature(tmp_path, environ, files, [], validation=gates)
    ended = atlas(project, "validate")
    assert ended.code == 0, ended.out
    assert f"optional: `{part}` makes it exit with 0" in ended.out


@needs("make")
def test_a_failure_that_make_ignores_is_the_users_word(tmp_path: Path, environ: Environ) -> None:
    files = CALC | {"Makefile": f"test:\n\t-{PYTEST}\n"}
    project = miniature(tmp_path, environ, files, [], validation={"test": ["make test"]})
    outcome = project.retry(ai_fix=False)
    assert outcome.baseline.results[0].status is Status.PASSED


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("=== 1 failed, 2 passed in 0.10s ===", "1 failed"),
        ("2 failed, 1 passed, 3 errors in 1.20s", "5 failed"),
        ("1 error in 0.30s", "1 failed"),
        ("2 passed, 1 xfailed, 1 skipped in 0.10s", None),
        ("FAILED (failures=1, errors=2)", "3 failed"),
        ("FAILED (expected failures=1)\nOK", None),
        ("FAILED (failures=1)\n\nRan 1 test in 0.001s\n\nOK", None),
        ("Tests: 2, Assertions: 2, Failures: 1.\nOK (3 tests, 4 assertions)", None),
        ("Tests:       1 failed, 2 passed, 3 total", "1 failed"),
        ("Tests:       2 passed, 2 total\n  1 failed", "1 failed"),
        ("      Tests  1 failed | 2 passed (3)", "1 failed"),
        ("# pass 1\n# fail 2\n# cancelled 0\n# todo 1", "2 failed"),
        ("  2 passing (3ms)\n  1 failing\n", "1 failed"),
        ("  2 passing (3ms)\n", None),
        ("  0 passing\n  1 failing\n\n  1 passing (3ms)\n  1 pending\n", None),
        (" 1 pass\n 2 fail\nRan 3 tests across 1 file. [9ms]", "2 failed"),
        (" 1 pass\n 2 fail\n\n 3 pass\n 0 fail\n", None),
        ("  1 flaky\n    login.spec.ts:3:5\n  2 passed (4.1s)", None),
        ("  1 failed\n    login.spec.ts:3:5\n  2 passed (4.1s)", "1 failed"),
        ("ok  \texample.org/a\t0.1s\nFAIL\texample.org/b\t0.1s\nFAIL", "FAIL"),
        ("test result: FAILED. 1 passed; 1 failed; 0 ignored;", "1 failed"),
        ("3 tests completed, 1 failed\nBUILD SUCCESSFUL in 3s", None),
        ("BUILD FAILED in 3s", "FAILED"),
        ("[ERROR] Tests run: 1, Failures: 1\n[INFO] BUILD SUCCESS", None),
        ("1..2\nok 1 a\nnot ok 2 b", "1 failed"),
        ("1..2\nok 1 a\nnot ok 2 b # TODO later", None),
        ("1..3\nok 1 a\nnot ok 2 b", None),
        ("3 examples, 1 failure, 1 pending", "1 failed"),
        ("1 failed, 2 passed in 0.10s\n3 passed in 0.10s", None),
        ("src/a.py:3: error: 1 failed\nFound 1 error in 1 file", None),
    ],
)
def test_the_last_summary_counts(text: str, said: str | None) -> None:
    summary = failures_counted(text, "")
    assert (str(summary) if summary else None) == said


COMPOSE = """\
Attaching to db-1, tests-1
db-1     | database system is ready to accept connections
tests-1  | F.                                                              [100%]
tests-1  | FAILED test_calc.py::test_add - assert -1 == 3
tests-1  | 1 failed, 1 passed in 0.03s
tests-1 exited with code 1
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (COMPOSE, "1 failed"),
        (COMPOSE.replace("1 failed, 1", "2"), None),
        (COMPOSE + "3 passed in 1.20s\n", None),
        (COMPOSE.replace("tests-1 exited", "tests-1  | 3 passed in 1.20s\ntests-1 exited"), None),
    ],
)
def test_the_last_summary_of_a_container_counts_where_nothing_else_speaks(
    text: str, said: str | None
) -> None:
    summary = failures_counted(text, "")
    assert (str(summary) if summary else None) == said


@pytest.mark.parametrize(
    ("stdout", "stderr", "said"),
    [
        ("FAILED (failures=1)", "OK (expected failures=1)", None),
        ("3 failed, 2 passed in 1.20s", "Ran 2 tests in 0.01s\n\nOK", None),
        ("", "FAILED (failures=1)", "1 failed"),
        ("test result: ok. 2 passed; 0 failed; ", "error: 1 target failed:", "1 target failed"),
    ],
)
def test_a_summary_without_failures_in_one_stream_is_believed(
    stdout: str, stderr: str, said: str | None
) -> None:
    summary = failures_counted(stdout, stderr)
    assert (str(summary) if summary else None) == said


@pytest.mark.parametrize(
    "line",
    [
        "test -e cache || exit 0; pytest -q",
        "npm ci || true; npm test",
        "pytest -q || true\nruff check .",
        "ruff check --exit-zero . && pytest -q",
        "pytest -q || exit 1",
    ],
)
def test_a_part_of_a_line_that_cannot_fail_leaves_the_gate_required(line: str) -> None:
    assert neutraliser(line) == ""
