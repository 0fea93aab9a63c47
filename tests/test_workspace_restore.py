import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from atlas_retry.errors import WorkspaceError
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import TEMPORARY, StoredFile
from atlas_retry.workspace.snapshot.git_state import put_back_moved
from atlas_retry.workspace.snapshot.restoring import (
    INDEX,
    Begun,
    differing,
    restore,
    restore_but_edited,
)
from atlas_retry.workspace.snapshot.snapshots import snapshot
from atlas_retry.workspace.snapshot.trees import changes
from tests.repositories import (
    SHAPES,
    Shape,
    entries,
    git,
    git_bytes,
    opened,
    write,
)


def test_removed_folders_are_restored_with_their_permissions(tmp_path: Path) -> None:
    root = tmp_path / "project"
    modes = {"private": 0o700, "private/empty": 0o750, "shared": 0o2775, "usual": 0o755}
    for folder in ("private/empty", "shared", "usual"):
        write(root, f"{folder}/file.txt", "text\n")
    (root / "private/empty/file.txt").unlink()
    write(root, "private/key", "secret\n")
    for folder, mode in modes.items():
        (root / folder).chmod(mode)
    git(root, "init", "-q")
    ws = opened(root)
    before = snapshot(ws)
    for folder in modes:
        shutil.rmtree(root / folder, ignore_errors=True)
    restore(ws, before.id)
    assert {folder: (root / folder).stat().st_mode & 0o7777 for folder in modes} == modes


def index_time(ws: Workspace) -> int | None:
    index = ws.git_dir / "index"
    return index.stat().st_mtime_ns if index.exists() else None


def mess_up(root: Path) -> None:
    """Change, add, remove, turn into another type and move everything an agent could."""
    files = sorted(path for path, (kind, _) in entries(root).items() if kind != "folder")
    files = [path for path in files if not path.endswith(".git")]
    for number, path in enumerate(files):
        file = root / path
        match number % 5:
            case 0:
                file.unlink()
            case 1:
                file.unlink()
                write(file, "now/a/folder.txt", "f\n")
            case 2 if not file.is_symlink():
                file.chmod(0o711)
            case 3:
                file.unlink()
                file.symlink_to("/etc/passwd")
            case _:
                file.unlink()
                write(root, path, b"other content\r\n")
    folders = [f for f in sorted(root.iterdir()) if f.is_dir() and not f.is_symlink()]
    for folder in [f for f in folders if f.name != ".git" and not (f / ".git").exists()][:1]:
        shutil.rmtree(folder)
        folder.symlink_to("/etc")
    write(root, "added/by/agent.txt", "added\n")
    write(root, "added/.gitignore", "*.txt\n")
    write(root, b"added-\xff\n", "odd\n")
    (root / "added/link").symlink_to("/")
    (root / "added/hollow").mkdir()
    git(root, "add", "--sparse", "-A", "--", "added")


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_restore_recovers_every_kind_of_work_tree(shape: Shape, tmp_path: Path) -> None:
    root = shape.make(tmp_path)
    ws = opened(root)
    before, git_before, touched = entries(root), git_bytes(ws.common_dir), index_time(ws)

    held = snapshot(ws)
    assert entries(root) == before
    assert (git_bytes(ws.common_dir), index_time(ws)) == (git_before, touched)

    mess_up(root)
    restored = restore(ws, held.id)

    assert entries(root) == before
    assert (git_bytes(ws.common_dir), index_time(ws)) == (git_before, touched)
    assert not restored.conflicts
    assert snapshot(ws).tree == held.tree
    assert not (tmp_path / "executed").exists()


def test_restore_returns_the_changed_paths(root: Path, ws: Workspace) -> None:
    held = snapshot(ws)
    write(root, "src/a.py", "a = 2\n")
    write(root, "added.txt", "x\n")
    (root / "src/b.py").unlink()
    git(root, "add", "added.txt")
    assert restore(ws, held.id).changed == (INDEX, "added.txt", "src/a.py", "src/b.py")
    assert restore(ws, held.id).changed == ()


def test_a_restore_can_be_undone(root: Path, ws: Workspace) -> None:
    held = snapshot(ws)
    write(root, "src/a.py", "precious\n")
    write(root, "added.txt", "precious too\n")
    there = entries(root)
    undone = restore(ws, held.id)
    restore(ws, undone.before)
    assert entries(root) == there


@pytest.mark.parametrize(
    ("paths", "left"),
    [
        ({"src/a.py"}, {"added.txt", "src/b.py", "src/new.py"}),
        ({"src"}, {"added.txt"}),
        ({"src/"}, {"added.txt"}),
        ({"added.txt", "src/new.py"}, {"src/a.py", "src/b.py"}),
        ({"nowhere"}, {"added.txt", "src/a.py", "src/b.py", "src/new.py"}),
        (set(), {"added.txt", "src/a.py", "src/b.py", "src/new.py"}),
    ],
)
def test_a_restore_can_be_limited_to_paths(
    root: Path, ws: Workspace, paths: set[str], left: set[str]
) -> None:
    held = snapshot(ws)
    for path in ("added.txt", "src/a.py", "src/b.py", "src/new.py"):
        write(root, path, "by the agent\n")
    git(root, "add", "-A")
    index = (root / ".git/index").read_bytes()
    restore(ws, held.id, paths)
    assert {change.path for change in changes(ws, held.id, snapshot(ws).id)} == left
    assert (root / ".git/index").read_bytes() == index


def test_a_limited_restore_removes_the_folder_it_emptied(root: Path, ws: Workspace) -> None:
    held = snapshot(ws)
    write(root, "new/folder/file.txt", "x\n")
    restore(ws, held.id, {"new/folder/file.txt"})
    assert not (root / "new/folder").exists()


def test_other_hard_links_keep_their_content(root: Path, ws: Workspace) -> None:
    held = snapshot(ws)
    write(root, "src/a.py", "linked\n")
    twin = root.parent / "twin"
    twin.hardlink_to(root / "src/a.py")
    restore(ws, held.id)
    assert (twin.read_text(), (root / "src/a.py").read_text()) == ("linked\n", "a = 1\n")


@pytest.mark.parametrize("path", ["src", "src/a.py"])
def test_restore_does_not_write_through_a_link(root: Path, ws: Workspace, path: str) -> None:
    outside = write(root.parent, "outside/a.py", "outside\n").parent
    held, before = snapshot(ws), entries(root)
    shutil.rmtree(root / "src")
    (root / path).parent.mkdir(exist_ok=True)
    (root / path).symlink_to(outside if path == "src" else outside / "a.py")
    restore(ws, held.id)
    assert entries(root) == before
    assert entries(outside) == {"a.py": ("100644", b"outside\n")}


def test_a_link_to_equal_content_is_replaced_by_the_files(root: Path, ws: Workspace) -> None:
    outside = write(root.parent, "outside/a.py", "a = 1\n").parent
    write(root.parent, "outside/b.py", "b = 2\n")
    held, before = snapshot(ws), entries(root)
    shutil.rmtree(root / "src")
    (root / "src").symlink_to(outside)
    restore(ws, held.id)
    assert entries(root) == before


def test_files_that_no_snapshot_holds_are_never_removed(root: Path, ws: Workspace) -> None:
    write(root, ".gitignore", "node_modules\n*.db\n")
    write(root, "node_modules/x/index.js", "x\n")
    write(root, "big.db", bytes((1 << 20) + 1))
    held, before = snapshot(ws), entries(root)
    write(root, ".gitignore", "")
    write(root, "sub/.gitignore", "!*\n")
    restore(ws, held.id)
    assert entries(root) == before


def test_ignore_rules_return_before_what_they_cover_even_from_under_a_folder(
    root: Path, ws: Workspace
) -> None:
    write(root, ".gitignore", "target\n")
    held = snapshot(ws)
    (root / ".gitignore").unlink()
    write(root, ".gitignore/in/the/way", "x\n")
    write(root, "target/built", "built meanwhile\n")
    restore(ws, held.id)
    assert (root / ".gitignore").read_text() == "target\n"
    assert (root / "target/built").exists()


def test_newly_ignored_files_are_removed(root: Path, ws: Workspace) -> None:
    held, before = snapshot(ws), entries(root)
    write(root, ".gitignore", "*.log\nnode_modules\n")
    write(root, "hidden.log", bytes(2 << 20))
    write(root, "node_modules/x/index.js", "x\n")
    restore(ws, held.id)
    assert entries(root) == before


def test_a_held_ignored_file_is_restored(root: Path, ws: Workspace) -> None:
    write(root, ".gitignore", ".env\n")
    write(root, ".env", "KEY=1\n", 0o600)
    held, before = snapshot(ws), entries(root)
    write(root, ".env", bytes(2 << 20), 0o644)
    restore(ws, held.id)
    assert entries(root) == before


def test_a_temporary_file_of_a_killed_restore_is_removed(root: Path, ws: Workspace) -> None:
    held, before = snapshot(ws), entries(root)
    write(root, f"src/{TEMPORARY}", "half a fi")
    assert snapshot(ws) == held
    restore(ws, held.id)
    assert entries(root) == before


def test_a_blocked_path_is_reported_and_the_rest_restored(root: Path, ws: Workspace) -> None:
    held = snapshot(ws)
    (root / "src/a.py").unlink()
    (root / "src/a.py").mkdir()
    os.mkfifo(root / "src/a.py/pipe")
    write(root, "src/b.py", "changed\n")
    with pytest.raises(WorkspaceError, match=r"src/a\.py"):
        restore(ws, held.id)
    assert (root / "src/b.py").read_text() == "b = 2\n"


RESTORING = """
import os, sys
from pathlib import Path
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.snapshot.restoring import restore
root, state = Path(sys.argv[1]), Path(sys.argv[2])
ws = open_workspace(root, state, environ={"PATH": os.environ["PATH"], "HOME": str(state)})
restore(ws, sys.argv[3])
"""
CLOSED = "-dac_override,-dac_read_search,-fowner"


def test_a_folder_of_ours_that_forbids_writing_is_restored_and_stays_as_it_is(
    root: Path, ws: Workspace
) -> None:
    for name in ("closed/kept", "closed/gone"):
        write(root, name, "here\n")
    held, before = snapshot(ws), entries(root)
    write(root, "closed/kept", "changed\n")
    (root / "closed/gone").unlink()
    write(root, "closed/new", "new\n")
    (root / "closed").chmod(0o555)
    less = (f"--bounding-set={CLOSED}", f"--inh-caps={CLOSED}")
    subprocess.run(
        (
            *(("setpriv", *less) if os.getuid() == 0 else ()),
            *(sys.executable, "-c", RESTORING, str(root), str(ws.state), held.id),
        ),
        check=True,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert (root / "closed").stat().st_mode & 0o777 == 0o555
    assert entries(root) == before


def test_what_cannot_be_put_in_its_place_leaves_nothing_behind(root: Path) -> None:
    (root / "src/a.py").unlink()
    write(root, "src/a.py/in/the/way", "x")
    with pytest.raises(OSError, match="not empty"):
        place.put(root, "src/a.py", StoredFile("100644", ""), b"a = 1\n")
    assert not (root / "src" / TEMPORARY).exists()


def test_later_edits_are_kept_and_reported(root: Path, ws: Workspace) -> None:
    start = snapshot(ws)
    write(root, "src/a.py", "a = 'agent'\n")
    write(root, "src/b.py", "b = 'agent'\n")
    write(root, "agent.txt", "agent\n")
    end = snapshot(ws)
    write(root, "src/a.py", "a = 'user'\n")
    write(root, "run.sh", "# user\n")
    write(root, "user.txt", "user\n")
    (root / "user-folder").mkdir()

    done = restore(ws, start.id, since=end.id)

    assert done.conflicts == ("src/a.py",)
    assert done.changed == ("agent.txt", "src/b.py")
    assert (root / "src/a.py").read_text() == "a = 'user'\n"
    assert (root / "run.sh").read_text() == "# user\n"
    assert (root / "user.txt").exists()
    assert (root / "user-folder").exists()
    assert not (root / "agent.txt").exists()


def test_an_edit_equal_to_the_restored_content_is_not_a_conflict(root: Path, ws: Workspace) -> None:
    start = snapshot(ws)
    write(root, "src/a.py", "a = 'agent'\n")
    end = snapshot(ws)
    write(root, "src/a.py", "a = 1\n")
    assert restore(ws, start.id, since=end.id).conflicts == ()


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_later_edit_of_another_type_is_kept(root: Path, ws: Workspace, kind: str) -> None:
    write(root, "thing/inner.txt", "start\n")
    start = snapshot(ws)
    shutil.rmtree(root / "thing")
    if kind == "folder":
        write(root, "thing", "agent's file\n")
    end = snapshot(ws)
    if kind == "file":
        write(root, "thing", "user's file\n")
    else:
        (root / "thing").unlink()
        write(root, "thing/user.txt", "user's folder\n")
    mine = entries(root / "thing") if kind == "folder" else (root / "thing").read_text()
    done = restore(ws, start.id, since=end.id)
    assert "thing/inner.txt" in done.conflicts
    assert mine == (entries(root / "thing") if kind == "folder" else (root / "thing").read_text())


@pytest.mark.parametrize("staged_by_user", [True, False])
def test_files_staged_later_stay_staged(root: Path, ws: Workspace, *, staged_by_user: bool) -> None:
    start = snapshot(ws)
    write(root, "agent.txt", "agent\n")
    git(root, "add", "agent.txt")
    end = snapshot(ws)
    if staged_by_user:
        write(root, "user.txt", "user\n")
        git(root, "add", "user.txt")
    else:
        git(root, "update-index", "--refresh")
        git(root, "status")
    done = restore(ws, start.id, since=end.id)
    staged = git(root, "diff", "--cached", "--name-only").decode().split()
    assert (INDEX in done.conflicts) == staged_by_user
    assert staged == (["agent.txt", "user.txt"] if staged_by_user else [])


def test_an_index_locked_by_another_git_is_not_changed(root: Path, ws: Workspace) -> None:
    held = snapshot(ws)
    git(root, "rm", "-q", "--cached", "run.sh")
    write(root, ".git/index.lock", "")
    write(root, "src/a.py", "changed\n")
    with pytest.raises(WorkspaceError, match=r"index\.lock"):
        restore(ws, held.id)
    assert (root / ".git/index.lock").exists()
    assert (root / "src/a.py").read_text() == "a = 1\n"


@pytest.mark.parametrize("same_as", ["index", "index.atlas"])
def test_the_lock_of_a_killed_restore_is_removed(root: Path, ws: Workspace, same_as: str) -> None:
    held = snapshot(ws)
    before = (root / ".git/index").read_bytes()
    git(root, "rm", "-q", "--cached", "run.sh")
    write(root, ".git/index.atlas", "half")
    (root / ".git/index.lock").hardlink_to(root / ".git" / same_as)
    restore(ws, held.id)
    assert (root / ".git/index").read_bytes() == before
    assert not (root / ".git/index.lock").exists()


def test_bytecode_of_the_replaced_file_is_not_used_after_a_restore(
    root: Path, ws: Workspace
) -> None:
    """Of two files of one size and second, Python takes the one's bytecode for the other's."""
    write(root, "src/a.py", "a = 5\n")
    held = snapshot(ws)
    write(root, "src/a.py", "a = 6\n")
    show = ("python3", "-c", "from src import a; print(a.a)")
    answers: list[str] = []
    for _ in range(2):
        os.utime(root / "src/a.py")
        answers.append(subprocess.check_output(show, cwd=root, env=dict(ws.environ), text=True))
        restore(ws, held.id)
    assert answers == ["6\n", "5\n"]


def test_git_sees_an_edit_made_in_the_same_second_as_the_index(root: Path, ws: Workspace) -> None:
    write(root, "src/a.py", "a = 5\n")
    git(root, "add", "src/a.py")
    write(root, "src/a.py", "a = 6\n")
    held = snapshot(ws)
    (root / ".git/index").unlink()
    restore(ws, held.id)
    assert b"src/a.py" in git(root, "diff", "--name-only")


@pytest.mark.parametrize(
    ("broken", "named"), [("index", ()), ("HEAD", ("HEAD",)), ("config", ("config:",))]
)
def test_a_repository_broken_by_the_agent_is_restored(
    root: Path, ws: Workspace, broken: str, named: tuple[str, ...]
) -> None:
    write(root, ".gitignore", "*.log\n")
    write(root, "x.log", "log\n")
    held, before, git_before = snapshot(ws), entries(root), git_bytes(ws.git_dir)
    write(root, f".git/{broken}", "[garbage")
    write(root, "src/a.py", "garbage\n")
    assert put_back_moved(ws, held.id) == (named, ())
    restore(ws, held.id)
    assert entries(root) == before
    assert git_bytes(ws.git_dir) == git_before


def test_the_work_tree_is_restored_without_its_git_folder(root: Path, ws: Workspace) -> None:
    write(root, "untracked.txt", "mine\n")
    held = snapshot(ws)
    shutil.rmtree(root / ".git")
    write(root, "src/a.py", "garbage\n")
    write(root, "added.txt", "garbage\n")
    restore(ws, held.id)
    assert set(entries(root)) == {"src", "src/a.py", "src/b.py", "run.sh", "untracked.txt"}
    assert (root / "src/a.py").read_text() == "a = 1\n"


@pytest.mark.parametrize(
    "act", [place.status, place.look, place.read, place.remove, place.remove_folder]
)
def test_a_path_in_a_folder_that_is_gone_is_not_there_and_makes_no_folder(
    act: Callable[[Path, str], object], root: Path
) -> None:
    assert act(root, "gone/deep/a.py") is None
    assert not (root / "gone").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_root_gives_restored_files_back_to_their_owners(root: Path, ws: Workspace) -> None:
    write(root, "theirs/deep/kept.txt", "kept\n")
    (root / "run").write_text("#!/bin/sh\n")
    for path in ("src/a.py", "src/b.py", "theirs", "theirs/deep", "theirs/deep/kept.txt", "run"):
        os.chown(root / path, 1234, 4321)
    (root / "run").chmod(0o4755)
    held = snapshot(ws)
    write(root, "src/a.py", "changed in place\n")
    (root / "src/b.py").unlink()
    os.chown(root / "run", 0, 0)
    shutil.rmtree(root / "theirs")
    restore(ws, held.id)
    owners = {(file.stat().st_uid, file.stat().st_gid) for file in (root / "theirs").rglob("*")}
    owners |= {((root / path).stat().st_uid, 4321) for path in ("src/a.py", "src/b.py", "theirs")}
    assert owners == {(1234, 4321)}
    assert ((root / "run").stat().st_uid, (root / "run").stat().st_mode & 0o7777) == (1234, 0o4755)
    assert differing(ws, held.id) == ()


@pytest.mark.parametrize("is_replaced", [True, False])
def test_extended_attributes_are_restored(root: Path, ws: Workspace, *, is_replaced: bool) -> None:
    os.setxattr(root / "src/a.py", "user.origin", b"by hand")
    held = snapshot(ws)
    if is_replaced:
        (root / "src/a.py").unlink()
        write(root, "src/a.py", "changed\n")
    os.setxattr(root / "src/a.py", "user.agent", b"new")
    restore(ws, held.id)
    assert place.extended(f"{root}/src/a.py") == (("user.origin", b"by hand"),)
    assert differing(ws, held.id) == ()


def test_a_hard_link_that_is_a_file_of_its_own_now_is_named(root: Path, ws: Workspace) -> None:
    (root / "other.py").hardlink_to(root / "src/a.py")
    held = snapshot(ws)
    write(root, "src/a.py", "changed\n")
    restore(ws, held.id)
    assert (root / "other.py").read_text() == (root / "src/a.py").read_text() == "a = 1\n"
    assert differing(ws, held.id) == ("other.py (hard link)", "src/a.py (hard link)")


def test_an_owner_that_was_changed_since_is_left(root: Path, ws: Workspace) -> None:
    held = snapshot(ws)
    write(root, "src/b.py", "changed\n")
    left = snapshot(ws)
    os.setxattr(root / "src/a.py", "user.mine", b"later")
    restore(ws, held.id, since=left.id)
    assert place.extended(f"{root}/src/a.py") == (("user.mine", b"later"),)


def test_an_ignored_file_that_a_person_rewrote_since_stays(root: Path, ws: Workspace) -> None:
    write(root, ".gitignore", "*.env\n")
    for name in ("one.env", "two.env"):
        write(root, name, "mine\n")
    start = snapshot(ws)
    for name in ("one.env", "two.env"):
        write(root, name, "of the agent\n")
    end = snapshot(ws)
    write(root, "one.env", "of a person\n")
    done = restore(ws, start.id, since=end.id)
    assert (root / "one.env").read_text() == "of a person\n"
    assert (root / "two.env").read_text() == "mine\n"
    assert done.conflicts == ("one.env",)


@pytest.mark.parametrize("how", ["mv", "cp -p"])
def test_an_older_file_put_in_place_after_a_kill_stays(how: str, root: Path, ws: Workspace) -> None:
    write(root.parent, "older", "of a person\n")
    os.utime(root.parent / "older", (0, 0))
    start = snapshot(ws)
    write(root, "src/a.py", "of the agent\n")
    write(root, "src/b.py", "of the agent\n")
    killed_s = time.time()
    time.sleep(0.05)
    subprocess.run((*how.split(" "), root.parent / "older", root / "src/a.py"), check=True)
    done = restore_but_edited(ws, start.id, killed_s)
    assert (root / "src/a.py").read_text() == "of a person\n"
    assert (root / "src/b.py").read_text() == "b = 2\n"
    assert done.conflicts == ("src/a.py",)


def test_what_a_person_put_into_a_folder_in_place_of_a_file_stays(
    root: Path, ws: Workspace
) -> None:
    start = snapshot(ws)
    (root / "src/a.py").unlink()
    end = snapshot(ws)
    write(root, "src/a.py/mine.txt", "of a person\n")
    done = restore(ws, start.id, since=end.id)
    assert (root / "src/a.py/mine.txt").read_text() == "of a person\n"
    assert done.conflicts == ("src/a.py",)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
def test_what_is_restored_over_a_runs_edit_keeps_its_owner(root: Path, ws: Workspace) -> None:
    os.chown(root / "src/a.py", 1234, 4321)
    held = snapshot(ws)
    write(root, "src/a.py", "changed in place\n")
    left = snapshot(ws)
    restore(ws, held.id, since=left.id)
    assert (root / "src/a.py").stat().st_uid == 1234


@pytest.fixture
def quiet(root: Path, ws: Workspace) -> tuple[str, float]:
    """A snapshot, and a time after which changes are someone else's; a file changed before it."""
    held = snapshot(ws).id
    write(root, "src/a.py", "of the run\n")
    time.sleep(0.05)
    run_ended_s = time.time()
    time.sleep(0.05)
    return held, run_ended_s


def test_an_edit_between_two_tries_of_a_restore_stays(
    root: Path, ws: Workspace, quiet: tuple[str, float]
) -> None:
    begun = Begun(snapshot=snapshot(ws).id, edited=frozenset())
    write(root, "src/a.py", "mine\n")
    assert restore_but_edited(ws, *quiet, begun=begun).conflicts == ("src/a.py",)


def test_what_only_an_obstacle_changed_between_two_tries_is_restored(
    root: Path, ws: Workspace, quiet: tuple[str, float]
) -> None:
    begun = Begun(snapshot=snapshot(ws).id, edited=frozenset())
    (root / "src/a.py").touch()
    assert restore_but_edited(ws, *quiet, begun=begun).conflicts == ()


def test_the_index_stays_if_someone_staged_after_the_end(
    root: Path, ws: Workspace, quiet: tuple[str, float]
) -> None:
    git(root, "rm", "-q", "--cached", "src/a.py")
    restore_but_edited(ws, *quiet)
    assert b"src/a.py" not in git(root, "ls-files")
    assert (root / "src/a.py").read_text() != "of the run\n"


def test_the_index_stays_if_someone_committed_since(root: Path, ws: Workspace) -> None:
    held = snapshot(ws).id
    write(root, "src/a.py", "committed\n")
    git(root, "add", "src/a.py")
    git(root, "commit", "-q", "-m", "theirs")
    restore(ws, held)
    assert git(root, "diff", "--cached", "--name-only") == b""
