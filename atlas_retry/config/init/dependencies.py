"""Which packages a project asks for, Python's with their group; nothing is resolved."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from atlas_retry.config.init.project import Folder, ProjectFiles, dig, strings, table
from atlas_retry.diagnostics import Declared

MAIN, EXTRA, GROUP, ELSEWHERE = "main", "extra", "group", "elsewhere"
_NAME = re.compile(r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)")
REQUIREMENTS = ("requirements*.txt", "requirements*.in", "requirements/*", "*requirements.txt")

Where = tuple[str, str]
"""One of the four words above, and the name of the extra or group."""


def python_packages(project: ProjectFiles) -> dict[str, Where]:
    """Every package by its normalised name, and where it is asked for first."""
    found: dict[str, Where] = {}
    for name, where in _all(project):
        found.setdefault(name, where)
    return found


def _all(project: ProjectFiles) -> Iterator[tuple[str, Where]]:
    pyproject = project.pyproject
    yield from _named(dig(pyproject, "project", "dependencies"), (MAIN, ""))
    for group, listed in table(pyproject, "dependency-groups").items():
        yield from _named(listed, (GROUP, group))
    yield from _named(dig(pyproject, "tool", "uv", "dev-dependencies"), (GROUP, "dev"))
    for extra, listed in table(pyproject, "project", "optional-dependencies").items():
        yield from _named(listed, (EXTRA, extra))
    yield from _poetry(project)
    for group, listed in table(pyproject, "tool", "pdm", "dev-dependencies").items():
        yield from _named(listed, (GROUP, group))
    for environment in table(pyproject, "tool", "hatch", "envs").values():
        for key in ("dependencies", "extra-dependencies"):
            yield from _named(dig(environment, key), (ELSEWHERE, "hatch"))
    yield from _older(project)


def _poetry(project: ProjectFiles) -> Iterator[tuple[str, Where]]:
    poetry = table(project.pyproject, "tool", "poetry")
    yield from _named(list(table(poetry, "dependencies")), (MAIN, ""))
    yield from _named(list(table(poetry, "dev-dependencies")), (GROUP, "dev"))
    for group, inner in table(poetry, "group").items():
        yield from _named(list(table(inner, "dependencies")), (GROUP, group))


def _older(project: ProjectFiles) -> Iterator[tuple[str, Where]]:
    setup = project.ini("setup.cfg")
    for section in ("options", "options.extras_require"):
        for listed in setup.get(section, {}).values():
            yield from _named(listed.splitlines(), (ELSEWHERE, "setup.cfg"))
    for path in project.below(*REQUIREMENTS):
        yield from _named(project.text(path).splitlines(), (ELSEWHERE, path))
    pipfile = project.toml("Pipfile")
    for section in ("packages", "dev-packages"):
        yield from _named(list(table(pipfile, section)), (ELSEWHERE, "Pipfile"))
    quoted = re.findall(
        r"[\"']([A-Za-z0-9._-]+)(?:[\[<>=~!][^\"']*)?[\"']", project.text("setup.py")
    )
    yield from _named(quoted, (ELSEWHERE, "setup.py"))


def _named(listed: object, where: Where) -> Iterator[tuple[str, Where]]:
    for requirement in strings(listed):
        found = _NAME.match(requirement)
        if found:
            yield re.sub(r"[-_.]+", "-", found[1]).lower(), where


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
_GEM = re.compile(r"^\s*(?:gem|\w+\.add_\w*dependency)[ (]+[\"']([\w.-]+)", re.MULTILINE)


def declared(root: Path, cwd: str = ".") -> Declared:
    """What the files of the project at `root` ask for, those of the folder `cwd` included."""
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
    """Every package that a `package.json` asks for."""
    found = chain.from_iterable(table(project.package, key) for key in _PACKAGES)
    return dict.fromkeys(found, ("package.json", ""))


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
