"""What git or a turn destroys in the repository is given back, or said to be lost."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.errors import WorkspaceError
from atlas_retry.history import rescue
from atlas_retry.history.values import RunRow
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import TEMPORARY
from atlas_retry.workspace.snapshot import pins
from atlas_retry.workspace.snapshot.snapshots import snapshot
from atlas_retry.workspace.snapshot.store import keep
from atlas_retry.workspace.snapshot.unheld import note_caches, take_away
from atlas_retry.workspace.walk import look_over
from tests.needs import needs
from tests.programs import found
from tests.projects import CALC, Project, atlas
from tests.repositories import commit, entries, git, git_bytes, opened, repository, write

CHATTR = found("chattr") or "chattr"
LATER = "2100-01-01T00:00:00Z"
"""So late that everything was done in the run."""


def _pruned(root: Path) -> None:
    git(root, "reflog", "expire", "--expire=now", "--expire-unreachable=now", "--all")
    git(root, "gc", "-q", "--prune=now")


def _without_branch(root: Path) -> None:
    git(root, "branch", "-D", "side")
    _pruned(root)


def _without_stash(root: Path) -> None:
    git(root, "stash", "clear")
    _pruned(root)


def _without_staged(root: Path) -> None:
    git(root, "reset", "-q", "--hard")
    _pruned(root)


def _without_objects(root: Path) -> None:
    for folder in (root / ".git/objects").glob("??"):
        shutil.rmtree(folder)


def _anew(root: Path) -> None:
    shutil.rmtree(root / ".git")
    git(root, "init", "-q")


DESTROYED: dict[str, Callable[[Path], object]] = {
    "a branch": _without_branch,
    "stashes": _without_stash,
    "what was staged": _without_staged,
    "loose objects": _without_objects,
    "the repository, and a new one made": _anew,
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = repository(tmp_path / "repo")
    for number in range(2):
        write(root, "src/a.py", f"a = {number + 10}\n")
        git(root, "stash", "push", "-q")
    git(root, "checkout", "-qb", "side")
    write(root, "side.txt", "side\n")
    commit(root)
    git(root, "checkout", "-q", "main")
    write(root, "staged.txt", "only staged\n")
    git(root, "add", "staged.txt")
    (root / "staged.txt").unlink()
    return root


def _started(ws: Workspace) -> RunRow:
    start = snapshot(ws).id
    keep(ws, "runs/r/start", start)
    assert pins.pin(ws, start) == ()
    return RunRow.of_snapshots("r", str(ws.root), LATER, start=start)


def _as_git_says(root: Path) -> tuple[bytes, ...]:
    git(root, "fsck", "--connectivity-only")
    asked = ("for-each-ref", "stash list", "ls-files --stage", "log --oneline side", "status -s")
    return tuple(git(root, *line.split(" ")) for line in asked)


@pytest.mark.parametrize("what", DESTROYED)
def test_undo_restores_what_was_destroyed_with_its_objects(what: str, root: Path) -> None:
    ws = opened(root)
    before = _as_git_says(root)
    run = _started(ws)
    DESTROYED[what](root)
    done = rescue.undo(opened(root), run, root.parent / "run", None)
    assert _as_git_says(root) == before
    assert (done.lost, done.differs) == ((), ())


@pytest.mark.parametrize("what", DESTROYED)
def test_undo_says_what_is_lost_where_nothing_holds_it(what: str, root: Path) -> None:
    ws = opened(root)
    start = snapshot(ws).id
    keep(ws, "runs/r/start", start)
    run = RunRow.of_snapshots("r", str(root), LATER, start=start)
    DESTROYED[what](root)
    done = rescue.undo(opened(root), run, root.parent / "run", None)
    assert done.lost


def test_a_commit_of_a_person_stays_though_the_one_before_is_pruned(root: Path) -> None:
    run = replace(_started(opened(root)), ended_at="2000-01-01T00:00:00Z")
    git(root, "commit", "-q", "--amend", "-m", "in other words")
    _pruned(root)
    head = git(root, "rev-parse", "HEAD")
    rescue.undo(opened(root), run, root.parent / "run", None)
    assert git(root, "rev-parse", "HEAD") == head
    git(root, "fsck", "--connectivity-only")


def test_a_removed_repository_is_made_again(root: Path) -> None:
    ws = opened(root)
    before, state = _as_git_says(root), git_bytes(ws.git_dir)
    run = _started(ws)
    shutil.rmtree(root / ".git")
    assert pins.rebuild(ws, run.start)
    rescue.undo(opened(root), run, root.parent / "run", None)
    assert _as_git_says(root) == before
    wanted = {"HEAD", "config", "index", "refs/heads/main", "refs/heads/side", "logs/refs/stash"}
    now = git_bytes(ws.git_dir)
    assert {name: now[name] for name in wanted} == {name: state[name] for name in wanted}


def test_a_repository_inside_is_given_back(root: Path) -> None:
    inner = repository(root / "inner")
    write(inner, "more.txt", "more\n")
    git(inner, "add", "more.txt")
    ws = opened(root)
    before, said = entries(root), git(inner, "status", "--porcelain")
    run = _started(ws)
    shutil.rmtree(inner / ".git")
    done = rescue.undo(ws, run, root.parent / "run", None)
    assert entries(root) == before
    assert git(inner, "status", "--porcelain") == said
    git(inner, "fsck")
    assert done.lost == ()


def test_holding_takes_no_room_on_one_file_system(root: Path) -> None:
    ws = opened(root)
    _started(ws)
    held = [path for path in (ws.home / "pins").rglob("*") if path.is_file()]
    assert held
    assert {path.stat().st_nlink for path in held} == {2}


PINNING = """
import os, sys
from pathlib import Path
from atlas_retry.workspace.snapshot import pins
from atlas_retry.workspace.discovery import open_workspace
root, state = Path(sys.argv[1]), Path(sys.argv[2])
ws = open_workspace(root, state, environ={"PATH": os.environ["PATH"], "HOME": str(state)})
print(*pins.pin(ws, sys.argv[3]))
"""


def test_a_repository_that_cannot_be_written_is_named(root: Path) -> None:
    ws = opened(root)
    start = snapshot(ws).id
    (root / ".git").chmod(0o555)
    less = ("--bounding-set=-dac_override", "--inh-caps=-dac_override")
    said = subprocess.check_output(
        (
            *(("setpriv", *less) if os.getuid() == 0 else ()),
            *(sys.executable, "-c", PINNING, str(root), str(ws.state), start),
        ),
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[1])},
        text=True,
    )
    (root / ".git").chmod(0o755)
    assert ".git cannot be written: what a turn changes in it cannot be restored" in said


@pytest.mark.parametrize("size", [0, pins.MAX_COPIED_BYTES + 1])
def test_across_file_systems_little_is_copied_and_much_is_said(size: int, root: Path) -> None:
    shm = Path("/dev/shm")  # noqa: S108 - another file system than the repository
    if not shm.is_dir() or shm.stat().st_dev == root.stat().st_dev:
        pytest.skip("needs a second file system")
    with (root / ".git/objects/pack/pack-0.pack").open("wb") as file:
        file.truncate(size)
    if not size:
        (root / ".git/objects/pack/pack-0.pack").unlink()
    state = Path(tempfile.mkdtemp(prefix="atlas-test-", dir=shm))
    try:
        ws = opened(root, state)
        start = snapshot(ws).id
        said = pins.pin(ws, start)
        assert bool(said) is (size > 0)
        if size:
            assert "another file system" in said[0]
            return
        before = _as_git_says(root)
        packs = sorted(state.rglob("*.pack"))
        assert pins.pin(ws, start) == ()
        assert sorted(state.rglob("*.pack")) == packs != []
        _without_branch(root)
        _without_stash(root)
        assert pins.put_back(ws, start).lost == ()
        git(root, "branch", "side", before[0].decode().split("refs/heads/side")[0].split()[-2])
        git(root, "fsck", "--connectivity-only")
    finally:
        shutil.rmtree(state)


@pytest.mark.parametrize("fix", ["true", "sed -i s/-/+/ calc.py"])
def test_an_agent_that_deletes_git_is_undone_and_refused(fix: str, project: Project) -> None:
    agent = {"backend": "command", "command": f"{fix}; touch new; rm -rf .git"}
    project.configure(agent=agent, retry={"max_ai_retry_attempts": 1})
    head = subprocess.check_output(("git", "rev-parse", "HEAD"), cwd=project.root)
    ended = atlas(project, "retry", ".", "--ai-fix")
    assert ended.code == 1
    assert "restored, as git could not use it: the repository" in ended.out
    assert subprocess.check_output(("git", "rev-parse", "HEAD"), cwd=project.root) == head
    assert (project.root / "calc.py").read_text() == CALC
    assert not (project.root / "new").exists()


def test_undo_makes_a_repository_again_that_was_removed_after_the_run(project: Project) -> None:
    agent = {"backend": "command", "command": "sed -i s/-/+/ calc.py"}
    project.configure(agent=agent)
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    head = subprocess.check_output(("git", "rev-parse", "HEAD"), cwd=project.root)
    shutil.rmtree(project.root / ".git")
    ended = atlas(project, "undo")
    assert (ended.code, ended.err) == (0, "")
    assert "undone: run " in ended.out
    assert subprocess.check_output(("git", "rev-parse", "HEAD"), cwd=project.root) == head
    assert (project.root / "calc.py").read_text() == CALC


KEPT = (".cache/model", ".cargo/notes", ".bundle/own", ".terraform/plan", "target/own", ".direnv/x")


@pytest.mark.parametrize("path", [*KEPT, "__pycache__/notes", "pkg/.cache/deep/er"])
def test_what_an_undo_cannot_restore_in_caches_is_named(path: str, root: Path) -> None:
    write(root, ".gitignore", "".join(f"{name.split('/')[0]}/\n" for name in (*KEPT, path)))
    write(root, path, "mine\n")
    write(root, f"{path}.gone", "mine\n")
    write(root, "__pycache__/a.cpython-311.pyc", "made again\n")
    ws = opened(root)
    run, folder = _started(ws), root.parent / "run"
    folder.mkdir()
    note_caches(root, look_over(ws), folder)
    write(root, path, "of the agent\n")
    (root / f"{path}.gone").unlink()
    write(root, f"{path}.new", "of the agent\n")
    write(root, "__pycache__/a.cpython-311.pyc", "newer\n")
    done = rescue.undo(opened(root), run, folder, None)
    assert set(done.unheld) == {path, f"{path}.gone"}


def test_caches_in_which_people_keep_files_are_moved_and_not_removed(root: Path) -> None:
    write(root, "__pycache__/a.pyc", "made again\n")
    write(root, ".cache/mine", "only here\n")
    write(root, "build/CACHEDIR.TAG", "")
    write(root, "build/b.o", "made again\n")
    into = root.parent / "removed"
    take_away(root, ["__pycache__/a.pyc", ".cache/mine", "build/b.o", "gone"], into)
    assert [path.read_text() for path in into.rglob("*") if path.is_file()] == ["only here\n"]
    assert not (root / ".cache/mine").exists()
    assert not (root / "build/b.o").exists()


def test_what_an_undo_could_not_restore_is_no_edit_when_it_is_tried_again(root: Path) -> None:
    start, folder = snapshot(opened(root)).id, root.parent / "run"
    keep(opened(root), "runs/r/start", start)
    for path in ("src/b.py", "run.sh", "left/by.agent"):
        write(root, path, "of the agent\n")
    (root / "src/a.py").unlink()
    (root / "src/a.py").mkdir()
    os.mkfifo(root / "src/a.py/pipe")
    ended = datetime.now(UTC).isoformat()
    time.sleep(0.05)
    write(root, "run.sh", "of a person\n")
    run = RunRow.of_snapshots("r", str(root), ended, start=start, ended_at=ended)
    with pytest.raises(WorkspaceError, match=r"src/a\.py"):
        rescue.undo(opened(root), run, folder, None)
    assert (root / "src/b.py").read_text() == "b = 2\n"
    (root / "src/a.py/pipe").unlink()
    write(root, "src/b.py", "edited between the two\n")
    done = rescue.undo(opened(root), run, folder, None)
    assert done.conflicts == ("run.sh", "src/b.py")
    assert (root / "src/a.py").read_text() == "a = 1\n"
    assert not [*opened(root).home.glob("*.edited")]


@needs("chattr")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may make a file immutable")
def test_an_immutable_file_is_restored_once_it_may_be_changed(root: Path) -> None:
    start, folder = snapshot(opened(root)).id, root.parent / "run"
    keep(opened(root), "runs/r/start", start)
    write(root, "src/b.py", "of the agent\n")
    write(root, "src/a.py", "of the agent\n")
    closed = subprocess.run((CHATTR, "+i", root / "src/b.py"), check=False, capture_output=True)
    if closed.returncode:
        pytest.skip(f"no immutable files here: {closed.stderr!r}")
    ended = datetime.now(UTC).isoformat()
    run = RunRow.of_snapshots("r", str(root), ended, start=start, ended_at=ended)
    time.sleep(0.05)
    try:
        with pytest.raises(WorkspaceError, match=r"src/b\.py"):
            rescue.undo(opened(root), run, folder, None)
    finally:
        subprocess.run((CHATTR, "-i", root / "src/b.py"), check=True)
    assert not [*root.rglob(TEMPORARY)]
    done = rescue.undo(opened(root), run, folder, None)
    assert (done.conflicts, done.changed) == ((), ("src/b.py",))


@pytest.fixture
def module(root: Path) -> Path:
    """A submodule with a branch."""
    other = repository(root.parent / "other")
    add = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(other), "module")
    git(root, *add)
    git(root, "commit", "-qm", "a submodule")
    git(root / "module", "branch", "own")
    return root / "module"


def _without_gitfile(module: Path) -> None:
    (module / ".git").unlink()


def _without_modules(module: Path) -> None:
    shutil.rmtree(module.parent / ".git/modules")


def _pruned_module(module: Path) -> None:
    git(module, "update-ref", "-d", "refs/heads/own")
    _without_objects_of(module.parent / ".git/modules/module")


def _without_objects_of(git_dir: Path) -> None:
    shutil.rmtree(git_dir / "objects")
    (git_dir / "objects/pack").mkdir(parents=True)


@pytest.mark.parametrize("destroy", [_without_gitfile, _without_modules, _pruned_module])
def test_a_submodule_is_given_back(destroy: Callable[[Path], None], module: Path) -> None:
    root = module.parent
    ws = opened(root)
    head = git(module, "rev-parse", "HEAD")
    run = _started(ws)
    destroy(module)
    rescue.undo(opened(root), run, root.parent / "run", None)
    assert git(module, "rev-parse", "HEAD") == head
    git(module, "fsck", "--connectivity-only")


def test_what_no_run_needs_is_let_go_with_the_runs(root: Path) -> None:
    ws = opened(root)
    _started(ws)
    there = {path for path in (ws.home / "pins").rglob("*") if path.is_file()}
    _without_stash(root)
    pins.sweep(ws, time.time() - 60)
    assert {path for path in there if path.exists()} == there
    pins.sweep(ws, time.time() + 60)
    assert not any(path.exists() for path in there)
    pins.pin(ws, snapshot(ws).id)
    pins.sweep(ws, time.time() + 60)
    assert [*(ws.home / "pins").rglob("*.pack")]
