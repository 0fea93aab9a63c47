"""Content that only uncommitted files hold: definitions that a run removed, recorded values.

Reads snapshots and the last commit; changes nothing.
"""

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from itertools import chain

from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.guard.places import CACHES, is_build_output, is_code
from atlas_retry.model import Change, ChangeStatus, Content, Contents, Lost
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
    paths = trees.moved(git, start, left)
    if not paths:
        return ()
    before, after = (trees.tree(git, name).contents(paths) for name in (start, left))
    committed: Contents = dict.fromkeys(paths)
    with suppress(UsageError, WorkspaceError):  # there may be no commit
        head = trees.revision_tree(git.root, "HEAD", paths, environ=environ)
        committed = head.contents(paths)
    lost: dict[str, tuple[str, ...]] = dict.fromkeys(_lost_files(before, after, committed), ())
    lost |= _lost_definitions(before, after, committed)
    return tuple(Lost(path=path, names=lost[path]) for path in sorted(lost) if path not in theirs)


def _lost_definitions(
    before: Contents, after: Contents, committed: Contents
) -> dict[str, tuple[str, ...]]:
    """The names of lost definitions, without those inside another one, by path."""
    old, new, known = map(_all_scopes, (before, after, committed))
    added = chain.from_iterable(_without(new[path], old[path]) for path in new)
    come = {scope.name for scope in added}
    lost = {}
    for path in old:
        gone = _without(old[path], {**new[path], **known[path]})
        named = {scope.qualified_name: scope for scope in gone if scope.name not in come}
        # a class stands for its members
        names = tuple(name for name, scope in named.items() if scope.owner not in named)
        if names:
            lost[path] = names
    return lost


def _lost_files(before: Contents, after: Contents, committed: Contents) -> Iterator[str]:
    """Files whose uncommitted content is nowhere any more."""
    there = {_text(file) for file in after.values()}
    for path, file in before.items():
        was, now, known = map(_text, (file, after[path], committed[path]))
        if was not in (None, known) and was not in there and now in (None, known):
            yield path


def _text(file: Content | None) -> bytes | None:
    """Content with the same ends of lines wherever git has checked it out."""
    return file[1].replace(b"\r\n", b"\n") if file else None


def _without(scopes: Mapping[str, Scope], others: Mapping[str, Scope]) -> list[Scope]:
    return [scope for key, scope in scopes.items() if key not in others]


def _all_scopes(files: Contents) -> dict[str, dict[str, Scope]]:
    """Functions, classes and top-level names by their qualified names, of each file."""
    found: dict[str, dict[str, Scope]] = {}
    for path, file in files.items():
        found[path] = {}
        if file and file[0].startswith("100") and len(file[1]) <= MAX_BYTES:
            for scope in definitions(path, file[1]):
                if scope.kind is not ScopeKind.VARIABLE or scope.owner is None:
                    found[path][scope.qualified_name] = scope
    return found


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
    visible = {*trees.moved(git, start, end)}
    for change in trees.changes(git, start, end, ignored=True):
        path = change.path
        if path not in visible and not is_build_output(path) and not CACHES.match(path):
            yield change
