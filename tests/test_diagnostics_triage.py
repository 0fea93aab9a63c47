"""What a failure is, before money is spent on it: vacuous, a threshold, the environment, code."""

import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics import Findings, ToolOutput, diagnose
from atlas_retry.model import Kind
from tests.goldens import regenerate


def golden(case: str) -> Findings:
    return diagnose(regenerate.output_of(regenerate.FOLDER / case))


EMPTY = [f.name for f in regenerate.cases() if '"vacuous"' in (f / "expected.json").read_text()]
RUNNERS = {name.rpartition("-")[0].rpartition("-")[0] for name in EMPTY}


@pytest.mark.parametrize("case", EMPTY)
def test_a_test_gate_without_tests_is_vacuous(case: str) -> None:
    findings = golden(case)
    assert findings.vacuous
    assert findings.ran is False


@pytest.mark.parametrize("case", EMPTY)
def test_an_empty_test_run_is_recognised_behind_any_command(case: str) -> None:
    output = regenerate.output_of(regenerate.FOLDER / case)
    assert diagnose(replace(output, command="./check")).vacuous


def test_empty_test_runs_are_recognised_for_34_runners() -> None:
    assert len(RUNNERS) == 34


@pytest.mark.parametrize("runner", sorted(RUNNERS))
def test_every_runner_has_a_golden_with_tests(runner: str) -> None:
    own = [f.name for f in regenerate.cases() if f.name.startswith(f"{runner}-")]
    assert any(golden(name).ran for name in own)


def test_zero_tests_of_a_failed_command_are_not_vacuous() -> None:
    output = ToolOutput(command="mocha", kind=Kind.TEST, exit_code=7, stdout="  0 passing (1ms)\n")
    assert not diagnose(output).vacuous


@pytest.mark.parametrize(
    "line", ["  3 skipped", "  0 failed", "   failed: 0", " 0 fail", "# fail 0", "    Failed: 0"]
)
def test_zero_failures_do_not_mean_zero_tests(line: str) -> None:
    stdout = f"  10 were fine\n{line}\n"
    output = ToolOutput(command="./check", kind=Kind.TEST, exit_code=0, stdout=stdout)
    assert not diagnose(output).vacuous


def test_one_of_several_runners_with_tests_is_not_vacuous() -> None:
    stdout = "  0 passing (1ms)\n\n==== 3 passed in 0.1s ====\n"
    output = ToolOutput(command="mocha && pytest", kind=Kind.TEST, exit_code=0, stdout=stdout)
    assert not diagnose(output).vacuous


@pytest.mark.parametrize(
    "case",
    [
        "pytest-9.2.0-passed",
        "pytest-9.2.0-collection",
        "pytest-9.2.0-no-such-file",
        "unittest-3.11-class",
        "jest-30.5.2-plain",
        "go-test-1.26-plain",
        "cargo-test-1.95-plain",
    ],
)
def test_failed_or_unloadable_tests_are_not_vacuous(case: str) -> None:
    assert not golden(case).vacuous


def test_only_a_test_gate_is_vacuous() -> None:
    output = ToolOutput(
        command="pytest", kind=Kind.CUSTOM, exit_code=5, stdout="no tests ran in 0.01s\n"
    )
    assert not diagnose(output).vacuous


def test_a_run_with_only_skipped_tests_is_vacuous() -> None:
    output = ToolOutput(
        command="pytest -q", kind=Kind.TEST, exit_code=0, stdout="ss\n2 skipped in 0.01s\n"
    )
    assert diagnose(output).vacuous


@pytest.mark.parametrize(
    "case", ["pytest-9.2.0-cov-threshold", "coverage-7.17.3-threshold", "jest-30.5.2-coverage"]
)
def test_passed_tests_below_the_coverage_threshold_are_a_threshold(case: str) -> None:
    findings = golden(case)
    assert findings.threshold
    assert findings.ran


@pytest.mark.parametrize(
    "line",
    [
        "Coverage failure: total of 50 is less than fail-under=90",
        "FAIL Required test coverage of 90% not reached. Total coverage: 50.00%",
        'Jest: "global" coverage threshold for lines (90%) not met: 50%',
        "Jest: Coverage for lines (50%) does not meet src/a.js threshold (90%)",
        "ERROR: Coverage for lines (50%) does not meet global threshold (90%)",
        "Coverage for lines (50%) does not meet global threshold (90%)",
        "[ERROR] Rule violated for bundle shop: ratio is 0.5, but expected minimum is 0.9",
        "RESULT: FAILED (minimum: 90.0%, actual: 50.0%)",
    ],
)
def test_any_message_of_too_low_coverage_is_a_threshold(line: str) -> None:
    output = ToolOutput(command="./check", kind=Kind.TEST, exit_code=1, stdout=f"{line}\n")
    assert diagnose(output).threshold


def test_a_failed_test_with_too_low_coverage_is_not_a_threshold() -> None:
    failed = regenerate.output_of(regenerate.FOLDER / "pytest-9.2.0-plain").stdout
    below = "FAIL Required test coverage of 90% not reached. Total coverage: 50.00%\n"
    output = ToolOutput(command="pytest --cov", kind=Kind.TEST, exit_code=1, stdout=below + failed)
    assert not diagnose(output).threshold


def test_refused_connections_in_all_failures_are_the_environment() -> None:
    assert golden("pytest-9.2.0-database").environment


def test_a_refused_connection_in_one_of_two_failures_is_code() -> None:
    refused = regenerate.output_of(regenerate.FOLDER / "pytest-9.2.0-database").stdout
    one = refused.replace("ConnectionRefusedError: [Errno 111] Connection refused", "KeyError", 1)
    findings = diagnose(ToolOutput(command="pytest", kind=Kind.TEST, exit_code=1, stdout=one))
    assert not findings.environment


@pytest.mark.parametrize("case", ["conftest", "collection", "missing-module"])
def test_a_missing_undeclared_module_is_code(case: str) -> None:
    assert not golden(f"pytest-9.2.0-{case}").environment


@pytest.mark.parametrize(
    ("exit_code", "stderr"),
    [
        (1, "cp: error writing 'x': No space left on device\n"),
        (137, "Killed\n"),
        (-9, ""),
        (1, "npm error code ENOTFOUND\nnpm error network request failed\n"),
        (1, "curl: getaddrinfo: Temporary failure in name resolution\n"),
        (1, "ping: x: Name or service not known\n"),
        (1, "php_network_getaddresses: getaddrinfo for repo.packagist.org failed: Name\n"),
        (1, "Error: getaddrinfo EAI_AGAIN x\n"),
        (1, "curl: (6) Could not resolve host: x\n"),
        (1, "java.net.UnknownHostException: Unknown host x\n"),
        (1, "go: dial tcp: lookup x: no such host\n"),
        (1, "connect: Network is unreachable\n"),
        (1, "error: failed to download from `https://x/y`\n"),
        (1, "npm error network request failed\n"),
        (1, "npm ERR! code ETIMEDOUT\n"),
        (1, "go: x.org/y@v1: dial tcp 192.0.2.1:443: i/o timeout\n"),
        (1, "fatal: unable to access 'https://x/y/': timed out\n"),
        (1, "[ERROR] Failed: Could not transfer artifact x:y:jar:1 from z\n"),
        (134, "FATAL ERROR: JavaScript heap out of memory\n"),
        (1, "Cannot connect to the Docker daemon at unix:///var/run/docker.sock.\n"),
        (1, "Error: listen EADDRINUSE: address already in use :::3000\n"),
    ],
)
def test_errors_that_no_edit_can_fix_are_the_environment(exit_code: int, stderr: str) -> None:
    findings = diagnose(ToolOutput(command="./check", exit_code=exit_code, stderr=stderr))
    assert findings.environment


@pytest.mark.parametrize("folder", regenerate.cases(), ids=lambda folder: folder.name)
def test_failures_of_code_are_not_classified_as_environment(folder: object) -> None:
    name = getattr(folder, "name", "")
    if name != "pytest-9.2.0-database" and not name.startswith("broken-"):
        assert not golden(name).environment


@pytest.mark.parametrize(
    ("case", "command"),
    [
        ("cargo-1.95-linker", "sudo apt-get install build-essential"),
        ("cargo-1.95-disk", "df -h"),
        ("go-1.26-cgo", "sudo apt-get install build-essential"),
        ("cmake-3.25.1-generator", "sudo apt-get install build-essential"),
        ("gcc-12.2-header", "sudo apt-get install libldap-dev"),
        ("ld-2.40-library", "sudo apt-get install libldap-dev"),
        ("pkg-config-1.8-missing", "sudo apt-get install libpcap-dev"),
        ("docker-28.2-daemon", "sudo systemctl start docker"),
        ("mypy-2.4.1-plugin", "python -m pip install nosuch_plugin"),
        ("python-3.11-library", None),
    ],
)
def test_what_is_missing_around_the_code_is_named_with_its_repair(
    case: str, command: str | None
) -> None:
    missing = golden(f"broken-{case}").not_installed
    assert missing
    assert missing.command == command
    assert missing.sentence.endswith(command or "is not installed: install it")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("No .NET SDKs were found.", "no .NET SDK is installed"),
        ("[ERROR] No compiler is provided in this environment. Perhaps", "it needs a JDK"),
        ("ERROR: JAVA_HOME is set to an invalid directory: /x", "JAVA_HOME is no JDK: /x"),
        ("error: command 'x86_64-linux-gnu-gcc' failed: No such file or directory", "gcc"),
        ("The Angular CLI requires a minimum Node.js version of v20.19.", "Node.js v20.19"),
        (
            "You are using Node.js 18.2.0. Vite requires Node.js version 20.19+ or 22.12+. Please",
            "it needs Node.js 20.19+ or 22.12+, and 18.2.0 runs here",
        ),
        ("\u2551 Host system is missing dependencies to run browsers. \u2551", "libraries"),
        ("ERROR: Cannot connect to the Docker daemon at unix:///x. Is it running?", "Docker"),
        ("  The system library `openssl` required by crate `openssl-sys` was not found.", "libssl"),
        ('meson.build:3:8: ERROR: Dependency "zlib" not found, tried pkgconfig', "zlib1g-dev"),
        ("npm error code ENOSPC", "no space"),
        ("\u27a4 YN0000: STDERR gyp ERR! stack Error: not found: make", "make is not installed"),
        ("dial unix /var/run/docker.sock: connect: no such file or directory", "Docker"),
        ('thread panicked: Failed to run `"pkg-config"`: No such file or directory', "pkg-config"),
    ],
)
def test_a_message_of_what_is_missing_is_recognised(line: str, words: str) -> None:
    missing = diagnose(ToolOutput(command="make", exit_code=1, stderr=f"{line}\n")).not_installed
    assert missing
    assert words in missing.sentence


FULL = "E   OSError: [Errno 28] No space left on device\n"


@pytest.mark.parametrize(
    ("command", "printed", "files"),
    [
        ("make", "a.c:1:10: fatal error: shop/cart.h: No such file or directory\n", ()),
        ("make", "a.c:1:10: fatal error: libpq-fe.h: No such file or directory\n", ()),
        ("make", "a.c:1:10: fatal error: zlib.h: No such file or directory\n", ("ext/zlib.h",)),
        ("make", "/usr/bin/ld: cannot find -lshop: No such file or directory\n", ()),
        ("./run", "OSError: libshop.so: cannot open shared object file: No such file\n", ()),
        (
            "make",
            "Package x11 was not found in the pkg-config search path.\na.c:2:1: error: no ;\n",
            (),
        ),
        ("ruff check .", 'a.py:1:1: F401 x\n    raise Full("No space left on device")\n', ()),
        ("pytest", f"=== FAILURES ===\n___ test_a ___\na.py:3: in test_a\n{FULL}", ()),
        ("mypy .", "m.ini:1: error: Error importing plugin \"own\": No module named 'own'\n", ()),
    ],
    ids=["own", "option", "vendored", "link", "so", "asked", "quoted", "test", "plugin"],
)
def test_what_an_edit_can_repair_is_not_missing(
    command: str, printed: str, files: tuple[str, ...]
) -> None:
    output = ToolOutput(
        command=command,
        exit_code=1,
        stdout=printed,
        endings=lambda path: [file for file in files if file.endswith(path)],
        project_names=lambda: frozenset({"own"}),
    )
    assert diagnose(output).not_installed is None


def test_a_command_with_a_trusted_exit_code_of_0_has_no_errors() -> None:
    stdout = regenerate.output_of(regenerate.FOLDER / "pytest-9.2.0-plain").stdout
    findings = diagnose(
        ToolOutput(
            command="pytest", kind=Kind.TEST, stdout=stdout, exit_code=0, trusts_exit_code=True
        )
    )
    assert findings.diagnostics == ()
    assert findings.ran


def test_warnings_of_a_command_with_exit_code_0_are_kept() -> None:
    stdout = (
        "/w/a.js\n  1:1  warning  Unexpected var  no-var\n\n✖ 1 problem (0 errors, 1 warning)\n"
    )
    findings = diagnose(ToolOutput(command="eslint .", exit_code=0, stdout=stdout, root="/w"))
    assert [d.rule_id for d in findings.diagnostics] == ["no-var"]


JAVAC = """\
A.java:2: warning: [unchecked] unchecked cast
class A { List<Integer> f(List x) { return (List<Integer>) x; } }
                                                           ^
  required: List<Integer>
  found:    List
"""


@pytest.mark.parametrize(
    ("case", "kind", "levels"),
    [
        ("gcc-12.2-errors", Kind.BUILD, {"error"}),
        ("gcc-12.2-errors", Kind.LINT, {"error", "warning"}),
        ("cargo-test-1.95-warnings", Kind.TEST, {"error"}),
        ("cargo-test-1.95-warnings", Kind.LINT, {"error", "warning"}),
        ("pylint-4.1.4-default", Kind.CUSTOM, {"error", "warning", "note"}),
    ],
)
def test_a_compilers_warnings_beside_errors_count_only_in_lint(
    case: str, kind: Kind, levels: set[str]
) -> None:
    output = replace(regenerate.output_of(regenerate.FOLDER / case), kind=kind)
    assert {d.level.value for d in diagnose(output).diagnostics} == levels


@pytest.mark.parametrize(
    ("more", "tools"),
    [
        ("", ["javac"]),
        ("error: warnings found and -Werror specified\n1 error\n1 warning\n", ["javac"]),
        ("B.java:3: error: ';' expected\n", []),
    ],
)
def test_a_compilers_warnings_count_if_they_fail_the_gate(more: str, tools: list[str]) -> None:
    output = ToolOutput(command="javac *.java", kind=Kind.BUILD, exit_code=1, stderr=JAVAC + more)
    warned = [d.tool for d in diagnose(output).diagnostics if d.path == "A.java"]
    assert warned == tools


@pytest.mark.parametrize(
    "line",
    [
        "make: 'test' is up to date.",
        "make[1]: \u2018test\u2019 is up to date.",
        "make: Nothing to be done for 'test'.",
        "0 of 0 tests passed",
        "warning: No Python files found under the given path(s)",
    ],
)
def test_a_test_gate_with_nothing_to_do_is_vacuous(line: str) -> None:
    output = ToolOutput(command="make test", kind=Kind.TEST, exit_code=0, stdout=f"{line}\n")
    assert diagnose(output).vacuous


@pytest.mark.parametrize("tests", ["===== 3 passed in 0.10s =====", "all is well"])
def test_a_part_with_nothing_to_do_beside_tests_is_not_vacuous(tests: str) -> None:
    text = f"make: Nothing to be done for 'deps'.\n{tests}\n"
    output = ToolOutput(command="make test", kind=Kind.TEST, exit_code=0, stdout=text)
    assert not diagnose(output).vacuous


def test_empty_lines_say_nothing_of_tests() -> None:
    output = ToolOutput(command="sh run.sh", kind=Kind.TEST, exit_code=0, stdout="\n\n")
    assert not diagnose(output).vacuous
