"""A resumed run goes by the configuration that its run began with, not by an unfinished edit."""

import signal
import time
from pathlib import Path

import pytest

from atlas_retry.history.rescue import ALL_ENDED
from atlas_retry.workspace.snapshot.restoring import AFTERMATH_S
from tests.processes import until
from tests.projects import FIXED, UNITTEST, git, make_project
from tests.test_resume import FIX, Scene


@pytest.fixture
def scene(tmp_path: Path, environ: dict[str, str]) -> Scene:
    notes = tmp_path / "notes"
    notes.mkdir()
    return Scene(project=make_project(tmp_path, environ), notes=notes)


@pytest.mark.parametrize("edit", ["s/-m unittest/--version/", "s/version: 1/version: [/"])
def test_a_configuration_edited_by_a_killed_agent_is_restored(scene: Scene, edit: str) -> None:
    once = (
        f"touch {scene.notes}/once; sed -i '{edit}' .atlas/config.yaml; kill -KILL $PPID; sleep 9"
    )
    scene.agent(
        f"echo '# tried' >> calc.py; [ -e {scene.notes}/once ] || {{ {once}; }}",
        validation={"test": [{"name": "unit", "run": UNITTEST}]},
    )
    scene.project.commit()
    config = scene.project.root / ".atlas/config.yaml"
    before = config.read_text()
    assert scene.atlas("retry", "--ai-fix", "--max-attempts", "1").returncode == -signal.SIGKILL
    assert config.read_text() != before
    done = scene.atlas("resume", "--ai-fix")
    assert done.returncode == 1, done.stdout + done.stderr
    assert config.read_text() == before


IN_A_TURN = "echo '# tried' >> calc.py; kill -KILL $PPID; sleep 9"
IN_GATES = "grep -q 'a - b' calc.py || {{ touch {notes}/once; kill -KILL $PPID; sleep 9; }}"


@pytest.mark.parametrize("when", ["turn", "gates"])
def test_a_configuration_that_a_person_edited_after_the_kill_stays(scene: Scene, when: str) -> None:
    deadly = IN_GATES.format(notes=scene.notes) if when == "gates" else "true"
    scene.agent(
        FIX if when == "gates" else IN_A_TURN,
        validation={"test": [{"name": "deadly", "run": deadly}, UNITTEST]},
    )
    scene.project.commit()
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    until(lambda: all_ended(scene))
    scene.project.configure(validation={"lint": ["false"], "test": [UNITTEST]})
    config = scene.project.root / ".atlas/config.yaml"
    edited = config.read_bytes()
    done = scene.atlas("resume", "--ai-fix")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "edited since: .atlas/config.yaml" in done.stderr
    assert config.read_bytes() == edited
    assert "edited since, so not changed: .atlas/config.yaml" in scene.atlas("undo").stdout
    assert config.read_bytes() == edited


EDITS_A_TEST = "sed -i 's|, 3|, -1|' test_calc.py; kill -KILL $PPID; sleep 9"


def test_a_refused_resume_leads_out_by_undo(scene: Scene) -> None:
    scene.agent(EDITS_A_TEST)
    scene.project.commit()
    test = (scene.project.root / "test_calc.py").read_text()
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    until(lambda: all_ended(scene))
    scene.calc.write_text("# mine\n")
    (cut_off,) = scene.runs()
    undo = f"(later changes stay): atlas undo {cut_off.id}"
    resumed = scene.atlas("resume", "--ai-fix")
    assert resumed.returncode == 3
    assert f"before the run {undo}\n  to start a new run: atlas retry" in resumed.stderr
    retried = scene.atlas("retry")
    assert retried.returncode == 2
    assert f"before it {undo}" in retried.stderr
    assert "it cannot be resumed: edited since: calc.py" in retried.stderr
    assert "atlas resume" not in retried.stderr
    scene.atlas("undo", cut_off.id)
    assert scene.calc.read_text() == "# mine\n"
    assert (scene.project.root / "test_calc.py").read_text() == test
    assert scene.atlas("retry").returncode == 1


def test_an_edit_right_after_the_kill_is_named_and_can_be_taken_again(scene: Scene) -> None:
    agent = {"backend": "tests.resuming_agent:factory", "path": str(scene.notes)}
    scene.project.configure(agent=agent)
    scene.project.commit()
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    until(lambda: all_ended(scene))
    for noted in Path(scene.environ["ATLAS_HOME"]).glob(f"runs/*/{ALL_ENDED}"):
        noted.unlink()  # as if the agent had not ended yet
    config = scene.project.root / ".atlas/config.yaml"
    edited = config.read_text() + "# mine\n"
    config.write_text(edited)
    done = scene.atlas("resume", "--ai-fix")
    (row,) = scene.runs()
    late = "of these, changed when or after atlas was killed: .atlas/config.yaml"
    assert late in done.stdout
    assert f"to get a file back: atlas pick {row.id} 1-unfinished --path FILE" in done.stdout
    assert config.read_text() != edited
    taken = scene.atlas("pick", row.id, "1-unfinished", "--path", ".atlas/config.yaml")
    assert taken.returncode == 0, taken.stderr
    assert config.read_text() == edited


def all_ended(scene: Scene) -> bool:
    return any(Path(scene.environ["ATLAS_HOME"]).glob(f"runs/*/{ALL_ENDED}"))


COMMITS = "git add -A; git -c user.name=a -c user.email=a@example.invalid commit -qm agents"
REDIRECTS = "git config core.hooksPath /tmp"


@pytest.mark.parametrize(
    ("turn", "named"), [(COMMITS, "branch main"), (REDIRECTS, "core.hookspath")]
)
def test_no_run_starts_from_git_state_that_a_killed_turn_changed(
    scene: Scene, turn: str, named: str
) -> None:
    scene.agent(f"{FIX}; {turn}; kill -KILL $PPID; sleep 9")
    scene.project.commit()
    environ, root = scene.project.environ, scene.project.root
    head = git(root, "rev-parse", "HEAD", environ=environ)
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    until(lambda: all_ended(scene))
    (cut_off,) = scene.runs()
    retried = scene.atlas("retry")
    assert retried.returncode == 2, retried.stdout + retried.stderr
    assert f"its turn changed git's own state: {named}" in retried.stderr
    assert f"before it (later changes stay): atlas undo {cut_off.id}" in retried.stderr
    assert scene.atlas("undo", cut_off.id).returncode == 0
    assert git(root, "rev-parse", "HEAD", environ=environ) == head
    assert "hookspath" not in git(root, "config", "--list", environ=environ)


def test_a_run_starts_from_what_a_person_committed_after_a_kill(scene: Scene) -> None:
    scene.agent("kill -KILL $PPID; sleep 9")
    scene.project.commit()
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    until(lambda: all_ended(scene))
    time.sleep(AFTERMATH_S + 1)
    scene.calc.write_text(FIXED)
    git(scene.project.root, "commit", "-qam", "mine", environ=scene.project.environ)
    assert scene.atlas("retry").returncode == 0
