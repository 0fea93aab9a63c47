"""Random mutants of a part of the package, and how many of them the tests of that part kill.

python bench/mutants.py PART [COUNT [SEED [MINUTES]]]

Each runs in a copy of the tree; a mutant that cannot even be imported is not counted. Tests that
start `atlas` as a process see the installed package, so that a figure errs on the low side.
A mutant whose tests take too long is counted apart. What is too long is processor time, which a
busy machine does not stretch; tests that only wait get more time once. No mutant is begun after
MINUTES.
"""

import ast
import copy
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from coverage import CoverageData

ROOT = Path(__file__).parent.parent
LEAST_S = 30.0  # of one run of the tests, however fast they are without a mutant
MORE_CPU = 3  # times the processor time without a mutant is an endless loop
MORE_TIME = (4, 12)  # times the time without a mutant, at first and once more
QUIET = ("-x", "-q", "-p", "no:cacheprovider")
PARTS: dict[str, tuple[str, str]] = {
    "guard": ("guard/*.py guard/judge/*.py", "test_guard_*.py test_judge*.py"),
    "decision": ("run/decide.py run/cascade.py",
                 ("test_decision.py test_cascade.py test_counting.py test_cause.py "
                  "test_settling.py")),
    "loop": ("run/loop.py run/effects/*.py",
             ("test_effects.py test_settling.py test_loop.py test_attribution.py "
              "test_review.py test_uncommitted.py test_triage.py test_counting.py")),
    "settling": ("run/settle.py run/confirm.py run/held.py",
                 "test_settling.py test_attribution.py test_held.py test_unseen.py"),
    "budget": ("run/budget.py", "test_budget.py test_decision.py test_many.py"),
    "prompt": ("prompt/*.py", "test_prompt*.py"),
    "restore": (("workspace/snapshot/restoring.py workspace/snapshot/git_state.py "
                 "workspace/place.py workspace/snapshot/snapshots.py workspace/snapshot/store.py"),
                "test_workspace_*.py test_history_rescue.py test_git_keys.py test_undo_gates.py"),
}  # fmt: skip
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
    """What runs: no annotation, no docstring, no `frozen`, no list of what a module exports."""
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    if is_text or ast.unparse(node).startswith(("__all__ =", "if TYPE_CHECKING:")):
        return
    if isinstance(node, ast.expr | ast.stmt):
        yield node
    for name, value in ast.iter_fields(node):
        of_class = isinstance(node, ast.ClassDef) and name == "keywords"
        if name not in ("annotation", "returns", "targets", "target") and not of_class:
            for part in value if isinstance(value, list) else [value]:
                yield from below(part) if isinstance(part, ast.AST) else ()


def python(
    folder: Path, *command: str, limit_s: float | None = None, cpu_s: int = resource.RLIM_INFINITY
) -> int | None:
    """The exit code of a Python command; None where it takes too long, and is ended by then.

    Each of its processes may use `cpu_s` of processor time.
    """
    with subprocess.Popen(
        (sys.executable, *command),
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # a second of each run
        start_new_session=True,
    ) as process:
        resource.prlimit(process.pid, resource.RLIMIT_CPU, (cpu_s, cpu_s))
        try:
            return process.wait(limit_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return None


def used_s() -> tuple[float, float]:
    """What time it is, and the processor time of all commands that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.monotonic(), used.ru_utime + used.ru_stime


def files(folder: Path, globs: str) -> list[Path]:
    """What the globs match, in their order. Ends the program where one matches nothing."""
    matched = {glob: sorted(folder.glob(glob)) for glob in globs.split()}
    if empty := [glob for glob, paths in matched.items() if not paths]:
        sys.exit(f"{folder} has no {' '.join(empty)}: the table of parts is out of date")
    return list(dict.fromkeys(path for paths in matched.values() for path in paths))


def drawn(paths: list[Path], seed: int) -> list[Mutant]:
    """All mutants of some modules, shuffled."""
    rng = random.Random(seed)  # noqa: S311 - a sample, no secret
    mutants = []
    for path in paths:
        tree = ast.parse(path.read_text())
        for node in below(tree):
            mutants += [Mutant(path, tree, node, new) for new in mutations(node, rng)]
    rng.shuffle(mutants)
    return mutants


class Trial:
    """A copy of the tree in which mutants are tried one after the other."""

    def __init__(self, folder: Path, tests: list[Path]) -> None:
        self.folder = folder
        self.tests = [str(path.relative_to(ROOT)) for path in tests]
        self.length_s, self.cpu_s = LEAST_S, LEAST_S
        for name in ("atlas_retry", "tests", "docs"):
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
        shutil.copy2(ROOT / "pyproject.toml", folder)

    def measure(self) -> bool:
        """Run all tests with coverage: which test runs which line. Whether they pass."""
        settings = self.folder / "coverage.ini"
        settings.write_text("[run]\ndynamic_context = test_function\ndata_file = coverage.db\n")
        began_s, before_s = used_s()
        ended = python(self.folder, "-m", "coverage", "run", "--rcfile=coverage.ini",
                       "-m", "pytest", *QUIET, *self.tests)  # fmt: skip
        now_s, after_s = used_s()
        self.length_s, self.cpu_s = max(LEAST_S, now_s - began_s), max(LEAST_S, after_s - before_s)
        return ended == 0

    def running(self, path: Path, lines: range) -> list[str]:
        """The tests that run one of the lines; all, where only an import does."""
        data = CoverageData(str(self.folder / "coverage.db"))
        data.read()
        contexts = data.contexts_by_lineno(str(self.folder / path.relative_to(ROOT)))
        names = {name.split(".")[-1] for line in lines for name in contexts.get(line, ())} - {""}
        return ["-k", " or ".join(sorted(names))] if names else []

    def pytest(self, chosen: list[str]) -> str:
        """What some tests make of the mutant that is in place."""
        for more in MORE_TIME:
            limit_s, cpu_s = more * self.length_s, int(MORE_CPU * self.cpu_s)
            ended = python(self.folder, "-m", "pytest", *QUIET, *self.tests, *chosen,
                           limit_s=limit_s, cpu_s=cpu_s)  # fmt: skip
            if ended == -signal.SIGKILL:
                return "timed out"
            if ended is not None:
                return "survived" if ended == 0 else "killed"
        return "timed out"

    def fate(self, mutant: Mutant) -> str:
        """What becomes of a mutant: first by the tests that run its lines, then by all."""
        target, old = self.folder / mutant.path.relative_to(ROOT), mutant.old
        original = target.read_bytes()
        target.write_text(mutant.source())
        lines = range(old.lineno, (old.end_lineno or old.lineno) + 1)
        fate = self.pytest(self.running(mutant.path, lines))
        if fate == "survived":
            fate = self.pytest([])
        target.write_bytes(original)
        return fate


def fates(trial: Trial, mutants: list[Mutant], count: int, end_s: float) -> Counter[str]:
    """Print each mutant and what became of it, until there are enough or the time is over."""
    tally: Counter[str] = Counter()
    for mutant in mutants:
        if tally.total() == count or time.monotonic() > end_s:
            break
        if python(ROOT, "-c", mutant.source()) == 0:
            fate = trial.fate(mutant)
            tally[fate] += 1
            print(f"{fate:9}", mutant, flush=True)
    return tally


def main(part: str, count: int = 40, seed: int = 1, minutes: int = 60) -> int:
    """Try random mutants of a part; ends with a message where the tests fail without one."""
    end_s = time.monotonic() + 60 * minutes
    modules, globs = PARTS[part]
    mutants = drawn(files(ROOT / "atlas_retry", modules), seed)
    with tempfile.TemporaryDirectory(prefix="atlas-mutants-") as scratch:
        trial = Trial(Path(scratch).resolve(), files(ROOT / "tests", globs))
        if not trial.measure():
            sys.exit(f"the tests fail without a mutant: {' '.join(trial.tests)}")
        tally = fates(trial, mutants, count, end_s)
    numbers = " / ".join(f"{fate} {tally[fate]}" for fate in ("killed", "survived", "timed out"))
    print(f"{part}: {numbers}, of {tally.total()} ({len(mutants)} possible, {seed=})")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])))
