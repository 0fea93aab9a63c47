"""A real Python project whose fault no reading of the source leads to."""

import ast
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.diagnostics import ToolOutput, diagnose
from atlas_retry.gates import trace
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.trace import GIVEN, Seen, ranked, traced
from atlas_retry.model import Gate, GateResult, Kind, Status, Validation
from atlas_retry.process import Command, run
from atlas_retry.prompt import Brief, Traced, compose
from atlas_retry.run.briefing import traced_brief
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.settings import ContextSettings, Settings
from tests.projects import Project

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
GATE = Gate(name="test", kind=Kind.TEST, run=f"{sys.executable} -m pytest -q")
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
            timeout_s=60,
        )
    )
    told = ToolOutput(
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
        stdout=told.stdout,
        diagnostics=diagnose(told).diagnostics,
    )
    return Validation(results=(result,))


def _files(root: Path) -> dict[str, bytes]:
    return {str(file): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def test_a_trace_names_the_function_that_no_reading_leads_to(plan: Plan) -> None:
    validation = _failed(GATE, plan)
    brief = Brief(
        validation=validation,
        read=lambda path: (plan.root / path).read_bytes() if (plan.root / path).is_file() else None,
        paths=lambda: tuple(PROJECT),
    )
    found = traced(validation, (GATE,), plan)
    assert [one.frame.function for one in found if one.suspicion == 1.0] == ["halved", "test_b"]
    assert "halved" not in compose(brief).text
    assert "return value // 3" in compose(replace(brief, trace=found)).text


def test_tests_of_unittest_are_followed_too(plan: Plan) -> None:
    (plan.root / "test_shop.py").write_text(UNITTEST)
    gate = replace(GATE, run=f"{sys.executable} -m unittest -q")
    found = traced(_failed(gate, plan), (gate,), plan)
    assert [one.frame.function for one in found if one.suspicion == 1.0] == ["halved", "test_b"]


def test_a_sitecustomize_of_the_project_runs_while_unittest_is_traced(plan: Plan) -> None:
    (plan.root / "sitecustomize.py").write_text("import sys\n\nsys.asked_for = 'b'\n")
    _halved_is_found(UNITTEST.replace("price('b'", "price(__import__('sys').asked_for"), plan)


def test_a_test_of_a_test_runner_is_traced_with_the_tests_that_it_runs(plan: Plan) -> None:
    inner = "unittest.FunctionTestCase(lambda: price('b', 4)).run(unittest.TestResult())"
    told = UNITTEST.replace("price('b', 4), 2", f"{inner} or 1, 2")
    _halved_is_found(told, plan)


def _halved_is_found(tests: str, plan: Plan) -> None:
    (plan.root / "test_shop.py").write_text(tests)
    gate = replace(GATE, run=f"{sys.executable} -m unittest -q")
    here = replace(plan, environ={**plan.environ, "PYTHONPATH": str(plan.root)})
    found = traced(_failed(gate, here), (gate,), here)
    assert "halved" in {one.frame.function for one in found if one.suspicion == 1.0}


def test_tests_of_unittest_that_the_same_gate_gives_to_pytest_run_as_ever(plan: Plan) -> None:
    (plan.root / "test_shop.py").write_text(UNITTEST)
    run_by_both = (
        f"{sys.executable} -m unittest -q; {sys.executable} -m pytest -q > seen.txt; false"
    )
    gate = replace(GATE, run=run_by_both)
    traced(_failed(gate, plan), (gate,), plan)
    assert "1 failed, 2 passed" in (plan.root / "seen.txt").read_text()


@pytest.mark.parametrize("module", sorted({m for given in GIVEN.values() for m in given}))
def test_an_older_python_can_read_what_it_is_given(module: str) -> None:
    tree = ast.parse(
        Path(trace.__file__).with_name(f"{module}.py").read_text(), feature_version=(3, 7)
    )
    own = ast.Module([one for one in tree.body if not isinstance(one, ast.If)], [])
    hints = {id(part) for node in ast.walk(own) for hint in _hints(node) for part in ast.walk(hint)}
    generic = [
        ast.unparse(node)
        for node in ast.walk(own)
        if isinstance(node, ast.Subscript) and id(node) not in hints
        if isinstance(node.value, ast.Name) and node.value.id in GENERIC_SINCE_3_9
    ]
    assert generic == []
    assert "annotations" in ast.unparse(own).partition("import")[2].splitlines()[0]


def _hints(node: ast.AST) -> list[ast.expr]:
    told = (getattr(node, "annotation", None), getattr(node, "returns", None))
    return [hint for hint in told if isinstance(hint, ast.expr)]


def test_functions_that_are_written_alike_are_told_apart(plan: Plan) -> None:
    for name in "ab":
        (plan.root / f"{name}.py").write_text("def halved(value):\n    return value // 3\n")
    (plan.root / "test_shop.py").write_text(
        "import a\nimport b\n\n\ndef test_a():\n    assert a.halved(3) == 1\n\n\n"
        "def test_b():\n    assert b.halved(4) == 2\n"
    )
    found = traced(_failed(GATE, plan), (GATE,), plan)
    assert [one.frame.path for one in found] == ["b.py", "test_shop.py"]


def test_the_agent_is_told_what_the_failing_test_ran_where_the_configuration_asks_for_it(
    project: Project,
) -> None:
    for path, text in {**PROJECT, "test_shop.py": UNITTEST}.items():
        (project.root / path).parent.mkdir(exist_ok=True)
        (project.root / path).write_text(text)
    agent = {"backend": "tests.prompt_keeping_agent:factory"}
    project.configure(
        validation={"test": [f"{sys.executable} -m unittest -q"]},
        agent=agent,
        context={"trace": True},
    )
    project.retry([])
    prompt = Path(project.environ["HOME"], "prompt.txt").read_text()
    assert "halved (traced" in prompt
    assert "return value // 3" in prompt


def test_what_tests_write_while_they_are_traced_does_not_stay(plan: Plan, tmp_path: Path) -> None:
    (plan.root / "conftest.py").write_text(
        "import pathlib\n\n\n"
        "def pytest_runtest_setup(item):\n"
        "    pathlib.Path('left_here.txt').write_text('x')\n"
        "    pathlib.Path(__file__).with_name('left_beside.txt').write_text('x')\n"
    )
    validation = _failed(GATE, plan)
    for name in ("left_here.txt", "left_beside.txt"):
        (plan.root / name).unlink()
    before = _files(plan.root)
    opened = OpenWorkspace(
        root=plan.root,
        settings=Settings(gates=(GATE,), context=ContextSettings(trace=True)),
        state=tmp_path / "state",
        environ=plan.environ,
    )
    brief = traced_brief(opened, validation, plan.logs)
    assert "return value // 3" in compose(brief).text
    assert _files(plan.root) == before


def test_a_trace_writes_nothing_into_the_workspace(plan: Plan) -> None:
    validation = _failed(GATE, plan)
    (plan.root / "pytest.ini").write_text("[pytest]\naddopts = --junitxml=out.xml -x\n")
    before = _files(plan.root)
    assert traced(validation, (GATE,), plan)
    assert _files(plan.root) == before


@pytest.mark.parametrize(
    "command", ["exit 1", "/nonexistent/python -m pytest", "sleep 60 # too long"]
)
def test_a_trace_that_cannot_be_had_is_empty(plan: Plan, command: str) -> None:
    gate = replace(GATE, run=command, timeout_s=0.5)
    assert traced(_failed(GATE, plan), (gate,), plan) == ()


def test_a_folder_whose_name_is_no_text_is_not_traced(plan: Plan) -> None:
    odd = plan.root.with_name("w\udcff")
    plan.root.rename(odd)
    here = replace(plan, root=odd)
    assert traced(_failed(GATE, here), (GATE,), here) == ()


def test_failures_of_other_tools_are_not_run_again(plan: Plan) -> None:
    gate = replace(GATE, run="touch ran", kind=Kind.LINT)
    result = GateResult(
        name="test", kind=Kind.LINT, command="", status=Status.FAILED, success=False
    )
    assert traced(Validation(results=(result,)), (gate,), plan) == ()
    assert not (plan.root / "ran").exists()


def test_the_workers_of_a_distributed_run_are_counted_together() -> None:
    first = Seen(failed=1, passed=0, lines=(("a.py", 1, "f", 2, 1, 0), ("a.py", 9, "g", 10, 1, 0)))
    second = Seen(failed=1, passed=3, lines=(("a.py", 1, "f", 2, 1, 0), ("a.py", 9, "g", 10, 0, 3)))
    found = [(one.frame.function, round(one.suspicion, 2)) for one in ranked([first, second])]
    assert found == [("f", 1.0), ("g", 0.35)]


def test_nothing_seen_is_nothing_traced() -> None:
    assert ranked([Seen(failed=0, passed=4, lines=())]) == tuple[Traced, ...]()
