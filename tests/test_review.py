"""Review gates: who is asked, what is shown, what an answer means, what it costs."""

import json
from pathlib import Path

import pytest

from atlas_retry.agents.review import opinion
from atlas_retry.model import Level, Outcome, Status, Verdict
from atlas_retry.reports.screen.run_lines import headline
from atlas_retry.text.redaction import clean
from tests.messages_server import Answer, MessagesServer, call, say, serving
from tests.projects import FIXED, UNITTEST, WORSE, Ended, Project, atlas, git
from tests.test_agents_claude_code import real_claude

QUIET = (
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
    "DISABLE_TELEMETRY",
    "DISABLE_AUTOUPDATER",
    "DISABLE_ERROR_REPORTING",
)
DIFF = """diff --git a/src/a.py b/src/a.py
--- a/src/a.py
+++ b/src/a.py
@@ -1 +1 @@
-one
+two
diff --git "a/docs/\\303\\251.md" "b/docs/\\303\\251.md"
--- /dev/null
+++ "b/docs/\\303\\251.md"
@@ -0,0 +1 @@
+three
"""


@pytest.mark.parametrize(
    ("globs", "shown"),
    [
        ((), DIFF),
        (("src/**",), DIFF[: DIFF.index("diff --git", 1)]),
        (("*.md",), DIFF[DIFF.index("diff --git", 1) :]),
        (("*.rs",), ""),
    ],
)
def test_a_reviewer_sees_only_files_of_its_paths(globs: tuple[str, ...], shown: str) -> None:
    assert opinion.chosen(DIFF, globs) == shown


def test_a_prompt_holds_the_question_and_the_diff_as_data() -> None:
    text = opinion.prompt("Is it safe? {braces}", "+evil", "m4rk", clean)
    assert "Is it safe? {braces}" in text
    assert text.endswith("<data-m4rk>\n+evil\n</data-m4rk>")


def test_a_long_diff_is_cut_in_the_middle_with_a_note() -> None:
    text = opinion.prompt("?", "+first\n" + "+x\n" * 50_000 + "+last", "m", clean)
    assert len(text) < opinion.MAX_DIFF_CHARS + 2_000
    assert "+first" in text
    assert "+last" in text
    assert "truncated" in text


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ('{"pass": true, "problems": []}', True),
        ('Well.\n```json\n{"pass": false, "problems": [{"message": "no"}]}\n```', False),
        ('a {curly} thought, then {"pass": true}', True),
        ('{"pass": "yes"}', None),
        ('{"pass": true', None),
        ("[" * 10_000, None),
        ('{"a":' * 10_000 + "1" + "}" * 10_000, None),
        ("", None),
        ('{"pass": true, "problems": [{"line": 3}]}', None),
    ],
)
def test_an_invalid_answer_is_not_an_opinion(text: str, passes: bool | None) -> None:
    verdict = opinion.read(text)
    assert (verdict.passes if verdict else None) is passes


@pytest.mark.parametrize(
    ("problem", "place"),
    [
        ({"message": "m", "path": "./a.py", "line": 3}, ("a.py", 3)),
        ({"message": "m", "path": "a.py", "line": 0}, ("a.py", None)),
        ({"message": "m", "path": "../a.py", "line": 3}, (None, None)),
        ({"message": "m", "path": "/etc/passwd", "line": 3}, (None, None)),
        ({"message": "m"}, (None, None)),
    ],
)
def test_a_problem_has_a_place_only_inside_the_project(
    problem: dict[str, object], place: tuple[str | None, int | None]
) -> None:
    review = opinion.read(json.dumps({"pass": False, "problems": [problem]}))
    assert review
    (diagnostic,) = opinion.diagnostics(review, "taste")
    assert (diagnostic.path, diagnostic.region and diagnostic.region.start_line) == place
    assert (diagnostic.tool, diagnostic.level) == ("taste", Level.ERROR)


# --- in a run ---------------------------------------------------------------------------------


def judged(project: Project, server: MessagesServer, **gate: object) -> Outcome:
    """A run whose author is scripted and whose reviewer is asked by the API."""
    review = {"name": "taste", "prompt": "Is it plain?", "agent": "anthropic"} | gate
    test = {"run": UNITTEST, "max_retries": 5}
    project.configure(validation={"test": [test], "review": [review]})
    project.environ.update(ANTHROPIC_API_KEY="dummy-key", ANTHROPIC_BASE_URL=server.url)
    return project.retry()


def answer(*, passes: bool, **problem: object) -> Answer:
    problems = [problem] if problem else []
    return call("submit_answer", **{"pass": passes, "problems": problems})


def test_a_passed_review_accepts_the_fix_and_is_charged(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, cost_usd=0.25, summary="secret thoughts of the author")
    with serving(answer(passes=True)) as server:
        outcome = judged(project, server)
    assert outcome.verdict is Verdict.FIXED
    assert outcome.cost_usd == pytest.approx(0.25 + 1000 * 2e-6 + 10 * 10e-6)
    (asked,) = server.requests
    assert "Is it plain?" in asked.user_text
    assert "+    return a + b" in asked.user_text
    assert "secret thoughts" not in json.dumps(asked.body)
    names = [tool["name"] for tool in asked.body["tools"]]  # type: ignore[attr-defined]
    assert names == ["list_files", "read_file", "search", "submit_answer"]


@pytest.mark.claude
@pytest.mark.skipif(real_claude() is None, reason="no Claude Code CLI")
def test_claude_code_as_reviewer_can_only_read(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED + "# see\n"})
    project.attempt(2, {"calc.py": FIXED})
    wish = {"pass": False, "problems": [{"message": "drop it", "path": "calc.py", "line": 3}]}
    script = (
        call("Write", file_path=str(project.root / "calc.py"), content="x = 1\n"),
        call("StructuredOutput", **wish),
        call("StructuredOutput", **{"pass": True, "problems": []}),
    )
    with serving(*script) as server:
        settings = {"CLAUDE_CONFIG_DIR": str(project.root.parent / "claude")}
        project.environ.update(settings, **dict.fromkeys(QUIET, "1"))
        outcome = judged(project, server, agent="claude-code")
    assert outcome.verdict is Verdict.FIXED
    tools = [tool["name"] for tool in server.requests[0].body["tools"]]  # type: ignore[attr-defined]
    assert {"Glob", "Grep", "Read", "StructuredOutput"} <= set(tools)
    assert not {"Bash", "Edit", "Write", "NotebookEdit"} & set(tools)
    assert "drop it" in Path(outcome.attempts[1].prompt_path or "").read_text()


def test_problems_of_a_review_are_in_the_next_prompt(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED + "# see\n"})
    project.attempt(2, {"calc.py": FIXED})
    wish = answer(passes=False, path="calc.py", line=3, message="drop the comment")
    with serving(wish, answer(passes=True)) as server:
        outcome = judged(project, server)
    assert outcome.verdict is Verdict.FIXED
    first = outcome.attempts[0].validation
    assert first
    assert first.results[-1].status is Status.FAILED
    assert "drop the comment" in Path(outcome.attempts[1].prompt_path or "").read_text()


def test_a_review_causes_at_most_two_attempts(project: Project) -> None:
    for number in (1, 2, 3):
        project.attempt(number, {"calc.py": FIXED + f"# {number}\n"})

    wishes = [answer(passes=False, message=word) for word in ("rename", "shorten", "explain")]
    with serving(*wishes) as server:
        outcome = judged(project, server)
    assert outcome.verdict is Verdict.EXHAUSTED
    assert "taste failed after 2 attempts" in (outcome.final_error or "")


def test_a_change_that_fails_other_gates_is_not_reviewed(project: Project) -> None:
    project.attempt(1, {"calc.py": WORSE})
    project.attempt(2, {"calc.py": FIXED})
    with serving(answer(passes=True)) as server:
        outcome = judged(project, server)
    assert outcome.verdict is Verdict.FIXED
    assert len(server.requests) == 1
    validation = outcome.attempts[0].validation
    assert validation
    assert validation.results[-1].status is Status.SKIPPED


def test_a_change_outside_its_paths_is_not_reviewed(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    with serving() as server:
        assert judged(project, server, paths=["docs/**"]).verdict is Verdict.FIXED
    assert server.requests == []


def test_without_ai_fix_no_review_is_made(project: Project) -> None:
    project.configure(validation={"test": ["true"], "review": [{"name": "taste", "prompt": "?"}]})
    outcome = project.retry(ai_fix=False)
    assert outcome.verdict is Verdict.CLEAN
    assert outcome.final.results[-1].status is Status.SKIPPED
    assert headline(outcome).startswith("clean: 1 passed, 1 not run (")


@pytest.mark.parametrize("reply", [say("I like it."), call("submit_answer", opinion="good")])
def test_a_reviewer_without_an_answer_makes_the_run_broken(project: Project, reply: Answer) -> None:
    project.attempt(1, {"calc.py": FIXED})
    with serving(reply, say("Really.")) as server:
        outcome = judged(project, server)
    assert outcome.verdict is Verdict.BROKEN
    assert "taste" in (outcome.final_error or "")


def test_no_review_is_made_beyond_the_cost_limit(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED}, cost_usd=5.0)
    with serving() as server:
        outcome = judged(project, server)
    assert outcome.verdict is Verdict.EXHAUSTED
    assert server.requests == []


# --- the user's own change ----------------------------------------------------------------------


def reviewing(project: Project, **gate: object) -> None:
    """A review gate beside passing tests, and a change of the user's that is not committed."""
    review = {"name": "taste", "prompt": "Is it plain?", "agent": "anthropic"} | gate
    project.configure(validation={"test": [UNITTEST], "review": [review]})
    project.commit()
    (project.root / "calc.py").write_text(FIXED)


def validated(project: Project, server: MessagesServer, *flags: str) -> Ended:
    project.environ.update(ANTHROPIC_API_KEY="dummy-key", ANTHROPIC_BASE_URL=server.url)
    return atlas(project, "validate", *flags)


def test_a_run_reviews_the_users_own_change(project: Project) -> None:
    reviewing(project)
    with serving(answer(passes=True)) as server:
        project.environ.update(ANTHROPIC_API_KEY="dummy-key", ANTHROPIC_BASE_URL=server.url)
        outcome = project.retry()
    assert outcome.verdict is Verdict.CLEAN
    (asked,) = server.requests
    assert "+    return a + b" in asked.user_text


def test_a_problem_of_the_users_change_is_fixed_by_the_agent(project: Project) -> None:
    reviewing(project)
    project.attempt(1, {"calc.py": FIXED.replace("a + b", "b + a")})
    wish = answer(passes=False, path="calc.py", line=2, message="swap them")
    with serving(wish, answer(passes=True)) as server:
        project.environ.update(ANTHROPIC_API_KEY="dummy-key", ANTHROPIC_BASE_URL=server.url)
        outcome = project.retry()
    assert outcome.verdict is Verdict.FIXED
    assert "swap them" in Path(outcome.attempts[0].prompt_path or "").read_text()


def test_validate_asks_once_for_one_change(project: Project) -> None:
    reviewing(project)
    with serving(answer(passes=True), answer(passes=True)) as server:
        assert validated(project, server, "--review").code == 0
        assert validated(project, server, "--review").code == 0
        assert len(server.requests) == 1
        (project.root / "notes.py").write_text("x = 1\n")
        assert validated(project, server, "--review").code == 0
    assert len(server.requests) == 2
    assert "+x = 1" in server.requests[1].user_text


def test_what_validate_pays_for_a_review_counts_in_the_budgets(project: Project) -> None:
    reviewing(project)
    with serving(answer(passes=True), answer(passes=True)) as server:
        assert validated(project, server, "--review").code == 0
        file = Path(project.environ["HOME"]) / ".config/atlas/config.yaml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("budgets: {repository_day: 0.000001}\n")
        (project.root / "notes.py").write_text("x = 1\n")
        done = validated(project, server, "--review")
    assert done.code == 2
    assert "the budget of this repository for today" in done.err
    assert len(server.requests) == 1


def test_a_refusal_is_remembered_too(project: Project) -> None:
    reviewing(project)
    with serving(answer(passes=False, message="rename it")) as server:
        for _ in range(2):
            done = validated(project, server, "--review")
            assert done.code == 1
            assert "rename it" in done.out
            assert "$ atlas validate --review\n" in done.out
    assert len(server.requests) == 1


def test_committed_changes_of_a_branch_are_reviewed(project: Project) -> None:
    reviewing(project)
    git(project.root, "switch", "-q", "-c", "topic", environ=project.environ)
    project.commit()
    with serving(answer(passes=True)) as server:
        assert validated(project, server, "--review").code == 0
    (asked,) = server.requests
    assert "+    return a + b" in asked.user_text


@pytest.mark.parametrize(("flags", "code"), [((), 0), (("--review",), 3)])
def test_a_review_that_was_not_made_is_not_run(
    project: Project, flags: tuple[str, ...], code: int
) -> None:
    reviewing(project)
    done = atlas(project, "validate", *flags)
    assert done.code == code, done
    shown = "not run: atlas validate --review asks it" if code == 0 else "ANTHROPIC_API_KEY"
    assert shown in done.out + done.err


def test_the_path_of_the_fixing_agent_is_none_of_a_reviewer(project: Project) -> None:
    reviewing(project, agent="claude-code")
    done = atlas(project, "validate", "--review")
    assert done.code == 3, done
    assert "taste: " in done.err
    assert str(project.script) not in done.err


def test_without_a_review_gate_there_is_nothing_to_ask(project: Project) -> None:
    done = atlas(project, "validate", "--review")
    assert done.code == 2
    assert "no review gate" in done.err
