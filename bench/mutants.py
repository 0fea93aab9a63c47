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
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
LIMIT_S = 120.0
"""What the tests may take with one mutant; one that takes longer is killed."""
SHOWN_CHARS = 60
PARTS: dict[str, tuple[str, str]] = {
    "guard": ("guard/*.py judge/*.py", "guard_* judge*"),
    "decision": ("decision.py ranking.py cascade.py", "decision* cascade* counting*"),
    "loop": ("loop.py effects.py", "settling* loop*"),
    "settling": ("settling.py attribution.py held.py", "settling* attribution* held*"),
    "budget": ("purse.py", "purse* decision* many*"),
    "prompt": ("prompt/*.py", "prompt*"),
    "restore": ("workspace/*.py", "workspace_*"),
}
"""Modules of `atlas_retry`, and the files of tests that hold what they promise."""
OTHERS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
    ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Add: (ast.Sub,), ast.Sub: (ast.Add,),
}  # fmt: skip
REMOVABLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.If, ast.For, ast.Raise, ast.Continue)


class Mutant(NamedTuple):
    """One node of a module, and what stands in its place."""

    path: Path
    tree: ast.Module
    old: ast.AST
    new: ast.AST

    def __str__(self) -> str:
        was, now = (" ".join(ast.unparse(node).split()) for node in (self.old, self.new))
        differs = (n for n, (a, b) in enumerate(zip(was, now, strict=False)) if a != b)
        first = max(0, next(differs, 0) - SHOWN_CHARS // 2)
        shown = [text[first : first + SHOWN_CHARS] for text in (was, now)]
        line = getattr(self.old, "lineno", 0)
        return f"{self.path.relative_to(ROOT)}:{line}: {'  ->  '.join(shown)}"

    def source(self) -> str:
        """The module with the change."""
        tree, old = copy.deepcopy((self.tree, self.old))
        new = self.new

        class Swap(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> ast.AST:
                return new if node is old else self.generic_visit(node)

        return ast.unparse(ast.fix_missing_locations(Swap().visit(tree)))


def other_value(value: object, rng: random.Random) -> object:
    """Another value of the same type; a text of several words loses one of them."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if not isinstance(value, str):
        return None
    words = value.split()
    if len(words) > 1:
        del words[rng.randrange(len(words))]
        return " ".join(words)
    return "" if value else "X"


def mutations(node: ast.AST, rng: random.Random) -> Iterator[ast.AST]:
    """What may stand in the place of a node."""
    match node:
        case ast.Constant(value=value) if (other := other_value(value, rng)) is not None:
            yield ast.Constant(other)
        case ast.Compare(left=left, ops=[op], comparators=right):
            yield from (ast.Compare(left, [other()], right) for other in OTHERS.get(type(op), ()))
        case ast.BoolOp(op=op, values=values):
            yield from (ast.BoolOp(other(), values) for other in OTHERS[type(op)])
        case ast.BinOp(left=left, op=op, right=right):
            yield from (ast.BinOp(left, other(), right) for other in OTHERS.get(type(op), ()))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield operand
        case ast.Return(value=value) if value and not isinstance(value, ast.Constant):
            yield ast.Return(ast.Constant(None))
        case ast.Tuple(elts=elts) | ast.List(elts=elts) | ast.Set(elts=elts) if len(elts) > 1:
            gone = rng.randrange(len(elts))
            yield type(node)(elts[:gone] + elts[gone + 1 :])
    if isinstance(node, REMOVABLE):
        yield ast.Pass()


def below(node: ast.AST) -> Iterator[ast.AST]:
    """Everything that runs: no annotation, no docstring, no list of what a module exports."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if is_text or ast.unparse(node).startswith("__all__ ="):
        return
    if not isinstance(getattr(node, "ctx", None), ast.Store):
        yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns"):
            for part in value if isinstance(value, list) else [value]:
                yield from below(part) if isinstance(part, ast.AST) else ()


def mutants(globs: str, rng: random.Random) -> list[Mutant]:
    """Every mutant of some modules, in random order."""
    found = []
    for path in sorted(p for glob in globs.split() for p in ROOT.glob(f"atlas_retry/{glob}")):
        tree = ast.parse(path.read_text())
        found += [Mutant(path, tree, n, new) for n in below(tree) for new in mutations(n, rng)]
    rng.shuffle(found)
    return found


def passes(folder: str | Path, *command: str) -> bool:
    """Whether a Python command ends well, and in time."""
    null = subprocess.DEVNULL
    argv = (sys.executable, *command)
    try:
        subprocess.run(argv, cwd=folder, timeout=LIMIT_S, check=True, stdout=null, stderr=null)
    except subprocess.SubprocessError:
        return False
    return True


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
    tests = sorted(str(p) for g in globs.split() for p in ROOT.glob(f"tests/test_{g}.py"))
    tests = [str(Path(path).relative_to(ROOT)) for path in tests]
    if not survives(None, tests):
        print(f"the tests fail without a mutant: {' '.join(tests)}")
        return 1
    drawn = mutants(modules, random.Random(seed))  # noqa: S311 - a sample, no secret
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
