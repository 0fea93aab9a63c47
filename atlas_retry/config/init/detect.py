"""Detects a project's gates from its files. Pure: the caller says what can start."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from posixpath import normpath

from msgspec.structs import replace

from atlas_retry.config.init import accounting, rows, tasks
from atlas_retry.config.init.accounting import AccountedLine
from atlas_retry.config.init.called import installing_line
from atlas_retry.config.init.commands import fixer_of
from atlas_retry.config.init.narrowing import narrowed
from atlas_retry.config.init.values import Proposed, Slot
from atlas_retry.config.project import Files, ProjectFiles

Place = tuple[str, Slot]
"""A folder, and the purpose of a gate there."""

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
"""Build files that are reported if no gate comes from them."""
NOT_OURS = {
    "node_modules", "vendor", "examples", "example", "docs", "doc", "fixtures", "testdata",
    "templates", "template", "tutorials", "bench", "benchmarks", "benches", "fuzz", "samples",
}  # fmt: skip
MAX_PARTS = 6
MAX_GATES = 12
"""More than these are left to CI: a validation must stay short enough to be run."""
WHOLE = {"rust", "jvm", "dotnet"}
"""Languages whose gates at the root check every member."""
SLOW = {"rust", "jvm", "cpp", "swift"}
"""Languages whose gates compile everything first."""
LONG = dict.fromkeys((Slot.TEST, Slot.BUILD, Slot.HOOKS), "15m")
"""Slots that may exceed the default timeout."""


def detect(
    files: Files, folder: str = ".", accounts: Iterable[AccountedLine] | None = None
) -> tuple[Proposed, ...]:
    """All gates of a folder of a repository, with what CI runs there.

    For a part below it, those that the folder itself does not cover. A language's default is
    dropped if CI runs gates but none of its slot. `accounts`: the lines of CI, if they have been
    read.
    """
    whole = ProjectFiles(files)
    project = whole.at(folder)
    if accounts is None:
        accounts = accounting.accounts(whole, accounting.jobs_of_ci(whole))
    of_ci = filter(None, (each.gate for each in accounts))
    start = "" if folder == "." else f"{folder}/"
    lines = [gate for gate in of_ci if f"{gate.cwd}/".startswith(start)]
    proposed_gates = [*_at(project, folder, lines)]
    by_root, has_go_work = tuple(proposed_gates), project.has("go.work")
    for base in parts_of(project)[:MAX_PARTS]:
        below = _at(project.at(base), normpath(f"{folder}/{base}"), ())
        proposed_gates += [p for p in below if not _is_covered(p, by_root, has_go_work=has_go_work)]
    in_ci = {p.slot for p in proposed_gates if p.in_ci}
    return tuple(filter(lambda p: not p.weak or p.slot in (in_ci or Slot), proposed_gates))


def _is_covered(proposed: Proposed, by_root: tuple[Proposed, ...], *, has_go_work: bool) -> bool:
    """Whether the proposals of the root already check it."""
    same = [p for p in by_root if p.slot is proposed.slot]
    # what CI runs at the root may check code of every language
    is_whole = (True, ".", "") in {(p.in_ci, p.cwd, p.language) for p in same}
    # with a go.work, the root's gates check only the root's own module
    is_apart = has_go_work and proposed.language == "go"
    is_checked = not is_apart and proposed.language in {p.language for p in same}
    return proposed.slot is Slot.HOOKS or is_whole or is_checked


def parts_of(project: ProjectFiles) -> list[str]:
    """Folders with a manifest of their own, one or two levels down."""
    manifests = (path.split("/") for path in project.paths if path.rpartition("/")[2] in MARKS)
    near = (parts[:-1] for parts in manifests if len(parts) in (2, 3))
    bases = {"/".join(parts) for parts in near if NOT_OURS.isdisjoint(parts)}
    return sorted(bases, key=lambda base: (base.count("/"), base))


def not_understood(project: ProjectFiles, proposed: Sequence[Proposed]) -> tuple[str, ...]:
    """Build files from which no gate was made."""
    languages = {p.language for p in proposed} - {""}
    known = " ".join(row.marks for row in rows.ROWS if row.language in languages).split()
    unread = {*project.files_like(*UNKNOWN)} - {*project.files_like(*known)}
    used = {p.cwd for p in proposed}
    rest = [base for base in parts_of(project) if base not in used]
    more = [] if languages & WHOLE else rest[MAX_PARTS:]
    folders = f"{len(more)} more folders with a manifest ({more[0]} ...)" if more else ""
    return (*sorted(unread), *([folders] if folders else []))


def _at(project: ProjectFiles, folder: str, lines: Sequence[Proposed]) -> Iterator[Proposed]:
    """The gates of one folder, from its own files and from these lines of CI."""
    hooks = rows.hooks_text(project)
    targets = [*tasks.propose(project)]
    scripts = [target for target in targets if not target.task]
    scripted = {(script.language, script.slot) for script in scripts}
    own = [row for row in rows.propose(project) if (row.language, row.slot) not in scripted]
    later = [target for target in targets if target.task]
    for proposed in (*lines, *scripts, *own, *later):
        cwd = proposed.cwd if proposed.in_ci else normpath(f"{folder}/{proposed.cwd}")
        here, line = ProjectFiles(project.files).at(cwd), proposed.run
        yield replace(
            narrowed(here, proposed),
            cwd=cwd,
            fix=proposed.fix or (None if proposed.task else fixer_of(line)),
            timeout="20m" if proposed.language in SLOW else LONG.get(proposed.slot),
            in_hooks=_is_in(hooks, proposed),
            installs=installing_line(here, line),
        )


def _is_in(hooks: str, proposed: Proposed) -> bool:
    """Whether hooks name the tool, also as in `golangci-lint-full`."""
    tool = proposed.tool
    if proposed.task or not tool or proposed.slot is Slot.HOOKS:
        return False
    names = {tool, tool.replace("-", " "), tool.replace(" ", "-"), tool.split()[-1]}
    pattern = (
        rf"(?<![\w/-])(?:{'|'.join(map(re.escape, names))})(?:-(?:check|full|jupyter))?(?![\w-])"
    )
    return re.search(pattern, hooks) is not None


def choose(
    proposed_gates: Iterable[Proposed], tried: Callable[[Proposed], Proposed]
) -> tuple[Proposed, ...]:
    """The gates to write for each folder and slot: from CI, else tools, targets, defaults.

    A tool that the hooks run is left to them if they can start. If nothing from one source can
    start, the next one is used. A language never gets two formatters. `tried` gives a proposal
    that cannot start here its obstacle.
    """
    choices = [*map(tried, dict.fromkeys(proposed_gates))]
    left = _left_to_hooks(choices)
    covered = set(map(_place, left))
    kept = [choice for choice in choices if choice not in left]
    folders = [*dict.fromkeys(choice.cwd for choice in kept)]
    kept.sort(key=lambda choice: ([*Slot].index(choice.slot), folders.index(choice.cwd)))
    chosen: list[Proposed] = []
    for place, here in groupby(kept, _place):
        chosen += _one_layout(_in_slot([*here], covered=place in covered))
    return tuple(_bounded(_optional(_each_suite_once(chosen))))


def _each_suite_once(chosen: Iterable[Proposed]) -> list[Proposed]:
    """The gates without those tests that another one runs; of two, CI's line that can start."""
    suites: dict[object, Proposed] = {}
    for choice in chosen:
        key = accounting.suite_of(choice) if choice.slot is Slot.TEST else choice
        first = suites.setdefault(key, choice)
        if first.obstacle and not choice.obstacle and choice.in_ci >= first.in_ci:
            suites[key] = choice
    return [*suites.values()]


def _optional(chosen: list[Proposed]) -> list[Proposed]:
    """The gates; those that CI does not run only warn, if some of CI can start.

    Tests stay required in place of those of CI that cannot start.
    """
    started = [choice for choice in _started(chosen) if choice.in_ci]
    tests = {choice.slot for choice in chosen if choice.in_ci} & {Slot.TEST}
    replaced = tests - {choice.slot for choice in started}
    why = "; CI does not run it"
    return [
        replace(choice, required=False, reason=choice.reason + why)
        if started and not choice.in_ci and choice.slot not in replaced
        else choice
        for choice in chosen
    ]


def _bounded(chosen: list[Proposed]) -> list[Proposed]:
    """The gates; all but `MAX_GATES` of them, the first of each slot and folder, are left to CI."""
    seen = Counter[Place]()
    ranks: dict[int, tuple[bool, int]] = {}
    for number, choice in enumerate(chosen):
        if choice.obstacle is None:
            ranks[number] = (not choice.required, seen[_place(choice)])
            seen[_place(choice)] += 1
    first = sorted(ranks, key=lambda number: ranks[number])[:MAX_GATES]
    return [
        left_to_ci(choice, "there are many") if number in ranks and number not in first else choice
        for number, choice in enumerate(chosen)
    ]


def left_to_ci(choice: Proposed, why: str) -> Proposed:
    """A gate that only CI runs, and that only warns."""
    return replace(choice, required=False, only_in_ci=True, note=f"left to CI: {why}")


def _left_to_hooks(choices: list[Proposed]) -> list[Proposed]:
    """Tools that startable hooks run, except lines of CI."""
    if not any(choice.slot is Slot.HOOKS for choice in _started(choices)):
        return []
    return [choice for choice in choices if (choice.in_hooks, choice.in_ci) == (True, False)]


def _place(choice: Proposed) -> Place:
    return choice.cwd, choice.slot


def _started(choices: Iterable[Proposed]) -> list[Proposed]:
    return [choice for choice in choices if choice.obstacle is None]


def _in_slot(here: list[Proposed], *, covered: bool) -> list[Proposed]:
    """The lines of CI, and the gates of other sources that they do not cover.

    `covered`: hooks do some of the slot's work.
    """
    lines = _without_writers([choice for choice in here if choice.in_ci])
    others = [choice for choice in here if not choice.in_ci]
    rest = _left_open(others, lines) if lines else others
    own = [choice for choice in rest if (choice.task, choice.weak) == (False, False)]
    best = [*lines, *own]
    return best if covered or _started(best) else _standing_in(best, rest)


def _standing_in(best: list[Proposed], rest: list[Proposed]) -> list[Proposed]:
    """Gates if none of the best can start: a target too, else a default."""
    targets = [choice for choice in rest if choice.task]
    if started := _started(targets):
        return [*best, started[0]]
    return best or [choice for choice in rest if choice.weak] or targets[:1]


def _left_open(others: list[Proposed], lines: list[Proposed]) -> list[Proposed]:
    """Startable gates in languages that the lines of CI do not check."""
    languages = {line.language for line in _started(lines)}
    if "" in languages:  # a target may check code of every language
        return []
    return [choice for choice in _started(others) if choice.language not in languages]


def _without_writers(lines: list[Proposed]) -> list[Proposed]:
    """The lines without those that change files, for tools that also have a checking line."""
    checks = {line.tool for line in lines if not line.writes}
    writers = filter(lambda line: line.writes, lines)
    doubled = [line for line in writers if line.tool in checks]
    return [line for line in lines if line not in doubled]


NO_LAYOUT = {"isort", "docformatter"}
"""Formatters that another one of the language does not undo."""


def _one_layout(choices: list[Proposed]) -> Iterator[Proposed]:
    """The choices; of several startable formatters of a language only the first."""
    firsts: dict[str, str] = {}
    for choice in choices:
        is_layout = choice.slot is Slot.FORMAT and choice.tool and choice.tool not in NO_LAYOUT
        if not is_layout or choice.obstacle:
            yield choice
            continue
        first = firsts.setdefault(choice.language, choice.tool)
        why = f"{first} formats the same files; two formatters disagree"
        is_first = first == choice.tool
        yield choice if is_first else replace(choice, obstacle=why, doubled=True)
