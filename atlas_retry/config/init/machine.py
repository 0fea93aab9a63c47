"""The machine at hand: whether a command could start here, and what starts it instead."""

import os
import re
import shutil
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.init.commands import LAUNCHER, startable
from atlas_retry.config.init.project import Folder, ProjectFiles
from atlas_retry.config.init.runners import needs_of
from atlas_retry.config.init.values import Need, Proposed

ENVIRONMENTS = (".venv", "venv")
PYTHON_RUNNERS = {"uv", "uvx", "poetry", "pdm", "pipenv", "rye", "hatch", "pixi", "pipx"}
NODE_RUNNERS = {"pnpm", "yarn", "bun", "bunx"}


class Machine(Struct, frozen=True, dict=True):
    """What can be started from a project's folder."""

    root: Path
    environ: Mapping[str, str]

    def obstacle(self, proposed: Proposed) -> str | None:
        """What is missing for a command to start, with its remedy; None if nothing is."""
        folder = self.root / proposed.cwd
        if not folder.is_dir():
            return f"{proposed.cwd} is not there"
        missing = (self._missing(need, folder) for need in proposed.needs)
        return next(filter(None, missing), None)

    def _missing(self, need: Need, folder: Path) -> str | None:
        remedy = f" ({need.remedy})" if need.remedy else ""
        if need.program and not self._which(need.program) and "/" not in need.program:
            return f"{need.program} is not on PATH{remedy}"
        path = need.path or (need.program if need.program and "/" in need.program else None)
        if path and not (folder / path).exists():
            return f"{path} is not there{remedy}"
        if path and (folder / path).is_file() and not os.access(folder / path, os.X_OK):
            return f"{path} may not be executed (chmod +x {path})"
        return None

    def _which(self, program: str) -> str | None:
        return shutil.which(program, path=self.environ.get("PATH", os.defpath))

    def settled(self, proposed: Proposed) -> Proposed:
        """The proposal as it starts here, by the project's own virtual environment.

        Without a runner that is missing, where what it starts is there.
        """
        settled = self._started(proposed)
        return self._without_target(settled) or settled

    def _without_target(self, proposed: Proposed) -> Proposed | None:
        """What a target starts, where that can start and the target's own runner is missing."""
        programs = [need.program for need in proposed.needs if need.program]
        lacking = [program for program in programs if not self._which(program)]
        line = startable(proposed.body) if lacking else None
        if line is None or {*lacking} & {"npm", *NODE_RUNNERS}:
            return None
        start, *others = line.split(" && ")
        here = ProjectFiles(Folder(self.root)).at(proposed.cwd)
        first = replace(proposed, run=start, needs=needs_of(here, line), body="")
        first = self._started(first)
        needs = chain.from_iterable(needs_of(here, other) for other in others)
        rest = replace(first, needs=tuple(needs))
        if self.obstacle(first) or self.obstacle(rest):
            return None
        tail = "".join(f" && {other}" for other in others)
        why = f"{proposed.reason}{_missing_runner(lacking[0])}"
        return replace(
            first, run=f"{first.run}{tail}", body=proposed.body, reason=why, recheck=None
        )

    def _started(self, proposed: Proposed) -> Proposed:
        runner = proposed.run.partition(" ")[0]
        folder = self.root / proposed.cwd
        if own := _in_environment(runner, folder):
            return _instead(proposed, f"{runner} ", f"{own} ", Need(path=own))
        if self._which(runner):
            return proposed
        if runner in PYTHON_RUNNERS and self._which("python3"):
            return self._by_installed(proposed, runner)
        if runner in NODE_RUNNERS and self._which("npm") and (folder / "node_modules").exists():
            return _by_npm(proposed, runner)
        if runner == "python" and self._which("python3"):
            need = Need(program="python3")
            return _instead(proposed, "python ", "python3 ", need, _missing_runner(runner))
        return proposed

    def _by_installed(self, proposed: Proposed, runner: str) -> Proposed:
        """What a missing runner would start, where the environment has it."""
        started = LAUNCHER.match(proposed.run)
        program = proposed.run[started.end() :].partition(" ")[0] if started else ""
        own = _in_environment(program, self.root / proposed.cwd)
        if not started or not (own or self._which(program)):
            return proposed
        need = Need(path=own) if own else Need(program=program)
        start = (own or program).removesuffix(program)
        return _instead(proposed, started[0], start, need, _missing_runner(runner))


def _in_environment(program: str, folder: Path) -> str | None:
    """A program of the project's own virtual environment."""
    own = [f"{name}/bin/{program}" for name in ENVIRONMENTS if program]
    return next((path for path in own if (folder / path).exists()), None)


def _instead(proposed: Proposed, old: str, new: str, need: Need, why: str = "") -> Proposed:
    """The proposal with another start of its lines, and the reason."""

    def moved(line: str | None) -> str | None:
        return (
            (new + f"{line} ".removeprefix(old)).rstrip()
            if line and f"{line} ".startswith(old)
            else line
        )

    return replace(
        proposed,
        run=moved(proposed.run) or proposed.run,
        fix=moved(proposed.fix),
        recheck=moved(proposed.recheck),
        needs=(need,),
        reason=proposed.reason + why,
    )


def _missing_runner(name: str) -> str:
    return f"; {name} is not on PATH, what it starts is"


def _by_npm(proposed: Proposed, missing: str) -> Proposed:
    """Npm's way of saying the same: a script, or a program of node_modules."""
    old = re.match(r"(?:pnpm|yarn|bun) run |(?:pnpm|yarn) exec |bunx |\w+ ", proposed.run)
    start = old[0] if old else ""
    script = proposed.body or start.endswith("run ") or proposed.run.endswith(" test")
    new = "npx " if not script else "npm run "
    return _instead(proposed, start, new, Need(program="npm"), _missing_runner(missing))
