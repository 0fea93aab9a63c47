"""From the lines that CI runs to gates: literally, with the fixer and the target's work beside."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.init import javascript, tasks
from atlas_retry.config.init.ci import CiLine, lines_of
from atlas_retry.config.init.commands import (
    ASSIGNED,
    UnderstoodCommand,
    bare,
    fixer_of,
    only_asked_to_check,
    slot_of_name,
    tool_name,
    understand,
)
from atlas_retry.config.init.project import ProjectFiles, table
from atlas_retry.config.init.rows import needs_of
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
NODE = ("npm", "pnpm", "yarn", "bun")
NEVER = re.compile(
    r"""
      (?:npm|pnpm|yarn|bun)[ ](?:install|i|ci|add|publish|pack|dlx|config|cache|audit|version)\b
    | make[ ](?:install|deps|setup|clean)
    | (?:pdm|composer|poetry|uv)[ ](?:install|sync|update|require)
    """,
    re.VERBOSE,
)
"""Lines that install, publish or clean: they check nothing."""
TIMEOUTS = {Slot.FORMAT: None, Slot.LINT: None, Slot.TYPES: None}
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
    base = "" if line.cwd == "." else f"{line.cwd}/"
    here = ProjectFiles(project.files, project.base + base)
    found, body = understand(line.line), ""
    if not found:
        found, body = _target(here, line.line)
    found = found or only_asked_to_check(line.line)
    if not found:
        return None
    js = found.language == "js" or _unset(line.line).split()[0] in NODE
    fix = fixer_of(line.line) or (javascript.fix_of(here, line.line) if js else None)
    return Proposed(
        slot=found.slot,
        run=line.line,
        fix=fix,
        recheck=f"{line.line} --lf" if _is_plain_pytest(line.line, found) else None,
        reason=f"{_file(line)} runs this line",
        needs=javascript.needs_of(here) if js and here.has("package.json") else needs_of(line.line),
        tool=found.tool,
        language=found.language,
        timeout=TIMEOUTS.get(found.slot, "15m"),
        env=line.env,
        cwd=line.cwd,
        writes=found.slot not in (Slot.FORMAT, Slot.HOOKS) and _writes(line.line, body),
        in_ci=True,
        body=body,
    )


def _is_plain_pytest(line: str, found: UnderstoodCommand) -> bool:
    is_pytest = found.tool == "pytest" and found.language == "python"
    return is_pytest and not re.search(r"[|<>&;]|--(?:collect|co\b|lf)", line)


def _writes(line: str, body: str) -> bool:
    return bool(re.search(r"(?:--write|--fix|:fix|--apply)\b", f"{line} {body}"))


class _Call(Struct, frozen=True):
    """How a line calls what the project itself names."""

    start: str
    name: str
    line: str


def _calls(line: str) -> Iterator[_Call]:
    for rest in (_unset(line), bare(line)):
        for pattern in TARGETS:
            if match := re.match(pattern, rest):
                yield _Call(match["start"].partition(" ")[0], match["name"] or "test", rest)


def _target(project: ProjectFiles, line: str) -> tuple[UnderstoodCommand | None, str]:
    """What a target, script or session does: by its body's hooks, its name, its body."""
    for call in _calls(line):
        body = _body(project, call)
        if body is not None:
            return _work_of(call, body), body
    return None, ""


def _work_of(call: _Call, body: str) -> UnderstoodCommand | None:
    inner = [u for u in map(understand, re.split(r"&&|;|\n|@", body)) if u]
    slots = {u.slot for u in inner}
    slot = Slot.HOOKS if Slot.HOOKS in slots else slot_of_name(call.name)
    slot = slot or _slot_of_body(call.start, call.name, inner) or _slot_of_folder(call)
    if slot is None:
        return None
    named = tool_name(f"{call.start} {call.name}")
    tool = next((u.tool for u in inner if u.slot is slot), named)
    return UnderstoodCommand(slot=slot, tool=tool, language="")


def _slot_of_body(start: str, name: str, inner: list[UnderstoodCommand]) -> Slot | None:
    if inner:
        return inner[0].slot
    if CHECKING.match(name):
        return Slot.LINT
    return Slot.TEST if start in ("tox", "nox") else None


def _slot_of_folder(call: _Call) -> Slot | None:
    """Of a script that only its folder says the work of: `scripts/test/zones.sh`."""
    folders = re.findall(r"[\w-]+(?=/)", call.line.partition(call.name)[0])
    is_work = folders and not PREPARES.search(call.name)
    return slot_of_name(folders[-1]) if is_work else None


def _unset(line: str) -> str:
    return re.sub(rf"^{ASSIGNED}", "", line)


def _body(project: ProjectFiles, call: _Call) -> str | None:
    """What stands behind the name; None where nothing of the project has it."""
    if call.start in NODE and "/" not in call.line.split()[1]:
        name = {"t": "test"}.get(call.name, call.name)
        return str(table(project.package, "scripts").get(name) or "") or None
    if call.start.endswith("/") or call.start in ("", *INTERPRETERS):
        return _script(project, call)
    return tasks.body_of(project, call.start, call.name)


def _script(project: ProjectFiles, call: _Call) -> str | None:
    """The text of a script that is called by its path."""
    words = call.line.split()
    is_given = call.start in INTERPRETERS
    path = words[1] if is_given else words[0]
    is_path = is_given or "/" in path
    path = path.removeprefix("./")
    return project.text(path) if is_path and project.has(path) else None
