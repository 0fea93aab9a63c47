"""Output of tools that have no parser of their own, and of several tools at once."""

import pytest

from atlas_retry.diagnostics import ToolOutput, diagnose
from atlas_retry.diagnostics.paths import ToolPaths
from atlas_retry.diagnostics.reader import MAX_LINES
from atlas_retry.model import Diagnostic, Kind, Level


def read(
    stdout: str,
    *,
    command: str = "./check.sh",
    kind: Kind = Kind.LINT,
    files: frozenset[str] = frozenset(),
    packages: dict[str, str] | None = None,
) -> tuple[Diagnostic, ...]:
    output = ToolOutput(
        command=command,
        kind=kind,
        exit_code=1,
        stdout=stdout,
        root="/w",
        holds=files.__contains__,
        packages=lambda: packages or {},
        endings=lambda path: [file for file in files if f"/{file}".endswith(f"/{path}")],
    )
    return diagnose(output).diagnostics


def places(found: tuple[Diagnostic, ...]) -> list[tuple[str | None, int | None]]:
    return [(d.path, d.region.start_line if d.region else None) for d in found]


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("src/a.x:3:5: error: no", "no"),
        ("src/a.x(3,5): error C12: no", "no"),
        ("src/a.x(3): error: no", "no"),
        ("src/a.x[3, 5]: no", "no"),
        ('"src/a.x", line 3: Error: no', "no"),
        ("src/a.x: line 3, col 5, Error - no", "no"),
        ("Parse error: no in src/a.x on line 3", "no"),
        ("[src/a.x:3:5] no", "no"),
        ("ERROR: src/a.x:3:5 - no", "no"),
        ("    [exec] src/a.x:3: error: no", "no"),
        ("error: no\n  --> src/a.x:3:5\n   |\n 3 | let\n", "no"),
        ("  \u00d7 no\n   ╭─[src/a.x:3:5]\n 3 │ let\n", "no"),
        ("src/a.x\n  3:5  error  no  some-rule\n", "no"),
        ("FILE: src/a.x\n 3 | ERROR | no\n", "no"),
        ("src/a.x -- 1 warning:\n  [3]:no\n", "no"),
        ("w: src/a.x: (3, 5): no", "no"),
        ("08:52:34.395 [WARNING] src/a.x:[3,5] no", "no"),
        ("1. WARNING in src/a.x (at line 3)\n\tlet x\n\t^^^\nno\n----------\n", "no"),
        ("src/a.x:3.5:\n\n  let\n     1\nError: no\n", "no"),
    ],
)
def test_a_place_is_read_in_any_spelling(printed: str, message: str) -> None:
    (problem,) = read(printed)
    assert places((problem,)) == [("src/a.x", 3)]
    assert problem.message == message


@pytest.mark.parametrize(
    "printed",
    [
        "main.py:14: starting server",
        "2026-03-01 10:00:00 INFO main.py:14 ready",
        "  at run (src/a.js:3:4)",
        "make: *** [Makefile:3: check] Error 2",
        "see docs/a.md:12 for more",
        "http://localhost:8080: listening",
    ],
)
def test_a_line_that_tells_of_no_problem_is_none(printed: str) -> None:
    assert read(f"{printed}\n") == ()


def test_a_warning_is_listed_as_one() -> None:
    (problem,) = read("src/a.py:12: DeprecationWarning: the imp module is deprecated\n")
    assert problem.level is Level.WARNING


def test_a_note_below_an_error_belongs_to_it() -> None:
    (problem,) = read("a.c:3:5: error: no\na.c:1:2: note: declared here\n")
    assert problem.message == "no"


PREFIXED = {
    "turbo": "@acme/ui:lint: src/box.ts(2,3): error TS1: bad\n@acme/ui:lint: done\n",
    "pnpm": "packages/ui lint$ tsc\npackages/ui lint: src/box.ts(2,3): error TS1: bad\n",
    "concurrently": "[ui] src/box.ts(2,3): error TS1: bad\n[ui] tsc exited with code 1\n",
    "compose": "ui-1  | starting\nui-1  | src/box.ts(2,3): error TS1: bad\n",
    "npm": "> @acme/ui@1.0.0 lint\n> tsc\n\nsrc/box.ts(2,3): error TS1: bad\n",
    "make": "make[1]: Entering directory '/w/packages/ui'\nsrc/box.ts(2,3): error TS1: bad\n",
}
BOTH = frozenset({"packages/ui/src/box.ts", "packages/api/src/box.ts"})
NAMES = {"@acme/ui": "packages/ui", "@acme/api": "packages/api", "packages/ui": "packages/ui"}


@pytest.mark.parametrize("runner", sorted(PREFIXED))
def test_the_prefix_of_a_source_says_where_its_paths_begin(runner: str) -> None:
    found = read(PREFIXED[runner], command="make check", files=BOTH, packages=NAMES)
    assert places(found) == [("packages/ui/src/box.ts", 2)]


def test_interleaved_sources_are_read_apart() -> None:
    printed = (
        "@acme/ui:lint: \n@acme/api:lint: src/box.ts\n@acme/ui:lint: src/box.ts\n"
        "@acme/api:lint:   4:1  error  one  rule-a\n@acme/ui:lint:   9:1  error  two  rule-b\n"
    )
    found = read(printed, command="turbo run lint", files=BOTH, packages=NAMES)
    assert sorted(places(found)) == [
        ("packages/api/src/box.ts", 4),
        ("packages/ui/src/box.ts", 9),
    ]


def test_equal_problems_of_two_packages_stay_two() -> None:
    printed = "".join(
        f"@acme/{name}:lint: src/box.ts(2,3): error TS1: bad\n@acme/{name}:lint: \n"
        for name in ("ui", "api")
    )
    found = read(printed, command="turbo run lint", files=BOTH, packages=NAMES)
    assert len(found) == len(BOTH)


@pytest.mark.parametrize(
    "path",
    [
        r"D:\a\shop\shop\src\a.py",
        r"C:\build\src\a.py",
        r"src\a.py",
        "/home/runner/work/shop/shop/src/a.py",
        "a.py",
    ],
)
def test_a_path_of_another_machine_becomes_one_of_the_project(path: str) -> None:
    files = frozenset({"src/a.py"})
    problem = Diagnostic(tool="general", message="no", path=path)
    endings = lambda end: [f for f in files if f.endswith(end)]  # noqa: E731
    paths = ToolPaths(root="/w", holds=files.__contains__, endings=endings)
    assert paths.placed(problem).path == "src/a.py"


def test_an_ambiguous_ending_names_no_file() -> None:
    problem = Diagnostic(tool="general", message="no", path="box.ts")
    endings = sorted(BOTH)
    paths = ToolPaths(root="/w", holds=BOTH.__contains__, endings=lambda _: endings)
    assert paths.placed(problem).path == "box.ts"


@pytest.mark.parametrize(
    "command",
    [
        "::error file=src/a.py,line=3,col=5::E1 bad",
        "::error line=3,file=src/a.py,title=E1::bad%0Abad again",
    ],
)
def test_an_annotation_is_read_in_any_order_of_its_properties(command: str) -> None:
    (problem,) = read(f"{command}\n")
    assert places((problem,)) == [("src/a.py", 3)]
    assert "%0A" not in problem.message


def test_an_annotation_that_repeats_a_problem_is_left_out() -> None:
    printed = "src/a.py:3:5: E1 bad\n::error title=E1,line=3,file=/w/src/a.py::bad\n"
    (problem,) = read(printed)
    assert problem.tool != "github"


def test_a_diff_is_reported_at_the_line_that_changes() -> None:
    printed = "--- a.py\n+++ a.py\n@@ -4,5 +4,5 @@\n import os\n \n-x = { 1 }\n+x = {1}\n"
    assert places(read(printed, command="black --diff .")) == [("a.py", 6)]


def test_a_failure_of_tap_has_the_place_in_its_comments() -> None:
    printed = (
        "ok 1 - loads\nnot ok 2 - adds up\n#   Failed test 'adds up'\n#   at t/cart.t line 12.\n"
    )
    (problem,) = read(printed, command="prove -v", kind=Kind.TEST)
    assert places((problem,)) == [("t/cart.t", 12)]
    assert problem.test_id == "adds up"


def test_the_test_of_a_crash_is_in_the_thread_that_is_current() -> None:
    printed = (
        "Fatal Python error: Segmentation fault\n\nThread 0x1 (most recent call first):\n"
        '  File "/w/app/server.py", line 9 in run\n\nCurrent thread 0x2 (most recent call first):\n'
        '  File "/w/app/native.py", line 5 in crash\n  File "/w/tests/t.py", line 3 in test_x\n\n'
    )
    (problem,) = read(printed, command="pytest", kind=Kind.TEST)
    assert problem.test_id == "tests/t.py::test_x"
    assert places((problem,)) == [("app/native.py", 5)]


def test_a_report_of_an_unknown_kind_is_named() -> None:
    output = ToolOutput(command="./x", exit_code=1, report=("junit", b"<html><p/></html>"))
    assert diagnose(output).unknown_report == "<html>"


def test_a_report_is_read_by_what_it_is() -> None:
    content = b'<checkstyle><file name="a.py"><error line="3" message="no"/></file></checkstyle>'
    output = ToolOutput(command="./x", exit_code=1, report=("junit", content))
    assert places(diagnose(output).diagnostics) == [("a.py", 3)]


def test_of_too_many_lines_the_end_is_read_and_the_rest_is_said_to_be_missing() -> None:
    printed = "x\n" * (MAX_LINES + 10) + "src/a.py:3:5: error: no\n"
    findings = diagnose(ToolOutput(command="./check.sh", exit_code=1, stdout=printed))
    assert places(findings.diagnostics) == [("src/a.py", 3)]
    assert findings.cut
