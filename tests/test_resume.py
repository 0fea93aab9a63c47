"""Runs that are cut off and go on: nothing is paid twice, and nobody's edits are run over."""

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from msgspec import Struct

from atlas_retry.history import archive
from atlas_retry.history.database import reading
from atlas_retry.history.states import RunState
from atlas_retry.history.values import RunRow
from atlas_retry.model import Verdict
from tests.commands import run_atlas
from tests.crashes import PACKAGE, resume_after_kills
from tests.processes import alive, token
from tests.projects import CALC, UNITTEST, Project, git, make_project

FIX = "printf 'def add(a, b):\\n    return a + b\\n' > calc.py"
CTRL_C = "^C"
SIGNAL_ONCE = (
    "echo asked >> {notes}/asked; "
    "[ -e {notes}/once ] || {{ touch {notes}/once; printf half > calc.py; kill -{signal} $PPID; "
    "sleep 9; }}; {fix}"
)


class Scene(Struct, frozen=True, kw_only=True):
    """A project whose agent, or gate, ends atlas in the middle of a run."""

    project: Project
    notes: Path

    @property
    def calc(self) -> Path:
        return self.project.root / "calc.py"

    @property
    def environ(self) -> dict[str, str]:
        return {**self.project.environ, "PYTHONPATH": str(PACKAGE)}

    def agent(self, line: str, **rest: object) -> None:
        self.project.configure(agent={"backend": "command", "command": line}, **rest)

    def signalled(self, name: str) -> subprocess.CompletedProcess[str]:
        """A run that gets this signal in its first turn, with a file half written."""
        self.agent(SIGNAL_ONCE.format(notes=self.notes, signal=name, fix=FIX))
        return self.atlas("retry", ".", "--ai-fix")

    def atlas(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return run_atlas(arguments, cwd=self.project.root, environ=self.environ)

    def asked(self) -> list[str]:
        return (self.notes / "asked").read_text().splitlines()

    def runs(self) -> tuple[RunRow, ...]:
        with reading(Path(self.environ["ATLAS_HOME"])) as connection:
            return archive.runs(connection)


@pytest.fixture
def scene(tmp_path: Path, environ: dict[str, str]) -> Scene:
    notes = tmp_path / "notes"
    notes.mkdir()
    return Scene(project=make_project(tmp_path, environ), notes=notes)


@pytest.mark.parametrize(("name", "code"), [("KILL", -signal.SIGKILL), ("INT", 130)])
def test_an_interrupted_turn_is_repeated_from_its_snapshot(
    scene: Scene, name: str, code: int
) -> None:
    assert scene.signalled(name).returncode == code
    done = scene.atlas("resume", "--ai-fix")
    assert done.returncode == 0, done.stdout + done.stderr
    (row,) = scene.runs()
    assert (row.verdict, row.attempts) == (Verdict.FIXED, 1)
    assert scene.asked() == ["asked", "asked"]
    if name == "KILL":
        pick = f"atlas pick {row.id} 1-unfinished --path FILE"
        assert f"unfinished edits are reverted (to get a file back: {pick}): calc.py" in done.stdout
        taken = scene.atlas("pick", row.id, "1-unfinished", "--path", "calc.py")
        assert taken.returncode == 0, taken.stderr


def test_a_completed_turn_is_not_paid_again(scene: Scene) -> None:
    """The gate ends atlas: the agent has answered, the attempt is not finished."""
    notes = scene.notes
    once = f"touch {notes}/once; kill -KILL $PPID; sleep 9"
    kill = f"[ ! -e {notes}/asked ] || [ -e {notes}/once ] || {{ {once}; }}"
    scene.agent(
        f"echo asked >> {scene.notes}/asked; {FIX}",
        validation={"test": [{"name": "deadly", "run": kill}, UNITTEST]},
    )
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    done = scene.atlas("resume", "--ai-fix")
    assert done.returncode == 0, done.stdout + done.stderr
    assert scene.asked() == ["asked"]
    (row,) = scene.runs()
    assert (row.verdict, row.attempts) == (Verdict.FIXED, 1)


@pytest.mark.parametrize("name", ["KILL", "TERM"])
def test_edits_while_gates_ran_are_named_after_an_interruption(scene: Scene, name: str) -> None:
    notes, mine = scene.notes, scene.project.root / "notes.txt"
    once = f"touch {notes}/once; echo mine > notes.txt; kill -{name} $PPID; sleep 9"
    deadly = f"[ ! -e {notes}/asked ] || [ -e {notes}/once ] || {{ {once}; }}"
    scene.agent(
        f"echo asked >> {notes}/asked; {FIX}",
        validation={"test": [{"name": "deadly", "run": deadly}, UNITTEST]},
    )
    said = scene.atlas("retry", "--ai-fix").stdout
    if name == "KILL":
        said = scene.atlas("resume", "--ai-fix").stdout
        assert "the agent continues with its unfinished edits: calc.py\n" in said
    (row,) = scene.runs()
    pick = f"to get a file back: atlas pick {row.id} 1-unfinished --path FILE"
    assert f"restored, as it was changed while gates ran: notes.txt; {pick}" in said
    assert not mine.exists()
    taken = scene.atlas("pick", row.id, "1-unfinished", "--path", "notes.txt")
    assert (taken.returncode, mine.read_text()) == (0, "mine\n")


def test_a_worse_attempt_stays_reverted_when_a_run_resumes(scene: Scene) -> None:
    asked = f"{scene.notes}/asked"
    worse = f"[ -e {asked} ] || {{ echo worse > {asked}; echo 'def (' > calc.py; exit 0; }}"
    dies = f"grep -q dies {asked} || {{ echo dies >> {asked}; kill -KILL $PPID; sleep 9; }}"
    unbroken = f"cat calc.py > {scene.notes}/given"
    scene.agent(f"{worse}; {dies}; {unbroken}; {FIX}")
    assert scene.atlas("retry", ".", "--ai-fix").returncode == -signal.SIGKILL
    done = scene.atlas("resume", "--ai-fix")
    assert done.returncode == 0, done.stdout + done.stderr
    assert (scene.notes / "given").read_text() == CALC
    assert "somebody else" not in done.stdout
    assert "attempt 2 is in the workspace: calc.py (+1 -1)" in done.stdout


def test_resume_is_refused_during_a_merge(scene: Scene) -> None:
    kill = (
        f"[ -e {scene.notes}/once ] || {{ touch {scene.notes}/once; kill -KILL $PPID; sleep 9; }}"
    )
    scene.agent(FIX, validation={"test": [{"name": "deadly", "run": kill}, UNITTEST]})
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    merge = scene.project.root / ".git" / "MERGE_HEAD"
    merge.write_text(git(scene.project.root, "rev-parse", "HEAD", environ=scene.environ))
    refused = scene.atlas("resume", "--ai-fix")
    assert refused.returncode == 3
    assert scene.calc.read_text() == CALC
    merge.unlink()
    assert scene.atlas("resume", "--ai-fix").returncode == 0


def test_a_resumed_conversation_keeps_its_edits(scene: Scene) -> None:
    scene.project.configure(
        agent={"backend": "tests.resuming_agent:factory", "path": str(scene.notes)}
    )
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    done = scene.atlas("resume", "--ai-fix")
    assert done.returncode == 0, done.stdout + done.stderr
    assert scene.asked() == ["new None     return a - b", "resume conversation-1 # half done"]
    (row,) = scene.runs()
    assert row.cost_usd == 0.1 + 0.5


def test_edits_from_before_the_interruption_are_judged_with_the_turn(scene: Scene) -> None:
    scene.project.configure(
        agent={"backend": "tests.resuming_agent:forgetful", "path": str(scene.notes)}
    )
    test = scene.project.root / "test_calc.py"
    before = test.read_text()
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    done = scene.atlas("resume", "--ai-fix")
    assert "continues with its unfinished edits: test_calc.py" in done.stdout
    assert "edited by someone else" not in done.stdout
    assert done.returncode == 1, done.stdout + done.stderr
    assert test.read_text() == before


def test_an_interrupted_turn_is_counted_in_the_cost(scene: Scene) -> None:
    scene.project.configure(
        agent={"backend": "tests.resuming_agent:dear"}, retry={"max_cost_usd": 2.0}
    )
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    done = scene.atlas("resume", "--ai-fix")
    assert done.returncode == 1
    assert "2.00" in done.stdout
    (row,) = scene.runs()
    assert (row.verdict, row.cost_usd) == (Verdict.EXHAUSTED, 2.0)


def test_every_interrupted_turn_is_counted_in_the_cost(scene: Scene) -> None:
    scene.project.configure(
        agent={"backend": "tests.resuming_agent:dear"}, retry={"max_cost_usd": 5.0}
    )
    killed = [scene.atlas("retry", "--ai-fix")]
    assert [row.cost_usd for row in scene.runs()] == [2.0]
    killed += [scene.atlas("resume", "--ai-fix") for _ in range(2)]
    assert [one.returncode for one in killed] == [-signal.SIGKILL] * 3
    done = scene.atlas("resume", "--ai-fix", "--json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert (document["verdict"], document["cost_usd"]) == ("exhausted", 6.0)
    assert document["final_error"].startswith("the budget of $5.00 is spent; 1 problem: ")


def test_a_run_is_resumed_after_a_commit_over_the_same_files(scene: Scene) -> None:
    scene.signalled("INT")
    environ = scene.project.environ
    git(scene.project.root, "commit", "-q", "--allow-empty", "-m", "mine", environ=environ)
    resumed = scene.atlas("resume", "--ai-fix")
    assert "cannot be resumed" not in resumed.stderr
    assert "mine" in git(scene.project.root, "log", "-1", "--format=%s", environ=environ)


@pytest.mark.parametrize("how", ["edit", "switch", "configuration", "gate"])
def test_resume_is_refused_if_the_workspace_changed_and_shows_how(scene: Scene, how: str) -> None:
    scene.signalled("INT")
    environ = scene.project.environ
    expected = "calc.py"
    if how == "edit":
        scene.calc.write_text(CALC + "# mine\n")
    elif how == "switch":
        git(scene.project.root, "switch", "-q", "-c", "other", environ=environ)
        expected = "HEAD"
    elif how == "configuration":
        scene.project.configure(validation={"lint": ["true"]})
        expected = ".atlas/config.yaml"
    else:
        users = Path(environ["HOME"], ".config/atlas/config.yaml")
        users.parent.mkdir(parents=True)
        users.write_text("version: 1\nvalidation: {lint: ['true']}\n")
        expected = "its gates were"
    refused = scene.atlas("resume", "--ai-fix")
    assert refused.returncode == 3
    assert expected in refused.stderr
    assert "atlas undo" in refused.stderr
    assert scene.asked() == ["asked"]


def test_resume_without_ai_fix_names_the_command_and_costs_nothing(scene: Scene) -> None:
    scene.signalled("INT")
    done = scene.atlas("resume")
    assert done.returncode == 1
    assert f"next:\n  atlas resume {scene.project.root} --ai-fix" in done.stdout
    assert scene.asked() == ["asked"]
    assert scene.runs()[0].is_open


def test_log_and_status_use_the_same_word_for_a_killed_run(scene: Scene) -> None:
    scene.signalled("KILL")
    (killed,) = scene.runs()
    assert killed.state is RunState.FIXING
    listed = scene.atlas("log").stdout
    assert ["  interrupted  " in listed, "fixing" in listed] == [True, False]
    assert ": interrupted (" in scene.atlas("log", killed.id).stdout.splitlines()[0]
    assert json.loads(scene.atlas("log", "--json").stdout)["runs"][0]["state"] == "interrupted"
    assert " interrupted " in scene.atlas("status").stdout


def test_the_next_run_names_the_interrupted_one(scene: Scene) -> None:
    scene.signalled("KILL")
    (cut_off,) = scene.runs()
    output = scene.atlas("retry").stdout
    assert "atlas resume" in output
    assert f"atlas undo {cut_off.id}" in output
    assert [row.state for row in scene.runs()] == [RunState.VALIDATION_FAILED, RunState.ABANDONED]


def test_the_next_run_ends_processes_left_running_and_reports_their_cost(scene: Scene) -> None:
    number = token()
    agent = {"backend": "tests.resuming_agent:orphaning", "path": number}
    scene.project.configure(agent=agent)
    assert scene.atlas("retry", "--ai-fix").returncode == -signal.SIGKILL
    assert len(alive(number)) == 1
    output = scene.atlas("retry").stdout
    assert alive(number) == []
    assert f"the processes it left running are ended (sleep {number}" in output
    assert "Its cost: at least $2.00" in output
    assert "at least $2.00" in scene.atlas("log").stdout
    assert "cost: $2.00" in scene.atlas("stats").stdout


def test_undo_after_a_kill_keeps_later_edits(scene: Scene) -> None:
    scene.signalled("KILL")
    time.sleep(5)
    (scene.project.root / "test_calc.py").write_text("# mine\n")
    done = scene.atlas("undo")
    assert "edited since, so not changed: test_calc.py" in done.stdout
    assert scene.calc.read_text() == CALC
    assert (scene.project.root / "test_calc.py").read_text() == "# mine\n"


@pytest.mark.parametrize("flags", [(), ("--ai-fix",)])
def test_an_interruption_before_an_attempt_reverts_nothing(
    scene: Scene, flags: tuple[str, ...]
) -> None:
    deadly = "kill -INT $PPID; sleep 9"
    scene.agent("true", validation={"test": [{"name": "deadly", "run": deadly}]})
    output = scene.atlas("retry", *flags).stdout
    assert "interrupted; no attempt was running, so nothing is reverted" in output
    command = " ".join(("atlas resume", f"{scene.project.root}", *flags))
    assert f"to continue:\n  {command}\n" in output


def test_an_interruption_reverts_the_running_attempt(scene: Scene) -> None:
    scene.signalled("INT")
    assert scene.calc.read_text() == CALC


def test_resume_all_resumes_every_interrupted_run(scene: Scene) -> None:
    scene.signalled("KILL")
    done = scene.atlas("resume", "--all", "--ai-fix")
    assert done.returncode == 0, done.stdout + done.stderr
    assert scene.runs()[0].verdict is Verdict.FIXED
    assert "nothing to resume" in scene.atlas("resume", "--all").stdout


def test_resume_asks_a_person_at_a_terminal(scene: Scene) -> None:
    scene.signalled("INT")
    shown = _at_a_terminal(scene, ("s", "d"))
    assert "retry with AI fix" in shown
    assert "AssertionError" in shown
    assert scene.runs()[0].state is RunState.ABANDONED
    assert scene.asked() == ["asked"]


@pytest.mark.parametrize(("answer", "code"), [("q", 1), (CTRL_C, 130)])
def test_a_question_that_is_quit_leaves_the_run_resumable(
    scene: Scene, answer: str, code: int
) -> None:
    scene.signalled("INT")
    shown = _at_a_terminal(scene, (answer,), code)
    assert f"the run stays; to continue:\r\n  atlas resume {scene.project.root}" in shown
    assert "Traceback" not in shown
    assert scene.runs()[0].is_open


@pytest.mark.parametrize(("answer", "code"), [("n", 1), (CTRL_C, 130)])
def test_a_new_run_asks_before_it_drops_an_interrupted_one(
    scene: Scene, answer: str, code: int
) -> None:
    scene.signalled("INT")
    shown = _at_a_terminal(scene, (answer,), code, ("retry", "--ai-fix"))
    (run,) = scene.runs()
    assert f"run {run.id}, interrupted in {scene.project.root}, can be resumed (cost:" in shown
    assert run.is_open


def test_a_new_run_drops_an_interrupted_one_if_that_is_wanted(scene: Scene) -> None:
    scene.signalled("INT")
    _at_a_terminal(scene, ("y",), 0, ("retry", "--ai-fix"))
    assert [run.state for run in scene.runs()] == [RunState.PASSED, RunState.ABANDONED]


def _at_a_terminal(
    scene: Scene, answers: tuple[str, ...], code: int = 1, command: tuple[str, ...] = ("resume",)
) -> str:
    """What a command shows on a terminal, given these answers to its question."""
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", *command),
        cwd=scene.project.root,
        env={**scene.environ, "TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown, waiting = "", list(answers)
    while select.select([ours], [], [], 120)[0]:
        try:
            shown += os.read(ours, 4096).decode()
        except OSError:  # the other end is closed
            break
        questions = shown.count("quit [s]:") + shown.count("[y/N]:")
        if waiting and questions > len(answers) - len(waiting):
            if (answer := waiting.pop(0)) == CTRL_C:
                child.send_signal(signal.SIGINT)
            else:
                os.write(ours, f"{answer}\n".encode())
    os.close(ours)
    assert child.wait(timeout=120) == code
    return shown


def test_no_attempt_is_paid_twice_after_any_number_of_kills(tmp_path: Path) -> None:
    tally = resume_after_kills(tmp_path, runs=1, seed=3, kills=3)
    assert (tally.unlike, tally.paid_twice, tally.verdicts) == ([], [], {"fixed": 1})
