"""The package stays easy to read: no dense expressions, few decisions, a bounded size."""

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.projects import Project

PACKAGE = Path(__file__).parents[1] / "atlas_retry"
MODULES = {
    path.relative_to(PACKAGE).as_posix(): path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py"))
    if "demo_project" not in path.parts  # faults are planted there
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
DECISIONS = (ast.If, ast.IfExp, ast.For, ast.While, ast.ExceptHandler, ast.match_case)
OPERANDS = 3  # a longer condition gets a name
PLAIN_PATTERN_CHARS = 120  # a longer regular expression is verbose


@cache
def nodes_of_modules() -> dict[str, list[ast.AST]]:
    """Not when it is imported: each process of tests imports it, and few run it."""
    return {name: [*ast.walk(ast.parse(source))] for name, source in MODULES.items()}


def operands(condition: ast.expr) -> int:
    """How many plain conditions `and` and `or` join."""
    if isinstance(condition, ast.UnaryOp) and isinstance(condition.op, ast.Not):
        return operands(condition.operand)
    if not isinstance(condition, ast.BoolOp):
        return 1
    return sum(operands(value) for value in condition.values)


def conditions(comprehension: ast.comprehension) -> int:
    return sum(operands(condition) for condition in comprehension.ifs)


def decisions(node: ast.AST) -> int:
    """A branch or a loop is one; so is what `and`, `or` and a comprehension's `if` add."""
    if isinstance(node, ast.comprehension):
        return 1 + len(node.ifs)
    if isinstance(node, ast.BoolOp):
        return len(node.values) - 1
    return int(isinstance(node, DECISIONS))


def is_dense_comprehension(node: ast.AST) -> bool:
    if not isinstance(node, COMPREHENSIONS):
        return False
    return len(node.generators) > 1 or sum(map(conditions, node.generators)) > 1


def is_long_condition(node: ast.AST) -> bool:
    return isinstance(node, ast.BoolOp) and operands(node) > OPERANDS


def is_long_pattern(node: ast.AST) -> bool:
    """Whether a call compiles a long regular expression that is not verbose."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args):
        return False
    pattern = node.args[0]
    if not (isinstance(pattern, ast.Constant) and isinstance(pattern.value, str)):
        return False
    verbose = any("VERBOSE" in ast.unparse(flag) for flag in node.args[1:])
    inline = re.match(r"\(\?[a-z]*x", pattern.value)
    return len(pattern.value) > PLAIN_PATTERN_CHARS and not (verbose or inline)


def places(is_dense: Callable[[ast.AST], bool]) -> Iterator[str]:
    for name, nodes in nodes_of_modules().items():
        for node in nodes:
            if isinstance(node, ast.expr) and is_dense(node):
                yield f"{name}:{node.lineno}"


@pytest.mark.parametrize("is_dense", [is_dense_comprehension, is_long_condition, is_long_pattern])
def test_no_expression_is_too_dense(is_dense: Callable[[ast.AST], bool]) -> None:
    assert [*places(is_dense)] == []


def lines_of_code() -> int:
    """Lines with code on them: no blank line, comment or docstring."""
    count = 0
    for name, source in MODULES.items():
        skipped = (
            tokenize.COMMENT,
            tokenize.NL,
            tokenize.NEWLINE,
            tokenize.INDENT,
            tokenize.DEDENT,
            tokenize.ENDMARKER,
        )
        tokens = tokenize.generate_tokens(io.StringIO(source).readline)
        lines = {
            line
            for token in tokens
            if token.type not in skipped
            for line in range(token.start[0], token.end[0] + 1)
        }
        for node in nodes_of_modules()[name]:
            if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
                lines -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
        count += len(lines)
    return count


def one_caller_helpers() -> int:
    """Private functions of modules that are named once beside their definition."""
    count = 0
    for name in MODULES:
        nodes = nodes_of_modules()[name]
        private = {
            node.name
            for node in nodes
            if isinstance(node, ast.FunctionDef) and node.name.startswith("_")
        }
        named = Counter(node.id for node in nodes if isinstance(node, ast.Name))
        count += sum(named[function] == 1 for function in private)
    return count


def imports_inside_functions() -> int:
    count = 0
    for nodes in nodes_of_modules().values():
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                count += sum(isinstance(one, ast.Import | ast.ImportFrom) for one in node.body)
    return count


STACK = """
import sys, traceback
from atlas_retry.cli import main

def note(event, args):
    if event == "subprocess.Popen" and args[1][-1] == "exit 0":
        files = (frame.filename for frame in traceback.extract_stack())
        print(sum(file.startswith(sys.argv[1]) for file in files))
        sys.exit(0)

sys.addaudithook(note)
main(sys.argv[2:])
"""


@pytest.mark.parametrize(("command", "most"), [("validate", 12), ("retry", 14)])
def test_few_calls_lie_between_the_command_and_the_first_gate(
    command: str, most: int, project: Project
) -> None:
    project.configure(validation={"test": ["exit 0"]})
    project.commit()
    script = [sys.executable, "-c", STACK, str(PACKAGE), command, "."]
    done = subprocess.run(
        script, cwd=project.root, env=project.environ, capture_output=True, check=False
    )
    assert 8 < int(done.stdout.split()[-1]) <= most


def test_the_code_grows_no_denser() -> None:
    """Bounds to lower with the code; a change that exceeds one makes something else plainer."""
    decided = sum(sum(map(decisions, nodes)) for nodes in nodes_of_modules().values())
    every = sum(len(source.splitlines()) for source in MODULES.values())
    assert decided / lines_of_code() <= 0.29
    assert 1000 * one_caller_helpers() / every <= 13.5
    assert imports_inside_functions() <= 110
