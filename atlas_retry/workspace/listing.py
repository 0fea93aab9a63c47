"""Have git list new files like tracked ones for a while: many gates take their files from git."""

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from atlas_retry import process
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, joined, split
from atlas_retry.workspace.staged import staged

_NOTE = "listing.note"


@contextmanager
def listed(ws: Workspace, paths: Collection[str]) -> Iterator[None]:
    """Add these files to the index without their content (git-add(1), `--intent-to-add`).

    Afterwards they are removed from it, except those that somebody has staged. If git cannot add
    them, or there is no index, it does not list them.
    """
    if not paths or not (ws.git_dir / "index").exists():
        yield
        return
    with process.orderly():
        try:
            with suppress(GitError, OSError):
                _note(ws).write_bytes(joined(paths))
                asked = ("add", "--intent-to-add", "--pathspec-from-file=-", "--pathspec-file-nul")
                git(*asked, cwd=ws.root, env=ws.environ, stdin=joined(paths))
            yield
        finally:
            with process.uninterruptible(f"the index of {ws.root} is being restored"):
                end_listing(ws)


def end_listing(ws: Workspace) -> None:
    """Remove the files from the index that `listed` added, also in an atlas that was killed.

    If another git holds the index, they stay until the next time.
    """
    with suppress(FileNotFoundError, GitError):
        paths = split(_note(ws).read_bytes())
        index = staged(ws.root, ws.environ, ws.git_dir / "index")
        ours = [path for path in paths if "intent-to-add" in index.flags.get(path, "")]
        if ours:
            asked = ("update-index", "--force-remove", "-z", "--stdin")
            git(*asked, cwd=ws.root, env=ws.environ, stdin=joined(ours))
        _note(ws).unlink()


def _note(ws: Workspace) -> Path:
    return ws.home / _NOTE
