"""Content that only uncommitted files hold: definitions that a run removed, recorded values.

Reads snapshots and the last commit; changes nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain

from msgspec import Struct

from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.guard.places import CACHES, is_build_output, is_code
from atlas_retry.model import Change, ChangeStatus, Lost, Tree
from atlas_retry.source import Scope, ScopeKind, definitions
from atlas_retry.workspace import discovery
from atlas_retry.workspace.snapshot import trees

MAX_BYTES = 1 << 20
"""Size limit of files that are parsed."""


def lost_work(
    git: discovery.Workspace,
    start: str,
    left: str,
    environ: Mapping[str, str],
    theirs: Collection[str] = (),
) -> tuple[Lost, ...]:
    """Work of the snapshot `start` that no commit has and that is missing in `left`.

    Files that are gone, or as in the last commit again, and of others functions, classes and
    top-level names. What moved to another file that the run changed is not missing. `theirs` are
    paths that the user changed during the run.
    """
    paths = [change.path for change in trees.changes(git, start, left)]
    if not paths:
        return ()
    before, after = (trees.tree(git, name) for name in (start, left))
    for tree in (before, after):
        tree.preload(paths)
    committed = None
    with suppress(UsageError, WorkspaceError):  # there may be no commit
        committed = trees.revision_tree(git.root, "HEAD", paths, environ=environ)
        committed.preload(paths)
    trio = _Trees(before=before, after=after, committed=committed)
    names = {one.path: one for one in lost(paths, trio)}
    files = {path: Lost(path=path, names=()) for path in _lost_files(paths, trio)}
    every = (files | names).items()
    return tuple(one for path, one in sorted(every) if path not in theirs)


class _Trees(Struct, frozen=True, kw_only=True):
    """The trees that are compared; `committed` is None if there is no commit."""

    before: Tree
    after: Tree
    committed: Tree | None


def lost(paths: Collection[str], trio: _Trees) -> Iterator[Lost]:
    """Lost definitions between two trees; `paths` are the files that differ between them."""
    sides = (trio.before, trio.after)
    old, new = ({path: _scopes(path, tree) for path in paths} for tree in sides)
    added = chain.from_iterable(_without(new[path], old[path]) for path in paths)
    come = {scope.name for scope in added}
    for path in paths:
        known = _scopes(path, trio.committed) if trio.committed else {}
        gone = _without(old[path], {**new[path], **known})
        if names := _outermost(scope for scope in gone if scope.name not in come):
            yield Lost(path=path, names=names)


def _outermost(scopes: Iterable[Scope]) -> tuple[str, ...]:
    """Names without those inside another one: a class stands for its members."""
    named = {scope.qualified_name: scope for scope in scopes}
    return tuple(name for name, scope in named.items() if scope.owner not in named)


def _lost_files(paths: Collection[str], trio: _Trees) -> Iterator[str]:
    """Files whose uncommitted content is nowhere any more."""
    there = {_content(path, trio.after) for path in paths}
    for path in paths:
        was, now = _content(path, trio.before), _content(path, trio.after)
        known = _content(path, trio.committed) if trio.committed else None
        if was not in (None, known) and was not in there and now in (None, known):
            yield path


def _content(path: str, tree: Tree) -> bytes | None:
    """Content with the same ends of lines wherever git has checked it out."""
    content = tree.read(path)
    return content if content is None else content.replace(b"\r\n", b"\n")


def _without(scopes: Mapping[str, Scope], others: Mapping[str, Scope]) -> list[Scope]:
    return [scope for key, scope in scopes.items() if key not in others]


def _scopes(path: str, tree: Tree) -> dict[str, Scope]:
    """Functions, classes and top-level names by their qualified names."""
    content = tree.read(path)
    if content is None or len(content) > MAX_BYTES or not (tree.mode(path) or "").startswith("100"):
        return {}
    scopes = {}
    for scope in definitions(path, content):
        is_inner = scope.kind is ScopeKind.VARIABLE and scope.owner is not None
        if not is_inner:
            scopes[scope.qualified_name] = scope
    return scopes


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
    visible = {change.path for change in trees.changes(git, start, end)}
    for change in trees.changes(git, start, end, ignored=True):
        path = change.path
        if path not in visible and not is_build_output(path) and not CACHES.match(path):
            yield change
