"""Gates from the commands of CI, taken literally, with fixer and tool."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from atlas_retry.config.init import tasks
from atlas_retry.config.init.ci import CiLine, lines_of
from atlas_retry.config.init.commands import (
    UnderstoodCommand,
    installs,
    only_asked_to_check,
    slot_of_name,
    understand,
)
from atlas_retry.config.init.project import ProjectFiles
from atlas_retry.config.init.runners import NODE
from atlas_retry.config.init.tasks import Task
from atlas_retry.config.init.values import Proposed, Slot
from atlas_retry.diagnostics.tools import ASSIGNED, bare
from atlas_retry.patterns import regex

RUNNERS = {"make", "gmake", "just", "task", "rake", "composer", "poe", "pdm", "hatch", *NODE}
WHOLE = {"tox", "nox", "rake"}
"""Runners that run tests unless a target is given."""
INTERPRETERS = {"sh", "bash", "bun", "node", "ruby"}
NEVER = regex(r"""(?x)
      (?:npm|pnpm|yarn|bun)[ ](?:publish|pack|dlx|config|cache|audit|version)\b
    | make[ ](?:install|deps|setup|clean)
    | \|\|[ ]*(?:true|:)\s*$
    """)
"""Lines that check nothing: they publish or clean, or ignore the exit code."""
REPORTED = regex(r"^python[\d.]* -m (?=pytest)| (?:-v+|-q+|--verbose|--quiet)(?= |$)")
"""Options that change only the output: lines that differ only in these are one gate."""
PREPARES = regex(r"setup|install|prepare|deps|init|start|build|clean")
"""Name of a script that only prepares."""
CHECKING = regex(r".*(?:check|verify|validate)(?![a-z])")
"""Name of a target that checks something."""


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The gates that CI runs, without duplicates."""
    known: set[tuple[str, str]] = set()
    for line in map(_settled, lines_of(project)):
        gate = None if line.is_opaque else _gate(project, line)
        same = (line.cwd, REPORTED.sub("", re.sub(r"^(p?npm|yarn|bun) run ", r"\1 ", line.line)))
        if gate and same not in known:
            known.add(same)
            yield gate


def not_understood(project: ProjectFiles) -> Iterator[str]:
    """Checks that only CI can run, because they have a variable of CI."""
    opaque = (line for line in map(_settled, lines_of(project)) if line.is_opaque)
    yield from {f"`{one.line}` of {_file(one)}": None for one in opaque if _gate(project, one)}


def _file(line: CiLine) -> str:
    return line.where.rpartition("/")[2]


def _settled(line: CiLine) -> CiLine:
    """The line with the current interpreter instead of one from a matrix."""
    plain = re.sub(
        r"(\btox\b.* -e ?)[\"']?(?:py\d[\w.-]*|\$\{?\w+\}?|py)[\"']?", r"\1py", line.line
    )
    plain = re.sub(r"(\bnox\b.* (?:-s|--session)[ =])[\"']?([\w-]+)-\d[\d.]*[\"']?", r"\1\2", plain)
    return replace(line, line=plain)


def _gate(project: ProjectFiles, line: CiLine) -> Proposed | None:
    if NEVER.search(line.line) or installs(line.line):
        return None
    known, task = understand(line.line), None
    if not known:
        task = called(project.at(line.cwd), line.line)
        known = _work_of(task) if task else only_asked_to_check(line.line)
    if not known:
        return None
    body = task.body if task else ""
    writes = re.search(r"(?:--write|--fix|:fix|--apply)\b", f"{line.line} {body}")
    return Proposed(
        slot=known.slot,
        run=line.line,
        fix=task.fix if task and known.slot in (Slot.FORMAT, Slot.LINT) else None,
        reason=f"{_file(line)} runs this line",
        tool=known.tool,
        language=known.language,
        env=line.env,
        cwd=line.cwd,
        writes=bool(writes) and known.slot not in (Slot.FORMAT, Slot.HOOKS),
        in_ci=True,
        body=body,
    )


def called(project: ProjectFiles, line: str) -> Task | None:
    """The target, script or session that a line calls, if the project has it."""
    plain = re.sub(rf"^{ASSIGNED}", "", line)
    calls = (_target(project, line) for line in dict.fromkeys((plain, bare(line))))
    return next(filter(None, calls), None)


def _target(project: ProjectFiles, line: str) -> Task | None:
    runner, *words = line.split()
    names = [word.strip("\"'") for word in words if not word.startswith("-")]
    named = _named(project, runner, names) if runner in RUNNERS | WHOLE else None
    path = names[0] if runner in INTERPRETERS and names else runner
    path = path.removeprefix("./")
    is_script = "/" in path and project.has(path)
    return named or (Task(path, line, project.text(path)) if is_script else None)


def _named(project: ProjectFiles, runner: str, names: list[str]) -> Task | None:
    """The task with one of these names; a script of package.json must exist."""
    meant = ["test" if (runner, name) == ("npm", "t") else name for name in names]
    task = tasks.find(project, runner, meant)
    if task or runner in NODE:
        return task
    if runner in WHOLE:
        meant = meant or ["test"]
    return Task(meant[-1], runner) if meant else None


def _work_of(task: Task) -> UnderstoodCommand | None:
    """Tool and purpose of a target."""
    inner = [u for u in map(understand, re.split(r"&&|;|\n|@", task.body)) if u]
    slot = _slot_of(task, [understood.slot for understood in inner])
    if slot is None:
        return None
    tool = next((u.tool for u in inner if u.slot is slot), f"{task.run.split()[0]} {task.name}")
    return UnderstoodCommand(slot=slot, tool=tool, language="")


def _slot_of(task: Task, inner: list[Slot]) -> Slot | None:
    """The slot by hooks in the body, by name, by body, or by the folder of a script."""
    *folders, name = task.name.split("/")
    name = name.partition(".")[0]
    is_work = folders and not PREPARES.search(name)
    candidates = (
        Slot.HOOKS if Slot.HOOKS in inner else None,
        slot_of_name(name),
        *inner[:1],
        Slot.LINT if CHECKING.match(name) else None,
        slot_of_name(folders[-1]) if is_work else None,
        Slot.TEST if task.run in WHOLE else None,
    )
    return next(filter(None, candidates), None)
