"""Programs that start a project's tools: managers of environments and packages."""

import re

from msgspec import Struct

from atlas_retry.config.init.dependencies import EXTRA, GROUP, python_packages
from atlas_retry.config.init.project import ProjectFiles, table
from atlas_retry.diagnostics.tools import bare

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
    dash: str = ""
    """Separator between a script and its options."""

    def script(self, name: str) -> str:
        """The line that runs a script."""
        is_short = name == "test" and self.name != "bun"
        return f"{self.name} test" if is_short else f"{self.name} run {name}"


MANAGERS = (
    Manager("pnpm", "pnpm exec ", "pnpm -r --if-present run {}"),
    Manager("yarn", "yarn run ", "yarn workspaces foreach -A run {}"),
    Manager("bun", "bunx ", "bun run --filter '*' {}"),
    Manager("npm", "npx ", "npm run {} --workspaces --if-present", "-- "),
)
LOCKS = {
    "pnpm": ("pnpm-lock.yaml", "pnpm-workspace.yaml"),
    "yarn": ("yarn.lock",),
    "bun": ("bun.lock", "bun.lockb"),
}


def manager_of(project: ProjectFiles) -> Manager:
    """The manager by `packageManager`, else by lock file, else npm."""
    named = str(project.package.get("packageManager", "")).partition("@")[0]
    locked = (one for one in MANAGERS if any(map(project.has, LOCKS.get(one.name, ()))))
    wanted = (one for one in MANAGERS if one.name == named)
    return next(wanted, None) or next(locked, MANAGERS[-1])


def python_start(project: ProjectFiles, package: str) -> str:
    """Start of a line that runs a program of this package; empty if it is on PATH.

    By default uv installs only the group `dev`; other groups and extras must be named.
    """
    runner = _python_manager(project)
    place, name = python_packages(project).get(package, ("", ""))
    if runner == "uv" and place == GROUP and name != "dev":
        return f"uv run --group {name} "
    if runner == "uv" and place == EXTRA:
        return f"uv run --extra {name} "
    return f"{runner} run " if runner else ""


def _python_manager(project: ProjectFiles) -> str:
    tool = table(project.pyproject, "tool")
    is_pdm = "pdm" in tool and "build" not in table(tool, "pdm")
    rows = {
        "uv": project.has("uv.lock") or "uv" in tool or project.runs("uv run"),
        "poetry": project.has("poetry.lock") or "poetry" in tool,
        "pdm": project.has("pdm.lock") or is_pdm,
        "pipenv": project.has("Pipfile"),
    }
    return next((name for name, present in rows.items() if present), "")


def wrapped(project: ProjectFiles, run: str) -> str:
    """The line with the project's own wrapper, if it has one."""
    program, _, rest = run.partition(" ")
    own = WRAPPERS.get(program)
    return f"./{own} {rest}" if own and project.has(own) else run


NARROWER = {
    "jest": "--onlyFailures --passWithNoTests --coverage=false",
    "vitest": "--changed --coverage.enabled=false",
}
"""Options that run only tests that failed last or that a change affects, without coverage
thresholds, which are for all tests."""
PYTEST_FILES = ("pyproject.toml", "pytest.ini", "tox.ini", "setup.cfg")


def recheck_of(project: ProjectFiles, line: str, body: str) -> str | None:
    """The line that runs fewer tests after an attempt, if the runner can."""
    last = re.split(r"&&|;", body)[-1].strip() or line
    program, _, rest = bare(last).partition(" ")
    if program == "pytest":
        return None if body else _failed_of_pytest(project, line)
    is_run = program != "vitest" or re.match(r"run\b|-|$", rest)
    if program in NARROWER and is_run and "|" not in last:
        dash = "-- " if line.startswith("npm ") else ""
        return f"{line} {dash}{NARROWER[program]}"
    helpers = project.text("spec/spec_helper.rb") + project.text("spec/rails_helper.rb")
    remembers = "example_status_persistence_file_path" in helpers
    return f"{line} --only-failures" if program == "rspec" and remembers else None


def _failed_of_pytest(project: ProjectFiles, line: str) -> str | None:
    if re.search(r"[|<>&;]|--(?:collect|co\b|lf)|no:cacheprovider", line):
        return None
    has_coverage = any("--cov" in text for text in (line, *map(project.text, PYTEST_FILES)))
    return f"{line} --lf --no-cov" if has_coverage else f"{line} --lf"
