"""The question at the end of a run that is green only with what was held, on a real terminal."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from atlas_retry.history import archive
from atlas_retry.history.database import reading
from atlas_retry.model import Verdict
from tests.judged import acts
from tests.projects import CALC, LIMIT_S, TEST, WORSE, Project, atlas, git, on_a_terminal

WEAK = TEST.replace("calc.add(1, 2), 3", "1, 1")
ASKED = "[a] accept  [d] drop  [o] open in your editor [d]:"
RETRY = ("retry", ".", "--ai-fix", "--max-attempts", "1")


@pytest.fixture
def held(project: Project) -> Project:
    """A project whose agent breaks the source further and guts the test."""
    acts(project, {"calc.py": WORSE, "test_calc.py": WEAK})
    project.commit()
    return project


def verdict(project: Project) -> Verdict | None:
    with reading(Path(project.environ["ATLAS_HOME"])) as connection:
        (row,) = archive.runs(connection)
    return row.verdict


def test_an_accepted_change_is_restored_although_the_run_needed_review(
    held: Project,
) -> None:
    code, shown = on_a_terminal(held, *RETRY, typed=b"a\n")
    assert (held.root / "test_calc.py").read_text() == WEAK
    assert "accepted: the gates passed with these changes" in shown
    assert (code, verdict(held)) == (0, Verdict.NEEDS_REVIEW)
    assert atlas(held, "undo").code == 0
    assert (held.root / "calc.py").read_text() == CALC
    assert git(held.root, "status", "--porcelain", environ=held.environ) == ""


@pytest.mark.parametrize("typed", [b"d\n", b"\n", b"\x04", b"what?\nd\n"])
def test_any_other_answer_drops_the_change(typed: bytes, held: Project) -> None:
    code, shown = on_a_terminal(held, *RETRY, typed=typed)
    assert ASKED in shown
    assert "dropped; to accept them later:\r\n  atlas pick " in shown
    assert code == 1
    assert (held.root / "test_calc.py").read_text() == TEST
    assert (held.root / "calc.py").read_text() == WORSE


def test_only_the_change_to_accept_is_shown(held: Project) -> None:
    _, shown = on_a_terminal(held, *RETRY, typed=b"d\n")
    question = shown.index(ASKED)
    diff = shown[shown.index("diff --git") : question]
    assert "+        self.assertEqual(1, 1)" in diff
    assert "calc.py" in diff
    assert "return a * b" not in diff


def test_a_long_diff_is_cut_and_names_the_diff_command(project: Project) -> None:
    acts(project, {"calc.py": WORSE, "test_calc.py": WEAK + "# more\n" * 200})
    project.commit()
    _, shown = on_a_terminal(project, *RETRY, typed=b"d\n")
    assert " more lines:" in shown
    assert "  atlas diff " in shown
    assert shown.count("+# more") < 100


def test_the_editor_opens_the_diff_and_the_question_is_repeated(
    held: Project, tmp_path: Path
) -> None:
    seen = tmp_path / "seen"
    editor = tmp_path / "editor"
    editor.write_text(f'#!/bin/sh\ntest -t 0 && cp "$2" {seen}\nexit "$1"\n')
    editor.chmod(0o755)
    _, shown = on_a_terminal(held, *RETRY, typed=b"o\nd\n", VISUAL=f"{editor} 0", EDITOR="false")
    assert "+        self.assertEqual(1, 1)" in seen.read_text()
    assert shown.count(ASKED) == 2
    assert (held.root / "test_calc.py").read_text() == TEST


@pytest.mark.parametrize(
    ("editor", "why"),
    [
        ("", "neither VISUAL nor EDITOR is set"),
        ("/no/such/editor", "/no/such/editor cannot be started: No such file"),
        ("false", "false ended with exit code 1"),
    ],
)
def test_without_an_editor_the_file_is_named(editor: str, why: str, held: Project) -> None:
    code, shown = on_a_terminal(held, *RETRY, typed=b"o\nd\n", EDITOR=editor)
    assert why in shown
    assert "held-1.diff" in shown
    assert code == 1


@pytest.mark.parametrize(
    ("flags", "variables"),
    [(("--plain",), {}), (("--json",), {}), (("-q",), {}), ((), {"CI": "true"})],
)
def test_no_question_is_asked_without_a_person_reading(
    flags: tuple[str, ...], variables: dict[str, str], held: Project
) -> None:
    code, shown = on_a_terminal(held, *RETRY, *flags, typed=b"a\n", **variables)
    assert ASKED not in shown
    assert (code, (held.root / "test_calc.py").read_text()) == (1, TEST)


def test_without_a_terminal_the_accept_command_is_shown(held: Project) -> None:
    ended = atlas(held, *RETRY)
    assert ended.code == 1
    fate = "held and restored, and the gates pass only with it: test_calc.py (test-changed)"
    assert fate in ended.out
    lines = ended.out.splitlines()
    command = lines[lines.index("next:") + 1]
    assert atlas(held, *command.removeprefix("  atlas ").split()).code == 0
    assert (held.root / "test_calc.py").read_text() == WEAK


def test_a_resumed_run_asks_too(held: Project) -> None:
    assert atlas(held, *RETRY).code == 1
    acts_again = held.root.parent / "turns" / "1.sh.done"
    acts_again.rename(acts_again.with_suffix(""))
    git(held.root, "checkout", "-q", ".", environ=held.environ)
    code, shown = on_a_terminal(held, "resume", "--ai-fix", typed=b"a\n")
    assert ASKED in shown, shown
    assert code == 0


def test_ctrl_c_at_the_question_drops_the_change(held: Project) -> None:
    ours, theirs = pty.openpty()
    child = subprocess.Popen(
        (sys.executable, "-m", "atlas_retry", *RETRY),
        cwd=held.root,
        env=held.environ | {"TERM": "xterm"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    waiting = select.poll()
    waiting.register(ours, select.POLLIN)
    shown = ""
    deadline = time.monotonic() + LIMIT_S
    while time.monotonic() < deadline:
        if waiting.poll(1000):
            try:
                shown += os.read(ours, 4096).decode()
            except OSError:  # the other end is closed
                break
        if shown.endswith(f"{ASKED} "):  # CPython misses a signal right before it waits for a line
            child.send_signal(signal.SIGINT)
    os.close(ours)
    assert child.wait(LIMIT_S) == 1
    assert "dropped; to accept them later:\r\n  atlas pick " in shown
    assert (held.root / "test_calc.py").read_text() == TEST
