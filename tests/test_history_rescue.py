"""Undo, diff and pick on the command line: nothing of the user's goes, whatever happened since."""

import shutil
import subprocess
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.history import archive
from atlas_retry.history.database import path_of, reading
from tests.commands import run_atlas
from tests.crashes import PACKAGE, undo_after_kills
from tests.projects import CALC, FIXED, WORSE, Project, atlas, git, make_project, on_a_terminal
from tests.repositories import entries, git_bytes


class After(Struct, frozen=True, kw_only=True):
    """A project after a run that made two attempts, the second one green."""

    project: Project
    run_id: str

    @property
    def calc(self) -> Path:
        return self.project.root / "calc.py"

    def atlas(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        environ = {**self.project.environ, "PYTHONPATH": str(PACKAGE)}
        return run_atlas(arguments, cwd=self.project.root, environ=environ)


@pytest.fixture
def after(tmp_path: Path, environ: dict[str, str]) -> After:
    project = make_project(tmp_path, environ)
    (project.root / "staged.txt").write_text("staged\n")
    git(project.root, "add", "staged.txt", environ=environ)
    project.attempt(1, {"calc.py": WORSE, "made.txt": "made\n"})
    project.attempt(2, {"calc.py": FIXED})
    return After(project=project, run_id=project.retry().run_id)


def elsewhere(after: After) -> After:
    """The same project after `mv`."""
    root = after.project.root
    there = root.rename(root.with_name("elsewhere"))
    return replace(after, project=replace(after.project, root=there))


def test_a_moved_workspace_keeps_its_runs(after: After) -> None:
    moved = elsewhere(after)
    shown = moved.atlas("log")
    assert after.run_id in shown.stdout
    assert f"this workspace was {after.project.root} before" in shown.stderr
    assert "a + b" in moved.atlas("diff", after.run_id).stdout
    assert moved.atlas("undo").returncode == 0
    assert moved.calc.read_text() == CALC
    assert moved.atlas("log").stderr == ""


def test_a_moved_workspace_can_be_undone_at_once(after: After) -> None:
    moved = elsewhere(after)
    moved.atlas("validate")
    assert moved.atlas("undo").returncode == 0
    assert moved.calc.read_text() == CALC


@pytest.mark.parametrize("place", ["elsewhere", "project"])
def test_a_workspace_that_became_a_link_to_itself_keeps_its_runs(after: After, place: str) -> None:
    root = after.project.root
    root.rename(root.with_name("elsewhere")).with_name(root.name).symlink_to("elsewhere")
    linked = replace(after, project=replace(after.project, root=root.with_name(place)))
    shown = linked.atlas("log")
    assert after.run_id in shown.stdout
    assert f"this workspace was {root} before" in shown.stderr
    assert linked.atlas("undo").returncode == 0
    assert linked.calc.read_text() == CALC


def test_a_copy_of_a_deleted_workspace_needs_confirmation(after: After) -> None:
    root = after.project.root
    there = root.with_name("copy")
    shutil.copytree(root, there, symlinks=True)
    copy = replace(after, project=replace(after.project, root=there))
    assert copy.atlas("log").stderr == ""
    shutil.rmtree(root)
    refused = copy.atlas("undo")
    assert refused.returncode == 2
    assert f"the runs of {root}, which is gone: are they this workspace's?" in refused.stderr
    assert on_a_terminal(copy.project, "undo", typed=b"y\n")[0] == 0
    assert copy.calc.read_text() == CALC


def test_an_interrupted_run_resumes_in_a_moved_workspace(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    project = make_project(tmp_path, environ)
    agent = {"backend": "tests.resuming_agent:factory", "path": str(tmp_path)}
    project.configure(agent=agent)
    after = After(project=project, run_id="")
    assert after.atlas("retry", "--ai-fix").returncode < 0
    moved = elsewhere(after)
    assert moved.atlas("resume", "--ai-fix").returncode == 0
    assert moved.calc.read_text() == FIXED


def test_undo_restores_every_byte_of_files_and_git(tmp_path: Path, environ: dict[str, str]) -> None:
    project = make_project(tmp_path, environ)
    (project.root / "mine.txt").write_text("mine\n")
    git(project.root, "add", "-N", "mine.txt", environ=environ)
    before = entries(project.root), git_bytes(project.root / ".git")
    project.attempt(1, {"calc.py": FIXED, "mine.txt": "not mine\n", "new/file.txt": "x"})
    after = After(project=project, run_id=project.retry().run_id)
    assert entries(project.root) != before[0]
    assert after.atlas("undo").returncode == 0
    assert (entries(project.root), git_bytes(project.root / ".git")) == before


def test_undo_keeps_later_edits_and_reports_them(after: After) -> None:
    after.calc.write_text(FIXED + "# mine\n")
    (after.project.root / "notes.txt").write_text("mine\n")
    done = after.atlas("undo", after.run_id)
    assert done.returncode == 1
    assert "edited since, so not changed: calc.py" in done.stdout
    assert after.calc.read_text() == FIXED + "# mine\n"
    assert (after.project.root / "notes.txt").read_text() == "mine\n"
    assert not (after.project.root / "made.txt").exists()


def test_undo_can_itself_be_undone(after: After) -> None:
    after.atlas("undo")
    assert after.calc.read_text() == CALC
    assert after.atlas("undo").returncode == 0
    assert after.atlas("pick", after.run_id, "undone").returncode == 0
    assert after.calc.read_text() == FIXED
    assert after.atlas("undo").returncode == 0
    assert after.calc.read_text() == CALC


def test_undo_keeps_a_commit_made_after_the_run(after: After) -> None:
    git(after.project.root, "commit", "-q", "-a", "-m", "keep", environ=after.project.environ)
    head = git(after.project.root, "rev-parse", "HEAD", environ=after.project.environ)
    after.atlas("undo")
    assert git(after.project.root, "rev-parse", "HEAD", environ=after.project.environ) == head


def test_pick_restores_an_attempt_and_keeps_the_index(after: After) -> None:
    assert after.atlas("pick", after.run_id, "1").returncode == 0
    assert after.calc.read_text() == WORSE
    staged = git(
        after.project.root, "diff", "--cached", "--name-only", environ=after.project.environ
    )
    assert staged == "staged.txt\n"


@pytest.mark.parametrize(
    ("arguments", "added"),
    [(("1",), "+    return a * b"), (("2",), "+    return a + b"), ((), "+    return a + b")],
)
def test_diff_shows_one_attempt_or_the_whole_run(
    after: After, arguments: tuple[str, ...], added: str
) -> None:
    shown = after.atlas("diff", after.run_id, *arguments).stdout
    assert added in shown
    assert ("-    return a * b" in shown) == (arguments == ("2",))


@pytest.mark.parametrize(
    "arguments",
    [("diff", "20"), ("diff", "nothing"), ("pick", "20", "9"), ("undo", "nothing")],
)
def test_an_unknown_run_or_attempt_is_a_usage_error(
    after: After, arguments: tuple[str, ...]
) -> None:
    verb, run, *rest = arguments
    name = after.run_id if run == "20" and rest else run
    if arguments == ("diff", "20"):
        name, rest = after.run_id, ["7"]
    refused = after.atlas(verb, name, *rest)
    assert refused.returncode == 2
    assert "next:\n" in refused.stderr


def test_log_lists_runs_and_shows_one_as_a_timeline(after: After) -> None:
    assert after.run_id in after.atlas("log").stdout
    timeline = after.atlas("log", after.run_id[:-2]).stdout
    assert "test failed (attempt 1/3)" in timeline
    assert "Tests passed on attempt 2" in timeline


def test_prune_drops_old_runs_but_not_the_newest(after: After) -> None:
    second = after.project.retry()
    assert after.atlas("prune", "--keep", "1").stdout.startswith("1 runs dropped")
    refused = after.atlas("undo", after.run_id)
    assert refused.returncode == 3
    assert "pruned" in refused.stderr
    assert after.atlas("undo", second.run_id).returncode == 0
    with reading(Path(after.project.environ["ATLAS_HOME"])) as connection:
        assert len(archive.runs(connection)) == 2


def test_undo_works_without_a_journal(after: After) -> None:
    path_of(Path(after.project.environ["ATLAS_HOME"])).write_bytes(b"no database" * 1000)
    done = after.atlas("undo")
    assert done.returncode == 0, done.stderr
    assert "cannot be" in done.stderr
    assert after.calc.read_text() == CALC
    assert not (after.project.root / "made.txt").exists()


def test_undo_restores_every_byte_after_a_kill_at_any_moment(tmp_path: Path) -> None:
    tally = undo_after_kills(tmp_path, moments=3, seed=7)
    assert tally.unlike == []


def test_a_clone_in_place_of_a_workspace_is_a_different_one(after: After) -> None:
    root, environ = after.project.root, after.project.environ
    git(root, "clone", "-q", ".", str(root.with_name("clone")), environ=environ)
    shutil.rmtree(root)
    clone = replace(after, project=replace(after.project, root=root.with_name("clone")))
    assert "are they this workspace's" in clone.atlas("log").stderr
    assert after.run_id not in clone.atlas("log").stdout


@pytest.mark.parametrize(
    ("ignored", "code", "headline"),
    [
        ("", 1, "not everything could be restored"),
        ("*.dump", 0, "undone: run {}, except ignored files that are in no snapshot"),
    ],
    ids=["a file of the user", "a file that git ignores"],
)
def test_undo_names_a_changed_file_that_no_snapshot_holds(
    ignored: str, code: int, headline: str, project: Project
) -> None:
    dump = project.root / "core.dump"
    (project.root / ".gitignore").write_text(f"__pycache__/\n{ignored}\n")
    with dump.open("wb") as file:
        file.truncate((1 << 30) + 1)
    project.attempt(1, {"calc.py": WORSE, "core.dump": "gone"})
    ended = atlas(project, "retry", ".", "--ai-fix", "--max-attempts", "1")
    assert ("not restored, because no snapshot holds it: core.dump" in ended.out) == (not ignored)
    undone = atlas(project, "undo")
    run_id = undone.out.partition("run ")[2].partition(" of ")[0]
    assert undone.code == code
    assert undone.out.startswith(headline.format(run_id).partition(" run ")[0])
    assert headline.partition(", ")[2] in undone.out
    assert "core.dump (" in undone.out


def test_no_undo_is_promised_if_the_turn_deleted_what_is_kept_of_the_run(project: Project) -> None:
    delete = 'find "$ATLAS_HOME" -name "runs*" -prune -exec rm -rf {} +'
    (project.script / "fixed.py").write_text(FIXED)
    line = f"export ATLAS_HOME={project.environ['ATLAS_HOME']}; {delete}"
    copy = f"cp {project.script}/fixed.py calc.py"
    project.configure(agent={"backend": "command", "path": None, "command": f"{line}; {copy}"})
    project.commit()
    ended = atlas(project, "retry", ".", "--ai-fix", "--plain")
    assert ended.code == 0
    assert "atlas undo" not in ended.err + ended.out
    assert "this run cannot be undone" in ended.err + ended.out
