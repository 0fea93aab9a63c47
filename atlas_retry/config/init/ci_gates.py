"""From the lines that CI runs to gates: literally, with the fixer and the target's work beside."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from atlas_retry.config.init import tasks
from atlas_retry.config.init.ci import CiLine, lines_of
from atlas_retry.config.init.commands import (
    ASSIGNED,
    UnderstoodCommand,
    bare,
    only_asked_to_check,
    slot_of_name,
    tool_name,
    understand,
)
from atlas_retry.config.init.project import ProjectFiles
from atlas_retry.config.init.runners import NODE
from atlas_retry.config.init.tasks import FIXES, Task
from atlas_retry.config.init.values import Proposed, Slot

TARGETS = (
    r"(?P<start>g?make) (?:-\S+ )*(?P<name>[\w./-]+)",
    r"(?P<start>just|task|mise run|rake|composer(?: run-script| run)?) (?P<name>[\w:-]+)",
    r"(?P<start>poe|pdm run|hatch run) (?:\S+:)?(?P<name>[\w:-]+)",
    r"(?P<start>rake)(?P<name>)$",
    r"(?P<start>tox)(?: run| r)?(?:.* -[ef] ?(?P<name>[\w.-]+)|$)?",
    r"(?P<start>nox)(?:.*(?: -s| -e| --sessions?)[ =](?P<name>[\w.-]+)|$)?",
    r"(?P<start>p?npm|yarn|bun)(?: run(?:-script)?| workspaces \w+| -\S+)* (?P<name>[\w:.-]+)",
    r"(?P<start>(?:(?:ba)?sh )?\.?/?(?:[\w.-]+/)*)(?P<name>[\w-]+)(?:\.(?:sh|bash|py))?(?= |$)",
    r"(?P<start>(?:bun|node|ruby) (?:[\w.-]+/)+)(?P<name>[\w-]+)\.\w+(?= |$)",
)
"""How a line calls what the project itself names."""
NEVER = re.compile(
    r"""
      (?:npm|pnpm|yarn|bun)[ ](?:install|i|ci|add|publish|pack|dlx|config|cache|audit|version)\b
    | make[ ](?:install|deps|setup|clean)
    | (?:pdm|composer|poetry|uv)[ ](?:install|sync|update|require)
    """,
    re.VERBOSE,
)
"""Lines that install, publish or clean: they check nothing."""
REPORTED = re.compile(r"^python[\d.]* -m (?=pytest)| (?:-v+|-q+|--verbose|--quiet)(?= |$)")
"""What changes only how a line reports: two lines that differ in it are one gate."""
INTERPRETERS = ("sh", "bash", "bun", "node", "ruby")
PREPARES = re.compile(r"setup|install|prepare|deps|init|start|build|clean")
"""The name of a script that makes ready what others check."""
CHECKING = re.compile(r".*(?:check|verify|validate)(?![a-z])")
"""The name of a target that checks something, whatever that is."""
OPTIONAL = re.compile(r"\|\| *(?:true|:)\s*$")


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The gates that CI runs, each once."""
    known: set[tuple[str, str]] = set()
    for line in map(_settled, lines_of(project)):
        gate = _gate(project, line)
        same = (line.cwd, REPORTED.sub("", re.sub(r"^(p?npm|yarn|bun) run ", r"\1 ", line.line)))
        if gate and not line.is_opaque and same not in known:
            known.add(same)
            yield gate


def not_understood(project: ProjectFiles) -> Iterator[str]:
    """Checks of CI's that only CI can run: a variable of its own stands in them."""
    opaque = (line for line in map(_settled, lines_of(project)) if line.is_opaque)
    yield from {f"`{one.line}` of {_file(one)}": None for one in opaque if _gate(project, one)}


def _file(line: CiLine) -> str:
    return line.where.rpartition("/")[2]


def _settled(line: CiLine) -> CiLine:
    """One interpreter of a matrix: the one at hand."""
    plain = re.sub(
        r"(\btox\b.* -e ?)[\"']?(?:py\d[\w.-]*|\$\{?\w+\}?|py)[\"']?", r"\1py", line.line
    )
    plain = re.sub(r"(\bnox\b.* (?:-s|--session)[ =])[\"']?([\w-]+)-\d[\d.]*[\"']?", r"\1\2", plain)
    return replace(line, line=plain)


def _gate(project: ProjectFiles, line: CiLine) -> Proposed | None:
    if NEVER.search(line.line) or OPTIONAL.search(line.line):
        return None
    here = project.at(line.cwd)
    known, task = understand(line.line), None
    if not known:
        known, task = _target(here, line.line)
    known = known or only_asked_to_check(line.line)
    if not known:
        return None
    body = task.body if task else ""
    writes = re.search(r"(?:--write|--fix|:fix|--apply)\b", f"{line.line} {body}")
    return Proposed(
        slot=known.slot,
        run=line.line,
        fix=task.fix if task and known.slot in FIXES else None,
        reason=f"{_file(line)} runs this line",
        tool=known.tool,
        language=known.language,
        env=line.env,
        cwd=line.cwd,
        writes=bool(writes) and known.slot not in (Slot.FORMAT, Slot.HOOKS),
        in_ci=True,
        body=body,
    )


def _target(project: ProjectFiles, line: str) -> tuple[UnderstoodCommand | None, Task | None]:
    """What a target, script or session does: by its body's hooks, its name, its body."""
    for rest in (re.sub(rf"^{ASSIGNED}", "", line), bare(line)):
        for pattern in TARGETS:
            call = re.match(pattern, rest)
            task = _called(project, call, rest) if call else None
            if call and task:
                return _work_of(call, task), task
    return None, None


def _called(project: ProjectFiles, call: re.Match[str], line: str) -> Task | None:
    """What stands behind a name or a path; None where nothing of the project has it."""
    runner, name = call["start"].partition(" ")[0], call["name"] or "test"
    words = line.split()
    if runner in NODE and "/" not in words[1]:
        return tasks.find(project, runner, {"t": "test"}.get(name, name))
    if not (runner.endswith("/") or runner in ("", *INTERPRETERS)):
        return tasks.find(project, runner, name) or Task(name, line)
    path = words[1] if runner in INTERPRETERS else words[0]
    is_path = runner in INTERPRETERS or "/" in path
    path = path.removeprefix("./")
    return Task(name, line, project.text(path)) if is_path and project.has(path) else None


def _work_of(call: re.Match[str], task: Task) -> UnderstoodCommand | None:
    inner = [u for u in map(understand, re.split(r"&&|;|\n|@", task.body)) if u]
    slot = Slot.HOOKS if any(u.slot is Slot.HOOKS for u in inner) else slot_of_name(task.name)
    slot = slot or _slot_of_body(call, task, inner)
    if slot is None:
        return None
    named = tool_name(f"{call['start'].partition(' ')[0]} {task.name}")
    tool = next((u.tool for u in inner if u.slot is slot), named)
    return UnderstoodCommand(slot=slot, tool=tool, language="")


def _slot_of_body(call: re.Match[str], task: Task, inner: list[UnderstoodCommand]) -> Slot | None:
    if inner:
        return inner[0].slot
    if CHECKING.match(task.name):
        return Slot.LINT
    if call["start"] in ("tox", "nox"):
        return Slot.TEST
    # a script that only its folder says the work of: `scripts/test/zones.sh`
    folders = re.findall(r"[\w-]+(?=/)", call["start"])
    is_work = folders and not PREPARES.search(task.name)
    return slot_of_name(folders[-1]) if is_work else None
