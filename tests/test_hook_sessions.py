"""Two sessions in one workspace: each answers for what its own tools edited, by the transcripts."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.hooks import begin, claude, end, install
from tests.messages_server import call, say, serving
from tests.projects import FIXED, WORSE, Project, git

OURS = "⚠️ changed by another session, and not judged here: calc.py"


def transcript(project: Project, name: str, *paths: str, ago_s: float = -1) -> str:
    """The transcript of a session that edited these files, as Claude Code writes it."""
    at = (datetime.now(UTC) - timedelta(seconds=ago_s)).isoformat(timespec="milliseconds")
    file = project.root.parent / f"{name}.jsonl"
    with file.open("a") as lines:
        for path in paths:
            edit = {"type": "tool_use", "name": "Edit"}
            edit["input"] = {"file_path": str(project.root / path)}  # type: ignore[assignment]
            line = {"type": "assistant", "timestamp": at.replace("+00:00", "Z")}
            line["message"] = {"content": [edit]}  # type: ignore[assignment]
            lines.write(json.dumps(line) + "\n")
    return str(file)


@pytest.fixture
def linted(project: Project) -> Project:
    """A green project whose one gate names the file and line of each problem."""
    run = "! grep -n ' [*] ' *.py | sed 's/$/: error: times/' | grep ."
    project.configure(validation={"lint": [{"name": "plus", "run": run}]})
    project.commit()
    return project


def other(project: Project, *paths: str, ago_s: float = -1) -> None:
    """Another session begins, and its tools edit these files."""
    path = transcript(project, "other", *paths, ago_s=ago_s)
    begin(project, session_id="other", transcript_path=path)


def test_a_turn_in_which_only_another_session_changed_files_ends(linted: Project) -> None:
    begin(linted)
    other(linted, "calc.py")
    (linted.root / "calc.py").write_text(WORSE)
    assert end(linted) == {"systemMessage": OURS}


def test_problems_in_files_of_another_session_do_not_block(linted: Project) -> None:
    begin(linted)
    other(linted, "calc.py")
    (linted.root / "calc.py").write_text(WORSE)
    (linted.root / "notes.txt").write_text("x\n")
    said = str(end(linted)["systemMessage"]).splitlines()
    assert said[0] == "gates: red, in files of another session in 1 gate"
    assert said[-1] == OURS


def test_a_turn_that_is_sent_back_is_told_which_files_are_not_its_own(linted: Project) -> None:
    begin(linted)
    other(linted, "calc.py")
    (linted.root / "calc.py").write_text(WORSE)
    (linted.root / "mine.py").write_text("x = 2 * 2\n")
    answer = end(linted)
    assert answer["decision"] == "block"
    assert "(Another session has changed calc.py meanwhile: leave" in str(answer["reason"])


def test_the_guard_refuses_no_turn_for_what_another_session_changed(linted: Project) -> None:
    begin(linted)
    other(linted, ".atlas/config.yaml")
    linted.configure(validation={"test": ["true"]})
    (linted.root / "notes.txt").write_text("x\n")
    assert "decision" not in end(linted)


@pytest.mark.parametrize("case", ["both edited it", "edited before this turn", "a shell wrote it"])
def test_otherwise_a_change_is_the_turns_own(case: str, linted: Project) -> None:
    own = ""
    if case == "edited before this turn":
        other(linted, "calc.py", ago_s=60)
    begin(linted)
    if case == "both edited it":
        other(linted, "calc.py")
        own = transcript(linted, "own", "calc.py")
    elif case == "a shell wrote it":
        other(linted)
    (linted.root / "calc.py").write_text(WORSE)
    answer = end(linted, transcript_path=own or None)
    assert answer["decision"] == "block"
    assert "nother session" not in str(answer)


def test_a_broken_transcript_says_nothing(linted: Project) -> None:
    begin(linted)
    other(linted)
    Path(linted.root.parent / "other.jsonl").write_bytes(b'{"file_path": \xff\n[]\n{"_path":1}\n')
    (linted.root / "calc.py").write_text(WORSE)
    assert end(linted)["decision"] == "block"


@pytest.mark.claude
def test_what_a_real_session_edits_meanwhile_is_its_own(linted: Project) -> None:
    install(linted)
    linted.commit()
    begin(linted)
    file = str(linted.root / "calc.py")
    script = (call("Read", file_path=file), call("Write", file_path=file, content=FIXED))
    with serving(*script, say("done")) as server:
        claude(linted, server, "make it green")
    assert end(linted) == {"systemMessage": OURS}
    assert git(linted.root, "status", "--short", environ=linted.environ) == " M calc.py\n"
