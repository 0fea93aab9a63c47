"""Accounts for every line that CI runs: a gate, set-up, left out with its reason, or unknown."""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, islice
from shlex import quote

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.ci import github, gitlab, others
from atlas_retry.config.ci.jobs import CiJob, CiLine, not_run
from atlas_retry.config.ci.script import commands_of
from atlas_retry.config.init.builds import with_builds
from atlas_retry.config.init.called import WHOLE, called, lines_run
from atlas_retry.config.init.commands import (
    UnderstoodCommand,
    installs,
    only_prepares,
    runs_a_tool,
    slot_of_name,
    understand,
)
from atlas_retry.config.init.dependencies import NODE
from atlas_retry.config.init.tasks import Task
from atlas_retry.config.init.values import Proposed, Slot
from atlas_retry.config.neutralised import neutraliser
from atlas_retry.config.project import ProjectFiles
from atlas_retry.diagnostics.tools import bare
from atlas_retry.patterns import regex

NOISE = regex(
    r"COLOR|TERM|TOKEN|SECRET|PASSWORD|CACHE|VERBOSE|^CI$|VERSION|KEY|INCREMENTAL|BACKTRACE|DEBUG",
    re.IGNORECASE,
)
ECHOES = regex(r"\|\|\s*echo\b.*$")
"""End of a line that passes whatever its command does, beside those of `neutraliser`."""
REPORTED = regex(r"""(?x)
      ^python[\d.]*[ ]-m[ ](?=pytest)
    | (?<!\S)coverage[ ]run[ ](?:-\S+[ ])*?-m[ ](?=pytest|unittest)
    | [ ](?:-v+|-q+|--verbose|--quiet)(?=[ ]|$)
    """)
"""What changes only the output or measures: lines that differ only in it are one gate."""
REPORTING = regex(
    r"(?<!\S)(?:--(?:cov|junit|color|durations|tb|coverage|reporter|ci)\S*"
    r"|-n[ =]?(?:auto|\d+)|-r\w+)(?!\S)"
)
CHECKING = regex(r"(?i).*(?:check|verify|validate|audit)(?:s|er)?(?![a-z])")
"""Name of a target that checks something."""
CHECK_WORD = regex(
    r"(?<![\w/.=-])-{0,2}(?:\w+[-:])?(?:tests?|checks?|lint|verify|validate|audit|spec)\b"
)
SETS_UP = regex(
    r"(?i)install|deps|dependenc|setup|set-up|prepare|bootstrap|clean|deploy|publish|release|upload"
    r"|download|login"
)
"""Name of a target or script that checks nothing, whatever it runs."""
OTHER_WORK = regex(r"(?i)push|fetch|start|serve|watch|^dev$|^env$|init|^tag|version|bump|notify")
"""Name of one that may not end, or changes something: never proposed for its name alone."""
PLUMBING = regex(r"grep\b|nohup\b|xargs\b|break$|continue$")
"""What a loop or condition needs, and is a check outside of one."""
CHOSEN = {"tox": ("-e", "TOXENV"), "nox": ("-s", "NOXSESSION")}
"""Option of a runner, and the variable that means the same."""
TOX = regex(r"""(?x)
    (\btox\b.*[ ]-e[ ]?)["']?
    (?: [a-z]*py\d[\w.-]* | \d\.[\d.]+t?(?!\S) | \$\{?\w+\}? | \$\{\{.*?\}\} | py )["']?
    """)
"""An environment of tox for one interpreter."""
COMPARES = regex(r"(?:! )?git (?:diff|status)\b")
BASH = regex(
    r"\[\[|\[ [^\]]*==|<<<|<\(|(?<!\S)\w+=\(|\$\{\w+\[|&>|\bset -\w*o pipefail"
    r"|(?<!\S)(?:source|shopt) "
)
"""What a POSIX shell does not know; CI runs scripts by bash."""
FAILS = regex(r"(?m)(?:^|\|\||[;{]|\b(?:then|else|do)\b)\s*exit [1-9]")
"""In a loop or a condition: it is there to fail the job."""
COMPARES_TEXT = regex(r"(?:! ?)?(?:grep|diff|cmp)\b")
PURE = {Slot.FORMAT, Slot.LINT, Slot.TYPES}
SEVERAL_LINES = regex(r"<<|\bcase |\S[ \t]+#")
"""What may depend on the ends of lines: here-documents, patterns, comments."""
OPEN_END = regex(r"(?:\b(?:then|else|do|in)|[{(|]|&&)$")
"""End of a line that the next one continues."""
OF_CI = regex(r"(?:GITHUB|RUNNER|ACTIONS|CI|GITLAB|CIRCLE|BUILD|SYSTEM|AGENT)_\w+")
"""Variables that CI sets by itself."""
MAX_ASKED = 20
MAX_SHOWN = 160


class Role(StrEnum):
    """What atlas makes of a line of CI."""

    GATE = "gate"
    SET_UP = "set-up"
    LEFT_OUT = "left out"
    UNKNOWN = "not understood"


class AccountedLine(Struct, frozen=True, kw_only=True):
    """A line of CI and its role."""

    line: CiLine
    role: Role
    reason: str = ""
    gate: Proposed | None = None

    @property
    def rank(self) -> int:
        """2 if it is run here and must pass, 1 if it is run here, else 0."""
        return 1 + self.gate.required if self.gate and self.role is Role.GATE else 0


def jobs_of_ci(project: ProjectFiles, repository: str = "") -> tuple[CiJob, ...]:
    """Every job for a push or a pull request; those of another system only if none is on Linux."""
    every = (
        *github.jobs(project, repository),
        *gitlab.jobs(project),
        *others.jobs(project),
    )
    has_linux = any(not job.system and job.lines for job in every)
    why = "CI runs it on {} only"
    return tuple(
        not_run(job, why.format(job.system)) if job.system and has_linux else job for job in every
    )


def accounts(project: ProjectFiles, jobs: Iterable[CiJob]) -> tuple[AccountedLine, ...]:
    """Every line once, in order; one that several jobs run counts where it is run here.

    Each gate follows only earlier ones: two jobs may disagree.
    """
    found: dict[tuple[str, str], AccountedLine] = {}
    last_of: defaultdict[str, list[str]] = defaultdict(list)
    for job in jobs:
        before = [*chain.from_iterable(last_of[name] for name in job.needs)]
        for account in _of_job(project, job, before):
            same = (account.line.cwd, without_reports(account.line.line))
            if same in found and account.rank > found[same].rank:
                del found[same]
            found.setdefault(same, account)
        last_of[job.key] += before
    earlier: set[str] = set()
    for same, account in found.items():
        if gate := account.gate:
            follows = tuple(filter(earlier.__contains__, dict.fromkeys(gate.follows)))
            earlier.add(account.line.key)
            found[same] = replace(account, gate=replace(gate, follows=follows))
    return tuple(found.values())


def _of_job(project: ProjectFiles, job: CiJob, before: list[str]) -> Iterator[AccountedLine]:
    """The lines of a job; `before` grows by the keys of those that later ones may need."""
    for line in with_builds(project, [*map(_with_own_interpreter, job.lines)]):
        account = _account(project, line)
        if gate := account.gate:
            account = replace(account, gate=replace(gate, follows=tuple(before)))
            is_known = bool(gate.language) or understand(gate.run) is not None
            # what only reads sources, by the table of tools, needs no line before it
            only_reads = is_known and gate.slot in PURE and not gate.writes
            before += [] if only_reads else [line.key]
        yield account


def without_reports(line: str) -> str:
    """A line without what changes only its output: equal ones are one gate."""
    return REPORTED.sub("", re.sub(r"^(p?npm|yarn|bun) run ", r"\1 ", line))


def suite_of(gate: Proposed) -> tuple[object, ...]:
    """What tests run, whatever starts them and however they report."""
    inner = [line for line in re.split(r"&&|\n", gate.body) if understand(line.strip())]
    is_call = len(inner) == 1 and len(bare(gate.run).split()) <= len(("npm", "run", "test"))
    line = inner[0].strip() if is_call else gate.run
    plain = REPORTED.sub("", f"{bare(REPORTED.sub('', line))} ")
    return gate.cwd, " ".join(REPORTING.sub("", plain).split()), gate.env


def _with_own_interpreter(line: CiLine) -> CiLine:
    """The line with the current interpreter instead of one from a matrix."""
    env = dict(line.env)
    runner = line.line.split(" ", 1)[0]
    option, variable = CHOSEN.get(runner, ("", ""))
    chosen = env.get(variable, "") if " -" not in line.line else ""
    plain = TOX.sub(r"\1py", f"{line.line} {option} {chosen}" if chosen else line.line)
    plain = re.sub(r"(\bnox\b.* (?:-s|--session)[ =])[\"']?([\w-]+)-\d[\d.]*[\"']?", r"\1\2", plain)
    if plain == line.line:
        return line
    unknown = tuple(name for name in line.unknown if name in plain)
    return replace(line, line=plain, inner=(plain,), unknown=unknown)


# --- from a line to its role -------------------------------------------------------------------


def _account(project: ProjectFiles, line: CiLine) -> AccountedLine:
    gate = _gate(project, line)
    if gate is None and _is_all_set_up(project, line):
        return AccountedLine(line=line, role=Role.SET_UP)
    if line.left_out:
        return AccountedLine(line=line, role=Role.LEFT_OUT, reason=line.left_out)
    if COMPARES.match(line.line):
        why = "it compares with the commit: your own edits would fail it"
        return AccountedLine(line=line, role=Role.LEFT_OUT, reason=why)
    if gate is None:
        return AccountedLine(line=line, role=Role.UNKNOWN)
    if line.unknown:
        why = f"it needs {', '.join(dict.fromkeys(line.unknown))}, which only CI has"
        gate = replace(gate, barred=why)
        return AccountedLine(line=line, role=Role.LEFT_OUT, reason=why, gate=gate)
    return AccountedLine(line=line, role=Role.GATE, gate=gate)


def _fails_the_job(project: ProjectFiles, line: CiLine) -> bool:
    """Whether it is there to fail the job by what a program says, but not by what git says."""
    if line.condition or not FAILS.search(line.line) or any(map(COMPARES.match, line.inner)):
        return False
    return "$(" in line.line or not _is_all_set_up(project, line)


def _is_all_set_up(project: ProjectFiles, line: CiLine) -> bool:
    return all(_prepares(project, line, command) for command in line.inner)


def _prepares(project: ProjectFiles, line: CiLine, command: str) -> bool:
    """Whether a command, or the target or script that it runs, is set-up."""
    is_in_a_loop = command not in line.line.splitlines()[0] or "\n" in line.line
    if only_prepares(command) or (is_in_a_loop and PLUMBING.match(command)):
        return True
    task = called(project.at(line.cwd), command) if "$" not in line.cwd else None
    if task is None:
        return False
    lines = [*lines_run(project, task, set())] if task.name.endswith(".sh") else []
    is_set_up = _only_set_up(task, lines)
    return is_set_up or bool(SETS_UP.search(task.name.rpartition("/")[2]))


def _gate(project: ProjectFiles, line: CiLine) -> Proposed | None:
    """The gate that a line would be."""
    known, task, first = None, None, line.line
    for inner in line.inner:
        known, task, first = (*_understood(project, line, inner), inner)
        if known:
            break
    if not known and _fails_the_job(project, line):
        known = UnderstoodCommand(slot=Slot.CUSTOM, tool="", language="")
    if not known:
        return None
    body = task.body if task else ""
    writes = re.search(r"(?:--write|--fix|:fix|--apply)\b", f"{line.line} {body}")
    is_plain = first == line.line
    when = f" if {line.condition}" if line.condition else ""
    if task and (asked := ", ".join(_asked_by(task, line))):
        when += f"; {task.name} asks for {asked}, which only CI has"
    text = _one_line(line.line)
    return Proposed(
        slot=known.slot,
        run=f"bash -ec {quote(text)}" if BASH.search(text) else text,
        barred="it is a script of several lines" if "\n" in text else None,
        fix=task.fix if task and is_plain and known.slot in (Slot.FORMAT, Slot.LINT) else None,
        reason=f"{line.file} runs this line{when}",
        tool=known.tool if is_plain else "",
        language=known.language,
        env=tuple((name, value) for name, value in line.set_env if not NOISE.search(name)),
        cwd=line.cwd,
        writes=bool(writes) and known.slot not in (Slot.FORMAT, Slot.HOOKS),
        in_ci=True,
        required=line.required and not (neutraliser(line.line) or ECHOES.search(line.line)),
        body=body,
        key=line.key,
    )


def _one_line(script: str) -> str:
    """A loop or condition in one line, as gates are; unchanged if that is not safe."""
    if "\n" not in script or SEVERAL_LINES.search(script):
        return script
    joined = ""
    for line in filter(None, map(str.strip, script.split("\n"))):
        if line.count("'") % 2 or line.count('"') % 2:
            return script
        if not line.startswith("#"):
            joined += f"{' ' if OPEN_END.search(joined) else '; '}{line}"
    return joined.removeprefix("; ")


def _asked_by(task: Task, line: CiLine) -> Iterator[str]:
    """The variables of CI that a script reads, and that have no value here."""
    script = task.body if task.name.endswith(".sh") else ""
    unset = chain.from_iterable(command.unset for command in commands_of(script, ".", {}))
    known = dict(line.set_env)
    for name in islice(dict.fromkeys(unset), MAX_ASKED):
        if name not in known and (name in line.hidden or OF_CI.match(name)):
            yield f"${name}"


def _understood(
    project: ProjectFiles, line: CiLine, command: str
) -> tuple[UnderstoodCommand | None, Task | None]:
    """Tool and purpose of a command, and the target that it calls."""
    env = dict(line.env)  # a variable may name its program or target
    command = re.sub(r"\$\{?(\w+)\}?", lambda name: env.get(name[1]) or name[0], command)
    if installs(command) or only_prepares(command):
        return None, None
    known, task = understand(command), None
    # a package manager of JavaScript runs its script rather than a program of that name
    if not known or command.partition(" ")[0] in NODE:
        task = None if "$" in line.cwd else called(project.at(line.cwd), command)
        known = (work_of(project.at(line.cwd), task) if task else None) or known
    # one that compares is a check if it is alone
    compares = command == line.line and COMPARES_TEXT.match(command)
    is_check = compares or CHECK_WORD.search(command) or runs_a_tool(command)
    if not known and is_check:
        program = bare(command).partition(" ")[0].rpartition("/")[2]
        known = UnderstoodCommand(slot=Slot.CUSTOM, tool=program, language="")
    return known, task


def _only_set_up(task: Task, lines: Sequence[str]) -> bool:
    """Whether all that a target runs is set-up, and nothing of it fails the job."""
    return bool(lines) and all(map(only_prepares, lines)) and not FAILS.search(task.body)


def work_of(project: ProjectFiles, task: Task) -> UnderstoodCommand | None:
    """Tool and purpose of a target, by what it and its prerequisites run, else by its name."""
    lines = [*lines_run(project, task, set())]
    inner = [understood for understood in map(understand, lines) if understood]
    slot = _slot_of(task, [understood.slot for understood in inner])
    if slot is None or (slot is Slot.CUSTOM and _only_set_up(task, lines)):
        return None
    tool = next((u.tool for u in inner if u.slot is slot), f"{task.run.split()[0]} {task.name}")
    return UnderstoodCommand(slot=slot, tool=tool, language="")


def _slot_of(task: Task, inner: Sequence[Slot]) -> Slot | None:
    """The slot by hooks that it runs, by name, by its tests, else by what it runs first."""
    name, is_file = task.name.rpartition("/")[2].partition(".")[0], "/" in task.name
    if Slot.HOOKS in inner:
        return Slot.HOOKS
    # a file is no test by its name
    named = None if is_file else slot_of_name(name)
    slot = named or (Slot.TEST if Slot.TEST in inner else next(iter(inner), None))
    if slot is None and CHECKING.match(name) and not is_file:
        slot = Slot.LINT
    if slot is None and task.run in WHOLE:
        slot = Slot.TEST
    is_other = SETS_UP.search(name) or OTHER_WORK.search(name)
    is_known = (bool(task.body) or is_file) and not is_other
    return slot or (Slot.CUSTOM if is_known else None)
