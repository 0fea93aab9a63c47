"""Files that someone else's git changed in the work tree during a turn: a switch, a merge, a stash.

A commit over the same files changes none of them.
"""

import os
from collections.abc import Collection
from contextlib import suppress

from msgspec import Struct

from atlas_retry.reading import read_file
from atlas_retry.workspace.discovery import Workspace, head_in, uncommitted
from atlas_retry.workspace.files import StoredFile
from atlas_retry.workspace.git import MAX_NAMED, GitError, git, split
from atlas_retry.workspace.gitmoves import GitTurn
from atlas_retry.workspace.gittrace import ZERO
from atlas_retry.workspace.snapshot.store import list_tree, read_state
from atlas_retry.workspace.snapshot.trees import content_of

_OVER_THE_SAME_FILES = ("commit: ", "commit (initial)", "commit (amend)", "branch: ", "Branch: ")


class Under(Struct, frozen=True, kw_only=True):
    """Changes by someone else's git under an attempt."""

    how: str
    """As in HEAD's log, such as `checkout: moving from main to side`."""
    paths: frozenset[str]
    """Files that are as that git left them."""
    mixed: frozenset[str]
    """Files that it changed, and the attempt as well."""
    is_stashed: bool = False
    """Whether changes of the attempt are in the stash."""


def changed_under(
    ws: Workspace, turn: GitTurn, before: str, changed: Collection[str]
) -> Under | None:
    """What someone else's git changed in the files during a turn; None if nothing.

    `before` is the snapshot before the turn, `changed` the paths that differ after it.
    """
    try:
        by_head, by_stash = _by_head(ws, turn, changed), _by_stash(ws, turn, before, changed)
    except GitError:
        return None
    if by_head is None or by_stash is None:
        return by_head or by_stash
    return Under(
        how=f"{by_head.how}; {by_stash.how}",
        paths=(by_head.paths | by_stash.paths) - by_head.mixed - by_stash.mixed,
        mixed=by_head.mixed | by_stash.mixed,
        is_stashed=by_stash.is_stashed,
    )


def committed_since(ws: Workspace, snapshot_id: str, until: str | None = None) -> frozenset[str]:
    """Files that differ in the last commit from that of a snapshot, and are in the tree as there.

    Someone else committed them, or went to another commit: what an agent committed is undone.
    `until` is a later snapshot; None: now.
    """
    was = read_state(ws, snapshot_id).head
    now = read_state(ws, until).head if until else head_in(ws.git_dir, ws.common_dir)
    if was is None or now is None or was == now:
        return frozenset()
    try:
        differing = _differing(ws, was, now)
        return frozenset(differing - _edited(ws, differing))
    except GitError:
        return frozenset()


def _differing(ws: Workspace, was: str, now: str) -> set[str]:
    asked = ("diff-tree", "-r", "--no-renames", "--name-only", "-z", was, now)
    return {*split(git(*asked, cwd=ws.root, env=ws.environ))}


def _edited(ws: Workspace, paths: Collection[str]) -> frozenset[str]:
    """Those of the paths that are not as in the last commit."""
    only = sorted(paths) if len(paths) <= MAX_NAMED else ()
    return uncommitted(ws.root, ws.environ, only).paths if paths else frozenset()


def _by_head(ws: Workspace, turn: GitTurn, changed: Collection[str]) -> Under | None:
    was, now = read_state(ws, turn.before.snapshot).head, head_in(ws.git_dir, ws.common_dir)
    how = _last_move(ws, turn)
    is_reset = how.startswith("reset: ")  # of all files, whichever commits differ
    if not how or (was == now and not is_reset):
        return None
    if was is None or now is None:
        return None
    differing = _differing(ws, was, now)
    moved = {*changed} if is_reset else differing.intersection(changed)
    edited = _edited(ws, moved)
    both = moved & edited & differing
    return Under(how=how, paths=frozenset(moved - edited), mixed=frozenset(both))


def _last_move(ws: Workspace, turn: GitTurn) -> str:
    """The last entry of HEAD's log in which someone else's git changed files; empty if none did."""
    made = {one.new for one in turn.did.updates}
    file = ws.git_dir / "logs" / "HEAD"
    log = read_file(file)[turn.before.log_bytes :] if file.is_file() else b""
    entries = [line.partition("\t") for line in os.fsdecode(log).splitlines()]
    if not entries:
        return "HEAD was moved"
    theirs = [why for ids, _, why in entries if ids.split(" ", 2)[1] not in made]
    moving = [why for why in theirs if not why.startswith(_OVER_THE_SAME_FILES)]
    return moving[-1] if moving else ""


def _by_stash(ws: Workspace, turn: GitTurn, before: str, changed: Collection[str]) -> Under | None:
    """Files that a new stash of someone else took out of the work tree."""
    stash = turn.now.get("refs/stash", ZERO)
    known = turn.before.facts.get("stash", "")
    if "stash" not in turn.moves.others or stash == ZERO or stash in known:
        return None
    base, held = (_tree(ws, f"{stash}{suffix}") for suffix in ("^1", ""))
    with suppress(GitError):  # without untracked files there is no third parent
        held |= _tree(ws, f"{stash}^3")
    taken = {path for path in held if held[path] != base.get(path)}
    taken |= base.keys() - held.keys()
    work = read_state(ws, before).files
    mixed = {path for path in taken if content_of(work.get(path)) != content_of(held.get(path))}
    return Under(
        how="git stash",
        paths=frozenset((taken - mixed).intersection(changed)),
        mixed=frozenset(mixed),
        is_stashed=bool(mixed),
    )


def _tree(ws: Workspace, revision: str) -> dict[str, StoredFile]:
    return dict(list_tree(git("ls-tree", "-r", "-z", revision, cwd=ws.root, env=ws.environ)))
