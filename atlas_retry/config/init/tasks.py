"""Tasks that a project defines: scripts of package.json, targets of make, just, tox, nox ...

A script is as good as its tool. Other targets are used only if their slot has no tool, because
a tool has a fixer and readable output.
"""

import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from msgspec import Struct

from atlas_retry.config.init.commands import (
    WORDS,
    fixer_of,
    parts_of_name,
    slot_of_name,
    understand,
)
from atlas_retry.config.init.dependencies import NODE, manager_of, python_packages, python_start
from atlas_retry.config.init.values import Proposed, Slot
from atlas_retry.config.project import MAKEFILES, ProjectFiles, Table, dig, strings, table
from atlas_retry.patterns import regex

SLOTS = (Slot.FORMAT, Slot.LINT, Slot.TYPES, Slot.TEST)
FIX_WORDS = {"fix", "write"}
"""Words in the name of a script that changes files."""
WRITES = regex(r"--(?:write|fix|apply|apply-unsafe)\b")
ONLY_CHECKS = regex(r"--check\b|--list-different\b| -l\b|--ci\b")
NO_TEST = "no test specified"
WORDS_IN_ORDER = " ".join(WORDS.values()).split()


class Task(Struct, frozen=True):
    """A script, or a target of a task runner."""

    name: str
    run: str
    body: str = ""
    """Commands that it runs, one a line, if the file has them."""
    language: str = ""
    """Language of a script in a manifest."""
    fix: str | None = None
    shown: str = ""
    """What the file has, if it is not the name."""


def propose(project: ProjectFiles) -> list[Proposed]:
    """The best target of each runner for each slot; at most one script for a language."""
    done: set[tuple[Slot, str]] = set()
    proposals: list[Proposed] = []
    for where, targets in _sources(project):
        tasks = list(targets)
        for slot in SLOTS:
            task = min(filter(partial(_fits, slot), tasks), key=_rank, default=None)
            if not task or (slot, task.language) in done:
                continue
            is_script = bool(task.language)
            known = understand(task.body)
            writes = is_script and slot is not Slot.FORMAT and bool(WRITES.search(task.body))
            proposals.append(
                Proposed(
                    slot=slot,
                    run=task.run,
                    reason=f"{where} has `{task.shown or task.name}`",
                    tool=known.tool if known and is_script else "",
                    language=task.language,
                    fix=None if writes else task.fix,
                    writes=writes,
                    task=not is_script,
                    body=task.body,
                )
            )
        done = {(one.slot, one.language) for one in proposals if one.language}
    return proposals


def find(project: ProjectFiles, runner: str, words: Iterable[str]) -> Task | None:
    """The target that a line calls, by its runner and the words after it."""
    every = [*chain.from_iterable(targets for _, targets in _sources(project))]
    for word in words:
        for task in every:
            own = task.run.split()
            is_of_runner = runner in own or (runner in NODE and task.language == "js")
            if is_of_runner and word in (task.name, own[-1]):
                return task
    return None


def default(project: ProjectFiles, runner: str) -> Task | None:
    """The target that a runner starts without a name: the first one of make and just."""
    sources = {"make": _make, "gmake": _make, "just": _just}
    every = sources[runner](project) if runner in sources else iter(())
    return next((task for task in every if not task.name.startswith(".")), None)


def _fits(slot: Slot, task: Task) -> bool:
    """Whether the name fits the slot and says nothing else."""
    if task.name == "check":
        known = understand(task.body)
        is_types = slot is Slot.TYPES and known is not None and known.slot is Slot.TYPES
        return is_types or (slot is Slot.TEST and not task.language)
    extra = FIX_WORDS if slot is Slot.FORMAT else set()
    plain = {*WORDS_IN_ORDER, "check", "all", "static", "js", "ts"} | extra
    is_plain = plain.issuperset(parts_of_name(task.name))
    return is_plain and slot_of_name(task.name) is slot


def _rank(task: Task) -> tuple[bool, int, int]:
    """Sort key, best first: may change files, has few words, has the plainest word."""
    parts = parts_of_name(task.name)
    places = [WORDS_IN_ORDER.index(part) for part in parts if part in WORDS_IN_ORDER]
    plainest = min(places, default=len(WORDS_IN_ORDER))
    return bool(ONLY_CHECKS.search(task.body)), len(parts), plainest


def _sources(project: ProjectFiles) -> Iterator[tuple[str, Iterator[Task]]]:
    composer = table(project.json("composer.json"), "scripts").items()
    yield "package.json", _scripts(project)
    yield "a member's package.json", _members(project)
    yield (
        "composer.json",
        (Task(k, f"composer run-script {k}", "\n".join(strings(v)), "php") for k, v in composer),
    )
    yield "pyproject.toml", _pyproject(project)
    yield "noxfile.py", _nox(project)
    yield "the tox configuration", _tox(project)
    yield "the justfile", _just(project)
    yield "the Taskfile", _taskfile(project)
    yield "the Makefile", _make(project)
    yield "the tox configuration", _inside_tox(project)


def _scripts(project: ProjectFiles) -> Iterator[Task]:
    manager = manager_of(project)
    scripts = _bodies(project)
    for name, body in scripts.items():
        run = manager.script(name)
        fixed = fixer_of(body) or ""
        option = fixed.removeprefix(f"{body} ") if fixed.startswith(f"{body} ") else ""
        own = _fix_script(name, scripts)
        known = f"{run} {manager.dash}{option}" if option and "&" not in body else None
        yield Task(name, run, body, "js", manager.script(own) if own else known)


def _fix_script(name: str, scripts: Iterable[str]) -> str | None:
    """The script that fixes what the script with this name checks."""
    slot = slot_of_name(name)
    if slot not in (Slot.FORMAT, Slot.LINT) or not FIX_WORDS.isdisjoint(parts_of_name(name)):
        return None
    fixing = [script for script in scripts if not FIX_WORDS.isdisjoint(parts_of_name(script))]
    alike = (script for script in fixing if slot_of_name(script) is slot)
    return next(alike, "fix" if slot is Slot.LINT and "fix" in fixing else None)


def _bodies(project: ProjectFiles) -> dict[str, str]:
    scripts = table(project.package, "scripts").items()
    return {name: str(body) for name, body in scripts if NO_TEST not in str(body)}


def _members(project: ProjectFiles) -> Iterator[Task]:
    """Scripts of members, run in all members of a workspace that have them."""
    if "workspaces" not in project.package and not project.has("pnpm-workspace.yaml"):
        return
    line = manager_of(project).members
    for path in project.below("*/package.json"):
        for name, body in _bodies(project.at(path.removesuffix("/package.json"))).items():
            yield Task(name, line.format(name), body, "js")


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


def _nox(project: ProjectFiles) -> Iterator[Task]:
    pattern = r"^@(?:\w+\.)*session\b(.*?)^def (\w+)"
    for session in re.finditer(pattern, project.text("noxfile.py"), re.MULTILINE | re.DOTALL):
        named = re.search(r"\bname=[\"']([^\"']+)", session[1])
        name = named[1] if named else session[2]
        yield Task(name, f"nox -s {name}")


def _tox(project: ProjectFiles) -> Iterator[Task]:
    """Environments of tox; `py` is the current interpreter, as a whole matrix is for CI."""
    native = _native_tox(project)
    bodies = {name: _commands(inner) for name, inner in table(native, "env").items()}
    for section, keys in project.ini("tox.ini").items():
        if section == "testenv" or section.startswith("testenv:"):
            bodies[section[len("testenv:") :]] = keys.get("commands", "")
    base = bodies.pop("", _commands(table(native, "env_run_base")))
    if base or native or project.has("tox.ini"):
        yield Task("test", "tox -e py", base)
    for name, body in bodies.items():
        if not name.startswith("py"):
            yield Task(name, f"tox -e {name}", body or base)


def _native_tox(project: ProjectFiles) -> Table:
    return table(project.pyproject, "tool", "tox") or project.toml("tox.toml")


def _commands(environment: object) -> str:
    """The lines of an environment in TOML: lists of words."""
    listed = dig(environment, "commands")
    return "\n".join(" ".join(strings(line)) for line in listed) if isinstance(listed, list) else ""


def _inside_tox(project: ProjectFiles) -> Iterator[Task]:
    """The tests that tox runs, by the tools of this environment: tox may be missing."""
    ini = project.ini("tox.ini").get("testenv", {})
    base = table(_native_tox(project), "env_run_base")
    body = ini.get("commands", "") or _commands(base)
    if "changedir" in ini or "change_dir" in ini or "change_dir" in base:
        return
    for line in re.sub(r"\\\n\s*", " ", body).splitlines():
        # its places filled in as for an environment that is active
        plain = re.sub(r"\{posargs(?::([^{}]*))?\}", r"\1", line.strip().removeprefix("- "))
        plain = re.sub(r"\{(?:toxinidir|tox_root)\}", ".", plain.replace("{envpython}", "python"))
        plain = " ".join(plain.split())
        known = understand(plain)
        if known and known.slot is Slot.TEST and "{" not in plain:
            yield Task("test", plain, plain, shown=line.strip())
            return


def _just(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("justfile", "Justfile", ".justfile")
    text = project.text(path) if path else ""
    # a parameter without a default (`name`, `+name`) needs an argument, which no gate has
    pattern = r"^@?([\w-]+)(?:[ \t]+(?:\*\w+|[*+$]?\w+=\S+))*[ \t]*:(?!=)(.*(?:\n[ \t]+.*)*)"
    for recipe in re.finditer(pattern, text, re.MULTILINE):
        yield Task(recipe[1], f"just {recipe[1]}", recipe[2])


def _taskfile(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("Taskfile.y*ml", "taskfile.y*ml", "Taskfile.dist.y*ml")
    tasks = table(project.yaml(path), "tasks") if path else {}
    for name, body in tasks.items():
        yield Task(str(name), f"task {name}", str(body))


def _make(project: ProjectFiles) -> Iterator[Task]:
    """The targets; one that only builds a program of its name, which runs the tests, runs it."""
    path = project.first(*MAKEFILES)
    text = project.text(path) if path else ""
    for rule in re.finditer(
        r"^((?:[\w./-]|\$\(\w+\))+(?: [\w./-]+)*)\s*::?(?!=)(.*(?:\n\t.*)*)", text, re.MULTILINE
    ):
        for name in rule[1].split():
            own = rf"(?:{re.escape(name)}|\$@)(?!\S)"
            is_built = re.search(rf"-o {own}", rule[2]) and slot_of_name(name) is Slot.TEST
            is_run = re.search(rf"(?m)(?:^\t[@-]*|&& *|; *)\./{own}", rule[2])
            if is_built and not is_run:
                yield Task("test", f"make {name} && ./{name}", rule[2], shown=name)
            else:
                yield Task(name, f"make {name}", rule[2], shown=name)
    if not path and project.first("Makefile.am", "Makefile.in", "configure.ac"):
        yield Task("check", "make check")
