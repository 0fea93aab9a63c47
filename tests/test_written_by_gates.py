"""What gates write in environments: code of the turn puts nothing there, their own commands do."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from atlas_retry.guard import Judgement
from atlas_retry.guard.judge import seals
from atlas_retry.process import handle_signals
from atlas_retry.run.environments import GatedTurn, by_gates
from atlas_retry.run.open import open_configured, plan
from atlas_retry.workspace.files import stat_of
from atlas_retry.workspace.installed import hold, note_written, undo_written
from atlas_retry.workspace.snapshot.snapshots import snapshot
from tests.environments import (
    ADD,
    ADDED,
    FAKE,
    IGNORES,
    RIGHT,
    SITE,
    VENV,
    WRITERS,
    WRITERS_WAYS,
    filled,
    sprung,
)
from tests.hooks import begin, end
from tests.miniatures import REPAIR, miniature, put
from tests.projects import Project, atlas

Environ = dict[str, str]
PLACE = f".venv/{SITE}"
SYNC = f'for name in $(cat requirements.txt); do cp "house/$name.py" {PLACE}; done'
FILES = {
    ".gitignore": IGNORES,
    "calc.py": ADD,
    "sync.sh": SYNC,
    "requirements.txt": "",
    "house/more.py": "one = 1\n",
    "schema.json": "1\n",
}
CHECKS = "python -B -c 'from calc import add; assert add(1, 2) == 3'"
ADDS = "echo more >> requirements.txt"


def writes(path: str, text: str) -> str:
    """A turn whose code writes a file when it runs."""
    return put("calc.py", f"open({path!r}, 'w').write({text!r})\n")


def started(folder: Path, environ: Environ, gate: str, turns: Sequence[str] = ()) -> Project:
    validation, retry = {"test": [gate]}, {"flake_reruns": 0}
    project = miniature(folder, environ, FILES, turns, validation=validation, retry=retry)
    filled(project.root, VENV | {f"{PLACE}/calc.py": ADD, ".venv/bin/check": FAKE})
    return project


def shell(project: Project, *lines: str) -> None:
    for line in lines:
        subprocess.run(("sh", "-c", line), cwd=project.root, env=project.environ, check=True)


def judged(project: Project, turn: str, gate: str) -> Judgement:
    """The judgement after a turn and its gate."""
    opened = open_configured(project.root, project.environ)
    held = opened.git.installed
    taken = seals.seal(opened.root, opened.settings, opened.environ, held=held)
    first = snapshot(opened.git).id
    shell(project, turn, gate)
    gated = GatedTurn(
        opened=opened,
        taken=taken,
        first=first,
        now=snapshot(opened.git).id,
        how=plan(opened, project.root.parent / "logs"),
    )
    return by_gates(gated, seals.compared(taken))


EXPLAINED = {
    "a sync of what the manifest names": ("sh sync.sh", ADDS),
    "a copy that follows its source": (f"cp calc.py {PLACE}", put("calc.py", ADDED)),
    "code that is made from data": (f"cp schema.json {PLACE}/made.py", put("schema.json", "2\n")),
    "the time of the last sync": (f"date +%N > {PLACE}/stamp.txt", put("calc.py", ADDED)),
    "nothing": ("true", put("calc.py", ADDED)),
}


@pytest.mark.parametrize("what", EXPLAINED)
def test_what_the_gates_own_commands_write_is_explained(
    tmp_path: Path, environ: Environ, what: str
) -> None:
    gate, turn = EXPLAINED[what]
    assert judged(started(tmp_path, environ, gate), turn, gate) == Judgement()


RUNS = "python -B calc.py"
UNEXPLAINED = {
    "a package": (RUNS, writes(f"{PLACE}/dep.py", RIGHT), f"{PLACE}/dep.py"),
    "a new package": (RUNS, writes(f"{PLACE}/new.py", RIGHT), f"{PLACE}/new.py"),
    "what runs at each start": (RUNS, writes(f"{PLACE}/a.pth", "import os"), f"{PLACE}/a.pth"),
    "a tool": (RUNS, writes(".venv/bin/check", "#!/bin/sh\n:\n"), ".venv/bin/check"),
    "a tool that is no program any more": (
        RUNS,
        put("calc.py", "import os\nos.chmod('.venv/bin/check', 0o644)\n"),
        ".venv/bin/check",
    ),
    "a package beside the one that a manifest names": (
        f"sh sync.sh && {RUNS}",
        f"{ADDS}; {writes(f'{PLACE}/dep.py', RIGHT)}",
        f"{PLACE}/dep.py",
    ),
    "the package that a manifest names, with other content": (
        f"sh sync.sh && {RUNS}",
        f"{ADDS}; {writes(f'{PLACE}/more.py', RIGHT)}",
        f"{PLACE}/more.py",
    ),
    "a copy of a source that was none before": (
        f"sh sync.sh; cp own.py {PLACE}/dep.py || true",
        f"{put('own.py', RIGHT)}; {put('sync.sh', f'cp own.py {PLACE}/dep.py')}",
        f"{PLACE}/dep.py",
    ),
    "what a changed script of the gate removes": (
        "sh sync.sh",
        put("sync.sh", f"rm -f {PLACE}/dep.py"),
        f"{PLACE}/dep.py",
    ),
}


@pytest.mark.parametrize("what", UNEXPLAINED)
def test_what_only_code_of_the_turn_writes_is_refused_and_can_be_put_back(
    tmp_path: Path, environ: Environ, what: str
) -> None:
    gate, turn, path = UNEXPLAINED[what]
    found = judged(started(tmp_path, environ, gate), turn, gate)
    assert [violation.path for violation in found.refused] == [path]
    assert found.reinstate == (path,)
    assert found.ends is None


WHOLE = (0, 1, 2)
"""A package, in place; a new one, in an overlay; a `.pth`, at the end of a turn of the hook."""


@pytest.mark.in_place("how each trap is laid is in the table")
@pytest.mark.parametrize("number", WHOLE, ids=[WRITERS[number].name for number in WHOLE])
def test_a_trap_that_only_gates_spring_is_never_green_and_gone_after_undo(
    tmp_path: Path, environ: Environ, number: int
) -> None:
    assert sprung(WRITERS[number], WRITERS_WAYS[number], tmp_path, environ) == []


@pytest.mark.in_place("what is installed in an overlay goes with it")
def test_an_undo_gives_back_what_gates_installed(tmp_path: Path, environ: Environ) -> None:
    project = started(tmp_path, environ, f"sh sync.sh && {CHECKS}", turns=[f"{ADDS}; {REPAIR}"])
    made = project.root / PLACE / "more.py"
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    assert made.exists()
    assert f"{PLACE}/more.py" in atlas(project, "undo").out
    assert not made.exists()


def test_an_undo_leaves_what_was_installed_later(tmp_path: Path) -> None:
    root, held, folder = tmp_path / "root", tmp_path / "held", tmp_path / "run"
    paths = ["bin/old", "bin/again", "bin/new", "bin/later"]
    filled(root, {"bin/old": "1\n", "bin/again": "1\n"})
    seen = {path: stat_of((root / path).lstat()) for path in paths[:2]}
    holding = hold(root, held, seen, ())
    filled(root, dict.fromkeys(paths, "2\n"))
    note_written(holding, paths, seen, folder)
    filled(root, {"bin/again": "3\n", "bin/later": "3\n"})
    assert [*undo_written(root, folder)] == ["bin/old", "bin/new"]
    left = {path.name: path.read_text() for path in (root / "bin").iterdir()}
    assert left == {"old": "1\n", "again": "3\n", "later": "3\n"}


def test_what_a_gate_installed_at_one_end_of_a_turn_is_not_refused_at_the_next(
    tmp_path: Path, environ: Environ
) -> None:
    project = started(tmp_path, environ, f"sh sync.sh && {CHECKS}")
    begin(project)
    shell(project, ADDS)
    assert end(project)["decision"] == "block"
    assert (project.root / PLACE / "more.py").exists()
    shell(project, put("calc.py", ADDED))
    assert end(project, stop_hook_active=True).get("decision") is None


def test_what_an_agent_installed_as_its_gate_does_is_not_refused_at_the_end_of_its_turn(
    tmp_path: Path, environ: Environ
) -> None:
    project = started(tmp_path, environ, f"sh sync.sh && {CHECKS}")
    begin(project)
    shell(project, ADDS, put("calc.py", ADDED), "sh sync.sh")
    assert end(project).get("decision") is None


def test_what_an_agent_installed_and_no_gate_does_stays_and_is_refused(
    tmp_path: Path, environ: Environ
) -> None:
    project = started(tmp_path, environ, CHECKS)
    begin(project)
    shell(project, put(f"{PLACE}/dep.py", RIGHT), put("calc.py", ADDED))
    answer = end(project)
    assert answer["decision"] == "block"
    assert f"{PLACE}/dep.py" in str(answer["reason"])
    assert (project.root / PLACE / "dep.py").read_text() == RIGHT


def test_gates_that_run_again_for_two_seconds_are_said_to(tmp_path: Path, environ: Environ) -> None:
    project = started(tmp_path, environ, f"sh sync.sh && sleep 2 && {CHECKS}")
    begin(project)
    shell(project, ADDS, put("calc.py", ADDED))
    answer = end(project)
    assert answer.get("decision") is None
    assert "gates ran again with the earlier code (" in str(answer["systemMessage"])


def test_a_turn_for_which_no_time_is_left_is_not_judged(tmp_path: Path, environ: Environ) -> None:
    line = "test -e ../slow && sleep 60; touch ../slow"
    project = started(tmp_path, environ, f"sh sync.sh; {line}; {CHECKS}")
    begin(project)
    shell(project, ADDS, put("calc.py", ADDED))
    with handle_signals():  # which forgets the request to stop when it ends
        answer = end(project, timeout_s=8)
    assert "the gates took longer than" in str(answer["systemMessage"])
    assert "not judged" in str(answer["systemMessage"])
