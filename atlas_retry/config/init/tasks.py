"""Task runners: make, just, Task, tox, nox, and scripts in pyproject.toml and composer.json.

A target stands in only where no tool was found for its slot: the tool itself has a fixer and tells
its problems apart, the target does not.
"""

import ast
import re
import warnings
from collections.abc import Iterator, Mapping

from msgspec import Struct

from atlas_retry.config.init import python
from atlas_retry.config.init.project import ProjectFiles, dig, strings, table
from atlas_retry.config.init.values import Need, Proposed, Slot

NAMES = {
    Slot.FORMAT: "format fmt reformat fix",
    Slot.LINT: "lint linter lints check-lint style flake8 cs analyse",
    Slot.TYPES: "typecheck type-check types typing mypy pyright tsc",
    Slot.TEST: "test tests unit unittest unit-test unit-tests test-unit check",
}
TIMEOUTS = {Slot.TEST: "15m"}

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
    """A target of a task runner."""

    name: str
    run: str
    need: Need
    body: str = ""
    """What it starts, a command a line, as far as the file says it."""


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The first target of each runner for each slot."""
    for where, found in _sources(project):
        tasks = {task.name.lower().replace("_", "-"): task for task in found}
        for slot, names in NAMES.items():
            known = next((tasks[name] for name in names.split() if name in tasks), None)
            if known:
                yield _proposed(slot, where, known)


def body_of(project: ProjectFiles, runner: str, name: str) -> str:
    """What a target starts, by its runner and its name; empty for one that is not there."""
    for _, found in _sources(project):
        for task in found:
            words = task.run.split()
            if runner in words and name in (task.name, words[-1]):
                return task.body
    return ""


def _sources(project: ProjectFiles) -> Iterator[tuple[str, Iterator[Task]]]:
    yield "pyproject.toml", (Task(*script) for script in python.scripts(project))
    yield "composer.json", _composer(project)
    yield "noxfile.py", _nox(project)
    yield "the tox configuration", _tox(project)
    yield "the justfile", _just(project)
    yield "mise.toml", _mise(project)
    yield "the Taskfile", _taskfile(project)
    yield "the Makefile", _make(project)


def _proposed(slot: Slot, where: str, task: Task) -> Proposed:
    return Proposed(
        slot=slot,
        run=task.run,
        reason=f"{where} has `{task.name}`",
        needs=(task.need,),
        timeout=TIMEOUTS.get(slot),
        task=True,
        body=task.body,
    )


def _make(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("GNUmakefile", "makefile", "Makefile")
    text = project.text(path) if path else ""
    need = Need(program="make", remedy="install make")
    for found in re.finditer(
        r"^([\w.-]+(?: [\w.-]+)*)\s*::?(?!=)(.*(?:\n\t.*)*)", text, re.MULTILINE
    ):
        for name in found[1].split():
            yield Task(name, f"make {name}", need, found[2])
    if not path and project.first("Makefile.am", "Makefile.in", "configure.ac"):
        built = Need(path="Makefile", remedy="run ./configure first")
        yield Task("check", "make check", built)


def _just(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("justfile", "Justfile", ".justfile")
    text = project.text(path) if path else ""
    need = Need(program="just", remedy="install just")
    # A parameter without a default (`name`, `+name`) has to be given: no gate can do that.
    pattern = r"^@?([\w-]+)(?:[ \t]+(?:\*\w+|[*+$]?\w+=\S+))*[ \t]*:(?!=)(.*(?:\n[ \t]+.*)*)"
    for found in re.finditer(pattern, text, re.MULTILINE):
        yield Task(found[1], f"just {found[1]}", need, found[2])


def _taskfile(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("Taskfile.y*ml", "taskfile.y*ml", "Taskfile.dist.y*ml")
    tasks = table(project.yaml(path), "tasks") if path else {}
    need = Need(program="task", remedy="install Task (taskfile.dev)")
    for name, body in tasks.items():
        yield Task(str(name), f"task {name}", need, str(body))


def _mise(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("mise.toml", ".mise.toml")
    need = Need(program="mise", remedy="install mise")
    for name, body in table(project.toml(path), "tasks").items() if path else ():
        yield Task(name, f"mise run {name}", need, str(body))


def _tox(project: ProjectFiles) -> Iterator[Task]:
    """`py` is the interpreter at hand: a whole matrix belongs to CI."""
    need = Need(program="tox", remedy="pip install tox")
    bodies = _tox_bodies(project)
    base = bodies.get("", "")
    if "" in bodies:
        yield Task("test", "tox -e py", need, base)
    for name, body in bodies.items():
        if name and not name.startswith("py"):
            yield Task(name, f"tox -e {name}", need, body or base)


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
    try:
        with warnings.catch_warnings(action="ignore"):
            module = ast.parse(project.text("noxfile.py"))
    except (SyntaxError, ValueError, RecursionError):
        return
    need = Need(program="nox", remedy="pip install nox")
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            names = map(_session, node.decorator_list)
            session = next((name for name in names if name is not None), None)
            if session is not None:
                name = session or node.name
                yield Task(name, f"nox -s {name}", need)


def _session(decorator: ast.expr) -> str | None:
    """The name that a `nox.session` decorator gives, empty if the function's own; None: no nox."""
    call = decorator if isinstance(decorator, ast.Call) else None
    target = call.func if call else decorator
    if not ast.unparse(target).endswith("session"):
        return None
    for keyword in call.keywords if call else ():
        if keyword.arg == "name" and isinstance(keyword.value, ast.Constant):
            return str(keyword.value.value)
    return ""


def _composer(project: ProjectFiles) -> Iterator[Task]:
    need = Need(program="composer", remedy="install composer")
    for name in table(project.json("composer.json"), "scripts"):
        yield Task(name, f"composer run-script {name}", need)
