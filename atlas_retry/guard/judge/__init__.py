"""The guard's shell: builds a case from folders, revisions and snapshots, and judges it.

`judge_change` is for `atlas guard`, `judge_attempt` for runs.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import chain
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.errors import UsageError
from atlas_retry.guard import Case, Judgement, Ruling, assess, rulings
from atlas_retry.guard.decides import is_code_or_setting
from atlas_retry.guard.judge import folders, seals
from atlas_retry.model import Gate, GateResult, GitFacts, Tree, Violation
from atlas_retry.settings import CONFIGURATION_FILES
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.gitfacts import git_facts
from atlas_retry.workspace.snapshot.trees import (
    DirectoryTree,
    ObjectTree,
    changes,
    mixed,
    revision_tree,
    tree,
)


class ChangeAsked(Struct, frozen=True, kw_only=True):
    """Arguments of `atlas guard`."""

    workspace: Path
    base: str
    """A folder, or a revision of the workspace's repository."""
    gates: tuple[Gate, ...] = ()
    failing: tuple[GateResult, ...] = ()
    outside: tuple[tuple[Path, Path], ...] = ()
    """Places outside the workspace, before and after the change."""
    allow: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    notes_reviews: bool = False
    """Whether `guard.review` is `note`."""
    sources: tuple[str, ...] = ()
    """Atlas's configuration files in the base."""


def judge_change(asked: ChangeAsked, environ: Mapping[str, str]) -> Judgement:
    """The judgement of a change. Executes nothing of the project.

    Raises UsageError for a missing folder, and for a base that is neither folder nor revision.
    """
    return assess(_case(asked, environ))


def explain(asked: ChangeAsked, path: str, environ: Mapping[str, str]) -> tuple[Ruling, ...]:
    """The rulings on a path."""
    return tuple(ruling for ruling in rulings(_case(asked, environ)) if ruling.path == path)


def _case(asked: ChangeAsked, environ: Mapping[str, str]) -> Case:
    root, base = asked.workspace, Path(asked.base)
    if not asked.base.strip():
        remedy = "name the commit or folder before the change: atlas guard --base main"
        raise UsageError("--base is empty", remedy=remedy)
    if not root.is_dir():
        raise UsageError(f"{root} is not a folder", remedy="Name the workspace that was changed.")
    before = base_tree(asked, environ)
    after = DirectoryTree(root, environ)
    both = sorted({*before.paths(), *after.paths()})
    if isinstance(before, ObjectTree):
        before.preload(both)

    def differs(path: str) -> bool:
        return before.mode(path) != after.mode(path) or before.read(path) != after.read(path)

    changed = tuple(filter(differs, both))
    outside = chain.from_iterable(folders.differences(old, new) for old, new in asked.outside)
    case = Case(
        before=before,
        after=after,
        changed=changed,
        gates=asked.gates,
        failing=asked.failing,
        root=str(root.resolve()),
        allow=asked.allow,
        protect=asked.protect,
        outside=tuple(outside),
        notes_reviews=asked.notes_reviews,
        sources=asked.sources,
        mentions=folders.searching(root, before, changed),
    )
    if not base.is_dir():
        return case
    # facts about files that git does not track
    under_git = (base / ".git").exists() and (root / ".git").exists()
    return replace(
        case,
        git_before=git_facts(base, environ=environ) if under_git else {},
        git_after=git_facts(root, environ=environ) if under_git else {},
        installed=_untracked(seals.installed_differences(base, root), (before, after)),
    )


def rewritten(
    ws: Workspace, before: str, after: str, by_checkers: Collection[str]
) -> tuple[Violation, ...]:
    """Deciding files that changed while gates ran, by code of the attempt.

    Formatters and linters may change them (`by_checkers`), and data files are output.
    """
    moved = {change.path for change in changes(ws, before, after)} - {*by_checkers}
    paths = tuple(sorted(path for path in moved if is_code_or_setting(path)))
    if not paths:
        return ()
    old, new = tree(ws, before), tree(ws, after)
    old.preload(paths)
    new.preload(paths)
    judgement = assess(Case(before=old, after=new, changed=paths))
    return tuple(
        Violation(rule="rewritten-by-a-gate", path=path, detail="was changed while the gates ran")
        for path in judgement.held_paths
    )


def base_tree(asked: ChangeAsked, environ: Mapping[str, str]) -> Tree:
    """The tree to compare the change with. Raises UsageError for an unknown revision."""
    base = Path(asked.base)
    if base.is_dir():
        return DirectoryTree(base, environ)
    return revision_tree(asked.workspace, asked.base, environ=environ)


def with_base_configuration(asked: ChangeAsked, environ: Mapping[str, str]) -> ChangeAsked:
    """The arguments with the base's gates and `guard` section, unless gates are given.

    Raises ConfigError for an invalid configuration, UsageError for an unknown revision.
    """
    if asked.gates or asked.failing:
        return asked
    base, root = base_tree(asked, environ), asked.workspace.resolve()
    name = next((name for name in CONFIGURATION_FILES if base.mode(name)), None)
    if name is None:
        return asked
    settings = config.load_from(root / name, config.reader_of(base, root, asked.base))
    guard = settings.guard
    return replace(
        asked,
        gates=settings.gates,
        allow=(*guard.allow, *asked.allow),
        protect=guard.protect,
        notes_reviews=guard.review == "note",
        sources=seals.sources_inside(root, settings),
    )


class JudgedTurn(Struct, frozen=True, kw_only=True):
    """One agent turn with its snapshots and facts about the run."""

    origin: str
    """Snapshot before the first attempt."""
    before: str
    after: str
    failing: tuple[GateResult, ...] = ()
    earlier: frozenset[str] = frozenset()
    """Paths that earlier attempts changed; judged again, against the origin."""
    theirs: frozenset[str] = frozenset()
    """Paths that the user edited during the run; compared with the state before this turn."""
    outputs: frozenset[str] = frozenset()
    """Data files that gates wrote in this run."""
    puts_back: bool = False
    """Whether the caller puts back what is installed."""
    git_after: GitFacts | None = None
    """State of git as the agent left it; None: as it is now."""


def judge_attempt(
    ws: Workspace, turn: JudgedTurn, taken: seals.Seal, beside: seals.Moved | None = None
) -> Judgement:
    """The judgement of a turn's own changes. `beside` is `seals.compared(taken)`.

    Ignores what gates wrote before or after it. Deciding files are compared with the start of the
    run, plus the user's own later edits.
    """
    tracked = {change.path for change in changes(ws, turn.before, turn.after)}
    touched = {change.path for change in changes(ws, turn.before, turn.after, ignored=True)}
    paths = touched | (turn.earlier - turn.theirs)
    before, after = tree(ws, turn.before, ignored=True), tree(ws, turn.after, ignored=True)
    base = mixed(ws, turn.origin, turn.before, turn.theirs)
    for one in (base, after):
        one.preload(paths)
    beside = beside or seals.compared(taken)

    def hides(git_dir: str) -> bool:
        """Whether earlier files are now inside another repository, where git does not see them."""
        return any(path.startswith(git_dir.removesuffix(".git")) for path in before.paths())

    case = Case(
        before=base,
        after=after,
        changed=tuple(sorted(paths)),
        in_run=True,
        root=str(taken.root),
        ignored=frozenset(touched - tracked),
        outputs=turn.outputs,
        gates=taken.gates,
        failing=turn.failing,
        protect=taken.guard.protect,
        allow=taken.guard.allow,
        sources=taken.sources,
        outside=beside.outside,
        tools=beside.tools,
        modes=beside.modes,
        git_before=taken.facts,
        git_after=turn.git_after or git_facts(taken.root, environ=taken.environ),
        nested=(*beside.nested, *(git for git in beside.hiding if hides(git))),
        installed=_untracked(beside.installed, (tree(ws, s) for s in (turn.before, turn.after))),
        restorable=beside.restorable if turn.puts_back else frozenset(),
        added=beside.added,
        notes_reviews=taken.guard.review == "note",
        mentions=folders.searching(taken.root, base, paths),
    )
    return replace(assess(case), unseen=beside.unseen)


def _untracked(installed: tuple[str, ...], trees: Iterable[Tree]) -> tuple[str, ...]:
    """The installed files that git does not track; vendored ones belong to the project."""
    vendored = frozenset(path for path in installed if "vendor" in path.split("/"))
    if not vendored:
        return installed
    own = vendored.intersection(chain.from_iterable(one.paths() for one in trees))
    return tuple(path for path in installed if path not in own)
