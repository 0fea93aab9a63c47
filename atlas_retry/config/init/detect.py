"""From a project's files to the gates it seems to use. Pure: whether they can start comes in."""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from posixpath import normpath

from msgspec.structs import replace

from atlas_retry.config.init import ci_gates, hooks, rows, tasks
from atlas_retry.config.init.commands import fixer_of
from atlas_retry.config.init.project import Files, ProjectFiles
from atlas_retry.config.init.runners import needs_of, recheck_of
from atlas_retry.config.init.values import Choice, Proposed, Slot

Obstacle = Callable[[Proposed], str | None]
"""Why a proposal cannot start here; None if it can."""
Place = tuple[str, Slot]
"""A folder, and what a gate there is for."""

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
SLOW = {"rust", "jvm", "cpp", "swift"}
"""Languages whose gates compile everything first."""


def detect(files: Files) -> tuple[Proposed, ...]:
    """Everything the project seems to use: of a part below the root what the root leaves open."""
    project = ProjectFiles(files)
    found = [*_at(project)]
    root = _Covered(found, has_go_work=project.has("go.work"))
    for base in parts_of(files)[:MAX_PARTS]:
        below = (replace(p, cwd=normpath(f"{base}{p.cwd}")) for p in _at(ProjectFiles(files, base)))
        found += [p for p in below if root.leaves_open(p)]
    in_ci = {p.slot for p in found if p.in_ci}
    return tuple(p for p in found if not _is_replaced(p, in_ci))


def _is_replaced(proposed: Proposed, in_ci: set[Slot]) -> bool:
    """Whether a language's default goes: CI runs gates, and none of them does the same work."""
    return proposed.weak and bool(in_ci) and proposed.slot not in in_ci


class _Covered:
    """What the proposals for the root check already."""

    def __init__(self, found: list[Proposed], *, has_go_work: bool) -> None:
        # with a go.work, the root's gates see only the root's own module
        apart = {"go"} if has_go_work else set()
        self._languages = {(p.slot, p.language) for p in found if p.language not in apart}
        self._slots = {Slot.HOOKS, *(p.slot for p in found if _is_target_of_ci(p))}
        self._places = {(p.cwd, p.slot) for p in found}
        self._is_tested = any(p.slot is Slot.TEST for p in found)

    def leaves_open(self, proposed: Proposed) -> bool:
        if proposed.slot in self._slots or (proposed.slot, proposed.language) in self._languages:
            return False
        if (proposed.cwd, proposed.slot) in self._places:
            return False
        return not (proposed.task and self._is_tested)


def _is_target_of_ci(proposed: Proposed) -> bool:
    """Whether CI runs it at the root, and it may check code of every language."""
    return proposed.in_ci and proposed.cwd == "." and not proposed.language


def parts_of(files: Files) -> list[str]:
    """Folders that hold a manifest of their own: one or two levels down, or in a workspace."""
    split = [path.split("/") for path in files.paths()]
    bases = {"/".join(parts[:-1]) + "/" for parts in split if _is_manifest(parts)}
    return sorted(bases, key=lambda base: (base.count("/"), base))


def _is_manifest(parts: list[str]) -> bool:
    return len(parts) in (2, 3) and parts[-1] in MARKS and not NOT_OURS & set(parts)


def not_understood(files: Files, found: Iterable[Proposed]) -> tuple[str, ...]:
    """What says how the project is checked, and no gate came of."""
    project, proposed = ProjectFiles(files), tuple(found)
    languages = {p.language for p in proposed} - {""}
    known = " ".join(row.marks for row in rows.ROWS if row.language in languages).split()
    top = [path for path in project.paths if "/" not in path]
    telling = [path for path in top if _any(path, UNKNOWN)]
    unknown = [path for path in telling if not _any(path, known)]
    used = {p.cwd for p in proposed}
    rest = [base.rstrip("/") for base in parts_of(files) if base.rstrip("/") not in used]
    named = (*unknown, *ci_gates.not_understood(project))
    if languages & {"rust", "jvm", "dotnet"} or len(rest) <= MAX_PARTS:
        return named
    more = rest[MAX_PARTS:]
    return (*named, f"{len(more)} more folders with a manifest ({more[0]} ...)")


def _any(path: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(path, pattern) for pattern in patterns)


def _at(project: ProjectFiles) -> Iterator[Proposed]:
    in_hooks = hooks.tools_in_hooks(project)
    targets = [*tasks.propose(project)]
    scripts = [target for target in targets if not target.task]
    scripted = {(script.language, script.slot) for script in scripts}
    own = [row for row in rows.propose(project) if (row.language, row.slot) not in scripted]
    later = [*hooks.propose(project), *(target for target in targets if target.task)]
    for proposed in (*ci_gates.propose(project), *scripts, *own, *later):
        known = _known_of_its_line(project.at(proposed.cwd), proposed)
        yield replace(known, in_hooks=not proposed.task and proposed.tool in in_hooks)


def _known_of_its_line(here: ProjectFiles, proposed: Proposed) -> Proposed:
    """The proposal with all that its line alone says."""
    line = proposed.run
    slow = "20m" if proposed.language in SLOW else None
    long = proposed.slot in (Slot.TEST, Slot.BUILD, Slot.HOOKS)
    return replace(
        proposed,
        fix=proposed.fix or (None if proposed.task else fixer_of(line)),
        recheck=None if proposed.task else recheck_of(here, line, proposed.body),
        timeout=slow or ("15m" if long else None),
        needs=needs_of(here, line),
    )


def choose(found: Iterable[Proposed], obstacle: Obstacle) -> tuple[Choice, ...]:
    """What to write, by slot: what CI runs, else the project's own tools, a target, a default.

    A tool that the hooks run, or a target that CI runs, is left to them if they can start. Where
    nothing of one source can start, the next stands in. Never two formatters for a language.
    """
    choices = [Choice(proposed=p, obstacle=obstacle(p)) for p in dict.fromkeys(found)]
    left = _left_to_hooks(choices)
    covered = set(map(_place, left))
    lines = [proposed for proposed in _started(choices) if proposed.in_ci]
    own = [choice for choice in choices if choice not in left]
    kept = [choice for choice in own if not _is_within(choice.proposed, lines)]
    chosen: list[Choice] = []
    for place in _in_order(map(_place, kept)):
        here = [choice for choice in kept if _place(choice) == place]
        chosen += _in_slot(here, covered=place in covered)
    return tuple(chosen)


def _left_to_hooks(choices: Iterable[Choice]) -> list[Choice]:
    """Tools that hooks run which can start, but for lines of CI's."""
    every = list(choices)
    if not any(proposed.slot is Slot.HOOKS for proposed in _started(every)):
        return []
    in_hooks = [choice for choice in every if choice.proposed.in_hooks]
    return [choice for choice in in_hooks if not choice.proposed.in_ci]


def _in_order(places: Iterable[Place]) -> list[Place]:
    """By slot, and of one slot as the folders were found."""
    every = [*dict.fromkeys(places)]
    folders = [*dict.fromkeys(cwd for cwd, _ in every)]
    return sorted(every, key=lambda place: ([*Slot].index(place[1]), folders.index(place[0])))


def _place(choice: Choice) -> Place:
    return choice.proposed.cwd, choice.proposed.slot


def _started(choices: Iterable[Choice]) -> list[Proposed]:
    return [choice.proposed for choice in choices if choice.obstacle is None]


def _is_within(proposed: Proposed, lines: Iterable[Proposed]) -> bool:
    """Whether a target that CI runs starts the tool already."""
    if proposed.in_ci or proposed.task or not proposed.tool:
        return False
    layout = LAYOUTS.get(proposed.tool)
    mates = [tool for tool, language in LAYOUTS.items() if language == layout]
    names = [proposed.tool, *mates]
    words = {*names, *(name.replace("-", " ") for name in names)}
    bodies = "\n".join(line.body for line in lines if line.cwd == proposed.cwd)
    return any(word in bodies for word in words)


def _in_slot(here: list[Choice], *, covered: bool) -> list[Choice]:
    lines = _once([c for c in here if c.proposed.in_ci])
    others = [c for c in here if _stands_in(c, lines)]
    targets, direct = _apart(others, lambda proposed: proposed.task)
    _, own = _apart(direct, lambda proposed: proposed.weak)
    if covered or _started([*own, *lines]):
        return _one_layout([*lines, *own])
    if target := _first_that_starts(targets, [*own, *lines]):
        return [*lines, *own, target]
    last = [] if lines else targets[:1]
    return [*lines, *(own or direct or last)]


def _stands_in(choice: Choice, lines: list[Choice]) -> bool:
    """Whether a proposal of our own adds to CI's lines: no line does its work, and it can start."""
    if choice.proposed.in_ci:
        return False
    return not lines or (choice.obstacle is None and not _is_said(choice, lines))


def _apart(
    choices: Iterable[Choice], is_first: Callable[[Proposed], bool]
) -> tuple[list[Choice], list[Choice]]:
    sides: tuple[list[Choice], list[Choice]] = ([], [])
    for choice in choices:
        sides[not is_first(choice.proposed)].append(choice)
    return sides


def _is_said(choice: Choice, lines: list[Choice]) -> bool:
    """Whether a line of CI's that starts does the work of a proposal of our own."""
    languages = {line.language for line in _started(lines)}
    if choice.proposed.task:
        return bool(languages)
    return bool(languages & {"", choice.proposed.language})


def _once(lines: list[Choice]) -> list[Choice]:
    """Of one tool's lines those that only check, if any does; a build that a test repeats stays."""
    checks = {line.proposed.tool for line in lines if not line.proposed.writes}
    writers = [line for line in lines if line.proposed.writes]
    left_out = [line for line in writers if line.proposed.tool in checks]
    return [line for line in lines if line not in left_out]


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


def _first_that_starts(targets: Iterable[Choice], idle: Iterable[Choice]) -> Choice | None:
    """The first target that can start and does not only call one of the tools that cannot."""
    missing = {choice.proposed.tool for choice in idle} - {""}
    for target in targets:
        calls_missing = any(tool in target.proposed.body for tool in missing)
        if target.obstacle is None and not calls_missing:
            return target
    return None
