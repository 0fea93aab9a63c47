"""What a project names itself: scripts of package.json, targets of make, just, tox, nox ...

A script of package.json is as good as its tool. Another target stands in only where no tool was
found for its slot: the tool itself has a fixer and tells its problems apart, the target does not.
"""

import re
from collections.abc import Iterator, Mapping

from msgspec import Struct

from atlas_retry.config.init.commands import slot_of_name
from atlas_retry.config.init.dependencies import python_packages
from atlas_retry.config.init.project import ProjectFiles, dig, strings, table
from atlas_retry.config.init.runners import NODE, manager_of, python_start
from atlas_retry.config.init.values import Proposed, Slot

NAMES = {
    Slot.FORMAT: "format fmt reformat format:write prettier:write prettier format:fix fix",
    Slot.LINT: "lint linter lints lint:check eslint lint:js lint:ts check-lint style flake8"
    " standard xo biome cs analyse",
    Slot.TYPES: "typecheck type-check check-types check:types types:check types typing mypy pyright"
    " tsc check test:types",
    Slot.TEST: "test:ci test tests test:unit unit unittest unit-test unit-tests test-unit jest"
    " vitest mocha check",
}
"""By what a target is for: its names, the best one first."""
FIXES = {
    Slot.LINT: ("lint:fix", "lint-fix", "fix:lint", "eslint:fix", "fix", "lint:write", "check:fix"),
    Slot.FORMAT: ("format:fix", "format:write", "prettier:fix", "prettier:write"),
}
"""Scripts that fix what one of that slot checks."""
TYPE_CHECKERS = re.compile(r"\b(?:tsc|vue-tsc|svelte-check|tsgo|tsd)\b")
WRITES = re.compile(r"--(?:write|fix|apply|apply-unsafe)\b")
ONLY_CHECKS = re.compile(r"--check\b|--list-different\b| -l\b|--ci\b")
FIXABLE = re.compile(r"^(?:eslint|biome (?:check|lint)|xo|standard|oxlint|stylelint)\b[^&|;]*$")
NO_TEST = "no test specified"

_FILLED = re.compile(
    r"""
      --basetemp=\{envtmpdir\}  # pytest has a folder of its own without it
    | \{posargs(?::([^{}]*))?\}
    | \{(envpython)\}
    | \{(toxinidir|tox_root)\}
    """,
    re.VERBOSE,
)


class Task(Struct, frozen=True):
    """A script, or a target of a task runner."""

    name: str
    run: str
    body: str = ""
    """What it starts, a command a line, as far as the file says it."""
    is_script: bool = False
    """Of package.json."""
    fix: str | None = None


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The first target of each runner for each slot; of package.json and its members one."""
    done: set[Slot] = set()
    for where, targets in _sources(project):
        tasks = {task.name.lower().replace("_", "-"): task for task in targets}
        picked = {slot: task for slot in NAMES if (task := _pick(slot, tasks))}
        yield from (_proposed(slot, where, picked[slot]) for slot in picked if slot not in done)
        done |= {slot for slot, task in picked.items() if task.is_script}


def find(project: ProjectFiles, runner: str, name: str) -> Task | None:
    """The target that a line calls, by its runner and its name."""
    for _, targets in _sources(project):
        for task in targets:
            words = task.run.split()
            is_called = runner in words or (runner in NODE and task.is_script)
            if is_called and name in (task.name, words[-1]):
                return task
    return None


def _pick(slot: Slot, tasks: Mapping[str, Task]) -> Task | None:
    fitting = [tasks[name] for name in NAMES[slot].split() if name in tasks]
    fitting = [task for task in fitting if _fits(slot, task)]
    if slot is Slot.FORMAT:
        fitting.sort(key=lambda task: bool(ONLY_CHECKS.search(task.body)))
    if slot is Slot.TEST and fitting and "lint" in fitting[0].body:
        # of a test script that lints first, the script that it calls for the tests alone
        body = fitting[0].body
        called = (task for task in fitting[1:] if re.search(rf"[ :]{task.name}(?: |$)", body))
        return next(called, fitting[0])
    return fitting[0] if fitting else None


def _fits(slot: Slot, task: Task) -> bool:
    """Whether it does what its name says."""
    if task.name == "check" and slot is Slot.TYPES:
        return bool(TYPE_CHECKERS.search(task.body))
    is_other = (slot, task.name) in ((Slot.FORMAT, "fix"), (Slot.TEST, "check"))
    return not (is_other and task.is_script)


def _proposed(slot: Slot, where: str, task: Task) -> Proposed:
    writes = task.is_script and slot is not Slot.FORMAT and bool(WRITES.search(task.body))
    words = (word for word in task.body.split() if "=" not in word)
    tool = next((word for word in words if word not in ("cross-env", "npx")), "")
    return Proposed(
        slot=slot,
        run=task.run,
        reason=f"{where} has `{task.name}`",
        tool=tool if task.is_script else "",
        language="js" if task.is_script else "",
        fix=task.fix if slot in FIXES and not writes else None,
        writes=writes,
        task=not task.is_script,
        body=task.body,
    )


def _sources(project: ProjectFiles) -> Iterator[tuple[str, Iterator[Task]]]:
    yield "package.json", _scripts(project)
    yield "a member's package.json", _members(project)
    yield "pyproject.toml", _pyproject(project)
    yield "composer.json", _composer(project)
    yield "noxfile.py", _nox(project)
    yield "the tox configuration", _tox(project)
    yield "the justfile", _just(project)
    yield "mise.toml", _mise(project)
    yield "the Taskfile", _taskfile(project)
    yield "the Makefile", _make(project)


def _scripts(project: ProjectFiles) -> Iterator[Task]:
    manager = manager_of(project)
    scripts = _bodies(project)
    for name, body in scripts.items():
        run = manager.script(name)
        fixes = FIXES.get(slot_of_name(name) or Slot.TEST, ())
        own = next((manager.script(fix) for fix in fixes if fix in scripts), None)
        option = "--write" if body.startswith("biome") else "--fix"
        known = f"{run} {manager.dash}{option}" if FIXABLE.match(body) else None
        yield Task(name, run, body, is_script=True, fix=own or known)


def _bodies(project: ProjectFiles) -> dict[str, str]:
    scripts = table(project.package, "scripts").items()
    return {name: str(body) for name, body in scripts if NO_TEST not in str(body)}


def _members(project: ProjectFiles) -> Iterator[Task]:
    """One script over all members of a workspace that have it."""
    if "workspaces" not in project.package and not project.has("pnpm-workspace.yaml"):
        return
    line = manager_of(project).members
    for path in project.below("*/package.json"):
        member = ProjectFiles(project.files, project.base + path.removesuffix("package.json"))
        for name, body in _bodies(member).items():
            yield Task(name, line.format(name), body, is_script=True)


def _pyproject(project: ProjectFiles) -> Iterator[Task]:
    tool = table(project.pyproject, "tool")
    inside = "poethepoet" in python_packages(project)
    start = python_start(project, "poethepoet") if inside else ""
    for name in table(tool, "poe", "tasks"):
        yield Task(name, f"{start}poe {name}")
    for name in table(tool, "pdm", "scripts"):
        yield Task(name, f"pdm run {name}")
    for environment, settings in table(tool, "hatch", "envs").items():
        for name in table(settings, "scripts"):
            label = name if environment == "default" else f"{environment}:{name}"
            yield Task(name, f"hatch run {label}")


def _make(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("GNUmakefile", "makefile", "Makefile")
    text = project.text(path) if path else ""
    for rule in re.finditer(
        r"^([\w.-]+(?: [\w.-]+)*)\s*::?(?!=)(.*(?:\n\t.*)*)", text, re.MULTILINE
    ):
        for name in rule[1].split():
            yield Task(name, f"make {name}", rule[2])
    if not path and project.first("Makefile.am", "Makefile.in", "configure.ac"):
        yield Task("check", "make check")


def _just(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("justfile", "Justfile", ".justfile")
    text = project.text(path) if path else ""
    # A parameter without a default (`name`, `+name`) has to be given: no gate can do that.
    pattern = r"^@?([\w-]+)(?:[ \t]+(?:\*\w+|[*+$]?\w+=\S+))*[ \t]*:(?!=)(.*(?:\n[ \t]+.*)*)"
    for recipe in re.finditer(pattern, text, re.MULTILINE):
        yield Task(recipe[1], f"just {recipe[1]}", recipe[2])


def _taskfile(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("Taskfile.y*ml", "taskfile.y*ml", "Taskfile.dist.y*ml")
    tasks = table(project.yaml(path), "tasks") if path else {}
    for name, body in tasks.items():
        yield Task(str(name), f"task {name}", str(body))


def _mise(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("mise.toml", ".mise.toml")
    for name, body in table(project.toml(path), "tasks").items() if path else ():
        yield Task(name, f"mise run {name}", str(body))


def _tox(project: ProjectFiles) -> Iterator[Task]:
    """`py` is the interpreter at hand: a whole matrix belongs to CI."""
    bodies = _tox_bodies(project)
    base = bodies.get("", "")
    if "" in bodies:
        yield Task("test", "tox -e py", base)
    for name, body in bodies.items():
        if name and not name.startswith("py"):
            yield Task(name, f"tox -e {name}", body or base)


def _tox_bodies(project: ProjectFiles) -> Mapping[str, str]:
    """The commands of each environment, those that the others inherit under no name."""
    native = table(project.pyproject, "tool", "tox") or project.toml("tox.toml")
    bodies = {name: _lines(inner) for name, inner in table(native, "env").items()}
    if native:
        bodies[""] = _lines(native.get("env_run_base"))
    for section, keys in project.ini("tox.ini").items():
        if section == "testenv" or section.startswith("testenv:"):
            text = re.sub(r"\\\n\s*", " ", keys.get("commands", ""))
            bodies[section[len("testenv:") :]] = _filled(text)
    return bodies


def _lines(environment: object) -> str:
    """The commands of tox's TOML, where each is a list of words."""
    commands = dig(environment, "commands")
    rows = commands if isinstance(commands, list) else []
    return _filled("\n".join(" ".join(strings(row)) for row in rows))


def _filled(text: str) -> str:
    """A text with what tox fills in itself; a variable that only it knows stays."""
    while True:
        filled = _FILLED.sub(lambda m: "python" if m[2] else "." if m[3] else m[1] or "", text)
        if filled == text:
            return text
        text = filled


def _nox(project: ProjectFiles) -> Iterator[Task]:
    pattern = r"^@(?:\w+\.)*session\b(.*?)^def (\w+)"
    for session in re.finditer(pattern, project.text("noxfile.py"), re.MULTILINE | re.DOTALL):
        named = re.search(r"\bname=[\"']([^\"']+)", session[1])
        name = named[1] if named else session[2]
        yield Task(name, f"nox -s {name}")


def _composer(project: ProjectFiles) -> Iterator[Task]:
    for name in table(project.json("composer.json"), "scripts"):
        yield Task(name, f"composer run-script {name}")
