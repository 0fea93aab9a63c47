"""The work tree and git: snapshots, what differs, restoring, facts, the lock; judges nothing.

The user's repository is only read, but for what a restore writes. Every git runs without the
repository's hooks, filters, monitors and network.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from atlas_retry.workspace.accepting import accept
    from atlas_retry.workspace.commits import (
        TRAILER,
        CommitMessage,
        Made,
        commit_patch,
        commit_run,
        delivered_in_a_row,
        set_branch,
    )
    from atlas_retry.workspace.difference import changes, patch
    from atlas_retry.workspace.discovery import (
        NotARepositoryError,
        Workspace,
        facts,
        open_workspace,
        unopened,
    )
    from atlas_retry.workspace.git import user_environment
    from atlas_retry.workspace.gitfacts import facts_since, git_facts
    from atlas_retry.workspace.in_place import put_back_aside
    from atlas_retry.workspace.isolated import (
        beside,
        outsiders,
        overlaid,
    )
    from atlas_retry.workspace.layers import RunLayers, layers_folder, prepare_layers
    from atlas_retry.workspace.locking import holder, lock
    from atlas_retry.workspace.look import Look, Lookout, ignored, tracked
    from atlas_retry.workspace.overlay import remove_layers
    from atlas_retry.workspace.putback import moved_git, put_back_git
    from atlas_retry.workspace.recent import changed_lines
    from atlas_retry.workspace.restoring import (
        INDEX,
        Restored,
        conflicts,
        differing,
        restore,
        unheld,
    )
    from atlas_retry.workspace.shadow import compact, drop, keep, kept
    from atlas_retry.workspace.snapshots import Snapshot, load, snapshot
    from atlas_retry.workspace.tracker import Tracker
    from atlas_retry.workspace.tree_ids import tree_id
    from atlas_retry.workspace.trees import (
        ObjectTree,
        directory_tree,
        revision_tree,
        source_tree,
        submodules,
        tree,
        walk,
    )
    from atlas_retry.workspace.worktrees import (
        add_worktree,
        list_worktrees,
        names_around,
        remove_worktree,
        resolve,
    )
    from atlas_retry.workspace.writing import write

_MODULES = {
    "accepting": "accept",
    "isolated": "beside outsiders overlaid",
    "commits": "TRAILER Made CommitMessage commit_patch commit_run delivered_in_a_row set_branch",
    "difference": "changes patch",
    "discovery": "NotARepositoryError Workspace facts open_workspace unopened",
    "git": "user_environment",
    "gitfacts": "facts_since git_facts",
    "in_place": "put_back_aside",
    "layers": "RunLayers layers_folder prepare_layers",
    "locking": "holder lock",
    "look": "Look Lookout ignored tracked",
    "overlay": "remove_layers",
    "putback": "moved_git put_back_git",
    "recent": "changed_lines",
    "restoring": "INDEX Restored conflicts differing restore unheld",
    "shadow": "compact drop keep kept",
    "snapshots": "Snapshot load snapshot",
    "tree_ids": "tree_id",
    "tracker": "Tracker",
    "trees": "ObjectTree directory_tree revision_tree source_tree submodules tree walk",
    "worktrees": "add_worktree list_worktrees names_around remove_worktree resolve",
    "writing": "write",
}
"""Start-up: `atlas validate` needs two of these modules, so each is imported at its first use."""

__all__ = [
    "INDEX",
    "TRAILER",
    "CommitMessage",
    "Look",
    "Lookout",
    "Made",
    "NotARepositoryError",
    "ObjectTree",
    "Restored",
    "RunLayers",
    "Snapshot",
    "Tracker",
    "Workspace",
    "accept",
    "add_worktree",
    "beside",
    "changed_lines",
    "changes",
    "commit_patch",
    "commit_run",
    "compact",
    "conflicts",
    "delivered_in_a_row",
    "differing",
    "directory_tree",
    "drop",
    "facts",
    "facts_since",
    "git_facts",
    "holder",
    "ignored",
    "keep",
    "kept",
    "layers_folder",
    "list_worktrees",
    "load",
    "lock",
    "moved_git",
    "names_around",
    "open_workspace",
    "outsiders",
    "overlaid",
    "patch",
    "prepare_layers",
    "put_back_aside",
    "put_back_git",
    "remove_layers",
    "remove_worktree",
    "resolve",
    "restore",
    "revision_tree",
    "set_branch",
    "snapshot",
    "source_tree",
    "submodules",
    "tracked",
    "tree",
    "tree_id",
    "unheld",
    "unopened",
    "user_environment",
    "walk",
    "write",
]


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names.split():
            value = getattr(import_module(f"{__name__}.{module}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
