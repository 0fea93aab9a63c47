"""Random mutants of a part of the package, and how many of them the tests of that part kill.

python bench/mutants.py PART [COUNT [SEED]]

Each runs in a copy of the tree; a mutant that cannot even be imported is not counted. Tests that
start `atlas` as a process see the installed package, so that a figure errs on the low side.
"""

import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
TESTS = ROOT / "tests"
LIMIT_S = 300.0  # of one run of the tests; a mutant that takes longer is killed
PARTS: dict[str, tuple[str, str]] = {
    "guard": ("guard/*.py judge/*.py", "test_guard_* test_judge*"),
    "decision": ("decision.py ranking.py cascade.py", "test_decision* test_cascade* test_count*"),
    "loop": ("loop.py effects.py", "test_settling* test_loop*"),
    "settling": ("settling.py attribution.py held.py", "test_settling* test_attribution*"),
    "budget": ("purse.py", "test_purse* test_decision* test_many*"),
    "prompt": ("prompt/*.py", "test_prompt*"),
    "restore": ("workspace/*.py", "test_workspace_*"),
}
"""Modules of `atlas_retry`, and the files of tests that hold what they promise."""
OTHERS: dict[type[ast.AST], tuple[Any, ...]] = {
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.And: (ast.Or,), ast.Or: (ast.And,),
}  # fmt: skip
REMOVABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.If, ast.For, ast.Raise, ast.Continue)


class Mutant(NamedTuple):
    """One node of a module, and what stands in its place."""

    path: Path
    tree: ast.Module
    old: ast.expr | ast.stmt
    new: ast.AST

    def __str__(self) -> str:
        was, now = (" ".join(ast.unparse(node).split()) for node in (self.old, self.new))
        first = next((n for n in range(len(now)) if was[: n + 1] != now[: n + 1]), 0)
        shown = [text[max(0, first - 30) : first + 30] for text in (was, now)]
        return f"{self.path.relative_to(ROOT)}:{self.old.lineno}: {'  ->  '.join(shown)}"

    def source(self) -> str:
        """The module with the change."""
        tree, old = copy.deepcopy((self.tree, self.old))
        swap = ast.NodeTransformer()
        walk = swap.generic_visit
        swap.visit = lambda node: self.new if node is old else walk(node)  # type: ignore[method-assign]
        return ast.unparse(ast.fix_missing_locations(swap.visit(tree)))


def other_value(value: object, rng: random.Random) -> Any:  # noqa: ANN401
    """Another value of the same type; a text of several words loses one of them."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    words = value.split() if isinstance(value, str) else []
    if len(words) > 1:
        words.remove(rng.choice(words))
        return " ".join(words)
    return ("" if value else "X") if isinstance(value, str) else None


def mutations(node: ast.AST, rng: random.Random) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Constant(value=value) if (other := other_value(value, rng)) is not None:
            yield ast.Constant(other)
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield from (ast.Compare(left, [other()], right) for other in OTHERS.get(type(op), ()))
        case ast.BoolOp(op=op, values=values):
            yield from (ast.BoolOp(other(), values) for other in OTHERS[type(op)])
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Return(value=value) if value and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts) if len(elts) > 1:
            gone = rng.randrange(len(elts))
            yield type(node)(elts[:gone] + elts[gone + 1 :])
    if isinstance(node, REMOVABLE):
        yield ast.Pass()


def below(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """What runs: no annotation, no docstring, no list of what a module exports."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if is_text or ast.unparse(node).startswith("__all__ ="):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "targets", "target"):
            for part in value if isinstance(value, list) else [value]:
                yield from below(part) if isinstance(part, ast.AST) else ()


def passes(folder: str | Path, *command: str) -> bool:
    """Whether a Python command ends well, and in time."""
    argv = (sys.executable, *command)
    try:
        return not subprocess.run(argv, cwd=folder, timeout=LIMIT_S, check=False,
                                  capture_output=True).returncode  # fmt: skip
    except subprocess.TimeoutExpired:
        return False


def survives(mutant: Mutant | None, tests: list[str]) -> bool:
    """Whether the tests pass in a copy of the tree with a mutant."""
    with tempfile.TemporaryDirectory(prefix="atlas-mutants-") as scratch:
        for name in ("atlas_retry", "tests", "docs"):
            shutil.copytree(ROOT / name, Path(scratch, name), symlinks=True)
        shutil.copy2(ROOT / "pyproject.toml", scratch)
        if mutant:
            Path(scratch, mutant.path.relative_to(ROOT)).write_text(mutant.source())
        return passes(scratch, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests)


def main(part: str, count: int = 40, seed: int = 1) -> int:
    """Print each mutant and what became of it; 1 where the tests fail without one."""
    modules, globs = PARTS[part]
    tests = [f"tests/{path.name}" for glob in globs.split() for path in TESTS.glob(glob)]
    if not survives(None, tests):
        print(f"the tests fail without a mutant: {' '.join(tests)}")
        return 1
    rng = random.Random(seed)  # noqa: S311 - a sample, no secret
    paths = sorted(path for glob in modules.split() for path in ROOT.glob(f"atlas_retry/{glob}"))
    trees = ((path, ast.parse(path.read_text())) for path in paths)
    drawn = [Mutant(p, t, n, new) for p, t in trees for n in below(t) for new in mutations(n, rng)]
    rng.shuffle(drawn)
    born = list(islice((m for m in drawn if passes(ROOT, "-c", m.source())), count))
    survived = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for mutant, lives in zip(born, pool.map(lambda m: survives(m, tests), born), strict=True):
            survived += lives
            print("survived" if lives else "killed  ", mutant, flush=True)
    print(f"{part}: killed {len(born) - survived} of {len(born)} ({len(drawn)} are there, {seed=})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
