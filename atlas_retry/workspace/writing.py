"""Write single files of a work tree as they are said to be; holds nothing of what was there."""

from collections.abc import Mapping

from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.state import read_state
from atlas_retry.workspace.store import StoredFile


def write(ws: Workspace, files: Mapping[str, tuple[str, bytes] | None], start: str) -> None:
    """Make each path this mode and content (of a link: its target); None: there is no such file.

    What may have been there at the snapshot `start`, which does not hold it, is never removed.
    Raises WorkspaceError for a path that cannot be written; those before it are.
    """
    state = read_state(ws, start)
    for path, file in files.items():
        try:
            if file is None and state.may_lack(path):
                continue
            if file is None:
                place.remove(ws.root, path)
            else:
                place.put(ws.root, path, StoredFile(file[0], ""), file[1])
        except OSError as error:
            raise WorkspaceError(f"{ws.root / path} cannot be written: {error.strerror}") from error
