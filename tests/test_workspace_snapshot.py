import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.model import ChangeStatus
from atlas_retry.workspace.discovery import NotARepositoryError, Workspace, facts, open_workspace
from atlas_retry.workspace.git import commit_id
from atlas_retry.workspace.snapshot import store
from atlas_retry.workspace.snapshot.restoring import restore
from atlas_retry.workspace.snapshot.snapshots import Snapshot, load, snapshot
from atlas_retry.workspace.snapshot.store import compact, drop, keep, kept
from atlas_retry.workspace.snapshot.trees import changes, mixed, patch, tree
from tests.repositories import ENVIRON, ODD_NAMES, commit, entries, git, opened, repository, write


def paths(ws: Workspace, taken: Snapshot, *, ignored: bool = False) -> set[str]:
    return set(tree(ws, taken.id, ignored=ignored).paths())


def test_two_snapshots_of_the_same_state_are_equal(ws: Workspace) -> None:
    assert snapshot(ws) == snapshot(ws)


def test_work_is_equal_if_and_only_if_the_files_are_equal(root: Path, ws: Workspace) -> None:
    first = snapshot(ws)
    write(root, "src/a.py", "a = 3\n")
    second = snapshot(ws)
    write(root, "src/a.py", "a = 1\n")
    assert second.tree != first.tree == snapshot(ws).tree


def test_staging_changes_the_id_but_not_the_work(root: Path, ws: Workspace) -> None:
    write(root, "new.txt", "new\n")
    first = snapshot(ws)
    git(root, "add", "new.txt")
    second = snapshot(ws)
    assert first.tree == second.tree
    assert first.id != second.id


def test_an_edit_is_detected_despite_its_timestamps(root: Path, ws: Workspace) -> None:
    for number in range(20):
        file = write(root, "src/a.py", f"a = {number:02}\n")
        os.utime(file, ns=(1, 1))
        taken = snapshot(ws)
        assert tree(ws, taken.id).read("src/a.py") == f"a = {number:02}\n".encode()


def test_an_edit_with_a_future_timestamp_is_detected(root: Path, ws: Workspace) -> None:
    for number in range(3):
        os.utime(write(root, "src/a.py", f"a = {number}\n"), (2**33, 2**33))
        assert tree(ws, snapshot(ws).id).read("src/a.py") == f"a = {number}\n".encode()


def test_a_snapshot_can_be_loaded_by_its_id(root: Path, ws: Workspace) -> None:
    write(root, ".gitignore", "big.log\n")
    write(root, "big.log", b"x" * (1 << 20) + b"x")
    taken = snapshot(ws)
    assert load(ws, taken.id) == taken


@pytest.mark.parametrize(
    "name", ["0" * 40, "nonsense", "--help", "4b825dc642cb6eb9a060e54bf8d69288fbee4904"]
)
def test_an_unknown_id_is_refused(ws: Workspace, name: str) -> None:
    snapshot(ws)
    with pytest.raises(WorkspaceError):
        load(ws, name)


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("big.log", b"x" * ((1 << 20) + 1), "ignored, and more than 1 MiB"),
        ("nested/.git/HEAD", b"ref: refs/heads/main\n", "git's own files"),
    ],
)
def test_a_file_that_is_not_held_is_reported_with_the_reason(
    root: Path, ws: Workspace, path: str, content: bytes, reason: str
) -> None:
    write(root, ".gitignore", "*.log\n")
    write(root, path, content)
    taken = snapshot(ws)
    (note,) = taken.left_out
    assert reason in note
    assert path.startswith(note.partition("/ (")[0].partition(" (")[0])
    assert path not in paths(ws, taken, ignored=True)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("sub/node_modules/x/index.js", b"x"),
        (".venv/bin/python", b"x"),
        ("built/CACHEDIR.TAG", b"Signature: 8a477f597d28d172789f06886806bc55"),
        ("myenv/pyvenv.cfg", b"home = /usr"),
    ],
)
def test_caches_are_left_out_without_a_note(
    root: Path, ws: Workspace, path: str, content: bytes
) -> None:
    write(root, ".gitignore", "node_modules\n.venv\nbuilt\nmyenv\n")
    write(root, path, content)
    taken = snapshot(ws)
    assert path not in paths(ws, taken, ignored=True)
    assert taken.left_out == ()


@pytest.mark.parametrize(
    "path", [".cargo/config.toml", "sub/.bundle/config", ".terraform/terraform.tfstate"]
)
def test_settings_in_a_folder_of_caches_are_held_and_restored(
    path: str, root: Path, ws: Workspace
) -> None:
    folder = path.rpartition("/")[0]
    write(root, ".gitignore", f"{folder.rpartition('/')[2]}/\n")
    file = write(root, path, "mine\n")
    write(root, f"{folder}/registry/big", "a cache\n")
    held, before = snapshot(ws), entries(root)
    file.write_text("changed\n")
    restore(ws, held.id)
    assert file.read_text() == "mine\n"
    file.unlink()
    restore(ws, held.id)
    assert entries(root) == before
    assert f"{folder}/registry/big" not in paths(ws, held, ignored=True)


def test_tracked_files_in_a_folder_named_like_a_cache_are_held(root: Path, ws: Workspace) -> None:
    write(root, ".gitignore", "*.o\n")
    write(root, "target/Main.java", "class Main {}\n")
    write(root, "target/Main.o", "o\n")
    taken = snapshot(ws)
    assert "target/Main.java" in paths(ws, taken)
    assert "target/Main.o" not in paths(ws, taken, ignored=True)


def test_ignored_files_are_held_up_to_64_mib_nearest_to_the_root_first(
    root: Path, ws: Workspace
) -> None:
    write(root, ".gitignore", "data/\n.env\n")
    for number in range(66):
        write(root, f"data/many/{number:02}", bytes([number]) * (1 << 20))
    write(root, "data/near", "near\n")
    write(root, ".env", "KEY=1\n")
    taken = snapshot(ws)
    held = {path for path in paths(ws, taken, ignored=True) if path.startswith(("data/", ".env"))}
    assert {"data/near", ".env"} <= held
    assert len(held) == 2 + 63
    assert len(taken.left_out) == 3


def test_fifos_and_sockets_are_left_out_with_a_note(root: Path, ws: Workspace) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(os.path.relpath(root / "socket"))
        assert snapshot(ws).left_out == ("pipe (a FIFO)", "socket (a socket)")


UNREADABLE = """
import os, sys
from pathlib import Path
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.snapshot.snapshots import snapshot
root, state = Path(sys.argv[1]), Path(sys.argv[2])
ws = open_workspace(root, state, environ={"PATH": os.environ["PATH"], "HOME": str(state)})
for line in snapshot(ws).left_out:
    print(line)
"""
_NOT_EVEN_ROOT = "-dac_override,-dac_read_search"


def test_an_unreadable_file_is_reported(root: Path, tmp_path: Path) -> None:
    write(root, "secret", "x", 0)
    (root / "closed").mkdir(mode=0)
    less = (f"--bounding-set={_NOT_EVEN_ROOT}", f"--inh-caps={_NOT_EVEN_ROOT}")
    done = subprocess.run(
        (
            *(("setpriv", *less) if os.getuid() == 0 else ()),
            *(sys.executable, "-c", UNREADABLE, str(root), str(tmp_path / "state")),
        ),
        capture_output=True,
        check=False,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert done.stderr.decode() == ""
    assert done.stdout.decode().splitlines() == [
        "closed/ (cannot be read: Permission denied)",
        "secret (cannot be read: Permission denied)",
    ]


def test_files_written_during_a_snapshot_cause_no_error(root: Path, ws: Workspace) -> None:
    stop = threading.Event()

    def scribble() -> None:
        number = 0
        while not stop.wait(0.0005):
            number += 1
            file = write(root, f"busy/{number % 50}.txt", f"{number}\n" * 1000)
            if number % 3 == 0:
                file.unlink()
            if number % 7 == 0:
                shutil.rmtree(root / "busy")

    writer = threading.Thread(target=scribble)
    writer.start()
    try:
        for _ in range(20):
            taken = snapshot(ws)
            assert load(ws, taken.id) == taken
    finally:
        stop.set()
        writer.join()


def test_a_state_directory_inside_the_work_tree_is_left_out(root: Path) -> None:
    ws = opened(root, root / "state")
    first = snapshot(ws)
    assert "state" not in {path.partition("/")[0] for path in paths(ws, first, ignored=True)}
    assert snapshot(ws) == first


def test_a_big_file_is_held_without_loading_it_into_memory(root: Path, ws: Workspace) -> None:
    content = os.urandom(9 << 20)
    write(root, b"-big\n\xff", content)
    taken = snapshot(ws)
    assert tree(ws, taken.id).read(os.fsdecode(b"-big\n\xff")) == content
    (root / os.fsdecode(b"-big\n\xff")).unlink()
    restore(ws, taken.id)
    assert (root / os.fsdecode(b"-big\n\xff")).read_bytes() == content


def _relink(path: Path) -> None:
    path.unlink()
    path.symlink_to("src/a.py")


@pytest.mark.parametrize(
    ("act", "expected"),
    [
        (lambda r: write(r, "n", "1\n"), ("n", ChangeStatus.ADDED, None, "100644")),
        (
            lambda r: write(r, "run.sh", "x\n", 0o755),
            ("run.sh", ChangeStatus.MODIFIED, "100755", "100755"),
        ),
        (lambda r: (r / "run.sh").unlink(), ("run.sh", ChangeStatus.DELETED, "100755", None)),
        (lambda r: (r / "run.sh").chmod(0o644), ("run.sh", ChangeStatus.MODE, "100755", "100644")),
        (lambda r: _relink(r / "run.sh"), ("run.sh", ChangeStatus.MODIFIED, "100755", "120000")),
    ],
    ids=["added", "modified", "deleted", "mode", "link"],
)
def test_a_change_has_path_status_and_modes(
    root: Path,
    ws: Workspace,
    act: Callable[[Path], object],
    expected: tuple[str, ChangeStatus, str | None, str | None],
) -> None:
    before = snapshot(ws)
    act(root)
    (change,) = changes(ws, before.id, snapshot(ws).id)
    assert (change.path, change.status, change.old_mode, change.new_mode) == expected


def test_lines_are_counted_except_in_binary_files(root: Path, ws: Workspace) -> None:
    before = snapshot(ws)
    write(root, "src/a.py", "a = 2\nb = 3\n")
    write(root, "blob", b"\0\1")
    counts = {
        change.path: (change.added, change.removed)
        for change in changes(ws, before.id, snapshot(ws).id)
    }
    assert counts == {"src/a.py": (2, 1), "blob": (None, None)}


def test_unusual_names_survive_a_change(root: Path, ws: Workspace) -> None:
    before = snapshot(ws)
    for name in ODD_NAMES:
        write(root, name, "x\n")
    changed = {change.path for change in changes(ws, before.id, snapshot(ws).id)}
    assert changed == {os.fsdecode(name) for name in ODD_NAMES}


def test_names_that_git_refuses_are_held_and_restored(root: Path, ws: Workspace) -> None:
    """Git 2.55 takes no path with `.git` in any case, and no link `.gitmodules`, into a tree."""
    start = snapshot(ws)
    names = {".GIT/flag", "a/.Git%", "a/.gitmodules%", ".gitignored%", "b/.GITMODULES"}
    links = {".gitmodules", ".gitmodules%"}
    for name in names:
        write(root, name, "one\ntwo\n")
    for link in links:
        (root / link).symlink_to("flag")
    held, before = snapshot(ws), entries(root)
    write(root, ".GIT/flag", "two\nthree\none\n")
    (root / "a/.Git%").unlink()
    for link in links:
        (root / link).unlink()
        write(root, link, "a file\n")
    later = snapshot(ws)
    store._states.clear()  # as in another process
    assert {change.path for change in changes(ws, start.id, held.id)} == names | links
    seen = {change.path: change.added for change in changes(ws, held.id, later.id)}
    assert seen == {".GIT/flag": 2, "a/.Git%": 0, ".gitmodules": 1, ".gitmodules%": 1}
    assert b"+three\n" in patch(ws, held.id, later.id, [".GIT/flag"])
    restore(ws, held.id)
    assert entries(root) == before


def test_ignored_files_count_only_on_request(root: Path, ws: Workspace) -> None:
    write(root, ".gitignore", "*.log\n")
    before = snapshot(ws)
    write(root, "x.log", "log\n")
    after = snapshot(ws)
    assert before.tree == after.tree
    assert changes(ws, before.id, after.id) == ()
    assert [c.path for c in changes(ws, before.id, after.id, ignored=True)] == ["x.log"]


@pytest.mark.parametrize("content", ["same\n", "other\n"])
def test_a_newly_ignored_file_is_still_compared(root: Path, ws: Workspace, content: str) -> None:
    write(root, "seen.txt", "same\n")
    before = snapshot(ws)
    write(root, ".git/info/exclude", "seen.txt\n")
    write(root, "seen.txt", content)
    after = snapshot(ws)
    expected = [] if content == "same\n" else [("seen.txt", ChangeStatus.MODIFIED)]
    assert [(c.path, c.status) for c in changes(ws, before.id, after.id)] == expected


def test_a_patch_is_a_unified_diff(root: Path, ws: Workspace) -> None:
    write(root, ".gitattributes", "*.py diff=evil -diff\n")
    git(root, "config", "diff.evil.textconv", "touch ../executed; cat")
    git(root, "config", "diff.evil.command", "touch ../executed; true")
    before = snapshot(ws)
    write(root, "src/a.py", "a = 2\n")
    text = patch(ws, before.id, snapshot(ws).id)
    assert b"--- a/src/a.py\n+++ b/src/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n" in text
    assert not (root.parent / "executed").exists()


def test_a_patch_can_be_applied(root: Path, ws: Workspace) -> None:
    before = snapshot(ws)
    write(root, "src/a.py", "a = 2\n")
    write(root, "new.txt", "new\n")
    after = snapshot(ws)
    text = patch(ws, before.id, after.id)
    restore(ws, before.id)
    git(root, "apply", stdin=text)
    assert snapshot(ws).tree == after.tree


def test_kept_snapshots_survive_compaction(root: Path, ws: Workspace) -> None:
    before = entries(root)
    taken = snapshot(ws)
    keep(ws, "runs/20260101-000000-abcd/1", taken.id)
    write(root, "src/a.py", "changed\n")
    keep(ws, "runs/20260101-000000-abcd/2", snapshot(ws).id)
    compact(ws)
    assert set(kept(ws)) == {"runs/20260101-000000-abcd/1", "runs/20260101-000000-abcd/2"}
    restore(ws, kept(ws)["runs/20260101-000000-abcd/1"])
    assert entries(root) == before


def test_dropped_snapshots_are_no_longer_kept(ws: Workspace) -> None:
    for name in ("runs/r/1", "runs/r/2", "runs/s/1"):
        keep(ws, name, snapshot(ws).id)
    drop(ws, "runs/r/1", "runs/r/2", "runs/never/was")
    assert set(kept(ws)) == {"runs/s/1"}


def test_nothing_is_kept_before_the_first_snapshot(ws: Workspace) -> None:
    assert kept(ws) == {}


@pytest.mark.parametrize("content", [b"", b"garbage", b"DIRC\0\0\0\2\0\0\0\1" + b"\0" * 80])
def test_a_damaged_index_of_the_shadow_repository_is_made_anew(
    ws: Workspace, content: bytes
) -> None:
    taken = snapshot(ws)
    (ws.shadow / "work").write_bytes(content)
    assert snapshot(ws) == taken


def test_a_damaged_shadow_is_rebuilt(root: Path, ws: Workspace) -> None:
    taken = snapshot(ws)
    shutil.rmtree(ws.shadow / "objects")
    (ws.shadow / "objects").mkdir()
    write(root, "src/a.py", "a = 2\n")
    snapshot(ws)
    write(root, "src/a.py", "a = 1\n")
    assert snapshot(ws) == taken
    assert tree(ws, taken.id).read("src/b.py") == b"b = 2\n"


def test_an_unwritable_state_directory_is_reported(ws: Workspace) -> None:
    ws.shadow.touch()
    with pytest.raises(StateError, match="cannot be written") as refused:
        snapshot(ws)
    assert "ATLAS_HOME" in (refused.value.remedy or "")


def test_a_deleted_work_tree_is_reported(root: Path, ws: Workspace) -> None:
    snapshot(ws)
    shutil.rmtree(root)
    with pytest.raises(WorkspaceError):
        snapshot(ws)


def test_variables_of_an_outer_git_are_ignored(root: Path, tmp_path: Path) -> None:
    other = repository(tmp_path / "other")
    outer = {"GIT_DIR": str(other / ".git"), "GIT_WORK_TREE": str(other), "GIT_INDEX_FILE": "/x"}
    environ = {**ENVIRON, "HOME": str(tmp_path), **outer}
    ws = open_workspace(root / "src", tmp_path / "state", environ=environ)
    assert ws.root == root
    assert "src/a.py" in paths(ws, snapshot(ws))


def test_a_repository_of_another_user_is_refused_with_gits_remedy(
    root: Path, tmp_path: Path
) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can give a folder away")
    os.chown(root, 65534, 65534)
    os.chown(root / ".git", 65534, 65534)
    with pytest.raises(WorkspaceError, match="dubious ownership") as refused:
        opened(root)
    assert refused.value.remedy == f"git config --global --add safe.directory {root}"
    with pytest.raises(WorkspaceError, match="dubious ownership"):
        commit_id(root, {**ENVIRON, "HOME": str(tmp_path)}, "HEAD")
    write(tmp_path, ".gitconfig", f"[safe]\n\tdirectory = {root}\n")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    assert open_workspace(root, tmp_path / "state", environ=environ).root == root


def test_a_folder_without_git_is_distinguished_from_one_git_refuses(tmp_path: Path) -> None:
    with pytest.raises(NotARepositoryError) as refused:
        opened(tmp_path)
    assert refused.value.remedy == f"git init {tmp_path}"


def test_a_bare_repository_has_no_work_tree(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    with pytest.raises(WorkspaceError, match="bare"):
        opened(tmp_path / "bare.git")


def test_a_git_directory_is_not_a_work_tree(root: Path) -> None:
    with pytest.raises(WorkspaceError, match="inside a git directory"):
        opened(root / ".git")


@pytest.mark.parametrize(
    ("says", "message"), [("git version 2.10.0", "2.31 or newer"), ("hello", "not plain git")]
)
def test_a_git_that_is_too_old_is_refused(
    root: Path, tmp_path: Path, says: str, message: str
) -> None:
    write(tmp_path, "bin/git", f"#!/bin/sh\necho {says}\n", 0o755)
    with pytest.raises(WorkspaceError, match=message):
        open_workspace(root, tmp_path / "state", environ={"PATH": str(tmp_path / "bin")})


def test_a_missing_git_is_reported(root: Path, tmp_path: Path) -> None:
    with pytest.raises(WorkspaceError, match="git"):
        open_workspace(root, tmp_path / "state", environ={"PATH": str(tmp_path)})


def test_an_unfinished_merge_is_detected(root: Path) -> None:
    git(root, "checkout", "-q", "-b", "side")
    write(root, "src/a.py", "a = 'side'\n")
    commit(root)
    git(root, "checkout", "-q", "-")
    write(root, "src/a.py", "a = 'main'\n")
    commit(root)
    with pytest.raises(subprocess.CalledProcessError):
        git(root, "merge", "side")
    ws = opened(root)
    assert ws.in_progress == ("a merge",)
    assert b"<<<<<<<" in (tree(ws, snapshot(ws).id).read("src/a.py") or b"")


def test_facts_hold_name_root_head_and_dirty(root: Path, ws: Workspace) -> None:
    head = git(root, "rev-parse", "HEAD").decode().strip()
    clean = facts(ws)
    write(root, "new.txt", "new\n")
    assert (clean.name, clean.root, clean.head, clean.dirty) == ("repo", str(root), head, False)
    assert facts(ws).dirty is True


def test_facts_run_no_filter_of_the_repository(root: Path, ws: Workspace) -> None:
    write(root, ".gitattributes", "*.py filter=evil\n")
    git(root, "config", "filter.evil.clean", "touch ../executed; cat")
    git(root, "config", "filter.evil.required", "true")
    write(root, "src/a.py", "a = 1\n")
    facts(ws)
    assert not (root.parent / "executed").exists()


def test_a_mixed_tree_takes_some_paths_from_another_snapshot(root: Path, ws: Workspace) -> None:
    write(root, "both", "1")
    write(root, "gone", "1")
    one = snapshot(ws)
    write(root, "both", "2").chmod(0o755)
    (root / "gone").unlink()
    write(root, "new", "2")
    write(root, "src/a.py", "a = 2\n")
    other = snapshot(ws)
    there = mixed(ws, one.id, other.id, ("both", "gone", "new", "nowhere"))
    assert {*there.paths()} == paths(ws, one) - {"gone"} | {"new"}
    assert [there.read(p) for p in ("both", "new", "gone", "src/a.py")] == [
        *(b"2", b"2", None),
        tree(ws, one.id).read("src/a.py"),
    ]
    assert there.mode("both") == "100755"
    assert [*mixed(ws, one.id, other.id, ()).paths()] == [*tree(ws, one.id).paths()]


def test_snapshots_have_the_same_ids_whatever_git_makes_by_default(ws: Workspace) -> None:
    """Newer git reads it from the user's `init.defaultObjectFormat`, too."""
    other = ws.home.with_name("other")
    other.mkdir()
    environ = {**ws.environ, "GIT_DEFAULT_HASH": "sha256"}
    elsewhere = replace(ws, home=other, environ=environ)
    assert snapshot(elsewhere).id == snapshot(ws).id
