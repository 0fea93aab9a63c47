"""What the user had not committed is never lost in silence."""

import shlex

import pytest

from atlas_retry.cli.run_output import batch_lines
from atlas_retry.history.merging import merged
from atlas_retry.model import Outcome, Verdict
from atlas_retry.reports import markdown, page
from atlas_retry.reports.screen.run_lines import outcome_summary
from atlas_retry.reports.subject import Subject
from atlas_retry.run.one import BatchResult, Finished
from tests.projects import CALC, FIXED, UNITTEST, Project, atlas, git

HELPER = "\n\ndef helper():\n    return 1\n"
CLASS = "\n\nclass Draft:\n    size = 2\n\n    def page(self):\n        return 3\n"


def uncommitted(project: Project, path: str, text: str) -> None:
    (project.root / path).write_text(text)


def gone(outcome: Outcome) -> dict[str, tuple[str, ...]]:
    return {lost.path: lost.names for lost in outcome.lost}


def test_a_lost_uncommitted_function_is_named_with_the_restore_command(project: Project) -> None:
    uncommitted(project, "calc.py", CALC + HELPER)
    project.attempt(1, {"calc.py": CALC.replace("-", "*")})
    project.attempt(2, {"calc.py": FIXED})
    ended = atlas(project, "retry", ".", "--ai-fix", "--plain")
    assert ended.code == 0
    assert "attempt 2 is in the workspace: calc.py (+1 -5)" in ended.out
    named, label, command = ended.out.splitlines()[-3:]
    assert named == "lost, and not committed: calc.py: helper"
    assert label == "restore it:"
    assert atlas(project, *command.removeprefix("  atlas ").split()).code == 0
    assert (project.root / "calc.py").read_text() == FIXED + HELPER


def test_a_lost_definition_that_cannot_be_merged_is_refused_with_what_replaces_it(
    project: Project,
) -> None:
    uncommitted(project, "calc.py", CALC.replace("a - b", "a - 7 * b") + HELPER)
    project.attempt(1, {"calc.py": FIXED})
    outcome = project.retry()
    assert gone(outcome) == {"calc.py": ("helper",)}
    left = (project.root / "calc.py").read_text()
    (lost,) = outcome.lost
    refused = atlas(project, *lost.command.split()[1:])
    assert refused.code == 3
    assert "to replace it, without what the run changed there: atlas pick " in refused.err
    assert (project.root / "calc.py").read_text() == left


@pytest.mark.parametrize("turn", ["deleted", "reset"])
@pytest.mark.parametrize("path", ["style.css", "notes/new name.md", "data.bin", "page.html"])
def test_every_uncommitted_file_that_is_gone_is_named_with_its_command(
    project: Project, path: str, turn: str
) -> None:
    (project.root / path).parent.mkdir(exist_ok=True)
    if turn == "reset":
        uncommitted(project, path, "committed\n")
        project.commit()
    uncommitted(project, path, "mine\0\n")
    files = {"calc.py": FIXED} | ({path: "committed\n"} if turn == "reset" else {})
    project.attempt(1, files, delete="" if turn == "reset" else f"{path}\n")
    ended = atlas(project, "retry", ".", "--ai-fix", "--plain")
    assert ended.code == 0, ended.out
    assert f"lost, and not committed: {path}" in ended.out.splitlines()
    command = shlex.split(ended.out.splitlines()[-1])
    assert atlas(project, *command[1:]).code == 0
    assert (project.root / path).read_text() == "mine\0\n"
    assert (project.root / "calc.py").read_text() == FIXED


def test_a_moved_or_edited_uncommitted_file_is_not_lost(project: Project) -> None:
    uncommitted(project, "a.css", "mine\n")
    uncommitted(project, "b.css", "mine too\n")
    files = {"calc.py": FIXED, "moved.css": "mine\n", "b.css": "mine too, and more\n"}
    project.attempt(1, files, delete="a.css\n")
    assert project.retry().lost == ()


def test_only_the_named_file_is_restored(project: Project) -> None:
    uncommitted(project, "draft.py", HELPER)
    project.attempt(1, {"calc.py": FIXED}, delete="draft.py\n")
    outcome = project.retry()
    assert gone(outcome) == {"draft.py": ("helper",)}
    done = atlas(project, "pick", outcome.run_id, "start", "--path", "draft.py")
    assert (done.code, (project.root / "draft.py").read_text()) == (0, HELPER)
    assert (project.root / "calc.py").read_text() == FIXED


def test_a_deleted_ignored_file_is_named_with_the_restore_command(project: Project) -> None:
    uncommitted(project, ".gitignore", ".env\n__pycache__/\n/build/\n*.log\n")
    (project.root / "build").mkdir()
    for path in (".env", "build/out", "test.log"):
        uncommitted(project, path, "x")
    project.attempt(1, {"calc.py": FIXED}, delete=".env\nbuild/out\ntest.log\n")
    ended = atlas(project, "retry", ".", "--ai-fix", "--plain")
    assert ended.code == 0
    (line,) = (line for line in ended.out.splitlines() if "ignored by git" in line)
    named, _, command = line.partition("; to get a file back: atlas ")
    assert named.endswith("deleted in the run, and ignored by git: .env")
    command = command.replace("FILE", ".env")
    assert atlas(project, *command.split()).code == 0
    assert (project.root / ".env").read_text() == "x"


def test_an_edit_while_gates_ran_is_named_when_it_is_restored(project: Project) -> None:
    edit = "! grep -q ' [*] ' calc.py || echo mine > notes.txt"
    project.configure(validation={"test": [f"{edit}; false"]})
    project.commit()
    project.attempt(1, {"calc.py": CALC.replace("-", "*")})
    ended = atlas(project, "retry", ".", "--ai-fix", "--max-attempts", "1", "--plain")
    assert (ended.code, (project.root / "notes.txt").exists()) == (1, False)
    (line,) = (line for line in ended.out.splitlines() if "changed while gates ran" in line)
    named, _, command = line.partition("; to get a file back: atlas ")
    assert named.endswith("restored, as it was changed while gates ran: notes.txt")
    command = command.replace("FILE", "notes.txt")
    assert atlas(project, *command.split()).code == 0
    assert (project.root / "notes.txt").read_text() == "mine\n"


def test_undo_names_an_edit_while_gates_ran(project: Project) -> None:
    edit = "! grep -q ' [+] ' calc.py || echo mine > notes.txt"
    project.configure(validation={"test": [f"{edit}; {UNITTEST}"]})
    project.commit()
    project.attempt(1, {"calc.py": FIXED})
    outcome = project.retry()
    undone = atlas(project, "undo")
    assert not (project.root / "notes.txt").exists()
    pick = f"atlas pick {outcome.run_id} undone --path FILE"
    named = f"  of these changed by a gate or a person (to get a file back: {pick}): notes.txt"
    assert named in undone.out.splitlines()
    command = pick.removeprefix("atlas ").replace("FILE", "notes.txt")
    assert atlas(project, *command.split()).code == 0
    assert (project.root / "notes.txt").read_text() == "mine\n"


@pytest.mark.parametrize(
    ("before", "after", "names"),
    [
        (CALC + HELPER, FIXED, ("helper",)),
        (CALC + CLASS, FIXED, ("Draft",)),
        (CALC + CLASS, FIXED + CLASS.partition("    def page")[0], ("Draft.page",)),
        (CALC + "LIMIT = 3\n", FIXED, ("LIMIT",)),
        (CALC + HELPER, FIXED + HELPER.replace("1", "2"), ()),
        (CALC, FIXED, ()),
    ],
)
def test_uncommitted_functions_classes_and_names_are_compared_by_name(
    project: Project, before: str, after: str, names: tuple[str, ...]
) -> None:
    uncommitted(project, "calc.py", before)
    project.attempt(1, {"calc.py": after})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert [lost.names for lost in outcome.lost] == ([names] if names else [])


def test_committed_or_moved_code_is_not_lost(project: Project) -> None:
    uncommitted(project, "calc.py", CALC + HELPER.replace("helper", "old"))
    project.commit()
    uncommitted(project, "calc.py", CALC + HELPER.replace("helper", "old") + HELPER)
    project.attempt(1, {"calc.py": FIXED, "more.py": HELPER})
    outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert outcome.lost == ()


def test_a_name_that_existed_in_another_file_does_not_hide_a_loss(
    project: Project,
) -> None:
    uncommitted(project, "more.py", HELPER)
    project.commit()
    uncommitted(project, "calc.py", CALC + HELPER)
    project.attempt(1, {"calc.py": FIXED, "more.py": HELPER + "\n\nTWO = 2\n"})
    assert gone(project.retry()) == {"calc.py": ("helper",)}


def test_before_the_first_commit_all_code_is_uncommitted(project: Project) -> None:
    git(project.root, "update-ref", "-d", "HEAD", environ=project.environ)
    uncommitted(project, "calc.py", CALC + HELPER)
    project.attempt(1, {"calc.py": FIXED})
    assert gone(project.retry()) == {"calc.py": ("helper",)}


def test_a_reverted_attempt_loses_nothing(project: Project) -> None:
    uncommitted(project, "calc.py", CALC + HELPER)
    project.attempt(1, {"calc.py": CALC})
    outcome = project.retry(retry__max_ai_retry_attempts=1)
    assert (outcome.verdict, outcome.lost) == (Verdict.EXHAUSTED, ())


def everywhere(outcome: Outcome) -> dict[str, str]:
    subject = Subject(result=outcome, workspace=outcome.workspace)
    done = BatchResult(finished=(Finished(opened=None, outcome=outcome),))
    return {
        "terminal": "\n".join(line for line, _ in outcome_summary(outcome)),
        "batch": "\n".join(line for line, _ in batch_lines(done)),
        "markdown": markdown.report(subject),
        "page": page.report(subject),
    }


def test_every_report_names_the_loss_with_the_restore_command(project: Project) -> None:
    uncommitted(project, "calc.py", CALC + HELPER)
    project.attempt(1, {"calc.py": FIXED})
    outcome = project.retry()
    for place, text in everywhere(outcome).items():
        assert f"atlas pick {outcome.run_id} start --path calc.py" in text, place


@pytest.mark.parametrize(
    ("ours", "base", "theirs", "result"),
    [
        (b"A\nb\n", b"a\nb\n", b"a\nb\nc\n", b"A\nb\nc\n"),
        (b"a\nB\n", b"a\nb\n", b"a\nb\nc\n", b"a\nB\nc\n"),
        (b"A\nc\n", b"a\nb\nc\n", b"a\nb\nc\nd\n", b"A\nc\nd\n"),
        (b"A\n", b"a\n", b"A\n", b"A\n"),
        (b"A\n", b"a\n", b"X\n", None),
        (b"a\nx\n", b"a\n", b"a\ny\n", None),
        (b"ours\n", b"", b"theirs\n", None),
        (b"", b"a\nb\n", b"a\nb\nc\n", b"c\n"),
    ],
)
def test_changes_of_other_lines_are_merged(
    ours: bytes, base: bytes, theirs: bytes, result: bytes | None
) -> None:
    assert merged(ours=ours, base=base, theirs=theirs) == result
    assert merged(ours=theirs, base=base, theirs=ours) == result
