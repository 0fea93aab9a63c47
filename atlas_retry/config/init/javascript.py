"""JavaScript and TypeScript: package managers, scripts and the tools behind them."""

import re
from collections.abc import Iterator
from itertools import product

from msgspec import Struct

from atlas_retry.config.init.dependencies import npm_packages
from atlas_retry.config.init.project import ProjectFiles, table
from atlas_retry.config.init.values import Need, Proposed, Slot

NAMES = {
    Slot.FORMAT: ("format", "fmt", "format:write", "prettier:write", "prettier", "format:fix"),
    Slot.LINT: ("lint", "lint:check", "eslint", "lint:js", "lint:ts", "standard", "xo", "biome"),
    Slot.TYPES: (
        "typecheck",
        "type-check",
        "check-types",
        "check:types",
        "types:check",
        "types",
        "tsc",
        "check",
        "test:types",
    ),
    Slot.TEST: ("test:ci", "test", "test:unit", "unit", "tests", "jest", "vitest", "mocha"),
}
FIXES = ("lint:fix", "lint-fix", "fix:lint", "eslint:fix", "fix", "lint:write", "check:fix")
FORMAT_CHECKS = ("format:check", "check:format", "prettier:check", "fmt:check", "check-format")
TYPE_CHECKERS = re.compile(r"\b(?:tsc|vue-tsc|svelte-check|tsgo|tsd)\b")
WRITES = re.compile(r"--(?:write|fix|apply|apply-unsafe)\b")
CHECK_WORDS = re.compile(r"--check\b|--list-different\b| -l\b|--ci\b")
FIXABLE = re.compile(r"^(?:eslint|biome (?:check|lint)|xo|standard|oxlint|stylelint)\b[^&|;]*$")
TIMEOUTS = {Slot.TEST: "10m", Slot.BUILD: "10m"}
NO_TEST = "no test specified"


class Manager(Struct, frozen=True):
    """How one package manager runs scripts and installed programs."""

    name: str
    script: str
    program: str
    """Starts a program of node_modules."""
    members: str
    """Runs a script in all members of a workspace."""
    dash: str = ""
    """Between a script and options for it."""

    @property
    def install(self) -> str:
        return f"{self.name} install"


_MANAGERS = (
    Manager("npm", "npm run ", "npx ", "npm run {} --workspaces --if-present", "-- "),
    Manager("pnpm", "pnpm run ", "pnpm exec ", "pnpm -r --if-present run {}"),
    Manager("yarn", "yarn run ", "yarn run ", "yarn workspaces foreach -A run {}"),
    Manager("bun", "bun run ", "bunx ", "bun run --filter '*' {}"),
)
MANAGERS = {manager.name: manager for manager in _MANAGERS}


class NodeTool(Struct, frozen=True):
    """An installed tool: its package, its program's line, and where it is configured."""

    slot: Slot
    package: str
    run: str
    fix: str | None = None
    recheck: str | None = None
    config: str = ""
    """Patterns of files at the top, one of which has to be there."""
    scripts: tuple[str, ...] = ()
    """Names of scripts, any of which will do as well."""


TOOLS = (
    NodeTool(Slot.FORMAT, "prettier", "prettier --write .",
        config=".prettierrc* prettier.config.*", scripts=FORMAT_CHECKS),
    NodeTool(Slot.LINT, "@biomejs/biome", "biome check .", "biome check --write ."),
    NodeTool(Slot.LINT, "xo", "xo", "xo --fix"),
    NodeTool(Slot.LINT, "standard", "standard", "standard --fix"),
    NodeTool(Slot.LINT, "eslint", "eslint .", "eslint . --fix",
        config="eslint.config.* .eslintrc*"),
    NodeTool(Slot.TYPES, "typescript", "tsc --noEmit", config="tsconfig.json"),
    NodeTool(Slot.TEST, "vitest", "vitest run"),
    NodeTool(Slot.TEST, "jest", "jest", recheck="jest --onlyFailures"),
)  # fmt: skip
"""Of one slot the first that is there."""
LOCKS = (
    ("pnpm-lock.yaml", "pnpm"),
    ("yarn.lock", "yarn"),
    ("bun.lock", "bun"),
    ("bun.lockb", "bun"),
    ("package-lock.json", "npm"),
    ("npm-shrinkwrap.json", "npm"),
    ("pnpm-workspace.yaml", "pnpm"),
)


def manager_of(project: ProjectFiles) -> Manager:
    """By `packageManager`, else by lock file, else npm."""
    named = str(project.package.get("packageManager", "")).partition("@")[0]
    by_lock = next((name for lock, name in LOCKS if project.has(lock)), "npm")
    return MANAGERS.get(named) or MANAGERS[by_lock]


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """What package.json's scripts do, and tools where no script does their work."""
    if not project.has("package.json"):
        return
    node = Node(project=project, manager=manager_of(project))
    scripts = [node.script_for(slot) or node.over_members(slot) for slot in NAMES]
    found = tuple(filter(None, scripts))
    yield from found
    slots = {proposed.slot for proposed in found}
    tools = [tool for tool in node.tools() if tool.slot not in slots]
    yield from tools
    yield from node.build(typed=Slot.TYPES in {*slots, *(tool.slot for tool in tools)})


def needs_of(project: ProjectFiles) -> tuple[Need, ...]:
    """What a script of the package needs to start."""
    return Node(project=project, manager=manager_of(project)).needs()


def fix_of(project: ProjectFiles, line: str) -> str | None:
    """What fixes what a script's line checks."""
    node = Node(project=project, manager=manager_of(project))
    found = node.script_for(Slot.LINT)
    return found.fix if found and found.run.split()[-1] == line.rsplit(maxsplit=1)[-1] else None


class Node(Struct, frozen=True, kw_only=True):
    """One package.json and what runs it."""

    project: ProjectFiles
    manager: Manager

    @property
    def scripts(self) -> dict[str, str]:
        scripts = table(self.project.package, "scripts")
        return {name: body for name, body in scripts.items() if isinstance(body, str)}

    @property
    def packages(self) -> frozenset[str]:
        return frozenset(npm_packages(self.project))

    def needs(self, program: str | None = None) -> tuple[Need, ...]:
        """The manager, and what an install puts down; Yarn's Plug'n'Play puts down no folder."""
        needs = (Need(program=self.manager.name, remedy=f"install {self.manager.name}"),)
        yarn_2 = self.manager.name == "yarn" and self.project.has(".yarnrc.yml")
        if not self.packages or self.project.has(".pnp.cjs") or yarn_2:
            return needs
        path = f"node_modules/.bin/{program}" if program else "node_modules"
        return (*needs, Need(path=path, remedy=self.manager.install))

    def script_for(self, slot: Slot) -> Proposed | None:
        """The project's own script for a slot."""
        scripts = self.scripts
        names = [name for name in NAMES[slot] if self.fits(name)]
        names.sort(key=lambda name: slot is Slot.FORMAT and bool(CHECK_WORDS.search(scripts[name])))
        if not names:
            return None
        name = self._narrowest(names) if slot is Slot.TEST else names[0]
        writes = slot is not Slot.FORMAT and bool(WRITES.search(scripts[name]))
        return Proposed(
            slot=slot,
            run=self._run(name),
            reason=f"package.json has the script `{name}`: {scripts[name]}"[:200],
            needs=self.needs(),
            tool=_tool(scripts[name]),
            language="js",
            fix=self._fix(name) if slot is Slot.LINT and not writes else None,
            recheck=self._recheck(name) if slot is Slot.TEST else None,
            timeout=TIMEOUTS.get(slot),
            writes=writes,
        )

    def over_members(self, slot: Slot) -> Proposed | None:
        """One gate over all members of a workspace, where the root has no script of its own."""
        project = self.project
        if "workspaces" not in project.package and not project.has("pnpm-workspace.yaml"):
            return None
        members = {
            path: Node(
                project=ProjectFiles(project.files, path[: -len("package.json")]),
                manager=self.manager,
            )
            for path in project.below("*/package.json")
        }
        pairs = product(NAMES[slot], members)
        named = ((name, path) for name, path in pairs if members[path].fits(name))
        name, path = next(named, (None, ""))
        if slot is Slot.FORMAT or name is None:
            return None
        return Proposed(
            slot=slot,
            run=self.manager.members.format(name),
            reason=f"{path} has the script `{name}`, one of {len(members)} members",
            needs=self.needs(),
            language="js",
            timeout=TIMEOUTS.get(slot),
        )

    def _narrowest(self, names: list[str]) -> str:
        """Of a test script that lints first, the script that it calls for the tests alone."""
        body = self.scripts[names[0]]
        called = [name for name in names[1:] if re.search(rf"[ :]{name}(?: |$)", body)]
        return called[0] if called and "lint" in body else names[0]

    def fits(self, name: str) -> bool:
        """Whether there is such a script, and it does what its name says."""
        body = self.scripts.get(name)
        if body is None or NO_TEST in body:
            return False
        return name != "check" or bool(TYPE_CHECKERS.search(body))

    def _run(self, name: str) -> str:
        if name == "test" and self.manager.name != "bun":
            return f"{self.manager.name} test"
        return f"{self.manager.script}{name}"

    def _fix(self, name: str) -> str | None:
        own = next((fix for fix in FIXES if fix in self.scripts), None)
        if own:
            return self._run(own)
        body = self.scripts[name]
        option = "--write" if body.startswith("biome") else "--fix"
        return f"{self._run(name)} {self.manager.dash}{option}" if FIXABLE.match(body) else None

    def _recheck(self, name: str) -> str | None:
        """Jest remembers what failed; it wants to be the script's last command for that."""
        last = re.split(r"&&|;", self.scripts[name])[-1].strip()
        if re.match(r"(?:\w+=\S+ |cross-env )*(?:npx )?jest\b[^|]*$", last):
            return f"{self._run(name)} {self.manager.dash}--onlyFailures"
        return None

    def tools(self) -> Iterator[Proposed]:
        """Installed tools that no script calls, the first of each slot."""
        slots: set[Slot] = set()
        for tool in TOOLS:
            if tool.slot not in slots and self._uses(tool):
                slots.add(tool.slot)
                yield self._tool(tool)

    def _uses(self, tool: NodeTool) -> bool:
        if tool.package not in self.packages:
            return False
        is_configured = not tool.config or self.project.first(*tool.config.split())
        return bool(is_configured or self.scripts.keys() & {*tool.scripts})

    def _tool(self, tool: NodeTool) -> Proposed:
        start, name = self.manager.program, tool.run.partition(" ")[0]
        return Proposed(
            slot=tool.slot,
            run=start + tool.run,
            reason=f"package.json asks for {name}",
            needs=self.needs(name),
            tool=name,
            language="js",
            fix=start + tool.fix if tool.fix else None,
            recheck=start + tool.recheck if tool.recheck else None,
            timeout=TIMEOUTS.get(tool.slot),
        )

    def build(self, *, typed: bool) -> Iterator[Proposed]:
        """A build is a gate where nothing else compiles the types."""
        if "tsc" in self.scripts.get("build", "") and not typed:
            yield Proposed(
                slot=Slot.BUILD,
                run=f"{self.manager.script}build",
                reason="package.json has the script `build`",
                needs=self.needs(),
                language="js",
                timeout=TIMEOUTS[Slot.BUILD],
            )


def _tool(body: str) -> str:
    """The first word of a script that is a program."""
    words = (word for word in body.split() if "=" not in word)
    return next((word for word in words if word not in ("cross-env", "npx")), "")
