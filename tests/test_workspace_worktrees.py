import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.model import GitFacts
from atlas_retry.workspace import gitmoves
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.gitfacts import git_facts
from atlas_retry.workspace.isolation.isolated import lock
from atlas_retry.workspace.worktrees import add_worktree, list_worktrees, remove_worktree, resolve
from tests.repositories import ENVIRON, commit, entries, git, opened, write


def test_a_workspace_is_created_beside_the_repository_on_its_own_branch(
    root: Path, ws: Workspace
) -> None:
    write(root, "src/a.py", "a = 'not committed'\n")
    made = add_worktree(ws, "api")
    assert made == root.parent / "repo.worktrees" / "api"
    assert (made / "src/a.py").read_text() == "a = 1\n"
    (one,) = list_worktrees(ws.common_dir)
    assert (one.name, one.root, one.branch, one.is_there) == ("api", made, "atlas/api", True)


def test_a_workspace_starts_at_the_given_revision(root: Path, ws: Workspace) -> None:
    first = git(root, "rev-parse", "HEAD")
    commit(root, "second")
    assert git(add_worktree(ws, "old", "HEAD~1"), "rev-parse", "HEAD") == first


def test_workspaces_are_found_from_each_other(ws: Workspace) -> None:
    api = opened(add_worktree(ws, "api"), ws.state)
    web = add_worktree(api, "web")
    assert web.parent == api.root.parent
    assert list_worktrees(api.common_dir) == list_worktrees(ws.common_dir)
    assert [one.name for one in list_worktrees(ws.common_dir)] == ["api", "web"]


def test_other_worktrees_are_not_named_workspaces(root: Path, ws: Workspace) -> None:
    git(root, "worktree", "add", "-q", "--detach", str(root.parent / "mine"))
    assert list_worktrees(ws.common_dir) == ()


def test_many_workspaces_are_created_at_once(ws: Workspace) -> None:
    names = [f"w{number}" for number in range(8)]
    with ThreadPoolExecutor() as pool:
        made = list(pool.map(lambda name: add_worktree(ws, name), names))
    assert [one.name for one in list_worktrees(ws.common_dir)] == names
    assert all((root / "run.sh").exists() for root in made)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a.b", "-f", "a b", "é\n"])
def test_a_name_that_looks_like_a_path_is_refused(ws: Workspace, name: str) -> None:
    with pytest.raises(UsageError):
        add_worktree(ws, name)


def test_a_duplicate_name_is_refused(ws: Workspace) -> None:
    add_worktree(ws, "api")
    with pytest.raises(WorkspaceError, match="api"):
        add_worktree(ws, "api")


@pytest.mark.parametrize("revision", ["nowhere", "--detach"])
def test_an_unknown_revision_is_refused(ws: Workspace, revision: str) -> None:
    with pytest.raises(UsageError, match=revision):
        add_worktree(ws, "api", revision)
    assert list_worktrees(ws.common_dir) == ()


def test_no_hook_runs_when_a_workspace_is_created(root: Path, ws: Workspace) -> None:
    write(root, ".git/hooks/post-checkout", "#!/bin/sh\ntouch executed\n", 0o755)
    assert not (add_worktree(ws, "api") / "executed").exists()


def test_unmerged_commits_are_not_removed_without_force(root: Path, ws: Workspace) -> None:
    made = add_worktree(ws, "api")
    write(made, "new.txt", "new\n")
    commit(made)
    with pytest.raises(WorkspaceError, match="no other branch") as refused:
        remove_worktree(ws, "api")
    assert "merge atlas/api" in (refused.value.remedy or "")
    remove_worktree(ws, "api", force=True)
    assert list_worktrees(ws.common_dir) == ()
    assert not (root.parent / "repo.worktrees").exists()
    assert (add_worktree(ws, "api") / "new.txt").exists()


def test_a_merged_branch_is_removed_with_its_workspace(root: Path, ws: Workspace) -> None:
    made = add_worktree(ws, "api")
    write(made, "new.txt", "new\n")
    commit(made)
    git(root, "merge", "-q", "atlas/api")
    remove_worktree(ws, "api")
    assert git(root, "for-each-ref", "refs/heads/atlas") == b""
    assert not made.exists()


def test_a_workspace_with_a_deleted_folder_can_be_removed(ws: Workspace) -> None:
    shutil.rmtree(add_worktree(ws, "api"))
    remove_worktree(ws, "api")
    assert list_worktrees(ws.common_dir) == ()


@pytest.mark.parametrize("path", ["untracked.txt", "src/a.py"])
def test_uncommitted_work_is_not_removed_without_force(ws: Workspace, path: str) -> None:
    made = add_worktree(ws, "api")
    write(made, path, "precious\n")
    before = entries(made)
    with pytest.raises(WorkspaceError) as refused:
        remove_worktree(ws, "api")
    assert refused.value.remedy == "atlas workspace remove api --force"
    assert entries(made) == before
    remove_worktree(ws, "api", force=True)
    assert not made.exists()


def test_a_workspace_with_a_run_is_not_removed(ws: Workspace) -> None:
    made = add_worktree(ws, "api")
    with lock(opened(made, ws.state)), pytest.raises(WorkspaceError, match="a run is in api"):
        remove_worktree(ws, "api", force=True)
    assert made.is_dir()


def test_an_unknown_name_is_refused_with_a_suggestion(ws: Workspace) -> None:
    add_worktree(ws, "frontend")
    with pytest.raises(UsageError, match="did you mean frontend"):
        remove_worktree(ws, "fronted")


def test_an_argument_is_a_path_a_name_or_a_folder(root: Path, ws: Workspace) -> None:
    made = add_worktree(ws, "api")
    environ = {**ENVIRON, "HOME": str(root.parent)}
    assert resolve(".", root, environ=environ) == root
    assert resolve("./api", root, environ=environ) == root / "api"
    assert resolve("/etc", root, environ=environ) == Path("/etc")
    assert resolve("api", root / "src", environ=environ) == made
    assert resolve("src", root, environ=environ) == root / "src"
    assert resolve("api", made, environ=environ) == made
    (root / "api").mkdir()
    with pytest.raises(UsageError) as refused:
        resolve("api", root, environ=environ)
    assert "./api" in (refused.value.remedy or "")
    with pytest.raises(UsageError, match="no workspace or folder 'ap'; did you mean api"):
        resolve("ap", root, environ=environ)


def test_outside_a_repository_only_folders_are_resolved(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    assert resolve("api", tmp_path, environ=ENVIRON) == tmp_path / "api"
    with pytest.raises(UsageError):
        resolve("web", tmp_path, environ=ENVIRON)


def others_in(ws: Workspace, folder: Path, before: GitFacts) -> tuple[str, ...]:
    """What of git moved since `before`, and is named as the work of others."""
    gitmoves.note_before(ws, folder, before, "")
    turn = gitmoves.turned(ws, folder)
    assert turn
    return turn.moves.others


def test_git_changes_made_in_other_worktrees_are_not_named(root: Path, ws: Workspace) -> None:
    here = opened(add_worktree(ws, "here"), ws.state)
    before = git_facts(here.root, environ=here.environ)
    commit(root, "theirs")
    git(root, "worktree", "add", "-q", "-b", "more", str(root.parent / "more"))
    git(root, "config", "branch.main.remote", "origin")
    assert git_facts(here.root, environ=here.environ) != before
    assert others_in(here, root.parent, before) == ()


@pytest.mark.parametrize(
    "move",
    [
        ("commit", "-q", "--allow-empty", "-m", "x"),
        ("branch", "other"),
        ("tag", "v1"),
        ("checkout", "-q", "-b", "other"),
    ],
)
def test_git_changes_made_in_this_worktree_are_named(
    root: Path, ws: Workspace, move: tuple[str, ...]
) -> None:
    here = opened(add_worktree(ws, "here"), ws.state)
    before = git_facts(here.root, environ=here.environ)
    git(here.root, *move)
    assert others_in(here, root.parent, before)
