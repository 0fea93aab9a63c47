"""Looks at a work tree under an overlay read what was written, and find what a walk finds."""

import subprocess
import sys
from pathlib import Path

import pytest

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.overlay import binaries, mounting
from tests.needs import needs
from tests.repositories import git
from tests.written_looks import STEPS, prepare


@needs("overlay")
@pytest.mark.parametrize("seed", range(3))
def test_a_look_at_the_upper_layer_equals_a_full_walk(ws: Workspace, seed: int) -> None:
    prepare(ws.root)
    git(ws.root, "add", "-A", "-f", "a", "target", ".gitignore")
    git(ws.root, "commit", "-q", "-m", "start")
    bwrap = next(binaries(ws.root, ws.environ["PATH"]))
    upper = ws.state / "upper"
    script = (sys.executable, "-m", "tests.written_looks", str(ws.root), str(ws.state), str(upper))
    done = subprocess.run(
        (
            bwrap,
            "--dev-bind",
            "/",
            "/",
            *mounting(ws.root, upper),
            "--",
            *script,
            f"{seed}",
        ),
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert int(done.stdout) > STEPS / 4
