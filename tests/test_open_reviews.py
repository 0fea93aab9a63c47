"""A change that is left for review is asked about until a person accepts it, or it is gone."""

import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from atlas_retry.guard import Judgement
from atlas_retry.history import reviews
from atlas_retry.model import Held, OpenReview, Outcome, Verdict
from tests.hooks import SESSION, begin, end
from tests.judged import Seen, acts, judged, prompt_of
from tests.messages_server import call, say, serving
from tests.projects import (
    CALC,
    FIXED,
    TEST,
    UNITTEST,
    WORSE,
    Project,
    atlas,
    git,
    on_a_terminal,
)
from tests.test_agents_claude_code import real_claude
from tests.test_review import QUIET

CHEAT = """def add(a, b):
    if a == 1 and b == 2:
        return 3
    return a - b
"""
Files = Mapping[str, str | None]


def cheated(project: Project, *turns: Files, attempts: int = 1) -> Outcome:
    """A run whose agent leaves a change for review, and then does what `turns` say."""

    def guard(seen: Seen) -> Judgement:
        text = (project.root / "calc.py").read_text()
        if "calc.py" not in seen.changed or "if a == 1" not in text:
            return Judgement()
        detail = "It branches on what the failing test passes."
        left = Held(rule="special-case", path="calc.py", line=2, detail=detail, in_place=True)
        return Judgement(answers=(left,))

    acts(project, {"calc.py": CHEAT}, *turns)
    project.commit()
    return judged(project, guard, [], attempts=attempts)


def test_the_same_command_again_asks_again(project: Project) -> None:
    first = cheated(project)
    again = project.retry()
    assert [first.verdict, again.verdict] == [Verdict.NEEDS_REVIEW] * 2
    assert again.attempts == ()
    assert again.remedy == f"atlas accept {first.run_id}"
    assert [one.place for one in again.open_reviews] == ["calc.py:2 (special-case)"]


def test_validate_says_it_in_one_line_and_exits_with_1(project: Project) -> None:
    run_id = cheated(project).run_id
    done = atlas(project, "validate")
    assert done.code == 1
    (line,) = [line for line in (done.out + done.err).splitlines() if "must review" in line]
    assert "calc.py:2 (special-case)" in line
    assert f"atlas accept {run_id}" in line
    document = json.loads(atlas(project, "validate", "--json").out)
    assert not document["success"]
    assert [one["run_id"] for one in document["open_reviews"]] == [run_id]


def edit_elsewhere(project: Project) -> None:
    file = project.root / "calc.py"
    file.write_text('"""Sums."""\n\n\n' + file.read_text() + "\n\ndef zero():\n    return 0\n")


def reformat(project: Project) -> None:
    (project.root / "calc.py").write_text(
        "def add(\n    a,\n    b,\n):\n\tif (\n\t\ta == 1\n\t\tand b == 2\n\t):\n\t\treturn (3)\n"
        "\treturn a - b\n"
    )


def comment_inside(project: Project) -> None:
    (project.root / "calc.py").write_text(
        CHEAT.replace("return 3", "# as agreed\n        return 3")
    )


def commit(project: Project) -> None:
    project.commit()


def on_another_branch(project: Project) -> None:
    git(project.root, "switch", "-q", "-c", "other", environ=project.environ)
    project.commit()


def remove(project: Project) -> None:
    (project.root / "calc.py").write_text(FIXED)


def rewrite(project: Project) -> None:
    (project.root / "calc.py").write_text(
        FIXED.replace("return", "result =") + "    return result\n"
    )


def delete(project: Project) -> None:
    (project.root / "calc.py").unlink()


def merge(project: Project) -> None:
    """As another branch that was merged, and is the base of this one."""
    git(project.root, "switch", "-q", "-c", "topic", environ=project.environ)
    project.commit()
    git(project.root, "branch", "-f", "main", "topic", environ=project.environ)


@pytest.mark.parametrize(
    ("act", "is_open"),
    [
        (edit_elsewhere, True),
        (reformat, True),
        (comment_inside, True),
        (commit, True),
        (on_another_branch, True),
        (remove, False),
        (rewrite, False),
        (delete, False),
        (merge, False),
    ],
)
def test_the_question_is_about_the_hunk(project: Project, act: object, is_open: bool) -> None:
    cheated(project)
    act(project)  # type: ignore[operator]
    home = project.environ["ATLAS_HOME"]
    document = json.loads(atlas(project, "validate", "--json").out)
    assert bool(document["open_reviews"]) == is_open, home


def test_a_question_comes_back_with_its_hunk(project: Project) -> None:
    cheated(project)
    git(project.root, "stash", "-q", environ=project.environ)
    assert json.loads(atlas(project, "validate", "--json").out)["open_reviews"] == []
    git(project.root, "stash", "pop", "-q", environ=project.environ)
    assert json.loads(atlas(project, "validate", "--json").out)["open_reviews"]


def test_a_person_accepts_at_a_terminal(project: Project) -> None:
    run_id = cheated(project).run_id
    code, shown = on_a_terminal(project, "accept", run_id, typed=b"\n")
    assert code == 0
    assert "calc.py:2 (special-case)" in shown
    assert "+    if a == 1 and b == 2:" in shown
    assert atlas(project, "validate").code == 0
    assert project.retry().verdict is Verdict.CLEAN


@pytest.mark.parametrize(
    ("typed", "variables"),
    [(b"", {}), (b"\n", {"CLAUDECODE": "1"}), (b"\n", {"ATLAS_INSIDE_AGENT": "1"})],
)
def test_only_a_person_accepts(project: Project, typed: bytes, variables: dict[str, str]) -> None:
    run_id = cheated(project).run_id
    code, shown = on_a_terminal(project, "accept", run_id, typed=typed, **variables)
    assert code == 2
    assert "only a person" in shown
    assert atlas(project, "validate").code == 1


@pytest.mark.parametrize("path", ["calc.py", "other.py"])
def test_a_path_accepts_the_questions_about_it(project: Project, path: str) -> None:
    run_id = cheated(project).run_id
    code, shown = on_a_terminal(project, "accept", run_id, path, "--json", typed=b"\n")
    is_there = path == "calc.py"
    assert code == (0 if is_there else 2)
    assert ("left nothing for review in other.py" in shown) != is_there
    assert ("atlas.accept/1" in shown) == is_there
    assert atlas(project, "validate").code == (0 if is_there else 1)


def test_an_agent_is_told_once_and_may_do_better(project: Project) -> None:
    outcome = cheated(project, {"calc.py": FIXED})
    assert outcome.verdict is Verdict.FIXED
    assert outcome.open_reviews == ()
    prompt = prompt_of(outcome, 2)
    assert "calc.py:2 (special-case: It branches on what the failing test passes)" in prompt
    assert "No check fails any more." in prompt
    assert "Previous validation failed" not in prompt
    assert "fix the source" not in prompt.lower()
    assert "Attempt 2 of 2" in prompt
    assert atlas(project, "validate").code == 0


def test_an_agent_that_insists_is_not_asked_again(project: Project) -> None:
    turns = ({"calc.py": CHEAT + "# as agreed\n"}, {"calc.py": FIXED})
    outcome = cheated(project, *turns, attempts=3)
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert len(outcome.attempts) == 2
    (project.root / "calc.py").write_text(FIXED + "# as agreed\n")
    assert json.loads(atlas(project, "validate", "--json").out)["open_reviews"] == []


def test_a_worse_second_attempt_leaves_the_first_for_review(project: Project) -> None:
    outcome = cheated(project, {"calc.py": WORSE})
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert (project.root / "calc.py").read_text() == CHEAT
    assert outcome.final.success
    assert [one.kept for one in outcome.attempts] == [True, False]
    assert outcome.open_reviews


def test_no_money_is_spent_on_an_open_question(project: Project) -> None:
    cheated(project)
    project.configure()
    project.attempt(1, {"calc.py": FIXED})
    assert project.retry().attempts == ()


def test_an_undone_run_leaves_no_question(project: Project) -> None:
    run_id = cheated(project).run_id
    assert atlas(project, "undo", run_id).code == 0
    assert (project.root / "calc.py").read_text() == CALC
    assert json.loads(atlas(project, "validate", "--json").out)["open_reviews"] == []


def test_a_question_that_cannot_be_read_is_no_pass(project: Project) -> None:
    cheated(project)
    folder = reviews_folder(project)
    (file,) = folder.iterdir()
    file.write_text("{")
    done = atlas(project, "validate")
    assert done.code == 3
    assert str(file) in done.err


def reviews_folder(project: Project) -> Path:
    return Path(project.environ["ATLAS_HOME"]) / "reviews"


def test_the_hook_tells_the_person_and_blocks_nothing(project: Project) -> None:
    run_id = cheated(project).run_id
    begin(project, SESSION)
    answer = end(project)
    assert "decision" not in answer
    assert str(answer["systemMessage"]).count(f"atlas accept {run_id}") == 1


def test_the_hook_does_not_ask_while_it_sends_the_agent_back(project: Project) -> None:
    cheated(project)
    project.configure(validation={"lint": ["false"]})
    begin(project, SESSION)
    (project.root / "notes.txt").write_text("of the agent\n")
    answer = end(project)
    assert answer["decision"] == "block"
    assert "atlas accept" not in json.dumps(answer)


def test_status_and_the_report_of_a_run_name_it(project: Project) -> None:
    run_id = cheated(project).run_id
    assert f"atlas accept {run_id}" in atlas(project, "status").out
    (entry,) = json.loads(atlas(project, "status", "--json").out)["workspaces"]
    run = json.loads(atlas(project, "retry", ".", "--json").out)
    assert run["verdict"] == "needs_review"
    assert [one["run_id"] for one in entry["open_reviews"]] == [run_id]
    assert run["open_reviews"] == entry["open_reviews"]


def test_what_cannot_be_read_of_one_workspace_hides_no_other(project: Project) -> None:
    cheated(project)
    (file,) = reviews_folder(project).iterdir()
    file.write_text("{")
    done = atlas(project, "status")
    assert done.code == 0
    assert "its open reviews are not known: the changes that wait for a review" in done.out


def test_what_is_in_the_baseline_is_not_open_in_status(project: Project) -> None:
    cheated(project)
    project.commit()
    git(project.root, "branch", "accepted", environ=project.environ)
    project.configure(triage={"baseline": "accepted"})
    (entry,) = json.loads(atlas(project, "status", "--json").out)["workspaces"]
    assert entry["open_reviews"] == []


def test_what_was_accepted_is_not_asked_again_in_the_same_run(tmp_path: Path) -> None:
    question, other = (_question(run, "x = 1") for run in ("one", "two"))
    reviews.keep(tmp_path, tmp_path, [question])
    assert reviews.accept(tmp_path, tmp_path, "one", None) == (question,)
    reviews.keep(tmp_path, tmp_path, [question])
    assert reviews.kept(tmp_path, tmp_path) == ()
    reviews.keep(tmp_path, tmp_path, [other])
    assert reviews.kept(tmp_path, tmp_path) == (other,)


def test_accepting_loses_no_question_that_comes_meanwhile(tmp_path: Path) -> None:
    """A question that is kept between reading and writing."""
    questions = [_question(f"run{n}-", f"x = {n}") for n in range(20)]
    reviews.keep(tmp_path, tmp_path, questions[:10])
    with ThreadPoolExecutor(2) as pool:
        for n, one in enumerate(questions[10:]):
            pool.submit(reviews.accept, tmp_path, tmp_path, f"run{n}-", None)
            pool.submit(reviews.keep, tmp_path, tmp_path, [one])
    assert {*reviews.kept(tmp_path, tmp_path)} == {*questions[10:]}


def _question(run: str, line: str) -> reviews.Question:
    review = OpenReview(rule="r", path="a.py", line=1, detail="d", run_id=run, attempt=1)
    hunk = reviews.Hunk(path="a.py", start=1, added=(line,), removed=())
    return reviews.Question(review=review, hunks=(hunk,))


@pytest.mark.parametrize(("typed", "code"), [(b"a\n", 0), (b"d\n", 1), (b"\n", 1)])
def test_a_run_at_a_terminal_asks(project: Project, typed: bytes, code: int) -> None:
    cheated(project)
    ended, shown = on_a_terminal(project, "retry", ".", typed=typed)
    assert ended == code
    assert "+    if a == 1 and b == 2:" in shown
    assert atlas(project, "validate").code == code


# --- with the guard itself ----------------------------------------------------------------------

SPECIAL = CALC.replace("    return", "    if (a, b) == (1, 2):\n        return 3\n    return")


def test_a_cheat_is_asked_about_and_the_second_prompt_says_what_of(project: Project) -> None:
    project.configure(validation={"test": [{"run": UNITTEST, "max_retries": 1}]})
    project.attempt(1, {"calc.py": SPECIAL})
    project.attempt(2, {"calc.py": SPECIAL + "\n\n# as agreed\n"})
    project.commit()
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert len(outcome.attempts) == 2
    assert "calc.py:2 (special-cased" in prompt_of(outcome, 2)
    assert "fix the source" not in prompt_of(outcome, 2).lower()
    assert project.retry().verdict is Verdict.NEEDS_REVIEW


@pytest.mark.claude
@pytest.mark.skipif(real_claude() is None, reason="no Claude Code CLI")
def test_claude_code_told_of_its_cheat_can_do_better(project: Project) -> None:
    project.configure(
        validation={"test": [{"run": UNITTEST, "max_retries": 1}]},
        agent={"backend": "claude-code", "path": None},
    )
    project.commit()
    file = str(project.root / "calc.py")
    script = (
        call("Write", file_path=file, content=SPECIAL),
        say("done"),
        call("Write", file_path=file, content=FIXED),
        say("done"),
    )
    with serving(*script) as server:
        project.environ.update(
            ANTHROPIC_API_KEY="dummy-key",
            ANTHROPIC_BASE_URL=server.url,
            CLAUDE_CONFIG_DIR=str(project.root.parent / "claude"),
            **dict.fromkeys(QUIET, "1"),
        )
        outcome = project.retry()
    assert [len(one.held) for one in outcome.attempts] == [1, 0]
    assert outcome.verdict is Verdict.FIXED
    assert outcome.open_reviews == ()


@pytest.mark.parametrize("words", [(), ("test_calc.py",)])
def test_accept_takes_what_was_held(project: Project, words: tuple[str, ...]) -> None:
    weak = TEST.replace("calc.add(1, 2), 3", "1, 1")
    for number in (1, 2):
        project.attempt(number, {"test_calc.py": weak, "calc.py": CALC + f"# {number}\n"})
    outcome = project.retry()
    assert outcome.verdict is Verdict.NEEDS_REVIEW
    assert (project.root / "test_calc.py").read_text() == TEST
    code, _ = on_a_terminal(project, "accept", outcome.run_id, *words, typed=b"\n")
    assert code == 0
    assert (project.root / "test_calc.py").read_text() == weak
