"""Gates from the commands of CI, taken literally, with fixer and tool.

Reads the files of GitHub, GitLab, CircleCI and Azure.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from posixpath import normpath
from typing import TypeGuard

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.config.init import tasks
from atlas_retry.config.init.commands import (
    CMAKE,
    UnderstoodCommand,
    installs,
    slot_of_name,
    understand,
)
from atlas_retry.config.init.dependencies import NODE
from atlas_retry.config.init.project import ProjectFiles, Table, dig, strings, table
from atlas_retry.config.init.tasks import Task
from atlas_retry.config.init.values import Proposed, Slot
from atlas_retry.diagnostics.tools import ASSIGNED, bare
from atlas_retry.patterns import regex

FILES = (
    ".github/workflows/*.y*ml",
    ".github/actions/*.y*ml",
    ".gitlab-ci.y*ml",
    ".circleci/config.yml",
    "azure-pipelines.yml",
    ".azure/*.yml",
    ".azure-pipelines/*.yml",
)
ACTIONS = {
    "pre-commit/action": "pre-commit run --all-files",
    "j178/prek-action": "prek run --all-files",
    "golangci/golangci-lint-action": "golangci-lint run {args}",
    "astral-sh/ruff-action": "ruff {args:check} {src}",
    "chartboost/ruff-action": "ruff {args:check} {src:.}",
    "psf/black": "black {options:--check --diff} {src:.}",
    "isort/isort-action": "isort --check-only {sort-paths:.}",
    "codespell-project/actions-codespell": "codespell",
    "crate-ci/typos": "typos",
    "rhysd/actionlint": "actionlint",
    "dominikh/staticcheck-action": "staticcheck ./...",
    "EmbarkStudios/cargo-deny-action": "cargo deny check",
    "actions-rs/cargo": "cargo {command} {args}",
    "securego/gosec": "gosec {args}",
    "zizmorcore/zizmor-action": "zizmor .",
    "DavidAnson/markdownlint-cli2-action": "markdownlint-cli2",
    "jakebailey/pyright-action": "pyright",
}
"""Command of an action, with `{input:default}`. Source: their action.yml."""
EVENTS = {"push", "pull_request", "merge_group", "workflow_call"}
LINES = ("run", "script", "bash", "command", "test_script", "tests_script")
FOLDERS = ("working-directory", "working_directory", "workingDirectory")
VARIABLES = ("env", "environment", "variables")
ASIDE = {"with", "on", "strategy", "services", "defaults", "before_script", "outputs"}
OTHER_SYSTEMS = regex(r"windows|macos")
OTHER_JOBS = regex(
    r"deploy|publish|release|bench|fuzz|nightly|msrv|windows|macos|miri|wasm", re.IGNORECASE
)
NOISE = regex(
    r"COLOR|TERM|TOKEN|SECRET|PASSWORD|CACHE|VERBOSE|^CI$|VERSION|KEY|INCREMENTAL|BACKTRACE|DEBUG",
    re.IGNORECASE,
)
PIECE = regex(r"(?:\"[^\"]*\"|'[^']*'|\$\([^)]*\)|\\.|[^;&\n'\"\\]|(?<!&)&(?!&)|['\"\\])+")
ASIDE_OF_IT = regex(r"\s+(?:\|\s*tee\s.*|\|\|\s*\w+=\$\?)$")
"""Suffix that saves a command's output or its exit code."""
EXPRESSION = regex(r"\$\{\{\s*(.*?)\s*\}\}|\$\[\[.*?\]\]|<<\s*(?:parameters|matrix)\S+\s*>>")
VARIABLE = regex(r"(?<!\\)\$(?:\{[A-Za-z_]\w*\}|[A-Za-z_]\w*)")


class CiLine(Struct, frozen=True, kw_only=True):
    """One command of a CI file."""

    line: str
    where: str
    cwd: str = "."
    env: tuple[tuple[str, str], ...] = ()

    @property
    def is_opaque(self) -> bool:
        """Whether it has a variable or expression that only CI can fill in."""
        return any(EXPRESSION.search(t) or VARIABLE.search(t) for t in (self.line, self.cwd))


class _Around(Struct, frozen=True, kw_only=True):
    """Values that the steps in a node inherit."""

    where: str
    cwd: str = "."
    env: Mapping[str, str] = {}
    matrix: Mapping[str, str] = {}


def lines_of(project: ProjectFiles) -> list[CiLine]:
    """Every command for a push or a pull request, on any system: most run the same on all."""
    lines: list[CiLine] = []
    for path in project.below(*FILES):
        document = project.yaml(path)
        if _on_push(document):
            lines += _walk(document, _Around(where=path))
    return lines


def _on_push(document: Table) -> bool:
    events: object = document.get("on")
    if events is None:
        return True
    names = set(events) if isinstance(events, dict) else set(strings(events))
    push = dig(events, "push")
    only_tags = isinstance(push, dict) and "tags" in push and "branches" not in push
    return bool(names & (EVENTS - ({"push"} if only_tags else set())))


def _walk(node: object, around: _Around) -> Iterator[CiLine]:
    if isinstance(node, list):
        for item in node:
            yield from _walk(item, around)
    if isinstance(node, dict):
        inside = _inside(node, around)
        for key, value in node.items():
            yield from _under(str(key), value, node, inside)


def _under(key: str, value: object, node: Table, inside: _Around) -> Iterator[CiLine]:
    listed = list(strings(value)) if key in LINES else []
    if listed:
        yield from _shell("\n".join(listed), inside)
    elif key == "uses" and isinstance(value, str):
        yield from _action(value, table(node, "with"), inside)
    elif key not in ASIDE and key not in VARIABLES and not OTHER_JOBS.search(key):
        yield from _walk(value, inside)


def _inside(node: Table, around: _Around) -> _Around:
    own = next((node[key] for key in FOLDERS if key in node), None)
    own = own or dig(node, "defaults", "run", "working-directory")
    env = dict(around.env)
    for key in VARIABLES:
        env |= {str(k): _text(v) for k, v in table(node, key).items() if _is_plain(str(k), v)}
    return replace(
        around,
        cwd=_below(around.cwd, str(own)) if own else around.cwd,
        env=env,
        matrix={**around.matrix, **_matrix(table(node, "strategy", "matrix"))},
    )


def _is_plain(name: str, value: object) -> bool:
    plain = isinstance(value, str | int | float) and not EXPRESSION.search(str(value))
    return plain and not NOISE.search(name) and "$" not in str(value)


def _matrix(matrix: Table) -> dict[str, str]:
    """One value of each axis: the last of a list, else that of the first row on Linux."""
    included = matrix.get("include")
    rows = [table(row) for row in included] if isinstance(included, list) else []
    values: dict[str, object] = {}
    for row in reversed([row for row in rows if not OTHER_SYSTEMS.search(str(row))]):
        values |= row
    values |= {name: axis[-1] for name, axis in matrix.items() if _ends_plain(axis)}
    return {str(k): _text(v) for k, v in values.items()}


def _text(value: object) -> str:
    """A plain value as commands see it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _ends_plain(axis: object) -> TypeGuard[list[object]]:
    return isinstance(axis, list) and bool(axis) and not isinstance(axis[-1], dict | list)


def _action(name: str, given: Table, around: _Around) -> Iterator[CiLine]:
    template = ACTIONS.get(name.partition("@")[0])
    if not template:
        return

    def value(placeholder: re.Match[str]) -> str:
        return " ".join(str(given.get(placeholder[1], placeholder[2] or "")).split())

    line = re.sub(r"\{([\w-]+)(?::([^}]*))?\}", value, template).strip()
    yield from _shell(line, around)


def _shell(script: str, around: _Around) -> Iterator[CiLine]:
    """The simple commands of a shell script."""
    cwd = around.cwd
    filled = EXPRESSION.sub(lambda expression: _filled(expression, around), script)
    joined = re.sub(r"\\\n\s*", " ", filled)
    for piece in PIECE.findall(re.sub(r"(?m)^\s*#.*$", "", joined)):
        line = ASIDE_OF_IT.sub("", piece.strip())
        moved = re.fullmatch(r"(?:cd|pushd)\s+([\w./-]+)", line)
        if moved:
            cwd = _below(cwd, moved[1])
        elif line:
            yield CiLine(
                line=line if re.search(r"['\"]", line) else " ".join(line.split()),
                where=around.where,
                cwd=cwd,
                env=tuple(sorted((name, value) for name, value in around.env.items() if value)),
            )


def _filled(expression: re.Match[str], around: _Around) -> str:
    """The value of one expression; empty, as in CI, if the matrix does not have it."""
    kind, _, name = (expression[1] or "").rpartition(".")
    if kind == "matrix":
        return around.matrix.get(name, "")
    return around.env.get(name, expression[0]) if kind == "env" else expression[0]


def _below(cwd: str, folder: str) -> str:
    return normpath(f"{cwd}/{folder.strip()}")


# --- from a command to a gate ------------------------------------------------------------------

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
REPORTED = regex(r"""(?x)
      ^python[\d.]*[ ]-m[ ](?=pytest)
    | (?<!\S)coverage[ ]run[ ](?:-\S+[ ])*?-m[ ](?=pytest|unittest)
    | [ ](?:-v+|-q+|--verbose|--quiet)(?=[ ]|$)
    """)
"""What changes only the output or measures: lines that differ only in it are one gate."""
MODULE = regex(r"python[\d.]* (?:-\w+ )*?-m (?P<module>[\w.]+)(?: |$)")
CHECKING = regex(r".*(?:check|verify|validate)(?![a-z])")
"""Name of a target that checks something."""


def propose(project: ProjectFiles) -> Iterator[Proposed]:
    """The gates that CI runs, without duplicates."""
    known: set[tuple[str, str]] = set()
    for line in _settled_lines(project):
        gate = None if line.is_opaque else _gate(project, line)
        same = (line.cwd, REPORTED.sub("", re.sub(r"^(p?npm|yarn|bun) run ", r"\1 ", line.line)))
        if gate and same not in known:
            known.add(same)
            yield gate


def not_understood(project: ProjectFiles, proposed: Collection[str] = ()) -> Iterator[str]:
    """Checks that only CI can run, because they have a variable of CI.

    Those are left out whose target a proposed line runs.
    """
    opaque = (line for line in _settled_lines(project) if line.is_opaque)
    unread = (one for one in opaque if not _runs_one_of(project, one, proposed))
    yield from {f"`{one.line}` of {_file(one)}": None for one in unread if _gate(project, one)}


def _runs_one_of(project: ProjectFiles, line: CiLine, proposed: Collection[str]) -> bool:
    task = None if VARIABLE.search(line.cwd) else called(project.at(line.cwd), line.line)
    return task is not None and task.run in proposed


def _file(line: CiLine) -> str:
    return line.where.rpartition("/")[2]


def _settled_lines(project: ProjectFiles) -> Iterator[CiLine]:
    """Every command for a push as it runs here.

    CTest runs what another line of CI has built, and would test old programs if it were alone.
    """
    for line in map(_settled, lines_of(project)):
        known = understand(line.line)
        is_unbuilt = known is not None and known.tool == "ctest" and project.has("CMakeLists.txt")
        yield replace(line, line=CMAKE, cwd=".") if is_unbuilt else line


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
    # a package manager of JavaScript runs its script rather than a program of that name
    if not known or line.line.partition(" ")[0] in NODE:
        task = called(project.at(line.cwd), line.line)
        known = (_work_of(task) if task else None) or known
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
    return named or (Task(path, line, project.text(path)) if is_script else _module(project, line))


def _module(project: ProjectFiles, line: str) -> Task | None:
    """The module of the project that a line runs, as in `python -m tests`."""
    run = MODULE.match(line)
    folder = run["module"].replace(".", "/") if run else ""
    is_own = folder and (project.has(f"{folder}/__main__.py") or project.has(f"{folder}.py"))
    return Task(folder, line) if is_own else None


def _named(project: ProjectFiles, runner: str, names: list[str]) -> Task | None:
    """The task with one of these names; a script of package.json must exist."""
    task = tasks.find(project, runner, names)
    if task or runner in NODE:
        return task
    if runner in WHOLE:
        names = names or ["test"]
    return Task(names[-1], runner) if names else None


def _work_of(task: Task) -> UnderstoodCommand | None:
    """Tool and purpose of a target."""
    inner = [u for u in map(understand, re.split(r"&&|;|\n|@", task.body)) if u]
    slot = _slot_of(task, [understood.slot for understood in inner])
    if slot is None:
        return None
    tool = next((u.tool for u in inner if u.slot is slot), f"{task.run.split()[0]} {task.name}")
    return UnderstoodCommand(slot=slot, tool=tool, language="")


def _slot_of(task: Task, inner: list[Slot]) -> Slot | None:
    """The slot by hooks in the body, by name, or by body."""
    if Slot.HOOKS in inner:
        return Slot.HOOKS
    name = task.name.rpartition("/")[2].partition(".")[0]
    by_name = slot_of_name(name) or next(iter(inner), None)
    if by_name is None and CHECKING.match(name):
        return Slot.LINT
    return by_name or (Slot.TEST if task.run in WHOLE else None)
