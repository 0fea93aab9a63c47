"""Whether a command can start on this machine, and what starts it instead."""

import os
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.init.commands import understand
from atlas_retry.config.init.dependencies import NODE, npm_packages
from atlas_retry.config.init.values import Proposed
from atlas_retry.config.project import MAKEFILES, Files, ProjectFiles, table
from atlas_retry.diagnostics.tools import ASSIGNED, LAUNCHER
from atlas_retry.text.commands import quoted

ENVIRONMENTS = (".venv", "venv")
PYTHON_RUNNERS = {"uv", "uvx", "poetry", "pdm", "pipenv", "rye", "hatch", "pixi", "pipx"}
INSTALL = {
    "cargo-clippy": "rustup component add clippy",
    "cargo-fmt": "rustup component add rustfmt",
    "java": "install a JDK",
    "pnpm": "npm install --global pnpm",
    "uvx": "install uv",
    "yarn": "npm install --global yarn",
}
"""How to install a program; by default `install NAME`."""
ALSO = {
    "cargo fmt": "cargo-fmt",
    "cargo clippy": "cargo-clippy",
    "cargo nextest": "cargo-nextest",
    "./mvnw": "java",
    "./gradlew": "java",
    "vendor/bin": "php",
}
"""A program that a line needs in addition to its first word."""


class LocalTools(Struct, frozen=True):
    """The programs available in a project's folder."""

    root: Path
    environ: Mapping[str, str]
    files: Files

    def tried(self, proposed: Proposed) -> Proposed:
        """The proposal; if it cannot start here, with the obstacle and what helps, if known."""
        why, remedy = next(self._obstacles(proposed), (None, None))
        return replace(proposed, obstacle=f"{why} ({remedy})" if remedy else why, remedy=remedy)

    def _obstacles(self, proposed: Proposed) -> Iterator[tuple[str, str | None]]:
        if proposed.barred:
            yield proposed.barred, None
        if proposed.installs:
            yield f"it installs something: {proposed.installs}", None
        folder = self.root / proposed.cwd
        if not folder.is_dir():
            yield f"{proposed.cwd} does not exist", None
        line = re.sub(rf"^{ASSIGNED}", "", proposed.run)
        for program in _programs(line):
            if "/" in program:
                yield from _unusable(folder, program)
            elif not self._which(program):
                yield f"{program} is not on PATH", _remedy(program)
        here = ProjectFiles(self.files).at(proposed.cwd)
        runner = line.partition(" ")[0]
        if runner in NODE:
            yield from self._no_packages(here, NODE[runner])
        if runner == "make" and not here.first(*MAKEFILES) and " -" not in line:
            yield "Makefile does not exist", "./configure"

    def _no_packages(self, project: ProjectFiles, manager: str) -> Iterator[tuple[str, str]]:
        """Why there is no `node_modules`, which Yarn's Plug'n'Play does not need."""
        is_installed = any(
            (self.root / p.base / "node_modules").exists() for p in project.upwards()
        )
        without = (".pnp.cjs", ".yarnrc.yml") if manager == "yarn" else (".pnp.cjs",)
        if not is_installed and npm_packages(project) and not project.first(*without):
            yield "node_modules does not exist", f"{manager} install"

    def _which(self, program: str) -> str | None:
        return shutil.which(program, path=self.environ.get("PATH", os.defpath))

    def startable(self, proposed: Proposed) -> Proposed:
        """The proposal as it starts here: by the project's virtual environment if possible.

        If the runner is missing, by what the environment has of its own.
        """
        runner = proposed.run.partition(" ")[0]
        folder = self.root / proposed.cwd
        why = f"; without {runner}, which is not on PATH"
        if own := _in_environment(runner, folder):
            return _moved(proposed, partial(_instead, old=f"{runner} ", new=f"{own} "), "")
        if self._which(runner):
            return proposed
        started = LAUNCHER.match(proposed.run)
        if runner in PYTHON_RUNNERS and started and self._which("python3"):
            program = proposed.run[started.end() :].partition(" ")[0]
            own = _in_environment(program, folder) or (self._which(program) and program)
            if own:
                new = own.removesuffix(program)
                return _moved(proposed, partial(_instead, old=started[0], new=new), why)
        if runner in NODE and self._which("npm") and (folder / "node_modules").exists():
            here = ProjectFiles(self.files).at(proposed.cwd)
            scripts = table(here.package, "scripts")
            return _moved(proposed, partial(_by_npm, scripts=scripts), why)
        if runner == "python" and self._which("python3"):
            return _moved(proposed, partial(_instead, old="python ", new="python3 "), why)
        return proposed


def _moved(proposed: Proposed, moved: Callable[[str], str], why: str) -> Proposed:
    """The proposal with another start of its commands, and the reason."""
    return replace(
        proposed,
        run=moved(proposed.run),
        fix=proposed.fix and moved(proposed.fix),
        recheck=proposed.recheck and moved(proposed.recheck),
        reason=proposed.reason + why,
    )


def _instead(line: str, *, old: str, new: str) -> str:
    starts = f"{line} ".startswith(old)
    return (new + f"{line} ".removeprefix(old)).rstrip() if starts else line


def _by_npm(line: str, *, scripts: Collection[str]) -> str:
    """The line by npm: a script, or a program of node_modules."""
    old = re.match(r"(?:pnpm|yarn|bun) run |(?:pnpm|yarn) exec |bunx |\w+ ", line)
    start = old[0] if old else ""
    name, _, more = line.removeprefix(start).partition(" ")
    if name.startswith("-"):
        return line
    if name in scripts:
        return f"npm run {name} -- {more.removeprefix('-- ')}" if more else f"npm run {name}"
    return f"npx {name} {more}".rstrip()


def _programs(line: str) -> Iterator[str]:
    """Programs that a line needs: names on PATH, and files of the project."""
    yield from (more for start, more in ALSO.items() if line.startswith(start))
    program = line.partition(" ")[0]
    if program in ("test", "cd", "[", "set"):
        program = "gofmt" if "gofmt" in line else "sh"
    yield NODE.get(program, program)


def _remedy(program: str) -> str:
    known = understand(program)
    pip = "pip " if known and known.language == "python" else ""
    return INSTALL.get(program, f"{pip}install {program}")


def _unusable(folder: Path, program: str) -> Iterator[tuple[str, str | None]]:
    path = program.removeprefix("./")
    if not (folder / path).exists():
        yield f"{path} does not exist", "composer install" if "vendor/bin/" in path else None
    elif not os.access(folder / path, os.X_OK):
        yield f"{path} is not executable", f"chmod +x {quoted(path)}"


def _in_environment(program: str, folder: Path) -> str | None:
    """Path of a program in the project's virtual environment."""
    own = [f"{name}/bin/{program}" for name in ENVIRONMENTS if program]
    return next((path for path in own if (folder / path).exists()), None)
