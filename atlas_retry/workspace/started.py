"""Where the gates of a workspace start something, with which environment, and what.

Looks programs up and starts none.
"""

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path

from atlas_retry.model import Gate
from atlas_retry.text.commands import commands
from atlas_retry.workspace.scan import Scan


def programs(
    gates: Iterable[Gate], root: Path, environ: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """Each program that gates start, by a name of its own; its path is empty if there is none."""
    for gate in gates:
        variables = dict(gate.env)
        of_gate = f" of {gate.name}" if "PATH" in variables else ""
        path = {**environ, **variables}.get("PATH", os.defpath)
        for folder, name in _started(gate, root):
            where = _found(name, folder, path)
            yield where if "/" in name else name + of_gate, where


def _found(name: str, folder: Path, path: str) -> str:
    """Absolute path of a program, as a shell in the folder finds it."""
    if "/" in name:
        return os.path.normpath(folder / name)
    places = (os.path.normpath(folder / entry) for entry in path.split(os.pathsep))
    return shutil.which(name, path=os.pathsep.join(places)) or ""


def _started(gate: Gate, root: Path) -> Iterator[tuple[Path, str]]:
    """The programs that a gate's line starts, as it names them, each in every possible folder."""
    folders = [root / gate.cwd]
    for command in commands(gate.run):
        first, second = (word.rstrip(")") for word in (*command, "")[:2])
        if first == "cd":
            # in a subshell or not, the next `cd` starts here or where the line did
            folders += [folders[-1] / second, folders[0] / second]
        else:
            yield from ((folder, first) for folder in (folders if "/" in first else folders[-1:]))


def folders(gates: Iterable[Gate], root: Path) -> set[Path]:
    """The root, and the folders in which gates start something."""
    started = chain.from_iterable(_started(gate, root) for gate in gates)
    return {root}.union(Path(os.path.normpath(folder)) for folder, _ in started)


def environs(gates: Iterable[Gate], environ: Mapping[str, str]) -> list[Mapping[str, str]]:
    """The environment of atlas, and those of gates that change it."""
    changed = dict.fromkeys(gate.env for gate in gates if gate.env)
    return [environ, *({**environ, **dict(variables)} for variables in changed)]


def projects(root: Path, scan: Scan) -> set[Path]:
    """Folders of Python projects, for which a manager may keep an environment elsewhere."""
    there = (path for path in scan.files if path.endswith("pyproject.toml"))
    return {(root / path).parent for path in there}
