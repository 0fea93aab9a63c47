"""A resumed run goes by the configuration that its run began with, not by an unfinished edit."""

import signal
from pathlib import Path

import pytest

from tests.projects import UNITTEST, make_project
from tests.test_resume import Scene


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
