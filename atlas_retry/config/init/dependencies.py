"""Declared dependencies of a project, for Python with their group; nothing is resolved."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from atlas_retry.config.init.project import Folder, ProjectFiles, strings, table
from atlas_retry.diagnostics import Declared
from atlas_retry.patterns import regex

PLACES = MAIN, GROUP, EXTRA = "main", "group", "extra"
_NAME = regex(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
REQUIREMENTS = ("requirements*.txt", "requirements*.in", "requirements/*", "*requirements.txt")

Where = tuple[str, str]
"""One of `PLACES`, and the name of the file, extra or group."""


def python_packages(project: ProjectFiles) -> dict[str, Where]:
    """Every package by its normalised name, and where it is declared first."""
    in_pyproject = sorted(_listed(project.pyproject, ()), key=lambda row: PLACES.index(row[1][0]))
    packages: dict[str, Where] = {}
    for requirement, where in (*in_pyproject, *_older(project)):
        if name := _NAME.match(requirement):
            packages.setdefault(re.sub(r"[-_.]+", "-", name[1]).lower(), where)
    return packages


def _listed(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, Where]]:
    """Entries of lists of dependencies; Poetry has mappings of names to versions."""
    keys = table(value)
    is_poetry = path[1:2] == ("poetry",) and path[-1].endswith("dependencies")
    names = list(keys) if is_poetry else []
    if any(step.endswith(("dependencies", "dependency-groups")) for step in path):
        names += strings(value)
    where = MAIN, ""
    if "optional-dependencies" in path:
        where = EXTRA, path[-1]
    elif path[:1] == ("dependency-groups",):
        where = GROUP, path[-1]
    yield from ((name, where) for name in names)
    for key, inner in {} if is_poetry else keys.items():
        yield from _listed(inner, (*path, key))


def _older(project: ProjectFiles) -> Iterator[tuple[str, Where]]:
    setup = project.ini("setup.cfg")
    lists = {"setup.cfg": [*setup.get("options", {}).values()]}
    lists["setup.cfg"] += setup.get("options.extras_require", {}).values()
    lists |= {path: [project.text(path)] for path in project.below(*REQUIREMENTS)}
    pipfile = project.toml("Pipfile")
    lists["Pipfile"] = [*table(pipfile, "packages"), *table(pipfile, "dev-packages")]
    lists["setup.py"] = re.findall(
        r"[\"']([A-Za-z0-9._-]+)(?:[\[<>=~!][^\"']*)?[\"']", project.text("setup.py")
    )
    for path, texts in lists.items():
        for line in "\n".join(texts).splitlines():
            yield line, (MAIN, path)


INSTALL_PYTHON = {
    "uv.lock": "uv sync --all-groups --all-extras",
    "poetry.lock": "poetry install",
    "pdm.lock": "pdm install",
    "Pipfile.lock": "pipenv install --dev",
}
INSTALL_NPM = {
    "pnpm-lock.yaml": "pnpm install",
    "yarn.lock": "yarn install",
    "bun.lock": "bun install",
    "bun.lockb": "bun install",
    "package-lock.json": "npm ci",
}
_PACKAGES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_GEM = regex(r"^\s*(?:gem|\w+\.add_\w*dependency)[ (]+[\"']([\w.-]+)", re.MULTILINE)


def declared(root: Path, cwd: str = ".") -> Declared:
    """Dependencies declared at `root` and in the folder `cwd`."""
    files = Folder(root)
    bases = dict.fromkeys(("", "" if cwd == "." else f"{cwd.strip('/')}/"))
    projects = [ProjectFiles(files, base) for base in bases]
    npm = chain.from_iterable(map(npm_packages, projects))
    return Declared(
        python=frozenset(chain.from_iterable(map(python_packages, projects))),
        npm=frozenset(name for name in npm if not _is_there(name, root, cwd)),
        gems=frozenset(chain.from_iterable(map(_gems, projects))),
        install_python=_installed_by(INSTALL_PYTHON, projects) or "",
        install_npm=_installed_by(INSTALL_NPM, projects) or "npm install",
    )


def npm_packages(project: ProjectFiles) -> dict[str, Where]:
    """Every dependency in `package.json`."""
    names = chain.from_iterable(table(project.package, key) for key in _PACKAGES)
    return dict.fromkeys(names, ("package.json", ""))


def _is_there(name: str, root: Path, cwd: str) -> bool:
    return any((folder / "node_modules" / name).exists() for folder in (root, root / cwd))


def _gems(project: ProjectFiles) -> Iterator[str]:
    for path in project.below("Gemfile", "*.gemspec"):
        yield from _GEM.findall(project.text(path))


def _installed_by(lines: dict[str, str], projects: list[ProjectFiles]) -> str | None:
    for lock, line in lines.items():
        if any(project.has(lock) for project in projects):
            return line
    return None
