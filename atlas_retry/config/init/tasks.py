"""Task runners: make, just, Task, tox, nox, and scripts in pyproject.toml and composer.json.

A target stands in only where no tool was found for its slot: the tool itself has a fixer and tells
its problems apart, the target does not.
"""

import ast
import re
import warnings
from collections.abc import Iterator

from atlas_retry.config.init import python
from atlas_retry.config.init.project import ProjectFiles, table
from atlas_retry.config.init.values import Need, Proposed, Slot

NAMES = {
    Slot.FORMAT: "format fmt reformat fix",
    Slot.LINT: "lint linter lints check-lint style flake8 cs analyse",
    Slot.TYPES: "typecheck type-check types typing mypy pyright tsc",
    Slot.TEST: "test tests unit unittest unit-test unit-tests test-unit check",
}
TIMEOUTS = {Slot.TEST: "15m"}

Task = tuple[str, str, Need, str] | tuple[str, str, Need]
"""Name, how to run it, what it needs, and what it starts if it does not install that itself."""


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The first target of each runner for each slot."""
    for where, found in _sources(project):
        tasks = {task[0].lower().replace("_", "-"): task for task in found}
        for slot, names in NAMES.items():
            known = next((tasks[name] for name in names.split() if name in tasks), None)
            if known:
                yield _proposed(slot, where, known)


def body_of(project: ProjectFiles, run: str) -> str:
    """What a target starts, by the line that runs it; empty for one that is not there."""
    tasks = (task for _, found in _sources(project) for task in found if task[1] == run)
    return "".join(next(tasks, ("", "", Need()))[3:])


def _sources(project: ProjectFiles) -> Iterator[tuple[str, Iterator[Task]]]:
    yield "pyproject.toml", python.scripts(project)
    yield "composer.json", _composer(project)
    yield "noxfile.py", _nox(project)
    yield "the tox configuration", _tox(project)
    yield "the justfile", _just(project)
    yield "mise.toml", _mise(project)
    yield "the Taskfile", _taskfile(project)
    yield "the Makefile", _make(project)


def _proposed(slot: Slot, where: str, task: Task) -> Proposed:
    name, run, need, *body = task
    return Proposed(
        slot=slot,
        run=run,
        reason=f"{where} has `{name}`",
        needs=(need,),
        timeout=TIMEOUTS.get(slot),
        task=True,
        body="".join(body),
    )


def _make(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("GNUmakefile", "makefile", "Makefile")
    text = project.text(path) if path else ""
    need = Need(program="make", remedy="install make")
    for found in re.finditer(
        r"^([\w.-]+(?: [\w.-]+)*)\s*::?(?!=)(.*(?:\n\t.*)*)", text, re.MULTILINE
    ):
        for name in found[1].split():
            yield name, f"make {name}", need, found[2]
    if not path and project.first("Makefile.am", "Makefile.in", "configure.ac"):
        yield "check", "make check", Need(path="Makefile", remedy="run ./configure first")


def _just(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("justfile", "Justfile", ".justfile")
    text = project.text(path) if path else ""
    need = Need(program="just", remedy="install just")
    # A parameter without a default (`name`, `+name`) has to be given: no gate can do that.
    pattern = r"^@?([\w-]+)(?:[ \t]+(?:\*\w+|[*+$]?\w+=\S+))*[ \t]*:(?!=)(.*(?:\n[ \t]+.*)*)"
    for found in re.finditer(pattern, text, re.MULTILINE):
        yield found[1], f"just {found[1]}", need, found[2]


def _taskfile(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("Taskfile.y*ml", "taskfile.y*ml", "Taskfile.dist.y*ml")
    tasks = table(project.yaml(path), "tasks") if path else {}
    need = Need(program="task", remedy="install Task (taskfile.dev)")
    for name, body in tasks.items():
        yield str(name), f"task {name}", need, str(body)


def _mise(project: ProjectFiles) -> Iterator[Task]:
    path = project.first("mise.toml", ".mise.toml")
    need = Need(program="mise", remedy="install mise")
    for name, body in table(project.toml(path), "tasks").items() if path else ():
        yield name, f"mise run {name}", need, str(body)


def _tox(project: ProjectFiles) -> Iterator[Task]:
    """`py` is the interpreter at hand: a whole matrix belongs to CI."""
    ini = project.ini("tox.ini")
    native = table(project.pyproject, "tool", "tox") or project.toml("tox.toml")
    need = Need(program="tox", remedy="pip install tox")
    if "testenv" in ini or native:
        yield "test", "tox -e py", need
    named = [name.partition(":")[2] for name in ini if name.startswith("testenv:")]
    for name in (*named, *table(native, "env")):
        if not name.startswith("py"):
            yield name, f"tox -e {name}", need


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
                yield name, f"nox -s {name}", need


def _session(decorator: ast.expr) -> str | None:
    """The name that a `nox.session` decorator gives, empty if the function's own; None: no nox."""
    call = decorator if isinstance(decorator, ast.Call) else None
    target = call.func if call else decorator
    if not ast.unparse(target).endswith("session"):
        return None
    given = [
        k.value.value
        for k in (call.keywords if call else [])
        if k.arg == "name" and isinstance(k.value, ast.Constant)
    ]
    return str(given[0]) if given else ""


def _composer(project: ProjectFiles) -> Iterator[Task]:
    need = Need(program="composer", remedy="install composer")
    for name in table(project.json("composer.json"), "scripts"):
        yield name, f"composer run-script {name}", need
