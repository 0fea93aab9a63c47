"""How to reinstall dependencies whose files were changed."""

import shlex
from collections.abc import Collection, Mapping, Sequence
from pathlib import PurePosixPath

_REINSTALLED = {
    "package-lock.json": "npm ci",
    "npm-shrinkwrap.json": "npm ci",
    "yarn.lock": "rm -rf node_modules && yarn install",
    "pnpm-lock.yaml": "rm -rf node_modules && pnpm install",
    "bun.lock": "rm -rf node_modules && bun install",
}
_REINSTALLED_PYTHON = {
    "uv.lock": "uv sync --reinstall",
    "poetry.lock": "poetry sync",
    "requirements.txt": "pip install --force-reinstall -r requirements.txt",
}


MAX_REMOVED = 4
"""Number of new files up to which their removal is spelled out."""


def remedy(changed: Collection[str], new: Collection[str], there: Collection[str]) -> str:
    """What to do about changed files of dependencies, and about new ones beside them.

    `there` has the paths of the project's own files.
    """
    came = (path for path in changed if path in new)
    stray = [*filter(_is_stray, came)]
    rest = [path for path in changed if path not in stray]
    commands = _commands(rest, there)
    if len(stray) > MAX_REMOVED or (rest and not commands):
        return "restore what is named above by hand"
    if not stray:
        return f"reinstall what is named above: {' && '.join(commands)}"
    return f"remove what was added: {' && '.join((f'rm {shlex.join(stray)}', *commands))}"


def _is_stray(path: str) -> bool:
    """Whether a new file would remain after its dependency is reinstalled."""
    if "site-packages/" in path:
        return "/" not in path.rsplit("site-packages/", maxsplit=1)[-1]
    return path.startswith("/")


def _commands(paths: Sequence[str], there: Collection[str]) -> list[str]:
    """Commands that reinstall the dependencies of these files, by existing lock files.

    None if a file is of no package manager, such as a vendored one.
    """
    in_python = [p.split("site-packages/")[1] for p in paths if "site-packages/" in p]
    in_node = [path for path in paths if "node_modules/" in path]
    if len(in_python) + len(in_node) < len(paths):
        return []
    names = sorted({PurePosixPath(path).parts[0].removesuffix(".py") for path in in_python})
    lines = []
    if in_python:
        by_name = f"pip install --force-reinstall {' '.join(names)}"
        lines.append(_by_lock(_REINSTALLED_PYTHON, there) or by_name)
    if in_node:
        of_node = "rm -rf node_modules && npm install"
        lines.append(_by_lock(_REINSTALLED, there) or of_node)
    return lines


def _by_lock(table: Mapping[str, str], there: Collection[str]) -> str | None:
    return next((command for lock, command in table.items() if lock in there), None)
