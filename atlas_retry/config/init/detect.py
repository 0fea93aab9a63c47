"""From a project's files to the gates it seems to use. Pure: whether they can start comes in."""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch

from msgspec.structs import replace

from atlas_retry.config.init import ci_gates, hooks, javascript, python, rows, tasks
from atlas_retry.config.init.project import Files, ProjectFiles
from atlas_retry.config.init.values import Choice, Proposed, Slot

Obstacle = Callable[[Proposed], str | None]
"""Why a proposal cannot start here; None if it can."""

MARKS = (
    "pyproject.toml", "setup.py", "package.json", "go.mod", "Cargo.toml", "pom.xml",
    "build.gradle", "build.gradle.kts", "composer.json", "Gemfile", "mix.exs", "Package.swift",
    "deno.json", "deno.jsonc", "Chart.yaml", "CMakeLists.txt",
)  # fmt: skip
UNKNOWN = (
    "mix.exs", "deno.json*", "Package.swift", "CMakeLists.txt", "*.sln", "build.sbt", "stack.yaml",
    "*.cabal", "dune-project", "rebar.config", "project.clj", "deps.edn", "pubspec.yaml",
    "build.zig", "meson.build", "WORKSPACE", "MODULE.bazel", "BUILD.bazel", "pants.toml",
    "shard.yml", "gleam.toml", "*.nimble", "Project.toml", "DESCRIPTION", "flake.nix",
    "Jenkinsfile", "Earthfile",
)  # fmt: skip
"""Says how a project is built; named where no gate came of it."""
NOT_OURS = {
    "node_modules", "vendor", "examples", "example", "docs", "doc", "fixtures", "testdata",
    "templates", "template", "tutorials", "bench", "benchmarks", "benches", "fuzz", "samples",
}  # fmt: skip
MAX_PARTS = 6


def detect(files: Files) -> tuple[Proposed, ...]:
    """Everything the project seems to use: of a part below the root what the root leaves open."""
    project = ProjectFiles(files)
    found = tuple(_at(project))
    apart = "go" if project.has("go.work") else None
    covered = {(p.slot, p.language) for p in found if p.language != apart}
    whole = {p.slot for p in found if p.in_ci and p.cwd == "." and not p.language}
    in_ci = {(p.cwd, p.slot) for p in found}
    tested = any(p.slot is Slot.TEST for p in found)
    nested = (
        replace(p, cwd=f"{base}{'' if p.cwd == '.' else p.cwd}".rstrip("/"))
        for base in parts_of(files)[:MAX_PARTS]
        for p in _at(ProjectFiles(files, base))
        if (p.slot, p.language) not in covered and p.slot not in {*whole, Slot.HOOKS}
    )
    left_open = (p for p in nested if (p.cwd, p.slot) not in in_ci and not (p.task and tested))
    asked = {p.slot for p in found if p.in_ci}
    return tuple(p for p in (*found, *left_open) if p.slot in asked or not (asked and p.weak))


def parts_of(files: Files) -> list[str]:
    """Folders that hold a manifest of their own: one or two levels down, or in a workspace."""
    split = [path.split("/") for path in files.paths()]
    bases = {
        "/".join(parts[:-1]) + "/"
        for parts in split
        if len(parts) in (2, 3) and parts[-1] in MARKS and not NOT_OURS & set(parts)
    }
    return sorted(bases, key=lambda base: (base.count("/"), base))


def not_understood(files: Files, found: Iterable[Proposed]) -> tuple[str, ...]:
    """What says how the project is checked, and no gate came of."""
    project, proposed = ProjectFiles(files), tuple(found)
    languages = {p.language for p in proposed} - {""}
    known = {row.language: row.marks.split() for row in rows.ROWS}
    marks = {mark for language in languages for mark in known.get(language, [])}
    top = [path for path in project.paths if "/" not in path]
    unknown = [
        path
        for pattern in UNKNOWN
        for path in top
        if fnmatch(path, pattern) and not any(fnmatch(path, mark) for mark in marks)
    ]
    used = {p.cwd for p in proposed}
    rest = [base.rstrip("/") for base in parts_of(files) if base.rstrip("/") not in used]
    more = rest[:0] if languages & {"rust", "jvm", "dotnet"} else rest[MAX_PARTS:]
    counted = [f"{len(more)} more folders with a manifest ({more[0]} ...)"] if more else []
    return (*dict.fromkeys(unknown), *ci_gates.not_understood(project), *counted)


def _at(project: ProjectFiles) -> Iterator[Proposed]:
    in_hooks = hooks.tools_in_hooks(project)
    own = [*python.propose(project), *javascript.propose(project), *rows.propose(project)]
    lines = tuple(_with_fixers(ci_gates.propose(project), own))
    others = (p for p in own if not _is_within(p, lines))
    for proposed in (*lines, *others):
        yield replace(proposed, in_hooks=proposed.tool in in_hooks)
    yield from hooks.propose(project, python.prefix_for(project, "pre-commit"))
    yield from tasks.propose(project)


def _is_within(proposed: Proposed, lines: Iterable[Proposed]) -> bool:
    """Whether a target that CI runs starts the tool already."""
    layout = LAYOUTS.get(proposed.tool)
    mates = {tool for tool, language in LAYOUTS.items() if layout and language == layout}
    names = {proposed.tool, *mates} - {""}
    words = {*names, *(name.replace("-", " ") for name in names)}
    return any(word in line.body for line in lines for word in words)


def _with_fixers(lines: Iterable[Proposed], own: list[Proposed]) -> Iterator[Proposed]:
    """CI's lines with what we know of the same tool: its fixer, and its language for a target."""
    for line in lines:
        same = next(
            (p for p in own if (p.cwd, p.tool, p.slot) == (line.cwd, line.tool, line.slot)), None
        )
        fix = (
            same.fix or (same.run if same.slot is Slot.FORMAT and same.run != line.run else None)
            if same
            else None
        )
        yield replace(line, fix=line.fix or fix)


def choose(found: Iterable[Proposed], obstacle: Obstacle) -> tuple[Choice, ...]:
    """What to write, by slot: what CI runs, else the project's own tools, a target, a default.

    A tool that the hooks run is left to them if they can start. Where nothing of one source can
    start, the next stands in. Never two formatters for a language.
    """
    choices = [Choice(proposed=p, obstacle=obstacle(p)) for p in dict.fromkeys(found)]
    hooked = any(c.proposed.slot is Slot.HOOKS and c.obstacle is None for c in choices)
    left = [c for c in choices if c.proposed.in_hooks and hooked and not c.proposed.in_ci]
    kept = [c for c in choices if c not in left]
    covered = {(c.proposed.cwd, c.proposed.slot) for c in left}
    chosen: list[Choice] = []
    for cwd in dict.fromkeys(c.proposed.cwd for c in kept):
        for slot in Slot:
            here = [c for c in kept if (c.proposed.cwd, c.proposed.slot) == (cwd, slot)]
            chosen += _in_slot(here, covered=(cwd, slot) in covered)
    return tuple(sorted(chosen, key=lambda c: list(Slot).index(c.proposed.slot)))


def _in_slot(here: list[Choice], *, covered: bool) -> list[Choice]:
    lines = _once([c for c in here if c.proposed.in_ci])
    others = [c for c in here if not c.proposed.in_ci and not _is_said(c, lines)]
    others = [c for c in others if c.obstacle is None] if lines else others
    direct = [c for c in others if not c.proposed.task]
    own = [c for c in direct if not c.proposed.weak]
    if lines and not others:
        return lines
    if covered or any(c.obstacle is None for c in (*own, *lines)):
        return _one_layout([*lines, *(own if covered or own else [] if lines else direct)])
    missing = [c.proposed.tool for c in (*own, *lines) if c.proposed.tool]
    task = next((c for c in others if c.proposed.task and _starts(c, missing)), None)
    if task:
        return [*lines, *own, task]
    return [*lines, *(own or direct or [c for c in others if c.proposed.task][: 0 if lines else 1])]


def _is_said(choice: Choice, lines: list[Choice]) -> bool:
    """Whether a line of CI's that starts does the work of a proposal of our own."""
    started = [line.proposed for line in lines if line.obstacle is None]
    return any(
        choice.proposed.task or line.language in ("", choice.proposed.language) for line in started
    )


def _once(lines: list[Choice]) -> list[Choice]:
    """Of one tool's lines those that only check, if any does; a build that a test repeats stays."""
    checks = {c.proposed.tool for c in lines if not c.proposed.writes}
    return [c for c in lines if not c.proposed.writes or c.proposed.tool not in checks]


LAYOUTS = {
    "black": "python", "ruff-format": "python", "yapf": "python", "autopep8": "python",
    "prettier": "js", "biome format": "js", "dprint check": "js", "deno fmt": "js",
}  # fmt: skip
"""Formatters that lay out the same files: two of them never agree."""


def _one_layout(choices: list[Choice]) -> list[Choice]:
    seen: dict[str, Choice] = {}
    kept: list[Choice] = []
    for choice in choices:
        language = LAYOUTS.get(choice.proposed.tool)
        first = seen.get(language, choice) if language else choice
        if language and choice.obstacle is None:
            seen.setdefault(language, choice)
        if first is choice or first.proposed.tool == choice.proposed.tool:
            kept.append(choice)
            continue
        why = f"{first.proposed.tool} formats the same files; two formatters never agree"
        kept.append(replace(choice, obstacle=why))
    return kept


def _starts(task: Choice, missing: Iterable[str]) -> bool:
    """Whether a target can start: not if all it does is to call a tool that is not there."""
    return task.obstacle is None and not any(tool in task.proposed.body for tool in missing)
