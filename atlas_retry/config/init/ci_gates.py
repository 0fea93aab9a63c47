"""From the lines that CI runs to gates: literally, with the fixer and the target's work beside."""

import re
from collections.abc import Iterator

from atlas_retry.config.init import javascript, tasks
from atlas_retry.config.init.ci import CiLine, lines_of
from atlas_retry.config.init.commands import (
    ASSIGNED,
    UnderstoodCommand,
    bare,
    fixer_of,
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
)
"""How a line calls what the project itself names."""
NODE = ("npm", "pnpm", "yarn", "bun")
NEVER = re.compile(
    r"(?:npm|pnpm|yarn|bun) (?:install|i|ci|add|publish|pack|dlx|config|cache|audit|version)\b|"
    r"make (?:install|deps|setup|clean)|(?:pdm|composer|poetry|uv) (?:install|sync|update|require)"
)
TIMEOUTS = {Slot.FORMAT: None, Slot.LINT: None, Slot.TYPES: None}
SAME_TOOL = 3
"""How many lines of one tool and slot: a matrix of features, not a whole history."""
CHECKING = re.compile(r".*(?:check|verify|validate)(?![a-z])")
"""The name of a target that checks something, whatever that is."""
OPTIONAL = re.compile(r"\|\| *(?:true|:)\s*$")


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The gates that CI runs, each once."""
    seen: dict[tuple[object, ...], int] = {}
    known: set[tuple[str, str]] = set()
    for line in lines_of(project):
        gate = _gate(project, _settled(line))
        if not gate or gate.run == "" or _is_opaque(gate.run):
            continue
        same = (gate.cwd, re.sub(r"^(p?npm|yarn|bun) run ", r"\1 ", gate.run))
        if same in known:
            continue
        key = (gate.cwd, gate.slot, gate.tool)
        seen[key] = seen.get(key, 0) + 1
        if seen[key] <= SAME_TOOL:
            known.add(same)
            yield gate


def not_understood(project: ProjectFiles) -> Iterator[str]:
    """Checks of CI's that only CI can run: a variable of its own stands in them."""
    found = (line for line in map(_settled, lines_of(project)) if _is_opaque(line.line))
    shown = {f"`{line.line}` of {_file(line)}": None for line in found if _gate(project, line)}
    yield from shown


def _file(line: CiLine) -> str:
    return line.where.rpartition("/")[2]


def _is_opaque(line: str) -> bool:
    return CiLine(line=line, where="").opaque


def _settled(line: CiLine) -> CiLine:
    """One interpreter of a matrix: the one at hand."""
    plain = re.sub(
        r"(\btox\b.* -e ?)[\"']?(?:py\d[\w.-]*|\$\{?\w+\}?|py)[\"']?", r"\1py", line.line
    )
    plain = re.sub(r"(\bnox\b.* (?:-s|--session)[ =])[\"']?([\w-]+)-\d[\d.]*[\"']?", r"\1\2", plain)
    return CiLine(line=plain, where=line.where, cwd=line.cwd, env=line.env)


def _gate(project: ProjectFiles, line: CiLine) -> Proposed | None:
    if NEVER.search(line.line) or OPTIONAL.search(line.line):
        return None
    base = "" if line.cwd == "." else f"{line.cwd}/"
    here = ProjectFiles(project.files, project.base + base)
    found, body = understand(line.line), ""
    if not found:
        found, body = _target(here, line.line)
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
    return found.tool == "pytest" and not re.search(r"[|<>&;]|--(?:collect|co\b|lf)", line)


def _writes(line: str, body: str) -> bool:
    return bool(re.search(r"(?:--write|--fix|:fix|--apply)\b", f"{line} {body}"))


def _target(project: ProjectFiles, line: str) -> tuple[UnderstoodCommand | None, str]:
    """What a target, script or session does: by its body's hooks, its name, its body."""
    calls = (
        (re.match(pattern, rest), rest)
        for rest in (_unset(line), bare(line))
        for pattern in TARGETS
    )
    for found, rest in calls:
        if not found:
            continue
        name, start = found["name"] or "test", found["start"].partition(" ")[0]
        body = _body(project, start, name, rest)
        if body is None:
            continue
        inner = [u for u in map(understand, re.split(r"&&|;|\n|@", body)) if u]
        hooks = next((u for u in inner if u.slot is Slot.HOOKS), None)
        slot = (hooks and hooks.slot) or slot_of_name(name) or _slot_of_body(start, name, inner)
        own = next((u for u in inner if u.slot is slot), None)
        tool = own.tool if own else tool_name(f"{start} {name}")
        return UnderstoodCommand(slot=slot, tool=tool, language="") if slot else None, body
    return None, ""


def _slot_of_body(start: str, name: str, inner: list[UnderstoodCommand]) -> Slot | None:
    if inner:
        return inner[0].slot
    if CHECKING.match(name):
        return Slot.LINT
    return Slot.TEST if start in ("tox", "nox") else None


def _unset(line: str) -> str:
    return re.sub(rf"^{ASSIGNED}", "", line)


def _body(project: ProjectFiles, start: str, name: str, line: str) -> str | None:
    """What stands behind the name; None where nothing of the project has it."""
    if start in NODE:
        body = table(project.package, "scripts").get({"t": "test"}.get(name, name))
        return str(body) if body else None
    if start.endswith("/") or start in ("", "sh", "bash"):
        path = line.split()[1 if start in ("sh", "bash") else 0].removeprefix("./")
        return (
            project.text(path)
            if "/" in line.split(maxsplit=1)[0] + path and project.has(path)
            else None
        )
    run = "composer run-script" if start == "composer" else start
    return tasks.body_of(project, f"{run} {name}")
