"""The work tree and git: snapshots, what differs, restoring, facts, the lock; judges nothing.

The user's repository is only read, but for what a restore writes. Every git runs without the
repository's hooks, filters, monitors and network.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atlas_retry.workspace.commits import TRAILER as TRAILER
    from atlas_retry.workspace.commits import CommitMessage as CommitMessage
    from atlas_retry.workspace.commits import Made as Made
    from atlas_retry.workspace.commits import commit_patch as commit_patch
    from atlas_retry.workspace.commits import commit_run as commit_run
    from atlas_retry.workspace.commits import delivered_in_a_row as delivered_in_a_row
    from atlas_retry.workspace.commits import set_branch as set_branch
    from atlas_retry.workspace.commits import tree_id as tree_id
    from atlas_retry.workspace.discovery import Workspace as Workspace
    from atlas_retry.workspace.discovery import facts as facts
    from atlas_retry.workspace.discovery import open_workspace as open_workspace
    from atlas_retry.workspace.discovery import unopened as unopened
    from atlas_retry.workspace.git import user_environment as user_environment
    from atlas_retry.workspace.gitfacts import facts_since as facts_since
    from atlas_retry.workspace.gitfacts import git_facts as git_facts
    from atlas_retry.workspace.isolated import beside as beside
    from atlas_retry.workspace.isolated import outsiders as outsiders
    from atlas_retry.workspace.layers import RunLayers as RunLayers
    from atlas_retry.workspace.layers import accept as accept
    from atlas_retry.workspace.layers import layers_folder as layers_folder
    from atlas_retry.workspace.layers import prepare_layers as prepare_layers
    from atlas_retry.workspace.locking import holder as holder
    from atlas_retry.workspace.locking import lock as lock
    from atlas_retry.workspace.look import Look as Look
    from atlas_retry.workspace.look import Lookout as Lookout
    from atlas_retry.workspace.look import Tracker as Tracker
    from atlas_retry.workspace.look import ignored as ignored
    from atlas_retry.workspace.look import tracked as tracked
    from atlas_retry.workspace.overlay import remove_layers as remove_layers
    from atlas_retry.workspace.putback import moved_git as moved_git
    from atlas_retry.workspace.putback import put_back_git as put_back_git
    from atlas_retry.workspace.putback import put_back_moved as put_back_moved
    from atlas_retry.workspace.recent import changed_lines as changed_lines
    from atlas_retry.workspace.restoring import AFTERMATH_S as AFTERMATH_S
    from atlas_retry.workspace.restoring import INDEX as INDEX
    from atlas_retry.workspace.restoring import Restored as Restored
    from atlas_retry.workspace.restoring import differing as differing
    from atlas_retry.workspace.restoring import edited_after as edited_after
    from atlas_retry.workspace.restoring import restore as restore
    from atlas_retry.workspace.restoring import restore_but_edited as restore_but_edited
    from atlas_retry.workspace.restoring import unheld as unheld
    from atlas_retry.workspace.restoring import write as write
    from atlas_retry.workspace.shadow import compact as compact
    from atlas_retry.workspace.shadow import drop as drop
    from atlas_retry.workspace.shadow import keep as keep
    from atlas_retry.workspace.shadow import kept as kept
    from atlas_retry.workspace.snapshots import Snapshot as Snapshot
    from atlas_retry.workspace.snapshots import load as load
    from atlas_retry.workspace.snapshots import snapshot as snapshot
    from atlas_retry.workspace.state import changes as changes
    from atlas_retry.workspace.state import patch as patch
    from atlas_retry.workspace.trees import ObjectTree as ObjectTree
    from atlas_retry.workspace.trees import as_in as as_in
    from atlas_retry.workspace.trees import directory_tree as directory_tree
    from atlas_retry.workspace.trees import revision_tree as revision_tree
    from atlas_retry.workspace.trees import source_tree as source_tree
    from atlas_retry.workspace.trees import tree as tree
    from atlas_retry.workspace.trees import walk as walk
    from atlas_retry.workspace.worktrees import add_worktree as add_worktree
    from atlas_retry.workspace.worktrees import list_worktrees as list_worktrees
    from atlas_retry.workspace.worktrees import names_around as names_around
    from atlas_retry.workspace.worktrees import remove_worktree as remove_worktree
    from atlas_retry.workspace.worktrees import resolve as resolve

_MODULES = {
    "commits": "CommitMessage Made TRAILER commit_patch commit_run delivered_in_a_row set_branch "
    "tree_id",
    "discovery": "Workspace facts open_workspace unopened",
    "git": "user_environment",
    "gitfacts": "facts_since git_facts",
    "isolated": "beside outsiders",
    "layers": "accept RunLayers layers_folder prepare_layers",
    "locking": "holder lock",
    "look": "Look Lookout Tracker ignored tracked",
    "overlay": "remove_layers",
    "putback": "moved_git put_back_git put_back_moved",
    "recent": "changed_lines",
    "restoring": "AFTERMATH_S INDEX Restored differing edited_after restore restore_but_edited "
    "unheld write",
    "shadow": "compact drop keep kept",
    "snapshots": "Snapshot load snapshot",
    "state": "changes patch",
    "trees": "ObjectTree as_in directory_tree revision_tree source_tree tree walk",
    "worktrees": "add_worktree list_worktrees names_around remove_worktree resolve",
}
"""Start-up: `atlas validate` needs two of these modules, so each is imported at its first use."""


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names.split():
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
