"""A real Python project whose fault no reading of the source leads to."""

import ast
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics import ToolOutput, diagnose
from atlas_retry.gates import trace
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.trace import GIVEN, MAX_S, Seen, ranked, requests_of, seen_of
from atlas_retry.model import Diagnostic, Gate, GateResult, Kind, Status, Validation
from atlas_retry.process import Command, run
from atlas_retry.prompt import Brief, Traced, compose
from atlas_retry.run.briefing import traced, traced_brief
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.settings import Settings
from atlas_retry.workspace.isolation import overlay
from tests.needs import needs
from tests.processes import PYTHON
from tests.projects import Project
from tests.repositories import git
from tests.tools import go_cache

PROJECT: Mapping[str, str] = {
    "shop/__init__.py": "",
    "shop/rules.py": (
        "RULES = {}\n\n\n"
        "def rule(key):\n    def keep(function):\n        RULES[key] = function\n"
        "        return function\n    return keep\n\n\n"
        "@rule('a')\ndef plain(value):\n    return value\n\n\n"
        "@rule('b')\ndef halved(value):\n    return value // 3\n\n\n"
        "@rule('c')\ndef doubled(value):\n    return value * 2\n"
    ),
    "shop/engine.py": (
        "import importlib\n\n\n"
        "def price(key, value):\n"
        "    rules = importlib.import_module('shop.' + 'selur'[::-1]).RULES\n"
        "    return rules[key](value)\n"
    ),
    "test_shop.py": (
        "from shop.engine import price\n\n\n"
        "def test_a():\n    assert price('a', 4) == 4\n\n\n"
        "def test_b():\n    assert price('b', 4) == 2\n\n\n"
        "def test_c():\n    assert price('c', 4) == 8\n"
    ),
}
GENERIC_SINCE_3_9 = {"Callable", "Counter", "dict", "frozenset", "list", "set", "tuple"}
GATE = Gate(name="test", kind=Kind.TEST, run=f"{PYTHON} -m pytest -q")
UNITTEST = (
    "import unittest\n\nfrom shop.engine import price\n\n\n"
    "class PriceTest(unittest.TestCase):\n"
    "    def test_a(self):\n        self.assertEqual(price('a', 4), 4)\n\n"
    "    def test_b(self):\n        self.assertEqual(price('b', 4), 2)\n\n"
    "    def test_c(self):\n        with self.subTest('c'):\n"
    "            self.assertEqual(price('c', 4), 8)\n"
)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    for path, text in PROJECT.items():
        file = tmp_path / "work" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    environ = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return Plan(root=tmp_path / "work", logs=tmp_path / "logs", environ=environ)


def _failed(gate: Gate, plan: Plan) -> Validation:
    ended = run(
        Command(
            argv=("/bin/sh", "-c", gate.run),
            cwd=plan.root,
            env={**plan.environ, "PYTEST_ADDOPTS": "-p no:cacheprovider"},
            timeout_s=300,
        )
    )
    output = ToolOutput(
        command=gate.run,
        kind=gate.kind,
        exit_code=ended.exit_code,
        stdout=ended.stdout.text,
        stderr=ended.stderr.text,
    )
    result = GateResult(
        name=gate.name,
        kind=gate.kind,
        command=gate.run,
        status=Status.FAILED,
        success=False,
        exit_code=ended.exit_code,
        stdout=output.stdout,
        diagnostics=diagnose(output).diagnostics,
    )
    return Validation(results=(result,))


def _traced(failed: Validation, gate: Gate, plan: Plan) -> tuple[Traced, ...]:
    patient = {"timeout_s": gate.timeout_s or 300.0}
    requests = [replace(one, **patient) for one in requests_of(failed.failures, {gate.name: gate})]
    return ranked(seen for request in requests for seen in seen_of(request, plan))


def _files(root: Path) -> dict[str, bytes]:
    """Without caches and what git keeps for itself."""
    files = (file for file in root.rglob("*") if file.is_file())
    apart = {".git", ".pytest_cache", "__pycache__"}
    return {str(file): file.read_bytes() for file in files if apart.isdisjoint(file.parts)}


def test_a_trace_finds_a_function_that_static_reading_misses(plan: Plan) -> None:
    validation = _failed(GATE, plan)
    brief = Brief(
        validation=validation,
        read=lambda path: (plan.root / path).read_bytes() if (plan.root / path).is_file() else None,
        paths=lambda: tuple(PROJECT),
    )
    traces = _traced(validation, GATE, plan)
    assert [one.frame.function for one in traces if one.suspicion == 1.0] == ["halved", "test_b"]
    assert "halved" not in compose(brief).text
    assert "return value // 3" in compose(replace(brief, trace=traces)).text


@pytest.mark.parametrize("setting", ["PYTHONPATH=src", "env PYTHONPATH='src:lib'"])
def test_a_command_that_sets_pythonpath_is_traced(setting: str, plan: Plan) -> None:
    gate = replace(GATE, run=f"{setting} {GATE.run}")
    traces = _traced(_failed(gate, plan), gate, plan)
    assert "halved" in {one.frame.function for one in traces if one.suspicion == 1.0}


def test_unittest_tests_are_traced(plan: Plan) -> None:
    (plan.root / "test_shop.py").write_text(UNITTEST)
    gate = replace(GATE, run=f"{PYTHON} -m unittest -q")
    traces = _traced(_failed(gate, plan), gate, plan)
    assert [one.frame.function for one in traces if one.suspicion == 1.0] == ["halved", "test_b"]


GO: Mapping[str, str] = {
    "go.mod": "module example.org/shop\n\ngo 1.21\n",
    "rules/rules.go": (
        "package rules\n\nfunc Plain(v int) int {\n\treturn v\n}\n\n"
        "func Halved(v int) int {\n\treturn v / 3\n}\n"
    ),
    "shop_test.go": (
        'package shop\n\nimport (\n\t"testing"\n\n\t"example.org/shop/rules"\n)\n\n'
        "func TestA(t *testing.T) {\n\tif rules.Plain(4) != 4 {\n\t\tt.Fatal()\n\t}\n}\n\n"
        'func TestB(t *testing.T) {\n\tt.Run("half of", func(t *testing.T) {\n'
        '\t\tif rules.Halved(4) != 2 {\n\t\t\tt.Fatal("not 2")\n\t\t}\n\t})\n}\n'
    ),
}
NODE: Mapping[str, str] = {
    "rules.mjs": (
        "export function plain(v) {\n  return v;\n}\n\n"
        "export function halved(v) {\n  return v / 3;\n}\n"
    ),
    "shop.test.mjs": (
        "import test from 'node:test';\nimport assert from 'node:assert';\n"
        "import { halved, plain } from './rules.mjs';\n\n"
        "test('a (plain)', () => assert.equal(plain(4), 4));\n"
        "test('b (half)', () => assert.equal(halved(4), 2));\n"
    ),
}


@pytest.mark.parametrize(
    ("files", "command", "fault"),
    [
        pytest.param(GO, "go test ./...", ("rules/rules.go", 7), marks=needs("go")),
        pytest.param(NODE, "node --test", ("rules.mjs", 5), marks=needs("node")),
    ],
)
def test_other_runners_are_traced_to_the_function_only_the_failing_test_runs(
    files: Mapping[str, str],
    command: str,
    fault: tuple[str, int],
    plan: Plan,
    environ: dict[str, str],
) -> None:
    for path, text in files.items():
        (plan.root / path).parent.mkdir(exist_ok=True)
        (plan.root / path).write_text(text)
    gate = replace(GATE, run=command)
    own = {"GOCACHE": go_cache(), "PATH": environ["PATH"]}
    here = replace(plan, environ={**plan.environ, **own})
    suspicions = {
        (one.frame.path, one.frame.line): one.suspicion
        for one in _traced(_failed(gate, here), gate, here)
    }
    assert suspicions.pop(fault)
    assert all(path.startswith("shop") for path, _ in suspicions)


def test_a_projects_sitecustomize_runs_while_traced(plan: Plan) -> None:
    (plan.root / "sitecustomize.py").write_text("import sys\n\nsys.asked_for = 'b'\n")
    _halved_is_found(UNITTEST.replace("price('b'", "price(__import__('sys').asked_for"), plan)


def test_a_test_that_runs_other_tests_is_traced_with_them(plan: Plan) -> None:
    inner = "unittest.FunctionTestCase(lambda: price('b', 4)).run(unittest.TestResult())"
    source = UNITTEST.replace("price('b', 4), 2", f"{inner} or 1, 2")
    _halved_is_found(source, plan)


def _halved_is_found(tests: str, plan: Plan) -> None:
    (plan.root / "test_shop.py").write_text(tests)
    gate = replace(GATE, run=f"{PYTHON} -m unittest -q")
    here = replace(plan, environ={**plan.environ, "PYTHONPATH": str(plan.root)})
    traces = _traced(_failed(gate, here), gate, here)
    assert "halved" in {one.frame.function for one in traces if one.suspicion == 1.0}


def test_tests_run_by_both_unittest_and_pytest_are_not_disturbed(plan: Plan) -> None:
    (plan.root / "test_shop.py").write_text(UNITTEST)
    run_by_both = f"{PYTHON} -m unittest -q; {PYTHON} -m pytest -q > seen.txt; false"
    gate = replace(GATE, run=run_by_both)
    _traced(_failed(gate, plan), gate, plan)
    assert "1 failed, 2 passed" in (plan.root / "seen.txt").read_text()


@pytest.mark.parametrize("module", sorted({m for given in GIVEN.values() for m in given}))
def test_the_tracing_modules_run_on_older_python_versions(module: str) -> None:
    tree = ast.parse(
        Path(trace.__file__).with_name(f"{module}.py").read_text(), feature_version=(3, 7)
    )
    own = ast.Module([one for one in tree.body if not isinstance(one, ast.If)], [])
    hints = {
        id(subnode) for node in ast.walk(own) for hint in _hints(node) for subnode in ast.walk(hint)
    }
    generic = [
        ast.unparse(node)
        for node in ast.walk(own)
        if isinstance(node, ast.Subscript) and id(node) not in hints
        if isinstance(node.value, ast.Name) and node.value.id in GENERIC_SINCE_3_9
    ]
    assert generic == []
    assert "annotations" in ast.unparse(own).partition("import")[2].splitlines()[0]


def _hints(node: ast.AST) -> list[ast.expr]:
    annotations = (getattr(node, "annotation", None), getattr(node, "returns", None))
    return [hint for hint in annotations if isinstance(hint, ast.expr)]


def test_identical_functions_in_different_files_are_distinguished(plan: Plan) -> None:
    for name in "ab":
        (plan.root / f"{name}.py").write_text("def halved(value):\n    return value // 3\n")
    (plan.root / "test_shop.py").write_text(
        "import a\nimport b\n\n\ndef test_a():\n    assert a.halved(3) == 1\n\n\n"
        "def test_b():\n    assert b.halved(4) == 2\n"
    )
    traces = _traced(_failed(GATE, plan), GATE, plan)
    assert [one.frame.path for one in traces] == ["b.py", "test_shop.py"]


def test_the_prompt_shows_what_the_failing_test_ran(
    project: Project,
) -> None:
    for path, text in {**PROJECT, "test_shop.py": UNITTEST}.items():
        (project.root / path).parent.mkdir(exist_ok=True)
        (project.root / path).write_text(text)
    agent = {"backend": "tests.prompt_keeping_agent:factory"}
    project.configure(
        validation={"test": [f"{PYTHON} -m unittest -q"]},
        agent=agent,
    )
    project.retry([])
    prompt = Path(project.environ["HOME"], "prompt.txt").read_text()
    assert "halved (traced" in prompt
    assert "return value // 3" in prompt


def test_files_written_while_tracing_are_removed(plan: Plan, tmp_path: Path) -> None:
    (plan.root / "conftest.py").write_text(
        "import pathlib\n\n\n"
        "def pytest_runtest_setup(item):\n"
        "    pathlib.Path('left_here.txt').write_text('x')\n"
        "    pathlib.Path(__file__).with_name('left_beside.txt').write_text('x')\n"
    )
    validation = _failed(GATE, plan)
    for name in ("left_here.txt", "left_beside.txt"):
        (plan.root / name).unlink()
    git(plan.root, "init", "-q")
    before = _files(plan.root)
    opened = OpenWorkspace(
        root=plan.root,
        settings=Settings(gates=(GATE,)),
        state=tmp_path / "state",
        environ=plan.environ,
    )
    brief = traced_brief(opened, validation, plan.logs)
    assert "return value // 3" in compose(brief).text
    assert _files(plan.root) == before


@pytest.mark.parametrize("in_place", [False, True])
def test_a_trace_sees_ignored_files_and_leaves_the_workspace_unchanged(
    project: Project, plan: Plan, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    if in_place:
        monkeypatch.setattr(overlay, "binaries", lambda *_: ())
    prepare = (
        "import pathlib\n\nfrom shop.engine import price\n\n"
        "PRICE = pathlib.Path(__file__).with_name('price.local')\n\n\n"
        "def test_b():\n"
        "    PRICE.with_name('left.txt').write_text('x')\n"
        "    assert price('b', int(PRICE.read_text())) == 2\n"
    )
    own = {"price.local": "4", ".gitignore": "price.local\n", "test_shop.py": prepare}
    for path, text in {**PROJECT, **own}.items():
        (project.root / path).parent.mkdir(exist_ok=True)
        (project.root / path).write_text(text)
    validation = _failed(GATE, replace(plan, root=project.root))
    (project.root / "left.txt").unlink()
    before = _files(project.root)
    opened = OpenWorkspace(
        root=project.root,
        settings=Settings(gates=(GATE,)),
        state=plan.logs.with_name("state"),
        environ=plan.environ,
    )
    traces = traced(opened, validation, plan.logs)
    assert "halved" in {one.frame.function for one in traces}
    assert _files(project.root) == before


def test_a_trace_does_not_overwrite_the_report_of_the_gate(plan: Plan) -> None:
    validation = _failed(GATE, plan)
    (plan.root / "pytest.ini").write_text("[pytest]\naddopts = --junitxml=out.xml -x\n")
    assert _traced(validation, GATE, plan)
    assert not (plan.root / "out.xml").exists()


def test_strict_pytest_settings_do_not_stop_a_trace(plan: Plan) -> None:
    (plan.root / "pytest.ini").write_text(
        "[pytest]\naddopts = -p no:cacheprovider --strict-config\nfilterwarnings = error\n"
    )
    assert _traced(_failed(GATE, plan), GATE, plan)


@pytest.mark.parametrize(
    "command", ["exit 1", "/nonexistent/python -m pytest", "sleep 60 # too long"]
)
def test_a_command_that_cannot_be_traced_gives_no_trace(plan: Plan, command: str) -> None:
    gate = replace(GATE, run=command, timeout_s=0.5)
    assert _traced(_failed(GATE, plan), gate, plan) == ()


@pytest.mark.parametrize(
    ("runner", "tests"),
    [("-m pytest -q", PROJECT["test_shop.py"]), ("-m unittest -q", UNITTEST)],
    ids=["pytest", "unittest"],
)
def test_a_trace_cut_off_at_its_time_limit_is_used(runner: str, tests: str, plan: Plan) -> None:
    """Tracing makes some tests many times slower."""
    slow = tests.replace("rice('b', 4)", "rice('b', 4 if not sys.gettrace() else endless())")
    endless = (
        "import sys\nimport time\n\n\ndef endless():\n    price('b', 4)\n    time.sleep(300)\n\n\n"
    )
    (plan.root / "test_shop.py").write_text(endless + slow)
    gate = replace(GATE, run=f"{PYTHON} {runner}")
    traces = _traced(_failed(gate, plan), replace(gate, timeout_s=3), plan)
    assert "halved" in [one.frame.function for one in traces]


def test_a_folder_with_an_undecodable_name_is_not_traced(plan: Plan) -> None:
    odd = plan.root.with_name("w\udcff")
    plan.root.rename(odd)
    here = replace(plan, root=odd)
    assert _traced(_failed(GATE, here), GATE, here) == ()


def test_a_go_trace_has_time_to_compile(plan: Plan) -> None:
    test = Diagnostic(tool="go-test", message="m", test_id="TestSum")
    quick = replace(_failed(GATE, plan).results[0], duration_ms=900)
    of_go = replace(quick, diagnostics=(test,))
    requests = requests_of((of_go, quick), {GATE.name: GATE})
    assert [request.timeout_s for request in requests] == [12.0, 5.0]


def test_a_slow_gate_is_not_traced(plan: Plan) -> None:
    failed = _failed(GATE, plan)
    slow = replace(failed.results[0], duration_ms=int(MAX_S * 1000) + 1)
    assert requests_of((slow,), {GATE.name: GATE}) == []


def test_a_gate_without_a_trace_is_not_traced_again(plan: Plan, tmp_path: Path) -> None:
    gate = replace(GATE, run=f"echo ran >> {tmp_path}/runs; exit 1")
    failed = _failed(GATE, plan)
    git(plan.root, "init", "-q")
    opened = OpenWorkspace(
        root=plan.root, settings=Settings(gates=(gate,)), state=tmp_path, environ=plan.environ
    )
    for attempt in ("1", "2"):
        traced_brief(opened, failed, tmp_path / attempt)
    assert (tmp_path / "runs").read_text() == "ran\n"


def test_gates_other_than_tests_are_not_traced(plan: Plan) -> None:
    gate = replace(GATE, run="touch ran", kind=Kind.LINT)
    result = GateResult(
        name="test", kind=Kind.LINT, command="", status=Status.FAILED, success=False
    )
    assert _traced(Validation(results=(result,)), gate, plan) == ()
    assert not (plan.root / "ran").exists()


def test_results_of_parallel_test_workers_are_merged() -> None:
    first = Seen(failed=1, lines=(("a.py", 1, "f", 2, 1, 0), ("a.py", 9, "g", 10, 1, 0)))
    second = Seen(failed=1, lines=(("a.py", 1, "f", 2, 1, 0), ("a.py", 9, "g", 10, 0, 3)))
    traces = [(one.frame.function, round(one.suspicion, 2)) for one in ranked([first, second])]
    assert traces == [("f", 1.0), ("g", 0.35)]


def test_an_empty_trace_ranks_nothing() -> None:
    assert ranked([Seen(failed=0, lines=())]) == tuple[Traced, ...]()
