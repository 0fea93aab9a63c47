"""The lock of a work tree, under which what a killed run left is put right."""

from collections.abc import Iterator
from contextlib import contextmanager

from atlas_retry.workspace import locking
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.isolation.isolated import put_back_aside
from atlas_retry.workspace.isolation.layers import finish_accepting


@contextmanager
def lock(ws: Workspace) -> Iterator[None]:
    """Be the only run in this work tree, as `locking.held`.

    First restores what a killed run had changed temporarily, and finishes what it had begun to
    accept. Raises WorkspaceError.
    """
    with locking.held(ws):
        put_back_aside(ws)
        finish_accepting(ws)
        yield
