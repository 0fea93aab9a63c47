"""Whether the work tree that gates are to judge is still the one they began on. Changes nothing."""

from pathlib import Path

from msgspec import Struct


class TreeIdentity(Struct, frozen=True, kw_only=True):
    """What is cheap to see of a work tree; git is not asked."""

    root: Path
    identity: tuple[int, int] | None = None
    """Device and inode of the root; None: it is not there."""
    has_git: bool = False
    names: frozenset[str] = frozenset()
    """What lies in the root and is not hidden."""


def tree_identity(root: Path) -> TreeIdentity:
    """The work tree as it is now."""
    try:
        stat = root.stat()
        return TreeIdentity(
            root=root,
            identity=(stat.st_dev, stat.st_ino),
            has_git=(root / ".git").exists(),
            names=frozenset(e.name for e in root.iterdir() if not e.name.startswith(".")),
        )
    except OSError:
        return TreeIdentity(root=root)


def lost(before: TreeIdentity) -> str | None:
    """What has gone since, in one sentence; None while there is something to judge."""
    now = tree_identity(before.root)
    if now.identity != before.identity:
        return f"{before.root} was deleted or replaced while it ran"
    if before.has_git and not now.has_git:
        return f"{before.root / '.git'} was deleted while it ran"
    if before.names and not before.names & now.names:
        return f"all files of {before.root} were deleted while it ran"
    return None
