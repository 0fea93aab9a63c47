"""`atlas retry --ai-fix` with the Messages API agent, from the command line to the exit code."""

import html
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import Struct

from tests.commands import run_atlas
from tests.messages_server import Answer, Failure, Hang, Recorded, Step, call, serving
from tests.needs import needs
from tests.processes import until
from tests.projects import CALC, FIXED, UNITTEST, WORSE, Project, atlas, git, make_project
from tests.test_agents_anthropic import edit, modify, submit

LIMIT_S = 90.0


@pytest.fixture
def project(tmp_path: Path, environ: dict[str, str]) -> Project:
    made = make_project(tmp_path, environ)
    made.configure(validation={"test": [UNITTEST]}, agent={"backend": "anthropic", "path": None})
    made.commit()
    return made


class Ended(Struct, frozen=True):
    code: int
    run: dict[str, object]
    stderr: str
    requests: list[Recorded]


def retry(
    project: Project, *script: Step, key: str = "dummy-key", flags: tuple[str, ...] = ()
) -> Ended:
    with serving(*script) as server:
        done = run_atlas(
            ("retry", ".", "--ai-fix", "--json", *flags),
            cwd=project.root,
            environ=project.environ | {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": key},
            limit_s=LIMIT_S,
        )
    return Ended(done.returncode, json.loads(done.stdout), done.stderr, server.requests)


def status(project: Project) -> str:
    return git(project.root, "status", "--porcelain", environ=project.environ)


def test_a_bug_is_fixed_after_reading_a_file(project: Project) -> None:
    look = call("read_file", path="calc.py")
    ended = retry(project, look, submit(edit("calc.py", ("a - b", "a + b"))))
    assert (ended.code, ended.run["verdict"]) == (0, "fixed")
    assert (project.root / "calc.py").read_text() == FIXED
    assert ended.run["cost_usd"] == pytest.approx(2 * (1000 * 2e-6 + 10 * 10e-6))
    first = ended.requests[0].messages[0]["content"]
    assert isinstance(first, list)
    assert "Text inside" not in first[0]["text"]
    assert "Text inside" in first[1]["text"]


@pytest.mark.parametrize(
    "flags",
    [
        pytest.param((), id="in place"),
        pytest.param(("--isolate",), id="in layers", marks=needs("overlay")),
    ],
)
def test_the_second_attempt_continues_from_the_first(
    project: Project, flags: tuple[str, ...]
) -> None:
    ended = retry(project, submit(modify(WORSE)), submit(modify(FIXED)), flags=flags)
    assert (ended.code, ended.run["verdict"]) == (0, "fixed")
    first, second = ended.requests
    head = first.messages[0]["content"]
    assert second.messages[0]["content"][0] == head[0]  # type: ignore[index]
    assert len(second.messages) == 3


def test_an_unavailable_api_exits_3_and_leaves_the_workspace_unchanged(
    project: Project,
) -> None:
    ended = retry(project, Failure(status=529), submit(modify(FIXED)))
    assert (ended.code, ended.run["verdict"], len(ended.requests)) == (3, "broken", 1)
    assert ended.run["attempts"] == []
    assert ended.run["remedy"]
    assert (project.root / "calc.py").read_text() == CALC
    assert status(project) == ""


def test_a_missing_key_exits_3_without_a_request(project: Project) -> None:
    ended = retry(project, key="")
    assert (ended.code, ended.requests) == (3, [])
    assert "ANTHROPIC_API_KEY" in str(ended.run["final_error"])


def test_a_run_exceeds_its_cost_limit_by_at_most_one_response(project: Project) -> None:
    look = call("list_files")
    response = Answer(blocks=look.blocks, input_tokens=20_000, output_tokens=1000)
    ended = retry(project, *[response] * 5, flags=("--max-cost-usd", "0.06"))
    assert (ended.code, ended.run["verdict"], len(ended.requests)) == (1, "exhausted", 2)
    assert ended.run["cost_usd"] == pytest.approx(2 * (20_000 * 2e-6 + 1000 * 10e-6))


@pytest.mark.parametrize(("looks", "cost"), [(0, "not reported"), (2, "at least $0.0042")])
def test_an_interrupted_attempt_reports_its_known_cost(
    looks: int, cost: str, project: Project
) -> None:
    with serving(*[call("list_files")] * looks, Hang()) as server:
        variables = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy-key"}
        child = subprocess.Popen(
            (sys.executable, "-m", "atlas_retry", "retry", ".", "--ai-fix"),
            cwd=project.root,
            env=project.environ | variables,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        until(lambda: len(server.requests) > looks, within_s=LIMIT_S)
        child.send_signal(signal.SIGINT)
        assert child.wait(timeout=LIMIT_S) == 130
    assert cost in atlas(project, "log").out
    assert cost in atlas(project, "status").out


def test_every_report_says_why_three_answers_were_refused(project: Project, tmp_path: Path) -> None:
    project.configure(
        validation={"test": [UNITTEST]},
        retry={"flake_reruns": 0, "on_failure": "cat > ../on_failure.json"},
        agent={"backend": "anthropic", "path": None},
    )
    page, summary = tmp_path / "page.html", tmp_path / "summary.md"
    reports = ("--report", f"html={page}", "--report", f"markdown={summary}")
    wrong = submit(modify("def add(:\n"))
    ended = retry(project, *[wrong] * 3, flags=("--max-attempts", "1", *reports))
    why = "calc.py failed its checks in 3 tries, so nothing was written: syntax error in line 1"
    on_failure = json.loads((tmp_path / "on_failure.json").read_text())
    shown = {
        "final_error": str(ended.run["final_error"]),
        "on_failure": str(on_failure["final_error"]),
        "page": html.unescape(page.read_text()),
        "summary": html.unescape(summary.read_text()),
        "last line": ended.stderr.partition("\nexhausted: ")[2].partition("\n")[0],
        "log": atlas(project, "log").out,
    }
    assert ended.code == 1
    assert len(ended.requests) == 3
    assert "[RETRY 3] Validation: calc.py syntax error" in ended.stderr
    assert [where for where, text in shown.items() if why not in text] == []
    assert [where for where, text in shown.items() if "changed nothing" in text] == []


def test_the_cost_of_a_killed_run_is_counted_in_the_next_run(
    project: Project,
) -> None:
    looks = [call("list_files")] * 2
    for _ in range(2):
        with serving(*looks, Hang()) as server:
            variables = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "dummy-key"}
            child = subprocess.Popen(
                (sys.executable, "-m", "atlas_retry", "retry", ".", "--ai-fix"),
                cwd=project.root,
                env=project.environ | variables,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            until(lambda: len(server.requests) > len(looks), within_s=LIMIT_S)
            child.kill()
            child.wait()
    (project.root / "calc.py").write_text(FIXED)
    repeated = retry(project)
    assert (repeated.code, repeated.run["verdict"]) == (0, "clean")
    assert repeated.run["cost_usd"] == 0
    assert repeated.run["interrupted_usd"] == pytest.approx(0.0084)
    assert "$0.00 and at least $0.0084 of an interrupted run" in repeated.stderr
    assert retry(project).run["interrupted_usd"] == 0
