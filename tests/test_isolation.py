"""Runs in layers over the workspace: they end as those in place, and before that touch nothing."""

import enum
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from atlas_retry.errors import WorkspaceError
from atlas_retry.events import AttemptFinished, AttemptStarted, Event, Notice
from atlas_retry.history import archive
from atlas_retry.history.database import reading
from atlas_retry.model import Outcome, Verdict
from atlas_retry.run.channel import pickled, unpickled
from atlas_retry.settings import Isolation
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.isolation.isolated import lock
from atlas_retry.workspace.snapshot.restoring import restore
from atlas_retry.workspace.snapshot.snapshots import snapshot
from atlas_retry.workspace.snapshot.trees import changes
from tests.needs import needs
from tests.processes import alive, states, token, until
from tests.projects import CALC, FIXED, TEST, UNITTEST, WORSE, Project, atlas, git, make_project

WEAK = TEST.replace("calc.add(1, 2), 3", "1, 1")
LIMIT_S = 4
"""Of a turn that is halted for as long."""
MODES = ("none", "overlay")
FIX = "printf 'def add(a, b):\\n    return a + b\\n' > calc.py"


def acts(project: Project, *turns: Mapping[str, str], **rest: str) -> None:
    for number, files in enumerate(turns, 1):
        project.attempt(number, files, **rest)


def with_command(project: Project, line: str, **sections: object) -> None:
    project.configure(agent={"backend": "command", "command": line}, **sections)
    project.commit()


def nothing(_: Project) -> None: ...


def fixed(project: Project) -> None:
    acts(project, {"calc.py": FIXED, "more/new.py": "x = 1\n"})


def moved(project: Project) -> None:
    """A file becomes a folder, a folder goes, a mode changes."""
    line = f"cat >/dev/null; {FIX}; rm a; mkdir a; echo b > a/b; rm -r old; chmod +x tool"
    (project.root / "a").write_text("a\n")
    (project.root / "tool").write_text("#!/bin/sh\n")
    (project.root / "old/deep").mkdir(parents=True)
    (project.root / "old/deep/x").write_text("x\n")
    (project.root / "old/y").write_text("y\n")
    with_command(project, line)


def refused(project: Project) -> None:
    acts(project, {"calc.py": FIXED, ".atlas/config.yaml": "version: 1\n"}, {"calc.py": FIXED})


def held(project: Project) -> None:
    acts(project, {"calc.py": WORSE, "test_calc.py": WEAK}, {"test_calc.py": WEAK}, {})


def worse(project: Project) -> None:
    acts(project, {"calc.py": "def (\n"}, {"calc.py": WORSE}, {"calc.py": WORSE, "b.py": "x = 1\n"})


def exhausted_and_restored(project: Project) -> None:
    project.configure(retry={"on_exhausted": "restore"})
    project.commit()
    acts(project, {"b.py": "x = 1\n"}, {"b.py": "x = 2\n"}, {"b.py": "x = 3\n"})


def gave_up(project: Project) -> None:
    project.attempt(1, {"b.py": "x = 1\n"}, gave_up="the test contradicts the specification")


def by_a_formatter(project: Project) -> None:
    """A gate that changes files, before and after the agent."""
    line = "for f in *.py; do grep -q '^# ok' $f || { echo '# ok' >> $f; exit 1; }; done"
    project.configure(validation={"format": [line], "test": [UNITTEST]})
    project.commit()
    fixed(project)


SCENES: tuple[Callable[[Project], None], ...] = (
    *(nothing, fixed, moved, refused, held, worse),
    *(exhausted_and_restored, gave_up, by_a_formatter),
)


def files(project: Project) -> dict[str, tuple[int, bytes]]:
    """All that git sees, staged or not."""
    names = git(project.root, "ls-files", "-co", "--exclude-standard", environ=project.environ)
    there = {name: project.root / name for name in names.split("\n") if name}
    by_name = {n: (p.stat().st_mode, p.read_bytes()) for n, p in there.items() if p.is_file()}
    return {name: file for name, file in by_name.items() if name != ".atlas/config.yaml"}


def ended(project: Project, outcome: Outcome) -> tuple[object, ...]:
    """All of a run's end that does not depend on time or place."""
    attempts = tuple(
        (
            *(one.changes, one.violations, one.held, one.noted, one.kept, one.rolled_back),
            *(len(one.fixed), len(one.remaining), len(one.introduced), one.worse, one.ends),
        )
        for one in outcome.attempts
    )
    statuses = tuple((one.name, one.status) for one in outcome.final.results)
    staged = git(project.root, "diff", "--cached", "--stat", environ=project.environ)
    return outcome.verdict, attempts, statuses, files(project), staged


@needs("overlay")
@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.__name__)
def test_an_isolated_run_ends_like_one_in_place(
    scene: Callable[[Project], None], tmp_path: Path, environ: dict[str, str]
) -> None:
    ends = []
    for mode in MODES:
        (tmp_path / mode).mkdir()
        project = make_project(tmp_path / mode, environ)
        scene(project)
        outcome = project.retry(agent__isolation=mode)
        ends.append(ended(project, outcome))
        assert not layers(project)
    assert ends[0] == ends[1]


def layers(project: Project) -> list[Path]:
    return [*Path(project.environ["ATLAS_HOME"]).glob("runs/*/layers")]


def isolated(project: Project, events: list[Event] | None = None) -> Outcome:
    return project.retry(events, agent__isolation="overlay")


@needs("overlay")
def test_writes_outside_are_dropped_except_caches(project: Project, tmp_path: Path) -> None:
    home = Path(project.environ["HOME"])
    (home / ".cache").mkdir()
    wrote = [home / "outside", tmp_path / "outside", Path(f"/var/tmp/{token()}")]  # noqa: S108
    lines = [f"echo x > {path}" for path in (*wrote, home / ".cache/kept")]
    with_command(project, "; ".join(["cat >/dev/null", *lines, "touch /etc/atlas-test", FIX]))
    assert isolated(project).verdict is Verdict.FIXED
    assert [path for path in (*wrote, Path("/etc/atlas-test")) if path.exists()] == []
    assert (home / ".cache/kept").read_text() == "x\n"


@needs("overlay")
@pytest.mark.parametrize("reads", [True, False])
def test_a_pass_is_confirmed_without_what_was_written_outside(
    reads: bool,
    project: Project,
    tmp_path: Path,
) -> None:
    flag, events = tmp_path / "flag", list[Event]()
    gate = f"test -e {flag}" if reads else UNITTEST
    line = f"cat >/dev/null; touch -d 2001-01-01 {flag}; {FIX}"
    with_command(project, line, validation={"test": [gate]})
    outcome = isolated(project, events)
    said = [event.text for event in events if isinstance(event, Notice)]
    why = f"without what the run wrote outside the workspace: {flag}"
    assert [text for text in said if text.startswith("validating again")] == [
        f"validating again {why}"
    ]
    assert not flag.exists()
    assert outcome.verdict is (Verdict.FAILED if reads else Verdict.FIXED)
    assert outcome.final_error == (f"the gates fail {why}" if reads else None)


@needs("overlay")
def test_a_folder_configured_as_writable_is_written(project: Project, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    line = f"cat >/dev/null; echo x > {notes}/x; {FIX}"
    project.configure(agent={"backend": "command", "command": line, "writable": [str(notes)]})
    assert isolated(project).verdict is Verdict.FIXED
    assert (notes / "x").read_text() == "x\n"


def test_enumerations_cross_the_connection_under_early_releases_of_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_name(self: enum.Enum, _: int) -> tuple[object, ...]:
        return getattr, (type(self), self.name)

    monkeypatch.setattr(enum.Enum, "__reduce_ex__", by_name)
    assert unpickled(pickled(("emit", Verdict.FIXED))) == ("emit", Verdict.FIXED)


@needs("offline")
@pytest.mark.parametrize("mode", ["none", pytest.param("overlay", marks=needs("overlay"))])
def test_a_gate_with_network_none_has_no_network(project: Project, mode: Isolation) -> None:
    lonely = "[ $(tail -n +3 /proc/net/dev | wc -l) = 1 ]"
    project.configure(validation={"lint": [{"run": lonely, "network": "none"}], "test": [UNITTEST]})
    project.commit()
    fixed(project)
    assert project.retry(agent__isolation=mode).verdict is Verdict.FIXED


@needs("overlay")
def test_changes_staged_by_the_agent_are_not_staged(project: Project) -> None:

    with_command(project, f"cat >/dev/null; {FIX}; echo x > new; git add new calc.py")
    assert isolated(project).verdict is Verdict.FIXED
    shown = git(project.root, "status", "--porcelain", environ=project.environ)
    assert shown == " M calc.py\n?? new\n"


@needs("overlay")
def test_no_process_of_a_turn_outlives_the_run(project: Project) -> None:
    mark = token()
    with_command(project, f"cat >/dev/null; setsid sh -c 'sleep 300 # {mark}' & {FIX}")
    assert isolated(project).verdict is Verdict.FIXED
    assert not alive(mark)


class Editing(list[Event]):
    """Events, and somebody who edits once an attempt has been validated."""

    def __init__(self, edits: Mapping[Path, str]) -> None:
        self.edits = edits

    def append(self, event: Event) -> None:
        super().append(event)
        if isinstance(event, AttemptFinished):
            for path, text in self.edits.items():
                path.write_text(text)

    @property
    def notices(self) -> str:
        return "\n".join(event.text for event in self if isinstance(event, Notice))


@needs("overlay")
def test_edits_made_during_the_run_are_validated_with_the_fix(
    project: Project,
) -> None:
    fixed(project)
    events = Editing({project.root / "mine.txt": "mine\n"})
    outcome = isolated(project, events)
    assert outcome.verdict is Verdict.FIXED
    assert (project.root / "mine.txt").read_text() == "mine\n"
    assert "validating again with what others edited during the run: mine.txt" in events.notices


@needs("overlay")
def test_edits_made_during_a_turn_are_not_charged_to_the_agent(
    project: Project, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    line = f"cat >/dev/null; until [ -e {notes}/go ]; do sleep 0.02; done; {FIX}"
    project.configure(agent={"backend": "command", "command": line, "writable": [str(notes)]})
    project.commit()

    class Meanwhile(Editing):
        def append(self, event: Event) -> None:
            super().append(event)
            if isinstance(event, AttemptStarted):
                (project.root / "test_calc.py").write_text(f"{TEST}# mine\n")
                (notes / "go").touch()

    events = Meanwhile({})
    outcome = isolated(project, events)
    assert [change.path for change in outcome.attempts[0].changes] == ["calc.py"]
    assert outcome.verdict is Verdict.FIXED
    assert "atlas keeps that change: test_calc.py" in events.notices
    assert (project.root / "test_calc.py").read_text() == f"{TEST}# mine\n"


@needs("overlay")
@pytest.mark.parametrize(
    ("path", "text", "notice"),
    [
        pytest.param(
            "calc.py", CALC + "# mine\n", "atlas keeps that change: calc.py", id="the same file"
        ),
        pytest.param("test_more.py", "import nothing_of_that_name\n", "", id="a test of theirs"),
    ],
)
def test_a_fix_that_fails_with_edits_made_during_the_run_is_not_fixed(
    project: Project, path: str, text: str, notice: str
) -> None:
    fixed(project)
    events = Editing({project.root / path: text})
    outcome = isolated(project, events)
    assert outcome.verdict is Verdict.FAILED
    assert "the gates fail because of what others edited during the run" in f"{outcome.final_error}"
    assert (project.root / path).read_text() == text
    assert notice in events.notices


@needs("overlay")
def test_an_accepted_run_can_be_undone(project: Project) -> None:
    before = files(project)
    moved(project)
    before = files(project)
    assert isolated(project).verdict is Verdict.FIXED
    assert files(project) != before
    done = atlas(project, "undo")
    assert done.code == 0, done.out + done.err
    assert files(project) == before


def test_required_isolation_is_refused_if_unavailable_but_auto_is_not(project: Project) -> None:
    fixed(project)
    project.configure(validation={"test": [f"{UNITTEST} # docker"]})
    project.commit()
    with pytest.raises(WorkspaceError, match="docker works outside an overlay") as caught:
        isolated(project)
    assert caught.value.exit_code == 3
    assert "--no-isolate" in f"{caught.value.remedy}"
    events = Editing({})
    assert project.retry(events, agent__isolation="auto").verdict is Verdict.FIXED
    assert events.notices.count("attempts change the workspace itself: docker") == 1


def started(project: Project, *, process_group: int | None = None) -> "subprocess.Popen[bytes]":
    """A run in layers that goes on."""
    return subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", "retry", "--ai-fix", "--isolate"),
        cwd=project.root,
        env=project.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=process_group,
    )


def cut_off(project: Project, tmp_path: Path, *, signum: signal.Signals) -> Path:
    """A run in layers that is ended in its second turn; where its agent notes what it did."""
    notes = tmp_path / "notes"
    notes.mkdir()
    first = f"[ -e {notes}/first ] || {{ touch {notes}/first; echo 'x = 1' > b.py; exit 0; }}"
    hang = f"[ -e {notes}/hung ] || {{ echo half > calc.py; touch {notes}/hung; sleep 300; }}"
    line = f"cat >/dev/null; {first}; {hang}; cat b.py > {notes}/given; {FIX}"
    project.configure(agent={"backend": "command", "command": line, "writable": [str(notes)]})
    project.commit()
    before = files(project)
    child = started(project)
    until((notes / "hung").exists, within_s=60)
    child.send_signal(signum)
    assert child.wait(60) in (-signum, 128 + signum)
    assert files(project) == before
    return notes


@needs("overlay")
def test_control_z_stops_the_turn_and_its_timeout(project: Project, tmp_path: Path) -> None:
    mark, notes = token(), tmp_path / "notes"
    notes.mkdir()
    line = f"cat >/dev/null; until [ -e {notes}/go ]; do sleep 0.1; done; {FIX} # {mark}"
    agent = {"backend": "command", "command": line, "writable": [str(notes)]}
    project.configure(agent={**agent, "timeout": LIMIT_S})
    project.commit()
    with started(project, process_group=0) as run:
        try:
            until(lambda: bool(alive(mark)), within_s=60)
            pids = (str(run.pid), *(line.split()[0] for line in alive(mark)))
            run.send_signal(signal.SIGTSTP)
            until(lambda: states(pids) == {"T"})
            time.sleep(LIMIT_S)
            (notes / "go").touch()
            run.send_signal(signal.SIGCONT)
            assert run.wait(60) == 0
        finally:
            run.kill()


@needs("overlay")
@pytest.mark.parametrize("signum", [signal.SIGKILL, signal.SIGINT])
def test_an_interrupted_run_leaves_the_tree_unchanged_and_resumes(
    project: Project, tmp_path: Path, signum: signal.Signals
) -> None:
    notes = cut_off(project, tmp_path, signum=signum)
    done = atlas(project, "resume", "--ai-fix")
    assert done.code == 0, done.out + done.err
    assert (notes / "given").read_text() == "x = 1\n"
    assert (project.root / "calc.py").read_text() == FIXED
    assert not layers(project)
    with reading(Path(project.environ["ATLAS_HOME"])) as connection:
        (row,) = archive.runs(connection)
    assert (row.verdict, row.attempts) == (Verdict.FIXED, 2)


@needs("overlay")
def test_layers_of_an_abandoned_run_are_pruned(project: Project, tmp_path: Path) -> None:
    cut_off(project, tmp_path, signum=signal.SIGKILL)
    assert atlas(project, "prune").code == 0
    assert layers(project), "it can still go on"
    assert atlas(project, "undo").code == 0
    assert atlas(project, "prune").code == 0
    assert not layers(project)


def test_an_acceptance_interrupted_by_a_kill_is_completed(project: Project) -> None:
    state = Path(project.environ["ATLAS_HOME"])
    ws = open_workspace(project.root, state, environ=project.environ)
    start = snapshot(ws)
    (project.root / "calc.py").write_text(FIXED)
    (project.root / "b.py").write_text("x = 1\n")
    end = snapshot(ws)
    restore(ws, start.id)
    (project.root / "calc.py").write_text(FIXED)
    (ws.home / "accept.note").write_text(f'["{start.id}", "{end.id}"]')
    (project.root / "mine.txt").write_text("mine\n")
    with lock(ws):
        assert [c.path for c in changes(ws, end.id, snapshot(ws).id)] == ["mine.txt"]
    assert not [*ws.home.glob("*.note")]
