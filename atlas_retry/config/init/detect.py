"""From a project's files to the gates it seems to use. Pure: whether they can start is told in."""

from collections.abc import Callable, Iterable, Iterator

from msgspec.structs import replace

from atlas_retry.config.init import compiled, hooks, javascript, python, scripting, tasks
from atlas_retry.config.init.project import Files, ProjectFiles
from atlas_retry.config.init.values import Choice, Proposed, Slot

Obstacle = Callable[[Proposed], str | None]
"""Why a proposal cannot start here; None if it can."""

MARKS = (
    "pyproject.toml",
    "setup.py",
    "package.json",
    "go.mod",
    "Cargo.toml",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "composer.json",
    "Gemfile",
)
NOT_OURS = {"node_modules", "vendor", "examples", "example", "docs", "doc", "fixtures", "testdata"}
MAX_PARTS = 6


def detect(files: Files) -> tuple[Proposed, ...]:
    """Everything the project seems to use; parts below the root only where the root has nothing."""
    found = tuple(_at(ProjectFiles(files)))
    if any(proposed.slot is not Slot.HOOKS and not proposed.task for proposed in found):
        return found
    parts = [(base, _at(ProjectFiles(files, base))) for base in _parts(files)]
    nested = [replace(p, cwd=base.rstrip("/")) for base, told in parts for p in told]
    return (*found, *nested)


def _parts(files: Files) -> list[str]:
    """Folders one or two levels down that hold a manifest."""
    split = [path.split("/") for path in files.paths()]
    depths = (2, 3)
    bases = {
        "/".join(parts[:-1]) + "/"
        for parts in split
        if len(parts) in depths and parts[-1] in MARKS and not NOT_OURS & set(parts)
    }
    return sorted(bases, key=lambda base: (base.count("/"), base))[:MAX_PARTS]


def _at(project: ProjectFiles) -> Iterator[Proposed]:
    in_hooks = hooks.tools_in_hooks(project)
    for source in (python, javascript, compiled, scripting):
        for proposed in source.propose(project):
            yield replace(proposed, in_hooks=proposed.tool in in_hooks)
    yield from hooks.propose(project, python.prefix_for(project, "pre-commit"))
    yield from tasks.propose(project)


def choose(found: Iterable[Proposed], obstacle: Obstacle) -> tuple[Choice, ...]:
    """What to write, by slot: one way of doing each thing, and one that starts if any does.

    A tool that the hooks run is left to them if they can start. A task stands in for a slot in
    which no tool of the project's own can start; a language's default gives way to a task.
    """
    choices = [Choice(proposed=p, obstacle=obstacle(p)) for p in dict.fromkeys(found)]
    hooked = any(c.proposed.slot is Slot.HOOKS and c.obstacle is None for c in choices)
    kept = [c for c in choices if not (c.proposed.in_hooks and hooked)]
    covered = {(c.proposed.cwd, c.proposed.slot) for c in choices if c not in kept}
    chosen: list[Choice] = []
    for cwd in dict.fromkeys(c.proposed.cwd for c in kept):
        for slot in Slot:
            here = [c for c in kept if (c.proposed.cwd, c.proposed.slot) == (cwd, slot)]
            chosen += _in_slot(here, covered=(cwd, slot) in covered)
    return tuple(sorted(chosen, key=lambda c: list(Slot).index(c.proposed.slot)))


def _in_slot(here: list[Choice], *, covered: bool) -> list[Choice]:
    direct = [c for c in here if not c.proposed.task]
    tasks_here = [c for c in here if c.proposed.task]
    own = [c for c in direct if not c.proposed.weak]
    if covered or any(c.obstacle is None for c in own):
        return own if covered else direct
    missing = [c.proposed.tool for c in own if c.proposed.tool]
    task = next((c for c in tasks_here if _starts(c, missing)), None)
    if task:
        return [*own, task]
    return direct or tasks_here[:1]


def _starts(task: Choice, missing: Iterable[str]) -> bool:
    """Whether a target can start: not if all it does is to call a tool that is not there."""
    return task.obstacle is None and not any(tool in task.proposed.body for tool in missing)
