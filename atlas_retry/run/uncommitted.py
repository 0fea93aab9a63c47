"""Content that only uncommitted files hold: definitions that a run removed, recorded values.

Reads snapshots and the last commit; changes nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from pathlib import Path

from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.guard.places import CACHES, is_code, is_made
from atlas_retry.model import Change, ChangeStatus, Lost, Tree
from atlas_retry.source import Scope, ScopeKind, definitions
from atlas_retry.workspace import discovery, state, trees

MAX_BYTES = 1 << 20
"""Size limit of files that are parsed."""


def lost_definitions(
    git: discovery.Workspace, start: str, left: str, environ: Mapping[str, str]
) -> tuple[Lost, ...]:
    """Functions, classes and top-level names of the snapshot `start` that are missing in `left`.

    Only those that the last commit does not have in that file; what moved to another file that the
    run changed is not missing.
    """
    paths = [change.path for change in state.changes(git, start, left)]
    if not paths:
        return ()
    before, after = (trees.tree(git, name) for name in (start, left))
    for tree in (before, after):
        tree.preload(paths)
    if not any(lost(paths, before=before, after=after, committed=None)):
        return ()
    committed = _committed(git.root, paths, environ)
    return tuple(lost(paths, before=before, after=after, committed=committed))


def _committed(root: Path, paths: Collection[str], environ: Mapping[str, str]) -> Tree | None:
    """The tree of the last commit; None if there is none."""
    with suppress(UsageError, WorkspaceError):
        committed = trees.revision_tree(root, "HEAD", paths, environ=environ)
        committed.preload(paths)
        return committed
    return None


def lost(
    paths: Collection[str], *, before: Tree, after: Tree, committed: Tree | None
) -> Iterator[Lost]:
    """Lost definitions between two trees; `paths` are the files that differ between them."""
    old, new = ({path: _scopes(path, tree) for path in paths} for tree in (before, after))
    added = chain.from_iterable(_without(new[path], old[path]) for path in paths)
    come = {scope.name for scope in added}
    for path in paths:
        known = _scopes(path, committed) if committed else {}
        gone = _without(old[path], {**new[path], **known})
        if names := _outermost(scope for scope in gone if scope.name not in come):
            yield Lost(path=path, names=names)


def _without(scopes: Mapping[str, Scope], others: Mapping[str, Scope]) -> list[Scope]:
    return [scope for key, scope in scopes.items() if key not in others]


def _scopes(path: str, tree: Tree) -> dict[str, Scope]:
    """Functions, classes and top-level names by their qualified names."""
    content = tree.read(path)
    if content is None or len(content) > MAX_BYTES or not (tree.mode(path) or "").startswith("100"):
        return {}
    return {
        scope.qualified_name: scope
        for scope in definitions(path, content)
        if not _is_inner_variable(scope)
    }


def _is_inner_variable(scope: Scope) -> bool:
    return scope.kind is ScopeKind.VARIABLE and scope.owner is not None


def _outermost(scopes: Iterable[Scope]) -> tuple[str, ...]:
    """Names without those inside another one: a class stands for its members."""
    named = {scope.qualified_name: scope for scope in scopes}
    return tuple(name for name, scope in named.items() if scope.owner not in named)


def deleted_ignored(git: discovery.Workspace, start: str, left: str) -> tuple[str, ...]:
    """Ignored files of the snapshot `start` that are missing in `left` and that no tool makes."""
    changes = _ignored(git, start, left)
    return tuple(change.path for change in changes if change.status is ChangeStatus.DELETED)


def recorded(git: discovery.Workspace, start: str, end: str, began_s: float) -> Iterator[str]:
    """Ignored files that were written between two snapshots, but not after `began_s`.

    A failing test may have recorded there what it compares with.
    """
    for change in _ignored(git, start, end):
        path = git.root / change.path
        if not path.is_symlink() and path.exists() and path.stat().st_ctime < began_s:
            yield change.path


def generated(git: discovery.Workspace, start: str, left: str) -> frozenset[str]:
    """Ignored code that gates wrote before the snapshot `left`, which other gates may import.

    If it is written again, a gate beside may have read the one from before.
    """
    return frozenset(change.path for change in _ignored(git, start, left) if is_code(change.path))


def _ignored(git: discovery.Workspace, start: str, end: str) -> Iterator[Change]:
    """Changes of ignored files that no tool makes."""
    visible = {change.path for change in state.changes(git, start, end)}
    for change in state.changes(git, start, end, ignored=True):
        path = change.path
        if path not in visible and not is_made(path) and not CACHES.match(path):
            yield change
