"""The guard's shell: builds its case from folders, revisions and snapshots. Judges by its rules.

`judge_change` is what `atlas guard` asks; `seal` and `judge_attempt` are what a run asks.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.errors import UsageError
from atlas_retry.guard import Case, findings, inspect, places, separable
from atlas_retry.guard.inspection import violation
from atlas_retry.judge import folders, seals
from atlas_retry.judge.limit import limit
from atlas_retry.judge.replay import Replay, is_sealed, replay
from atlas_retry.judge.seals import Seal, protected
from atlas_retry.model import Gate, GateResult, Tree, Violation
from atlas_retry.settings import Settings
from atlas_retry.workspace import (
    Workspace,
    changes,
    directory_tree,
    facts_since,
    git_facts,
    revision_tree,
    submodules,
    tree,
)

__all__ = ["Asked", "Replay", "Seal", "judge_attempt", "judge_change", "protected", "seal"]


class Asked(Struct, frozen=True, kw_only=True):
    """What `atlas guard` was asked."""

    workspace: Path
    base: str
    """A folder, else a revision of the workspace's repository."""
    gates: tuple[Gate, ...] = ()
    failing: tuple[GateResult, ...] = ()
    outside: tuple[tuple[Path, Path], ...] = ()
    """Places outside the workspace: before, after."""
    allow: tuple[str, ...] = ()
    protect: tuple[str, ...] = ()
    with_replay: bool = False
    """Run the gates that failed on the new sources with the original tests."""


def judge_change(asked: Asked, environ: Mapping[str, str]) -> tuple[Violation, ...]:
    """Everything in a change that may not be done.

    Executes nothing of the project without `with_replay`. Raises UsageError for a missing folder,
    GitError for a base that is neither folder nor revision.
    """
    case = _case(asked, environ)
    if not asked.with_replay:
        return inspect(case)
    found = findings(case)
    if not any(places.is_test(finding.path) for _, finding in found):
        return tuple(violation(rule, finding) for rule, finding in found)
    said = replay(case.before, case.after, case.failing, root=asked.workspace, environ=environ)
    return tuple(
        _told(violation(rule, finding), said)
        for rule, finding in found
        if not (finding.soft and said is Replay.PASSES and is_sealed(finding.path))
    )


def _told(seen: Violation, said: Replay) -> Violation:
    if said is Replay.FAILS and places.is_test(seen.path):
        return replace(seen, detail=f"{seen.detail} With the original tests the gate still fails.")
    return seen


def _case(asked: Asked, environ: Mapping[str, str]) -> Case:
    root, base = asked.workspace, Path(asked.base)
    if not root.is_dir():
        raise UsageError(f"{root} is no folder", remedy="Name the workspace that was changed.")
    outside = [c for before, after in asked.outside for c in folders.differences(before, after)]
    case = Case(
        before=directory_tree(base, environ=environ)
        if base.is_dir()
        else _revision(asked, environ),
        after=_checkout(root, environ),
        gates=asked.gates,
        failing=asked.failing,
        allow=asked.allow,
        protect=asked.protect,
        outside=tuple(outside),
        is_over=limit(),
    )
    return _with_folder(case, base, root, environ) if base.is_dir() else case


def _revision(asked: Asked, environ: Mapping[str, str]) -> Tree:
    return revision_tree(asked.workspace, asked.base, environ=environ)


def _checkout(root: Path, environ: Mapping[str, str]) -> Tree:
    """A folder with the submodules that its repository names."""
    found = directory_tree(root, environ=environ)
    named = submodules(root, environ=environ) if (root / ".git").exists() else {}
    return folders.Overlay(found, {path: ("160000", oid.encode()) for path, oid in named.items()})


def _with_folder(case: Case, base: Path, root: Path, environ: Mapping[str, str]) -> Case:
    """With what two folders tell beyond the files that git sees."""
    before = folders.Folder(base)
    under_git = (base / ".git").exists() and (root / ".git").exists()
    return replace(
        case,
        before=before,
        after=folders.Folder(root, before.paths()),
        git_before=git_facts(base, environ=environ) if under_git else {},
        git_after=git_facts(root, environ=environ) if under_git else {},
        future=folders.from_the_future(base, root),
        leftovers=folders.left_running(root, base.stat().st_ctime),
    )


def seal(ws: Workspace, settings: Settings, environ: Mapping[str, str]) -> Seal:
    """Take, before the first attempt, the state of everything that decides what passes."""
    return seals.seal(ws.root, settings, environ)


def judge_attempt(
    ws: Workspace, before: str, after: str, *, seal: Seal, failing: Sequence[GateResult]
) -> tuple[tuple[Violation, ...], tuple[str, ...] | None]:
    """What an attempt may not have done, and the files whose return undoes it.

    The second part is None when the violations cannot be told apart from the rest.
    """
    now = folders.held(seal.root)
    moved = [p for p in {*seal.executed, *now} if seal.executed.get(p) != now.get(p)]
    differences = changes(ws, before, after, ignored=True)
    paths = {change.path for change in differences}
    old, new = (tree(ws, snapshot, ignored=True) for snapshot in (before, after))
    old.preload([*paths, *filter(places.is_test, old.paths())])
    new.preload(paths)
    planted = {path: now[path] for path in moved if path in now and path not in paths}
    case = Case(
        before=folders.Overlay(
            old,
            {
                path: seal.executed[path]
                for path in moved
                if path in seal.executed and path not in paths
            },
        ),
        after=folders.Overlay(new, planted),
        changed=tuple(sorted(paths | {path for path in moved if path not in paths})),
        gates=seal.gates,
        failing=tuple(failing),
        protect=seal.protect,
        allow=seal.allow,
        sources=seal.sources,
        git_before=seal.facts,
        git_after=facts_since(seal.root, seal.facts, environ=seal.environ),
        outside=seals.changes_outside(seal),
        tools=seals.moved_tools(seal),
        is_over=limit(),
    )
    found = inspect(case)
    return found, separable(found, differences)
