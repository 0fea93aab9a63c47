"""Gates that may check nothing, by what they run and by what they printed last. Runs none."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, pairwise
from pathlib import Path, PurePosixPath

from atlas_retry.config.init.tasks import NO_TEST
from atlas_retry.diagnostics.tests_ran import tests_counted
from atlas_retry.guard import Case
from atlas_retry.guard.case import scene
from atlas_retry.guard.decides import Reached, reached
from atlas_retry.model import Gate, GateResult, Kind
from atlas_retry.patterns import words
from atlas_retry.text import documents
from atlas_retry.text.commands import commands
from atlas_retry.workspace.snapshot.trees import DirectoryTree

_STARTERS = words("npm yarn pnpm bun make gmake sh bash dash zsh")
_PRINTERS = words("echo printf true : exit")


def idle_gates(gates: Iterable[Gate], root: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """A sentence for each gate that only prints, or whose program has no files to look at."""
    trees = dict[str, DirectoryTree]()
    for gate in gates:
        tree = trees.setdefault(gate.cwd, DirectoryTree(root / gate.cwd, environ))
        runs = reached([gate.run], scene(Case(before=tree, after=tree, changed=())))
        if why := _only_prints(runs) or _without_files(runs, tree):
            yield f"the gate {gate.name} checks nothing: {why}"


def _only_prints(runs: "Reached") -> str | None:
    programs = runs.programs - _STARTERS - {""}
    printed = " and ".join(sorted(programs))
    return f"it only runs {printed}" if programs and programs <= _PRINTERS else None


def _without_files(runs: "Reached", tree: DirectoryTree) -> str | None:
    """Why a `tsc` has no file: only `tsc -b` reads what the configuration refers to."""
    every = list(chain.from_iterable(map(commands, runs.lines)))
    for words_of in (command for command in every if command[0] == "tsc"):
        path = _project_of(words_of)
        settings = documents.parse(path, tree.read(path) or b"")
        lists_none = isinstance(settings, dict) and settings.get("files") == []
        if lists_none and _BUILDS.isdisjoint(words_of):
            return f"{path} lists no files, and only tsc -b follows its references"
    return None


_BUILDS = frozenset({"-b", "--build"})


def _project_of(command: list[str]) -> str:
    """Path of the configuration that `tsc` reads."""
    pairs = pairwise(command)
    named = PurePosixPath(next((value for name, value in pairs if name in _PROJECT), "."))
    return str(named if named.suffix == ".json" else named / "tsconfig.json")


_PROJECT = ("-p", "--project")


def placeholder(root: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """A sentence if the test script of npm is the one that `npm init` writes."""
    content = DirectoryTree(root, environ).read("package.json") or b""
    package = documents.parse("package.json", content)
    scripts = package.get("scripts") if isinstance(package, dict) else None
    if isinstance(scripts, dict) and NO_TEST in str(scripts.get("test")):
        yield "the script `test` of package.json is a placeholder: no gate runs it"


def silent_tests(results: Iterable[GateResult]) -> Iterator[str]:
    """A sentence for each test gate that passed without a word of a runner that atlas knows."""
    for result in results:
        output = f"{result.stdout}\n{result.stderr}"
        is_green_test = result.kind is Kind.TEST and result.success
        if is_green_test and tests_counted(output) is None:
            yield f"the gate {result.name} passed without the summary of a runner that atlas knows"
