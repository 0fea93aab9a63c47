"""The files that lines of gates take, and what of the gates a change concerns. Runs nothing."""

from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from stat import S_ISREG

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.model import Gate, GateResult
from atlas_retry.text.file_names import PLACEHOLDER, with_names
from atlas_retry.text.globs import Globs

MAX_TYPED = 20
"""Files that are named in the command of a result."""


class FileScope(Struct, frozen=True, kw_only=True):
    """Which files and gates a validation is about. Paths are from the root."""

    listed: Callable[[], Mapping[str, tuple[int, ...]]] = dict
    """Stat data of all files that git does not ignore."""
    uncommitted: Callable[[], Collection[str]] = tuple
    """Those that differ from the last commit."""
    of_gates: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Files for `{files}` of a gate, by its name; of the others, all that they take."""
    left_out: Mapping[str, str] = field(default_factory=dict)
    """Gates that do not run, by name, and why."""
    is_limited: bool = False
    """Whether it is about a change only."""


def limited(
    gates: Iterable[Gate], changed: Collection[str], root: Path
) -> tuple[tuple[Gate, ...], dict[str, tuple[str, ...]], dict[str, str]]:
    """The gates as they run for a change, `FileScope.of_gates` and `FileScope.left_out`.

    `changed` has deleted paths as well. A gate that takes no files runs whole, or by a `recheck`
    that does. It gets all files if one changed that its `inputs` name but that it does not take,
    such as its settings.
    """
    chosen: list[Gate] = []
    of_gates: dict[str, tuple[str, ...]] = {}
    left_out: dict[str, str] = {}
    for gate in gates:
        inputs = gate.inputs or (gate.files if PLACEHOLDER in gate.run else ())
        relevant = _matching(inputs, changed)
        line, taken = _narrowest(gate, relevant, root)
        if not relevant:
            left_out[gate.name] = "nothing that it reads has changed"
        elif taken is not None:
            of_gates[gate.name] = taken
        chosen.append(replace(gate, run=line))
    return tuple(chosen), of_gates, left_out


def _narrowest(
    gate: Gate, changed: Collection[str], root: Path
) -> tuple[str, tuple[str, ...] | None]:
    """The line to run for a change, and the files that its lines get; None for all."""
    if len(_taken(gate, changed)) < len(changed):
        return gate.run, None
    below = (path for path in changed if _below(gate.cwd, path))
    files = (path for path in below if (root / path).is_file())
    there = tuple(path for path in files if not (root / path).is_symlink())
    if PLACEHOLDER in gate.run:
        return gate.run, there
    narrower = gate.recheck or ""
    return (narrower if there and PLACEHOLDER in narrower else gate.run), there or None


def why_not_run(gate: Gate, scope: FileScope) -> str | None:
    """Why a gate does not run at all."""
    if gate.name in scope.left_out:
        return scope.left_out[gate.name]
    return (
        None if not gate.run or can_run(gate, gate.run, scope) else "there is no file that it takes"
    )


def can_run(gate: Gate, line: str | None, scope: FileScope) -> bool:
    """Whether there is such a line, and a file for it if it takes some."""
    if not line:
        return False
    return PLACEHOLDER not in line or bool(names(gate, line, scope))


def names(gate: Gate, line: str, scope: FileScope) -> tuple[str, ...]:
    """The files for a line of a gate, as it names them from its folder."""
    paths: Collection[str] | None = scope.of_gates.get(gate.name)
    if paths is None:  # all that it takes, or for a `recheck` the uncommitted ones
        listed = scope.listed()
        asked = scope.uncommitted() if line == gate.recheck else listed
        there = listed.keys() & _taken(gate, asked)
        paths = [path for path in there if S_ISREG(listed[path][0])]
    own = (_below(gate.cwd, path) for path in paths)
    return tuple(
        f"./{name}" if name.startswith("-") else name for name in sorted(filter(None, own))
    )


def typed(gate: Gate, result: GateResult, scope: FileScope) -> str:
    """The result's command as one would type it: with files that have problems, or a few more."""
    every = names(gate, gate.run, scope)
    red = {_below(gate.cwd, problem.path or "") for problem in result.diagnostics}
    few = [name for name in every if name.removeprefix("./") in red] or every[: MAX_TYPED + 1]
    return with_names(result.command, few) if len(few) <= MAX_TYPED else result.command


def _taken(gate: Gate, paths: Collection[str]) -> list[str]:
    return _matching(gate.files or gate.inputs, paths)


def _matching(globs: tuple[str, ...], paths: Collection[str]) -> list[str]:
    """Those of the paths that the globs match; all without globs."""
    if not globs:
        return [*paths]

    return [*filter(Globs(globs).match, paths)]


def _below(cwd: str, path: str) -> str:
    """The path from a folder; empty if it is not below it."""
    if cwd == ".":
        return path
    return path.removeprefix(f"{cwd}/") if path.startswith(f"{cwd}/") else ""
