"""Commands that reinstall dependencies whose files were changed."""

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


def is_stray(path: str) -> bool:
    """Whether a new file would remain after its dependency is reinstalled."""
    if "site-packages/" in path:
        return "/" not in path.rsplit("site-packages/", maxsplit=1)[-1]
    return path.startswith("/")


def commands(paths: Sequence[str], there: Collection[str]) -> list[str]:
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
