import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.model import GitFacts, Tree
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.gitfacts import git_facts
from atlas_retry.workspace.isolation.isolated import lock
from atlas_retry.workspace.locking import holder
from atlas_retry.workspace.snapshot.git_state import put_back_git
from atlas_retry.workspace.snapshot.restoring import restore
from atlas_retry.workspace.snapshot.snapshots import snapshot
from atlas_retry.workspace.snapshot.trees import DirectoryTree, revision_tree, tree
from tests.repositories import (
    ENVIRON,
    SHAPES,
    Shape,
    entries,
    git,
    git_bytes,
    opened,
    repository,
    write,
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "repo")
    write(root, ".git/hooks/pre-push", "#!/bin/sh\n", 0o755)
    git(root, "branch", "other")
    git(root, "tag", "v1")
    git(root, "pack-refs", "--all")
    write(root, "src/a.py", "a = 'stashed'\n")
    git(root, "stash")
    return root


def facts_of(root: Path) -> GitFacts:
    return git_facts(root, environ={**ENVIRON, "HOME": str(root.parent)})


def differing(before: GitFacts, after: GitFacts) -> set[str]:
    return {name for name in {*before, *after} if before.get(name) != after.get(name)}


def git_does(*arguments: str) -> Callable[[Path], object]:
    return lambda root: git(root, *arguments)


def file_gets(path: str, content: str = "x\n", mode: int = 0o644) -> Callable[[Path], object]:
    return lambda root: write(root, path, content, mode)


MOVES: dict[str, tuple[tuple[Callable[[Path], object], ...], set[str]]] = {
    "commit": (
        (git_does("commit", "-q", "--allow-empty", "-m", "x"),),
        {"refs/heads/main"},
    ),
    "amend": ((git_does("commit", "-q", "--amend", "-m", "x"),), {"refs/heads/main"}),
    "detach": ((git_does("checkout", "-q", "--detach"),), {"HEAD"}),
    "switch": ((git_does("checkout", "-q", "other"),), {"HEAD"}),
    "new branch": ((git_does("branch", "new"),), {"refs/heads/new"}),
    "branch deleted": ((git_does("branch", "-D", "other"),), {"refs/heads/other"}),
    "branch below a deleted one": (
        (git_does("branch", "-D", "other"), git_does("branch", "other/below")),
        {"refs/heads/other", "refs/heads/other/below"},
    ),
    "tag moved": (
        (
            git_does("commit", "-q", "--allow-empty", "-m", "x"),
            git_does("tag", "-f", "v1"),
        ),
        {"refs/heads/main", "refs/tags/v1"},
    ),
    "symbolic ref": (
        (git_does("symbolic-ref", "refs/remotes/origin/HEAD", "refs/heads/main"),),
        {"refs/remotes/origin/HEAD"},
    ),
    "stash dropped": ((git_does("stash", "drop", "-q"),), {"refs/stash", "stash"}),
    "stash pushed": (
        (file_gets("src/b.py"), git_does("stash", "push", "-q")),
        {"refs/stash", "stash"},
    ),
    "stash reordered": ((file_gets(".git/logs/refs/stash", "0 0 x\n"),), {"stash"}),
    "replace ref": (
        (git_does("replace", "-f", "HEAD:src/a.py", "HEAD:src/b.py"),),
        {"refs/replace/1337a530cbc1bd7d20aee2d80f1f174a9182417d"},
    ),
    "hooks path": ((git_does("config", "core.hooksPath", ".husky"),), {"config:core.hookspath"}),
    "config": (
        (git_does("config", "diff.external", "true"), git_does("config", "user.name", "Eve")),
        {"config:diff.external", "config:user.name"},
    ),
    "config of two values": (
        (git_does("config", "--add", "x.y", "1"), git_does("config", "--add", "x.y", "2")),
        {"config:x.y"},
    ),
    "new hook": ((file_gets(".git/hooks/pre-commit", mode=0o755),), {"hooks/pre-commit"}),
    "hook off": ((lambda r: (r / ".git/hooks/pre-push").chmod(0o644),), {"hooks/pre-push"}),
    "hook gone": ((lambda r: (r / ".git/hooks/pre-push").unlink(),), {"hooks/pre-push"}),
    "exclude": ((file_gets(".git/info/exclude", "*.py\n"),), {"info/exclude"}),
    "attributes": ((file_gets(".git/info/attributes", "* -diff\n"),), {"info/attributes"}),
    "grafts": ((file_gets(".git/info/grafts", ""),), {"info/grafts"}),
    "alternates": (
        (file_gets(".git/objects/info/alternates", "/nowhere\n"),),
        {"alternates"},
    ),
    "staged": ((file_gets("n"), git_does("add", "n")), {"index"}),
    "assume-unchanged": (
        (git_does("update-index", "--assume-unchanged", "src/a.py"),),
        {"index", "index-flags:src/a.py"},
    ),
    "skip-worktree": (
        (git_does("update-index", "--skip-worktree", "src/a.py"),),
        {"index", "index-flags:src/a.py"},
    ),
    "intent-to-add": (
        (file_gets("n"), git_does("add", "-N", "n")),
        {"index"},
    ),
    "merge": ((file_gets(".git/MERGE_HEAD", "0" * 40),), {"state:MERGE_HEAD"}),
    "bisect": ((git_does("bisect", "start"),), {"state:BISECT_LOG"}),
    "rebase": (
        (file_gets(".git/rebase-merge/head-name", "refs/heads/main\n"),),
        {"state:rebase-merge/head-name"},
    ),
    "nothing": ((git_does("status"), git_does("update-index", "--refresh")), set()),
}


@pytest.mark.parametrize("name", MOVES)
def test_every_change_in_git_is_in_the_facts_and_can_be_reverted(
    root: Path, ws: Workspace, name: str
) -> None:
    acts, expected = MOVES[name]
    before, files = facts_of(root), entries(root)
    held = snapshot(ws)
    for act in acts:
        act(root)
    moved = differing(before, facts_of(root))
    assert moved == expected

    put_back_git(ws, held.id, moved)
    restore(ws, held.id)
    assert differing(before, facts_of(root)) == {name for name in moved if "rebase" in name}
    assert entries(root) == files


def test_only_the_named_git_changes_are_reverted(root: Path, ws: Workspace) -> None:
    before, held = facts_of(root), snapshot(ws)
    git(root, "branch", "of-another-worktree")
    git(root, "config", "core.hooksPath", "/evil")
    assert put_back_git(ws, held.id, {"config:core.hookspath"}) == ("config:",)
    assert differing(before, facts_of(root)) == {"refs/heads/of-another-worktree"}


def test_a_linked_worktree_has_its_own_head(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", "-b", "side", str(tmp_path / "linked"))
    linked = opened(tmp_path / "linked")
    before, main, held = facts_of(linked.root), facts_of(root), snapshot(linked)
    git(linked.root, "checkout", "-q", "--detach")
    git(root, "checkout", "-q", "--detach")
    assert differing(before, facts_of(linked.root)) == {"HEAD", "worktrees/linked"}
    put_back_git(linked, held.id, {"HEAD"})
    assert facts_of(linked.root) == before
    assert differing(main, facts_of(root)) == {"HEAD"}


def test_a_new_worktree_is_in_the_facts(root: Path, tmp_path: Path) -> None:
    before = facts_of(root)
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    assert differing(before, facts_of(root)) == {"worktrees/linked"}


def test_hooks_in_a_configured_folder_are_in_the_facts(root: Path) -> None:
    git(root, "config", "core.hooksPath", ".husky")
    before = facts_of(root)
    write(root, ".husky/pre-commit", "exit 0\n", 0o755)
    assert differing(before, facts_of(root)) == {"hooksPath/pre-commit"}


def test_subfolders_of_the_hooks_folder_are_not_read(root: Path) -> None:
    git(root, "config", "core.hooksPath", ".")
    write(root, "deep/below/pre-commit", "exit 0\n", 0o755)
    assert not [name for name in facts_of(root) if name.startswith("hooksPath/deep")]


def test_an_included_configuration_is_in_the_facts(root: Path) -> None:
    before = facts_of(root)
    write(root, "evil.config", "[core]\n\tfsmonitor = touch executed\n")
    git(root, "config", "include.path", "../evil.config")
    assert differing(before, facts_of(root)) == {"config:include.path", "config:core.fsmonitor"}
    assert not (root / "executed").exists()


def test_a_submodule_has_its_own_facts(tmp_path: Path) -> None:
    root = next(shape for shape in SHAPES if shape.name == "submodule").make(tmp_path)
    before = facts_of(root)
    git(root / "lib", "checkout", "-q", "--detach")
    write(root, ".git/modules/lib/hooks/pre-commit", "x", 0o755)
    assert differing(before, facts_of(root)) == {
        "submodules/lib:HEAD",
        "submodules/lib:hooks/pre-commit",
    }


def test_an_unreadable_repository_is_reported_in_the_facts(root: Path) -> None:
    write(root, ".git/config", "[garbage")
    assert list(facts_of(root)) == ["unreadable"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_reading_facts_changes_and_runs_nothing(shape: Shape, tmp_path: Path) -> None:
    root = shape.make(tmp_path)
    ws = opened(root)
    git(root, "config", "core.fsmonitor", "touch ../executed; false")
    git(root, "config", "core.pager", "touch ../executed; cat")
    write(ws.common_dir, "hooks/post-index-change", "#!/bin/sh\ntouch ../executed\n", 0o755)
    before = git_bytes(ws.common_dir)
    assert facts_of(root)["HEAD"]
    snapshot(ws)
    assert git_bytes(ws.common_dir) == before
    assert not list(tmp_path.rglob("executed"))


# trees


def listed(seen: Tree) -> dict[str, tuple[str | None, bytes | None]]:
    return {path: (seen.mode(path), seen.read(path)) for path in seen.paths()}


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_a_snapshot_and_its_folder_have_the_same_content(shape: Shape, tmp_path: Path) -> None:
    root = shape.make(tmp_path)
    ws = opened(root)
    held = tree(ws, snapshot(ws).id)
    held.preload(list(held.paths()))
    assert listed(held) == listed(DirectoryTree(root, ws.environ))


def test_a_revision_is_read_as_committed(root: Path) -> None:
    git(root, "replace", "-f", "HEAD:src/a.py", "HEAD:src/b.py")
    write(root, "src/a.py", "a = 'not committed'\n")
    seen = revision_tree(root, "HEAD", environ=ENVIRON)
    assert listed(seen) == {
        "run.sh": ("100755", b"#!/bin/sh\n"),
        "src/a.py": ("100644", b"a = 1\n"),
        "src/b.py": ("100644", b"b = 2\n"),
    }
    assert (seen.read("nowhere"), seen.mode("nowhere")) == (None, None)


def test_a_submodule_in_a_revision_is_read_as_its_commit(tmp_path: Path) -> None:
    root = next(shape for shape in SHAPES if shape.name == "submodule").make(tmp_path)
    head = git(root / "lib", "rev-parse", "HEAD").strip()
    seen = revision_tree(root, "HEAD", environ=ENVIRON)
    assert (seen.mode("lib"), seen.read("lib")) == ("160000", head)


@pytest.mark.parametrize("revision", ["nowhere", "--help", "-x"])
def test_an_unknown_revision_is_refused(root: Path, revision: str) -> None:
    with pytest.raises(UsageError):
        revision_tree(root, revision, environ=ENVIRON)


def test_a_folder_without_git_is_read_completely(tmp_path: Path) -> None:
    write(tmp_path, ".gitignore", "*.log\n")
    write(tmp_path, "x.log", "log\n")
    (tmp_path / "link").symlink_to("x.log")
    assert listed(DirectoryTree(tmp_path, ENVIRON)) == {
        ".gitignore": ("100644", b"*.log\n"),
        "link": ("120000", b"x.log"),
        "x.log": ("100644", b"log\n"),
    }


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", ".git/config", "link/x", "", "src"])
def test_a_tree_does_not_read_outside_its_folder(root: Path, path: str) -> None:
    write(root.parent, "secret/x", "secret\n")
    (root / "link").symlink_to(root.parent / "secret")
    assert DirectoryTree(root, ENVIRON).read(path) is None


# the lock


HOLDER = """
import os
import sys
from pathlib import Path
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.isolation.isolated import lock
with lock(open_workspace(Path(sys.argv[1]), Path(sys.argv[2]), environ=os.environ)):
    print("locked", flush=True)
    sys.stdin.read()
"""


def held_by_another(root: Path) -> "subprocess.Popen[bytes]":
    package = str(Path(__file__).parents[1])
    child = subprocess.Popen(
        (sys.executable, "-c", HOLDER, str(root), str(root.parent / "state")),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(root.parent), "PYTHONPATH": package},
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"locked\n"
    return child


def test_a_second_run_is_refused_at_once_and_names_the_first(root: Path, ws: Workspace) -> None:
    with held_by_another(root) as child:
        with pytest.raises(WorkspaceError, match=f"process {child.pid}, since 20") as refused:
            lock(ws).__enter__()
        there = holder(ws)
        assert there is not None
        assert there.pid == child.pid
        assert refused.value.exit_code == 3
        child.communicate()
    assert holder(ws) is None


def test_the_lock_of_a_dead_process_is_released(root: Path, ws: Workspace) -> None:
    with held_by_another(root) as child:
        child.kill()
        child.wait()
    with lock(ws):
        there = holder(ws)
        assert there is not None
        assert there.pid == os.getpid()


def test_two_worktrees_of_one_repository_have_their_own_locks(root: Path, tmp_path: Path) -> None:
    git(root, "worktree", "add", "-q", "--detach", str(tmp_path / "linked"))
    with lock(opened(root)), lock(opened(tmp_path / "linked")):
        pass


def test_a_work_tree_reached_by_two_paths_has_one_lock(root: Path, tmp_path: Path) -> None:
    (tmp_path / "alias").symlink_to(root)
    with lock(opened(root)), pytest.raises(WorkspaceError):
        lock(opened(tmp_path / "alias" / "src", tmp_path / "state")).__enter__()


def test_a_child_process_does_not_keep_the_lock(ws: Workspace) -> None:
    with lock(ws):
        left = subprocess.Popen((sys.executable, "-c", "input()"), stdin=subprocess.PIPE, env={})
    with left, lock(ws):
        left.kill()
