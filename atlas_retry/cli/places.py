"""The state directory, workspace and journal of the current command."""

import os
import sys
from contextlib import AbstractContextManager
from pathlib import Path
from sqlite3 import Connection
from typing import TextIO

from atlas_retry import config, state_dir
from atlas_retry.history import database
from atlas_retry.settings import in_ci
from atlas_retry.workspace import discovery
from atlas_retry.workspace.discovery import put_back_gitfile_around


def home() -> Path:
    """The state directory. Raises StateError."""
    return state_dir.locate(os.environ)


def can_ask(shown_on: TextIO) -> bool:
    """Whether a person can answer a question on this stream: both ends a terminal, and no CI."""
    return sys.stdin.isatty() and shown_on.isatty() and not in_ci(os.environ)


def root() -> Path:
    """The root of the workspace around the working directory."""
    put_back_gitfile_around(Path.cwd().resolve(), home())
    return config.root_of(Path.cwd()).resolve()


def workspace_at(folder: Path | str | None = None) -> discovery.Workspace:
    """The workspace of a folder, by default the working directory. Raises WorkspaceError."""
    return discovery.open_workspace(Path(folder or Path.cwd()), home(), environ=os.environ)


def journal() -> AbstractContextManager[Connection]:
    """The journal, opened for reading. Raises StateError."""
    return database.reading(home())
