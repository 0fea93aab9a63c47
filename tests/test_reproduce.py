"""`Reproduce:` on real small projects: the command starts, and runs the failing test alone."""

import os
import pwd
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics.selecting import reproducing, reproducing_each, started_runners
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Diagnostic, Gate, Kind, Status
from tests.needs import needs
from tests.programs import path_of
from tests.tools import go_cache, tools
from tests.values import result

PYTEST = {
    "src/app.py": "def total():\n    return 1\n",
    "tests/test_a.py": (
        "def test_good():\n    print('GOOD' 'RAN')\n\n\n"
        "def test_bad():\n    from app import total\n\n"
        "    print('BAD' 'RAN')\n    assert total() == 2\n"
    ),
}
UNITTEST = {
    "tests/__init__.py": "",
    "tests/test_a.py": (
        "import unittest\n\n\nclass A(unittest.TestCase):\n"
        "    def test_good(self):\n        print('GOOD' 'RAN')\n\n"
        "    def test_bad(self):\n        print('BAD' 'RAN')\n        self.assertEqual(1, 2)\n"
    ),
}
MAIN = "\n\nif __name__ == '__main__':\n    unittest.main()\n"
NODE = {
    "setup.js": "globalThis.one = 1\n",
    "test/a.test.js": (
        'const {test} = require("node:test");\nconst assert = require("assert");\n'
        'test("good", () => console.log("GOOD" + "RAN"));\n'
        'test("bad sum", () => { console.log("BAD" + "RAN"); assert.equal(globalThis.one, 2); });\n'
    ),
}
GO = {
    "go.mod": "module example.com/shop\n\ngo 1.21\n",
    "cart/a_test.go": (
        "//go:build integration\n\npackage cart\n\n"
        'import (\n\t"fmt"\n\t"testing"\n)\n\n'
        'func TestGood(t *testing.T) { fmt.Println("GOOD" + "RAN") }\n\n'
        'func TestBad(t *testing.T) { fmt.Println("BAD" + "RAN"); t.Fatal("no") }\n'
    ),
}
CARGO = {
    "Cargo.toml": '[package]\nname = "shop"\nversion = "0.1.0"\nedition = "2021"\n',
    "src/lib.rs": (
        "#[cfg(test)]\nmod tests {\n"
        '    #[test]\n    fn good() { println!("{}RAN", "GOOD"); }\n'
        '    #[test]\n    fn bad() { println!("{}RAN", "BAD"); assert_eq!(1, 2); }\n}\n'
    ),
}
INI = {"alt.ini": "[pytest]\npythonpath = src\n"}
INSIDE = {f"api/{path}": text for path, text in PYTEST.items()}
PROGRAMS = ("make", "node", "go", "gofmt", "cargo", "rustc", "cc")
RECIPE = "test:\n\tPYTHONPATH=src python -m pytest -q tests\n"


@pytest.mark.parametrize(
    ("files", "command"),
    [
        (PYTEST | INI, "python -m pytest -q -c alt.ini --import-mode=importlib"),
        (PYTEST, "PYTHONPATH=src python -W error -m pytest -x tests --tb=line"),
        (PYTEST, "PYTHONPATH=src coverage run -m pytest -q -k 'not slow' && coverage report"),
        (INSIDE, "cd api && PYTHONPATH=src pytest -q"),
        (INSIDE | {"api/pytest.ini": INI["alt.ini"]}, "pytest -q --rootdir=api -c api/pytest.ini"),
        (PYTEST | {"run.sh": "set -x\nPYTHONPATH=src pytest -q tests\n"}, "sh run.sh"),
        (PYTEST, "set -e; export PYTHONPATH=src; pytest -q"),
        (INSIDE, "(cd api && PYTHONPATH=src pytest -q) && echo done"),
        (
            UNITTEST | {"tests/main.py": f"{UNITTEST['tests/test_a.py']}{MAIN}"},
            "python tests/main.py",
        ),
        (UNITTEST, "python -m unittest -v"),
        (UNITTEST, "python -m unittest discover -s tests -t . -v"),
        (UNITTEST, "python -Wd -m unittest -b tests.test_a"),
        (UNITTEST, "coverage run -m unittest discover tests"),
        pytest.param(PYTEST | {"Makefile": RECIPE}, "make test", marks=needs("make")),
        pytest.param(INSIDE | {"api/Makefile": RECIPE}, "make -C api test", marks=needs("make")),
        pytest.param(NODE, "node --require ./setup.js --test test/", marks=needs("node")),
        pytest.param(GO, "gofmt -l . && go test -tags integration ./...", marks=needs("go")),
        pytest.param(
            {f"srv/{path}": text for path, text in GO.items()},
            "go test -C srv -tags=integration -v ./...",
            marks=needs("go"),
        ),
        pytest.param(CARGO, "cargo test --offline --lib -q", marks=needs("cargo", "rustc", "cc")),
    ],
)
def test_the_printed_command_runs_the_failing_test_alone(
    files: Mapping[str, str], command: str, tmp_path: Path, environ: dict[str, str]
) -> None:
    root = tmp_path / "work"
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    own = environ | {
        "PATH": f"{tools()}:{path_of(*PROGRAMS)}:{environ['PATH']}",
        "GOCACHE": go_cache(),
        "RUSTUP_HOME": os.environ.get("RUSTUP_HOME", f"{pwd.getpwuid(os.getuid()).pw_dir}/.rustup"),
    }
    gate = Gate(name="test", kind=Kind.TEST, run=command)
    plan = Plan(root=root, logs=tmp_path / "logs", environ=own)
    (failed,) = run_gates((gate,), plan).results
    test = next(d for d in failed.diagnostics if d.test_id)
    printed = reproducing(failed, test)
    assert printed is not None
    again = subprocess.run(
        ("sh", "-c", printed), check=False, cwd=root, env=own, capture_output=True, text=True
    )
    output = again.stdout + again.stderr
    assert again.returncode, printed
    assert "BADRAN" in output, (printed, output)
    assert "GOODRAN" not in output, printed


TOX = "unit: commands[0]> pytest -q tests\n.F\nunit: exit 1 (0.2 seconds) /w> pytest -q tests pid=2"
NOX = """\
nox > Running session tests
nox > Creating virtual environment (virtualenv) using python3 in .nox/tests
nox > python -m pip install pytest
nox > pytest -q tests
"""
PNPM = "\n> web@1.0.0 test /w/packages/web\n> NODE_OPTIONS=--no-warnings jest --ci -c unit.js\n"


@pytest.mark.parametrize(
    ("command", "printed", "test", "expected"),
    [
        ("tox -e unit", TOX, "pytest", "tox exec -e unit -- pytest t/a::b"),
        ("tox -q", TOX.partition("\n")[2], "pytest", "tox exec -e unit -- pytest t/a::b"),
        ("nox -s tests", NOX, "pytest", ".nox/tests/bin/pytest t/a::b"),
        ("uv run poe test", "Poe => pytest -c x.ini\n", "pytest", "uv run pytest -c x.ini t/a::b"),
        ("poe test", "Poe => pytest -q tests\n", "pytest", "pytest t/a::b"),
        ("inv test", "python -m pytest -q\n.F\n", "pytest", "python -m pytest t/a::b"),
        ("uv run --with pytest pytest -q", "", "pytest", "uv run --with pytest pytest t/a::b"),
        ("python manage.py test -v 2", "", "unittest", "python manage.py test b"),
        (
            "pnpm --filter web test",
            PNPM,
            "jest",
            "cd packages/web && NODE_OPTIONS=--no-warnings pnpm exec jest -c unit.js t/a -t b",
        ),
        ("npm test -w web", "", "jest", "cd packages/web && npx jest t/a -t b"),
        (
            "npx turbo run test",
            "web:test: > jest -c unit.js\n",
            "jest",
            "cd packages/web && npx jest -c unit.js t/a -t b",
        ),
        (
            "npm run unit -w web",
            "> nyc mocha --require @babel/register test && nyc report\n",
            "mocha",
            "cd packages/web && npx nyc mocha --require @babel/register t/a -g b",
        ),
        ("npm test -- --run", "> vitest --run\n", "vitest", "npx vitest --run t/a -t b"),
        ("npx ava", "", "ava", "npx ava t/a --match b"),
        ("npx jest --ci", "", "jest", "npx jest t/a"),
    ],
)
def test_the_command_is_what_a_task_runner_says_that_it_started(
    command: str, printed: str, test: str, expected: str
) -> None:
    in_package = "packages/web" in expected
    one = Diagnostic(
        tool=test,
        message="?",
        test_id="t/a" if expected.endswith("t/a") else "t/a::b",
        path="packages/web/t/a" if in_package else "t/a",
    )
    failed = replace(result("test", Status.FAILED), command=command, stdout=printed)
    assert reproducing(failed, one) == expected


@pytest.mark.parametrize(
    ("command", "printed", "expected"),
    [
        (
            "pnpm test",
            "> web@1.0.0 test /w\n> tsc --noEmit && jest --ci\n",
            ["pnpm exec jest", "pnpm exec tsc --noEmit"],
        ),
        ("make check", "ruff check .\npython -m pytest -q\n", ["python -m pytest", "ruff check"]),
        ("make check", "rm -rf src pytest\n$(evil) pytest\nFAILED tests/test_a.py::b\n", []),
        ("pytest -q", "> jest\n", []),
    ],
)
def test_what_a_gate_started_is_known_by_its_runner(
    command: str, printed: str, expected: list[str]
) -> None:
    failed = replace(result("test", Status.FAILED), command=command, stdout=printed)
    assert sorted(started_runners(failed)) == expected


def test_a_line_that_only_looks_like_a_recipe_is_not_printed() -> None:
    one = Diagnostic(tool="pytest", message="?", test_id="a.py::b", path="a.py")
    failed = replace(result("test", Status.FAILED), command="make", stdout="rm -rf src pytest\n")
    assert reproducing(failed, one) is None


def test_commands_for_many_tests_look_through_a_long_output_once() -> None:
    tests = [Diagnostic(tool="pytest", message="?", test_id=f"a.py::t{n}") for n in range(1_000)]
    printed = "pytest -q\n" + "".join(f"FAILED a.py::t{n} - no\n" for n in range(5_000))
    failed = replace(result("test", Status.FAILED), command="make", stdout=printed)
    started_s = time.process_time()
    assert [*reproducing_each(failed, tests)] == [f"pytest a.py::t{n}" for n in range(1_000)]
    assert started_runners(failed) == ("pytest",)
    assert time.process_time() - started_s < 5
