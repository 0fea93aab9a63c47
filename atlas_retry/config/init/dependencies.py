"""Declared dependencies of a project, and the programs that install them and start its tools."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct

from atlas_retry.config.ci.services import services
from atlas_retry.config.project import Folder, ProjectFiles, strings, table
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
_PACKAGES = ("dependencies", "devDependencies", "optionalDependencies", "peerDependencies")
_GEM = regex(r"^\s*(?:gem|\w+\.add_\w*dependency)[ (]+[\"']([\w.-]+)", re.MULTILINE)


def declared(root: Path, cwd: str = ".") -> Declared:
    """Dependencies declared at `root` and in the folder `cwd`."""
    files = Folder(root)
    bases = dict.fromkeys(("", "" if cwd == "." else f"{cwd.strip('/')}/"))
    projects = [ProjectFiles(files, base) for base in bases]
    npm = {*chain.from_iterable(map(npm_packages, projects))}
    for folder in (root, root / cwd):
        npm -= {name for name in npm if (folder / "node_modules" / name).exists()}
    locks = (lock for lock in INSTALL_PYTHON if any(project.has(lock) for project in projects))
    return Declared(
        python=frozenset(chain.from_iterable(map(python_packages, projects))),
        npm=frozenset(npm),
        gems=frozenset(chain.from_iterable(map(_gems, projects))),
        own=frozenset(_own_modules(projects[-1])),
        services=tuple(dict.fromkeys(services(projects[0]))),
        install_python=next(map(INSTALL_PYTHON.__getitem__, locks), ""),
        install_npm=_npm_install(projects),
    )


def _own_modules(project: ProjectFiles) -> Iterator[str]:
    """Modules in `src`, and packages at the top, of a project that can be installed."""
    if not {"project", "build-system"} & project.pyproject.keys() and not project.has("setup.py"):
        return
    for path in project.below("src/*.py", "src/*/__init__.py", "*/__init__.py"):
        parts = path.removesuffix("/__init__.py").removesuffix(".py").split("/")
        if parts[0] not in NOT_INSTALLED or len(parts) > 1:
            yield parts[-1]


NOT_INSTALLED = {"src", "test", "tests", "doc", "docs", "examples"}
"""Folders at the top that no installation makes importable."""


def npm_packages(project: ProjectFiles) -> dict[str, Where]:
    """Every dependency in `package.json`."""
    names = chain.from_iterable(table(project.package, key) for key in _PACKAGES)
    return dict.fromkeys(names, ("package.json", ""))


def _gems(project: ProjectFiles) -> Iterator[str]:
    for path in project.below("Gemfile", "*.gemspec"):
        yield from _GEM.findall(project.text(path))


def _npm_install(projects: list[ProjectFiles]) -> str:
    managers = (manager_of(project).name for project in projects)
    is_locked = any(project.has("package-lock.json") for project in projects)
    others = (f"{name} install" for name in managers if name != "npm")
    return next(others, "npm ci" if is_locked else "npm install")


# --- managers ----------------------------------------------------------------------------------

WRAPPERS = {"mvn": "mvnw", "gradle": "gradlew"}
NODE = {"npm": "npm", "npx": "npm", "pnpm": "pnpm", "yarn": "yarn", "bun": "bun", "bunx": "bun"}
"""The package manager behind the first word of a line."""


class Manager(Struct, frozen=True):
    """How one package manager runs scripts and installed programs."""

    name: str
    program: str
    """Start of a line that runs a program of node_modules."""
    members: str
    """Line that runs a script in all members of a workspace."""
    locks: tuple[str, ...]
    """Files by which the manager is known, next to `packageManager`."""
    dash: str = ""
    """Separator between a script and its options."""

    def script(self, name: str) -> str:
        """The line that runs a script."""
        is_short = name == "test" and self.name != "bun"
        return f"{self.name} test" if is_short else f"{self.name} run {name}"


MANAGERS = (
    Manager(
        "pnpm",
        "pnpm exec ",
        "pnpm -r --if-present run {}",
        ("pnpm-lock.yaml", "pnpm-workspace.yaml"),
    ),
    Manager("yarn", "yarn run ", "yarn workspaces foreach -A run {}", ("yarn.lock",)),
    Manager("bun", "bunx ", "bun run --filter '*' {}", ("bun.lock", "bun.lockb")),
    Manager("npm", "npx ", "npm run {} --workspaces --if-present", (), "-- "),
)


def manager_of(project: ProjectFiles) -> Manager:
    """The manager by `packageManager`, else by lock file, here or in a folder above; else npm."""
    for here in project.upwards():
        named = str(here.package.get("packageManager", "")).partition("@")[0]
        locked = (one for one in MANAGERS if any(map(here.has, one.locks)))
        wanted = (one for one in MANAGERS if one.name == named)
        if found := next(wanted, None) or next(locked, None):
            return found
        if here.has("package-lock.json"):
            break
    return MANAGERS[-1]


def python_start(project: ProjectFiles, package: str) -> str:
    """Start of a line that runs a program of this package; empty if it is on PATH.

    By default uv installs only the group `dev`; other groups and extras must be named.
    """
    tool = table(project.pyproject, "tool")
    is_pdm = "pdm" in tool and "build" not in table(tool, "pdm")
    managers = {
        "uv": project.has("uv.lock") or "uv" in tool or project.runs("uv run"),
        "poetry": project.has("poetry.lock") or "poetry" in tool,
        "pdm": project.has("pdm.lock") or is_pdm,
        "pipenv": project.has("Pipfile"),
    }
    runner = next((name for name, present in managers.items() if present), None)
    place, name = python_packages(project).get(package, ("", ""))
    if runner == "uv" and place == GROUP and name != "dev":
        return f"uv run --group {name} "
    if runner == "uv" and place == EXTRA:
        return f"uv run --extra {name} "
    return f"{runner} run " if runner else ""


def wrapped(project: ProjectFiles, run: str) -> str:
    """The line with the project's own wrapper, if it has one."""
    program, _, rest = run.partition(" ")
    own = WRAPPERS.get(program)
    return f"./{own} {rest}" if own and project.has(own) else run
