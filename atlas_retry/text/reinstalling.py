"""How to reinstall dependencies whose files were changed."""

import shlex
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

_REINSTALLED = {
    "package-lock.json": "npm ci",
    "npm-shrinkwrap.json": "npm ci",
    "yarn.lock": "rm -rf node_modules && yarn install",
    "pnpm-lock.yaml": "rm -rf node_modules && pnpm install",
    "bun.lock": "rm -rf node_modules && bun install",
}
_BY_NAME = "rm -rf node_modules && npm install"


class Distribution(Struct, frozen=True, kw_only=True):
    """What installed a file in an environment of Python."""

    name: str
    version: str
    environment: str
    """Path of the environment, relative to the workspace or absolute."""
    has_pip: bool
    """Whether pip is installed in it."""
    is_of_uv: bool
    """Whether uv made it."""


MAX_REMOVED = 4
"""Number of new files up to which their removal is spelled out."""


def remedy(
    changed: Collection[str],
    *,
    new: Collection[str],
    there: Collection[str],
    by_path: Mapping[str, Distribution],
) -> str:
    """What to do about changed files of dependencies, and about new ones beside them.

    `there` has the paths of the project's own files, `by_path` the owners of changed files.
    """
    came = [path for path in changed if path in new]
    rest = [path for path in changed if path not in new]
    commands = _commands(rest, there, by_path)
    if len(came) > MAX_REMOVED or (rest and not commands):
        return "restore what is named above by hand"
    if not came:
        return f"reinstall what is named above: {' && '.join(commands)}"
    return f"remove what was added: {' && '.join((f'rm {shlex.join(came)}', *commands))}"


def _commands(
    paths: Sequence[str], there: Collection[str], by_path: Mapping[str, Distribution]
) -> list[str]:
    """Commands that reinstall the dependencies of these files.

    None if a file is of no package manager, such as a vendored one.
    """
    in_node = [path for path in paths if "node_modules/" in path]
    if len(in_node) + len(by_path) < len(paths):
        return []
    projects = dict.fromkeys(path.partition("node_modules/")[0].rstrip("/") for path in in_node)
    owners = dict.fromkeys(by_path[path] for path in paths if path in by_path)
    lines = dict.fromkeys(_by_lock(project, there) for project in projects)
    return [*map(_of_python, owners), *lines]


def _of_python(of: Distribution) -> str:
    """Reinstalls the version that was there, and none of what it needs."""
    python = shlex.quote(f"{of.environment}/bin/python")
    what = f"--no-deps {shlex.quote(f'{of.name}=={of.version}')}"
    if of.has_pip:
        return f"{python} -m pip install --force-reinstall {what}"
    if of.is_of_uv:
        return f"uv pip install --python {python} --reinstall {what}"
    return f"pip --python {python} install --force-reinstall {what}"


def _by_lock(project: str, there: Collection[str]) -> str:
    """The installer of a folder of Node is known by its lock file, or by one in a folder above."""
    above = project
    while True:
        prefix = f"{above}/" if above else ""
        line = next((do for lock, do in _REINSTALLED.items() if f"{prefix}{lock}" in there), None)
        if line or not above:
            break
        above = above.rpartition("/")[0]
    folder = above if line else project
    return f"(cd {shlex.quote(folder)} && {line or _BY_NAME})" if folder else line or _BY_NAME
