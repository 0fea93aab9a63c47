"""How output is taken apart, whoever wrote it."""

import pytest

from atlas_retry.diagnostics import PARSERS, ToolOutput, diagnose
from atlas_retry.diagnostics.failures import inside
from atlas_retry.diagnostics.paths import ToolPaths
from atlas_retry.diagnostics.reader import MAX_DIAGNOSTICS
from atlas_retry.diagnostics.table import LineFormat
from atlas_retry.diagnostics.values import Log
from atlas_retry.model import Diagnostic, Kind, Level
from atlas_retry.text.redaction import clean
from tests.goldens import regenerate

PYTEST = regenerate.output_of(regenerate.FOLDER / "pytest-9.2.0-plain").stdout


def failing(
    stdout: str, command: str = "make check", *, parser: str | None = None, root: str | None = None
) -> ToolOutput:
    return ToolOutput(command=command, exit_code=1, stdout=stdout, parser=parser, root=root)


def briefly(output: ToolOutput) -> list[tuple[str, str | None, int | None, str]]:
    return [
        (d.tool, d.path, d.region.start_line if d.region else None, d.message)
        for d in diagnose(output).diagnostics
    ]


def test_a_tool_behind_another_command_is_recognised_by_its_output() -> None:
    own = diagnose(failing(PYTEST, "pytest")).diagnostics
    assert diagnose(failing(PYTEST, "make check")).diagnostics == own


def test_cleaned_colours_do_not_change_the_result() -> None:
    coloured = "".join(f"\x1b[1m\x1b[31m{line}\x1b[0m\n" for line in PYTEST.splitlines())
    assert diagnose(failing(clean(coloured))).diagnostics == diagnose(failing(PYTEST)).diagnostics


def test_raw_colours_cause_no_error() -> None:
    raw = regenerate.FOLDER / "vitest-4.1.12-run" / "stderr.txt"
    diagnose(failing(raw.read_text(encoding="utf-8"), "vitest run"))


def test_timestamps_of_downloaded_logs_are_removed() -> None:
    stamped = "".join(f"2026-01-02T03:04:05.1234567Z {line}\n" for line in PYTEST.splitlines())
    assert briefly(failing(stamped)) == briefly(failing(PYTEST))


def test_windows_line_endings_do_not_change_the_result() -> None:
    assert briefly(failing(PYTEST.replace("\n", "\r\n"))) == briefly(failing(PYTEST))


def test_noise_between_lines_does_not_change_the_result() -> None:
    noise = "cache.py:17 cache is deprecated, use cache_v2 instead"
    noisy = "".join(f"{line}\n{noise}\n" for line in PYTEST.splitlines())
    assert [d[:3] for d in briefly(failing(noisy))] == [d[:3] for d in briefly(failing(PYTEST))]


def test_captured_pytest_output_of_a_test_is_not_a_failure() -> None:
    head, tail = PYTEST.split("= FAILURES =", 1)
    inner = f"{'-' * 29} Captured stdout call {'-' * 29}\n{PYTEST.replace('est_', 'est_inner_')}"
    at = tail.index("____________________________ test_discount[10-90.0]")
    nested = f"{head}= FAILURES ={tail[:at]}{inner}{tail[at:]}"
    assert [d.test_id for d in diagnose(failing(nested)).diagnostics] == [
        d.test_id for d in diagnose(failing(PYTEST)).diagnostics
    ]


def test_all_tools_of_one_command_are_read_in_order() -> None:
    both = "app/a.py:1: error: Bad  [misc]\nFound 1 error in 1 file\n" + PYTEST
    problems = briefly(failing(both, "mypy app; pytest"))
    assert problems[0] == ("mypy", "app/a.py", 1, "Bad")
    assert {d[0] for d in problems[1:]} == {"pytest"}


VITEST_RETRIES = """
 FAIL  a.test.js > adds
 FAIL  a.test.js > adds
 FAIL  a.test.js > adds
AssertionError: expected 1 to be 100 // Object.is equality

 \u276f a.test.js:3:27
      3| test("adds",()=>{expect(1).toBe(100)});
       |                           ^

⎯⎯⎯⎯⎯⎯[1/3]⎯

 Test Files  1 failed (1)
"""


def test_a_test_that_fails_at_each_retry_is_one_problem() -> None:
    found = diagnose(ToolOutput(command="vitest run --retry 2", exit_code=1, stdout=VITEST_RETRIES))
    assert [(d.test_id, d.count) for d in found.diagnostics] == [("a.test.js::adds", 1)]


def test_a_problem_that_is_printed_twice_at_one_place_is_one() -> None:
    line = "app/a.py:1:2: F401 'os' imported but unused\n"
    (problem,) = diagnose(failing(line * 200, "flake8")).diagnostics
    assert problem.count == 1


def test_problems_without_a_place_are_counted() -> None:
    line = "would reformat app/a.py\n"
    (problem,) = diagnose(failing(line * 200, "black --check .")).diagnostics
    assert problem.count == 200


def test_the_number_of_problems_is_limited() -> None:
    lines = "".join(f"a.py:{n}:1: E1 x\n" for n in range(1, MAX_DIAGNOSTICS + 100))
    assert len(diagnose(failing(lines, "flake8")).diagnostics) == MAX_DIAGNOSTICS


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("src/a.rb:3:5: C: Layout/X: extra space", ("src/a.rb", 3, "extra space")),
        ("src/a.lua:3: unexpected symbol", ("src/a.lua", 3, "unexpected symbol")),
        ("Dockerfile:3 DL3006 warning: tag it", ("Dockerfile", 3, "warning: tag it")),
        ("luac: a/b.lua:7: '=' expected", ("a/b.lua", 7, "'=' expected")),
        ("x/y.zig:9:1-4: error: no", ("x/y.zig", 9, "no")),
        ("lib/a.ex:12: warning: unused", ("lib/a.ex", 12, "unused")),
    ],
)
def test_any_line_with_path_and_line_number_is_read(
    line: str, expected: tuple[str, int, str]
) -> None:
    assert briefly(failing(f"checking\n{line}\ndone\n")) == [("general", *expected)]


@pytest.mark.parametrize(
    "line",
    [
        "12:34:56: started",
        "2026-03-01 12:00:00,123 INFO [x-1] done in 3 ms",
        "http://localhost:8080: listening",
        "ERROR-handler registered for x (errors=0, failed=0)",
        "  -> a/b/c.o  [1/2]",
        "tests/list.c:754:appends_an_item:PASS",
    ],
)
def test_a_log_line_is_not_a_problem(line: str) -> None:
    assert briefly(failing(f"{line}\n")) == []


def test_only_failed_tests_of_unity_are_problems() -> None:
    printed = (
        "t/list.c:7:appends:PASS\nt/list.c:9:detaches:FAIL: Expected 1 Was 2\n"
        "t/list.c:11:grows:FAIL\n\n3 Tests 2 Failures 0 Ignored \nFAIL\n"
    )
    expected = [("unity", "t/list.c", 9, "Expected 1 Was 2"), ("unity", "t/list.c", 11, "failed")]
    assert briefly(failing(printed, "ctest --output-on-failure")) == expected


def test_the_general_format_is_not_used_if_a_tool_was_recognised() -> None:
    noisy = f"lib/x.py:3: DeprecationWarning: old\n{PYTEST}"
    assert {d[0] for d in briefly(failing(noisy))} == {"pytest"}


def test_a_configured_parser_is_the_only_one_used() -> None:
    both = "app/a.py:1: error: Bad  [misc]\n" + PYTEST
    assert {d[0] for d in briefly(failing(both, parser="mypy"))} == {"mypy"}


def test_an_unknown_parser_finds_nothing() -> None:
    assert briefly(failing(PYTEST, parser="nothing-like-it")) == []


def test_a_report_format_named_as_parser_reads_the_output() -> None:
    report = regenerate.FOLDER / "ruff-json-0.17.6" / "report.json"
    problems = briefly(failing(report.read_text(encoding="utf-8"), parser="ruff-json"))
    assert problems
    assert {d[0] for d in problems} == {"ruff"}


def test_a_custom_parser_can_be_added() -> None:
    custom = (
        (
            "house",
            r"(?P<level>\w+) in (?P<path>\S+) at (?P<line>\d+),(?P<column>\d+): (?P<message>.+)",
        ),
    )
    stdout = "starting\nwarn in a.x at 3,4: too old\nfail in b.x at 5,6: gone\n"
    output = ToolOutput(
        command="./house", exit_code=1, stdout=stdout, parser="house", custom=custom
    )
    first, second = diagnose(output).diagnostics
    assert (first.tool, first.path, first.level, first.message) == (
        "house",
        "a.x",
        Level.WARNING,
        "too old",
    )
    assert second.region
    assert (second.region.start_line, second.region.start_column) == (5, 6)


def test_a_custom_parser_is_used_for_the_command_of_its_name() -> None:
    custom = (("house", r"(?P<path>\S+) is (?P<message>.+)"),)
    output = ToolOutput(command="bin/house .", exit_code=1, stdout="a.x is odd\n", custom=custom)
    assert briefly(output) == [("house", "a.x", None, "odd")]


def test_go_output_in_json_is_quoted_as_text() -> None:
    (problem,) = diagnose(regenerate.output_of(regenerate.FOLDER / "go-test-1.26-json")).diagnostics
    assert "cart_test.go:9: Total() = 5, want 6" in problem.text
    assert "Action" not in problem.text


def test_deeply_nested_json_is_ignored() -> None:
    deep = '{"Action":"output","x":' + "[" * 1_900
    assert briefly(failing(deep, "go test -json")) == []


def test_lone_surrogates_cause_no_error() -> None:
    odd = '{"Action":"output","Output":"\udcff"}\na\udcff.py:1:1: F401 x\n'
    assert briefly(failing(odd, "go test -json; flake8")) == [("flake8", "a\udcff.py", 1, "x")]


def test_an_invalid_custom_pattern_finds_nothing() -> None:
    output = ToolOutput(
        command="./x", exit_code=1, stdout="a\n", parser="x", custom=(("x", "(unclosed"),)
    )
    assert diagnose(output).diagnostics == ()


@pytest.mark.parametrize(
    ("path", "root", "cwd", "expected"),
    [
        ("/home/a/p/src/x.py", "/home/a/p", ".", "src/x.py"),
        ("/home/a/p/src/x.py", "/home/a/p/", "sub", "src/x.py"),
        ("/home/a/other/x.py", "/home/a/p", ".", "/home/a/other/x.py"),
        ("/home/a/p/x.py", None, ".", "/home/a/p/x.py"),
        ("src/x.py", "/r", "packages/web", "packages/web/src/x.py"),
        ("./src/../x.py", None, ".", "x.py"),
        ("../x.py", "/r", "web", "x.py"),
        ("../../x.py", "/r", "web", "../../x.py"),
        ("file:///r/x.js", "/r", ".", "x.js"),
    ],
)
def test_paths_are_made_relative_to_the_workspace(
    path: str, root: str | None, cwd: str, expected: str
) -> None:
    assert ToolPaths(root=root, cwd=cwd).relative(path) == expected


@pytest.mark.parametrize(
    ("printed", "there", "expected"),
    [
        ("a/src/lib.rs", "crates/a/src/lib.rs", "crates/a/src/lib.rs"),
        ("a/src/lib.rs", "crates/a/a/src/lib.rs", "crates/a/a/src/lib.rs"),
        ("crates/a/src/lib.rs", "crates/a/src/lib.rs", "crates/a/src/lib.rs"),
        ("src/lib.rs", "gone", "crates/a/src/lib.rs"),
    ],
)
def test_a_path_that_is_relative_to_a_folder_above_is_found_there(
    printed: str, there: str, expected: str
) -> None:
    problem = Diagnostic(tool="rustc", message="?", path=printed)
    paths = ToolPaths(root="/r", cwd="crates/a", holds={there}.__contains__)
    assert paths.placed(problem).path == expected


def test_frames_outside_the_workspace_are_left_out() -> None:
    trace = (
        'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g()\n'
        '  File "/opt/lib/b.py", line 9, in g\n    h()\nOSError: no\n'
    )
    (problem,) = diagnose(failing(trace, root="/w")).diagnostics
    assert [(f.path, f.line, f.function) for f in problem.frames] == [("a.py", 3, "f")]
    assert problem.path == "a.py"


def test_a_failed_hook_with_unknown_output_is_reported() -> None:
    findings = diagnose(regenerate.output_of(regenerate.FOLDER / "pre-commit-4.7.0-local"))
    silent = [d for d in findings.diagnostics if d.tool == "silent"]
    assert [d.message for d in silent] == ["the hook failed"]


def test_a_long_message_keeps_start_and_end() -> None:
    lines = "".join(f"E         line {n}\n" for n in range(500))
    stdout = f"____ test_x ____\n\n>       assert a == b\n{lines}\nt.py:1: AssertionError\n"
    (problem,) = diagnose(failing(stdout, "pytest")).diagnostics
    assert problem.message.startswith("line 0\n")
    assert problem.message.endswith("line 499")
    assert "460 lines" in problem.message


def test_a_line_format_reads_missing_fields_from_the_next_lines() -> None:
    row = LineFormat(
        name="x",
        pattern=r"! (?P<message>.+)",
        more=r"  at (?P<path>\S+) line (?P<line>\d+)|  (?P<message>because .+)",
    )
    log = Log.of("! broken\n  at a.x line 4\n  because of b\n! without a place\n")
    (problem,) = row.read(log)
    assert (problem.diagnostic.path, problem.diagnostic.message) == ("a.x", "broken\nbecause of b")
    assert (problem.first, problem.last) == (0, 2)


@pytest.mark.parametrize(
    ("printed", "level"),
    [("ERROR", Level.ERROR), ("Warn", Level.WARNING), ("blocker", Level.NOTE), ("", Level.NOTE)],
)
def test_an_unknown_severity_gets_the_default_level(printed: str, level: Level) -> None:
    pattern = r"(?P<level>\w*)! (?P<message>.+)"
    row = LineFormat(name="x", pattern=pattern, level=Level.NOTE)
    (problem,) = row.read(Log.of(f"{printed}! broken"))
    assert problem.diagnostic.level is level


@pytest.mark.parametrize(
    ("name", "command"),
    [
        ("pytest", "python -m pytest -q"),
        ("pytest", ".venv/bin/pytest"),
        ("pytest", "uv run pytest"),
        ("eslint", "npx eslint@9 ."),
        ("ruff", "uvx ruff check"),
        ("cargo-test", "cargo  test --all"),
        ("go-test", "cd x && go test ./..."),
    ],
)
def test_a_tool_is_recognised_in_its_command_line(name: str, command: str) -> None:
    assert PARSERS[name].starts(Log.of("", command))


@pytest.mark.parametrize(
    ("name", "command"), [("pytest", "cat pytest.ini"), ("ruff", "./ruffle"), ("go", "./go.sh")]
)
def test_a_word_that_starts_like_a_tool_is_not_recognised(name: str, command: str) -> None:
    assert not PARSERS[name].starts(Log.of("", command))


@pytest.mark.parametrize(
    ("path", "is_inside"),
    [
        ("src/shop/cart.py", True),
        ("lib/cart.py", True),
        ("env/site-packages/a.py", False),
        ("node_modules/a/index.js", False),
        ("/usr/include/stdio.h", False),
        ("node:internal/modules", False),
        ("<string>", False),
        ("/home/me/lib/python3.11/json/decoder.py", False),
        ("/home/me/go/pkg/mod/example.com/a.go", False),
    ],
)
def test_libraries_and_interpreters_are_outside_the_project(path: str, *, is_inside: bool) -> None:
    assert inside(path) is is_inside


AVA = """
  ✔ parse \u203a keeps the order
  ✘ [fail]: parse \u203a splits a list
  ✘ [fail]: parse \u203a refuses a number Error thrown in test
  ─

  parse \u203a splits a list

  test/parse.js:12

   11: test('splits a list', t => {
   12:   t.deepEqual(parse('a,b'), ['a', 'b']);
   13: });

  Difference (- actual, + expected):

  - 'a,b'
  + ['a', 'b']

  \u203a file://test/parse.js:12:4



  parse \u203a refuses a number

  test/parse.js:16

   15: test('refuses a number', t => {
   16:   parse(1);
   17: });

  Error thrown in test:

  TypeError {
    message: 'no text',
  }

  \u203a parse (file://base.js:3:9)
  \u203a file://test/parse.js:16:3

  ─

  2 tests failed
"""


def test_each_failing_test_of_ava_is_a_problem_with_its_place() -> None:
    first, second = diagnose(failing(AVA, "npm test")).diagnostics
    assert first.test_id == "test/parse.js::parse \u203a splits a list"
    assert first.message.startswith("Difference (- actual, + expected):")
    assert (first.path, first.region and first.region.start_line) == ("test/parse.js", 12)
    assert second.test_id == "test/parse.js::parse \u203a refuses a number"
    assert [frame.path for frame in second.frames] == ["test/parse.js", "base.js"]


def test_a_place_that_no_run_of_ava_printed_is_no_problem() -> None:
    found = diagnose(failing("  title\n\n  a.js:1\n\n  2 tests failed\n")).diagnostics
    assert not [problem for problem in found if problem.test_id]


VITEST = """
\u23af\u23af\u23af Failed Tests 3 \u23af\u23af\u23af

 FAIL  test/a.test.ts > adds > "/a/"
 FAIL  test/a.test.ts > adds > "/a"
AssertionError: expected 'b' to be 'a/b' // Object.is equality

 \u276f test/a.test.ts:36:41

\u23af\u23af\u23af\u23af[1/3]\u23af

 FAIL  test/a.test.ts > drops
Error: none
 \u276f test/a.test.ts:69:44
"""


def test_an_error_that_vitest_shows_once_is_that_of_each_test_above_it() -> None:
    found = diagnose(failing(VITEST, "vitest run")).diagnostics
    assert [(one.message, one.region and one.region.start_line) for one in found] == [
        ("AssertionError: expected 'b' to be 'a/b' // Object.is equality", 36),
        ("AssertionError: expected 'b' to be 'a/b' // Object.is equality", 36),
        ("Error: none", 69),
    ]


WHOLE_FILES = (
    # knip 6.44.2, autoflake 2.4.0, mdformat 1.0.0, sort-package-json 3.7.1,
    # dependency-cruiser 17.4.3, npm-package-json-lint 9.1.0, REUSE 6.2.0
    ("Unused files (2)\na.js   \nlib/b.js\nUnused exports (1)\nadd  a.js", "lint", 3),
    ("a.js: Unused imports/variables detected\nlib/b.js: No issues detected!", "lint", 1),
    ('Error: File "/w/lib/b.js" is not formatted.', "format", 1),
    ("a.js\n\nFound 1 file.\n1 file was not sorted.", "lint", 1),
    ("\n  error no-circular: a.js → \n      lib/b.js →", "lint", 1),
    ("Compiling a.js\nWrote lib/b.js\nkilled", "build", 0),
    ("a.js\nlib/b.js", "build", 0),
    ("checked a.js\nerror: no such host", "lint", 0),
    ("./a.js\n✖ require-author - node: author - author is required", "lint", 1),
    ("The following files have no licence:\n* a.js\n* lib/b.js\n\nSummary of a.js", "lint", 2),
)


@pytest.mark.parametrize(("printed", "kind", "number"), WHOLE_FILES)
def test_lines_that_name_files_are_problems_if_nothing_else_is_read(
    printed: str, kind: str, number: int
) -> None:
    output = ToolOutput(
        command="anything .",
        kind=Kind(kind),
        exit_code=1,
        stdout=printed,
        root="/w",
        holds=lambda path: path.removeprefix("./") in {"a.js", "lib/b.js", "/w/lib/b.js"},
    )
    problems = diagnose(output).diagnostics
    assert len(problems) == number
    assert {problem.path for problem in problems} <= {"a.js", "lib/b.js"}


@pytest.mark.parametrize(
    ("command", "tool"),
    [
        ("deptry .", "deptry"),
        ("uv run ty check src", "ty"),
        ("npx some-linter src", "some-linter"),
        ("make lint", "flake8"),
        ("nx run-many -t lint", "flake8"),
        ("./lint.sh", "flake8"),
        ("deptry . && flake8", "flake8"),
    ],
)
def test_a_problem_has_the_name_of_the_only_program(command: str, tool: str) -> None:
    output = ToolOutput(command=command, exit_code=1, stdout="a.py:1:8: F401 'os' unused")
    assert [problem.tool for problem in diagnose(output).diagnostics] == [tool]
