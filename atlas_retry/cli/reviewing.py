"""The question whether to accept what a run held or left for review, at its end."""

import os
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import typer

from atlas_retry.cli import history, output, places
from atlas_retry.cli.accepting import hunk_lines, is_inside_agent
from atlas_retry.cli.output import print_commands
from atlas_retry.history import reviews
from atlas_retry.model import Attempt, Outcome
from atlas_retry.process import hand_over
from atlas_retry.reports.findings import pick_command
from atlas_retry.reports.screen.lines import Line, command_lines, printable
from atlas_retry.run import held
from atlas_retry.text.units import counted
from atlas_retry.workspace.snapshot import trees

QUESTION = "[a] accept  [d] drop  [o] open in your editor"
IN_PLACE = "[a] accept  [d] decide later  [o] open in your editor"
MAX_LINES = 80
STYLES = {"+": "good", "-": "bad", "@": "code"}


def accepted(outcome: Outcome) -> bool:
    """Whether the user accepted all that a run held or left, and the gates passed with all of it.

    Asks only a person at a terminal, and only if accepting is the run's next step.
    """
    if not places.can_ask(sys.stderr) or is_inside_agent(os.environ):
        return False
    if (outcome.remedy or "").startswith("atlas accept"):
        return _accepted_in_place(outcome)
    asked = (a for a in outcome.attempts if pick_command(outcome, a) == outcome.remedy)
    attempt = next(asked, None)
    if attempt is None:
        return False
    if not _is_agreed(QUESTION, _patch(outcome, attempt), outcome, attempt.number):
        print_commands("dropped; to accept them later", outcome.remedy or "")
        return False
    is_whole = history.pick(outcome.run_id, str(attempt.number), held=True) == 0
    is_green = all(one.needed for one in attempt.held) and not outcome.open_reviews
    if is_whole and is_green:
        _print("accepted: the gates passed with these changes")
        return True
    root = shlex.quote(outcome.workspace.root)
    print_commands("the gates have not passed with these; to run them", f"atlas validate {root}")
    return False


def _accepted_in_place(outcome: Outcome) -> bool:
    """Whether the user accepted every change that is left in the workspace for review."""
    home, root = places.home(), Path(outcome.workspace.root)
    runs = dict.fromkeys(one.run_id for one in outcome.open_reviews)
    asked = [one for one in reviews.kept(home, root) if one.review in outcome.open_reviews]
    patch = "\n".join(hunk_lines(asked, "# ")).encode()
    if not _is_agreed(IN_PLACE, patch, outcome, outcome.open_reviews[-1].attempt):
        print_commands("left for review; to accept it later", outcome.remedy or "")
        return False
    for run in runs:
        reviews.accept(home, root, run, None)
    _print("accepted: the gates passed with it")
    return True


def _is_agreed(question: str, patch: bytes, outcome: Outcome, number: int) -> bool:
    """Show a diff of the n-th attempt, and ask."""
    with output.screen(os.environ, to_stderr=True) as shown:
        shown.write(_shown(patch, outcome, number))
    while (answer := _answer(question)) == "o":
        _open(patch, outcome, number)
    return answer == "a"


def _patch(outcome: Outcome, attempt: Attempt) -> bytes:
    """The patch that accepting would apply to the held files."""
    ws = places.workspace_at(outcome.workspace.root)
    before, after = attempt.result or "", attempt.snapshot or ""
    return trees.patch(ws, before, after, sorted(held.held_paths(attempt)))


def _shown(patch: bytes, outcome: Outcome, number: int) -> Iterator[Line]:
    lines = patch.decode(errors="replace").splitlines()
    yield "", ""
    for line in lines[:MAX_LINES]:
        yield line, STYLES.get(line[:1], "")
    if (left := len(lines) - MAX_LINES) > 0:
        more = f"atlas diff {outcome.run_id} {number}"
        yield from command_lines(f"... {counted(left, 'more line')}", more)


def _answer(question: str) -> str:
    """First letter of a valid answer; Enter, Ctrl-C and the end of input mean d."""
    earlier = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        while True:
            answer = str(typer.prompt(question, default="d", err=True)).strip().lower()[:1]
            if answer in {"a", "d", "o"}:
                return answer
    except typer.Abort:
        _print("")
        return "d"
    finally:
        signal.signal(signal.SIGINT, earlier)


def _open(patch: bytes, outcome: Outcome, number: int) -> None:
    """Show the diff in an editor; edits there have no effect."""
    file = places.home() / "runs" / outcome.run_id / f"held-{number}.diff"
    file.write_bytes(patch)
    editor = shlex.split(os.environ.get("VISUAL") or os.environ.get("EDITOR") or "")
    if not editor:
        _print(f"neither VISUAL nor EDITOR is set; the diff is in {file}")
    elif why := hand_over((*editor, str(file)), Path(outcome.workspace.root), os.environ):
        _print(f"{printable(why)}; the diff is in {file}")


def _print(text: str) -> None:
    print(text, file=sys.stderr)
