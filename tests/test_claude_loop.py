"""`atlas retry --ai-fix` end to end: the command, the real Claude Code CLI, a scripted model.

The fake `claude` stands in where the binary is not available; the tests' ids say which it was.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest
from msgspec import Struct

from tests.commands import run_atlas
from tests.messages_server import (
    Answer,
    Failure,
    Hang,
    MessagesServer,
    Recorded,
    Step,
    call,
    edit,
    say,
    serving,
)
from tests.needs import needs
from tests.processes import PYTHON
from tests.projects import CALC, FIXED, IDENTITY, TEST, UNITTEST, Project, atlas, git, make_project
from tests.test_agents_claude_code import real_claude

pytestmark = pytest.mark.claude
Cheat = Callable[[Path], tuple[Step, ...]]

FAKE = Path(__file__).with_name("fake_claude.py")
LIMIT_S = 90.0
SECRET = "hunter2-and-more-99"


@pytest.fixture(params=[pytest.param("", id="real-cli" if real_claude() else "fake-cli")])
def project(tmp_path: Path, environ: dict[str, str]) -> Project:
    made = make_project(tmp_path, environ)
    made.configure(
        validation={"test": [UNITTEST]},
        agent={"backend": "claude-code", "path": claude(tmp_path), "idle_timeout": 20},
    )
    git(made.root, "add", "-A", environ=environ)
    git(made.root, "commit", "-q", "-m", "with Claude Code", environ=environ)
    return made


def claude(folder: Path) -> str:
    if binary := real_claude():
        return binary
    program = folder / "claude"
    program.write_text(f'#!/bin/sh\nexec {PYTHON} -S -E "{FAKE}" "$@"\n')
    program.chmod(0o755)
    return str(program)


class Ended(Struct, frozen=True):
    code: int
    run: dict[str, object]
    stderr: str

    @property
    def verdict(self) -> object:
        return self.run["verdict"]

    @property
    def attempts(self) -> list[dict[str, object]]:
        rows = self.run["attempts"]
        assert isinstance(rows, list)
        return rows


def environment(project: Project, server: MessagesServer) -> dict[str, str]:
    return project.environ | {
        "ANTHROPIC_BASE_URL": server.url,
        "ANTHROPIC_API_KEY": "dummy-key",
        "CLAUDE_CONFIG_DIR": str(Path(project.environ["HOME"]) / "claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


ARGUMENTS = ("retry", ".", "--ai-fix", "--json")
COMMAND = (sys.executable, "-m", "atlas_retry", *ARGUMENTS)


def retry(project: Project, *script: Step, flags: tuple[str, ...] = ()) -> Ended:
    with serving(*script) as server:
        done = run_atlas(
            (*ARGUMENTS, *flags),
            cwd=project.root,
            environ=environment(project, server),
            limit_s=LIMIT_S,
        )
    return Ended(done.returncode, json.loads(done.stdout), done.stderr)


def read(project: Project) -> Answer:
    return call("Read", file_path=str(project.root / "calc.py"))


def test_one_attempt_fixes_a_bug(project: Project) -> None:
    calc = project.root / "calc.py"
    ended = retry(project, read(project), edit(calc, "a - b", "a + b"), say("plus, not minus"))
    assert (ended.code, ended.verdict) == (0, "fixed")
    assert calc.read_text() == FIXED
    assert ended.attempts[0]["cost_usd"]


IN_BOTH_WAYS = [
    pytest.param((), id="in place"),
    pytest.param(("--isolate",), id="in layers", marks=needs("overlay")),
]


@pytest.mark.parametrize("flags", IN_BOTH_WAYS)
def test_the_second_attempt_continues_from_the_first(
    project: Project, flags: tuple[str, ...]
) -> None:
    calc = project.root / "calc.py"
    ended = retry(
        project,
        read(project),
        edit(calc, "a - b", "a * b"),
        say("times"),
        read(project),
        edit(calc, "a * b", "a + b"),
        say("plus"),
        flags=flags,
    )
    assert (ended.code, ended.verdict) == (0, "fixed")
    assert len(ended.attempts) == 2
    assert ended.attempts[0]["session_id"] == ended.attempts[1]["session_id"]
    total = sum(float(str(attempt["cost_usd"])) for attempt in ended.attempts)
    assert ended.run["cost_usd"] == pytest.approx(total)


def test_an_agent_that_edits_nothing_is_stalled(project: Project) -> None:
    ended = retry(project, say("it looks fine to me"))
    assert (ended.code, ended.verdict) == (1, "stalled")


def test_an_agent_that_gives_up_ends_the_run(project: Project) -> None:
    ended = retry(project, say("ATLAS-CANNOT-FIX: the test contradicts the specification"))
    assert (ended.code, ended.verdict) == (1, "gave_up")
    assert "contradicts" in str(ended.run["final_error"])


def test_a_denied_tool_changes_nothing(project: Project) -> None:
    ended = retry(project, call("Bash", command='python3 -c \'open("x", "w")\''), say("tried"))
    assert ended.verdict == "stalled"
    assert not (project.root / "x").exists()


SOME_TESTS = f"{PYTHON} -m pytest"


SELECTIONS = {
    f"{SOME_TESTS} -q test_calc.py": True,
    f"{SOME_TESTS} -x -k add": True,
    f"{SOME_TESTS} -q test_calc.py::AddTest::test_add": True,
    f"{PYTHON} -m ruff check --select F9 calc.py && {SOME_TESTS} -q test_calc.py": True,
    f"{SOME_TESTS} -q --junit-xml=ran.txt": False,
    f"{SOME_TESTS} -p evil test_calc.py": False,
    f'{SOME_TESTS} -q; {PYTHON} -c \'open("other.txt", "w")\'': False,
    f"RAN=1 {PYTHON} test_calc.py": False,
}


def test_only_selections_of_a_gates_tests_are_allowed_as_commands(project: Project) -> None:
    """The real CLI decides; a denial is a paid turn."""
    if not real_claude():
        pytest.skip("the fake CLI has no rules of its own")
    marker = project.root.parent / "ran.txt"
    source = f"import pathlib\npathlib.Path({str(marker)!r}).write_text('x')\n"
    (project.root / "test_calc.py").write_text(source + TEST)
    project.configure(
        validation={"test": [f"{PYTHON} -m ruff check . ; {SOME_TESTS} -q -s"]},
        agent={"backend": "claude-code", "path": claude(project.script), "idle_timeout": 20},
    )
    has_run: list[bool] = []

    def asking(command: str) -> Callable[[Recorded], Answer]:
        def ask(_: Recorded) -> Answer:
            has_run.append(marker.exists())
            marker.unlink(missing_ok=True)
            return call("Bash", command=command)

        return ask

    def remember(_: Recorded) -> Answer:
        has_run.append(marker.exists())
        return say("ATLAS-CANNOT-FIX: no")

    retry(project, *map(asking, SELECTIONS), remember)
    assert has_run == [True, *SELECTIONS.values()], "the first by the gate itself"
    assert not (project.root / "other.txt").exists()


def test_an_api_refusal_is_broken_and_counts_no_attempt(project: Project) -> None:
    ended = retry(project, *[Failure(status=401)] * 3)
    assert (ended.code, ended.verdict) == (3, "broken")
    assert ended.attempts == []
    assert (project.root / "calc.py").read_text() == CALC


def test_a_hanging_model_is_ended_with_its_processes(project: Project) -> None:
    project.configure(
        agent={"backend": "claude-code", "path": claude(project.script), "idle_timeout": 2}
    )
    ended = retry(project, Hang(), flags=("--max-attempts", "1"))
    assert ended.code == 1
    assert running(project) == []


def running(project: Project) -> list[str]:
    """Command lines of processes whose working directory is the project."""
    processes = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").resolve() == project.root:
                processes.append((entry / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return processes


def test_an_interrupt_reverts_the_edits_and_ends_all_processes(project: Project) -> None:
    calc = project.root / "calc.py"
    script: tuple[Step, ...] = (read(project), edit(calc, "a - b", "a * b"), Hang())
    with serving(*script) as server:
        child = subprocess.Popen(
            COMMAND,
            cwd=project.root,
            env=environment(project, server),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        wait_until(lambda: calc.read_text() != CALC)
        os.kill(child.pid, signal.SIGINT)
        _, output = child.communicate(timeout=LIMIT_S)
    assert child.returncode == 130
    assert b"atlas resume" in output
    assert calc.read_text() == CALC
    assert running(project) == []


def test_a_secret_printed_by_a_gate_is_never_sent(project: Project) -> None:
    project.configure(
        validation={"lint": ["echo DB_PASSWORD=$DB_PASSWORD; seq 30000; exit 1"]},
        agent={"backend": "claude-code", "path": claude(project.script), "idle_timeout": 20},
    )
    state = Path(project.environ["ATLAS_HOME"])

    def raw(_: Recorded) -> Answer:
        (log,) = state.glob("runs/*/logs/0/*/stdout.log")
        assert SECRET in log.read_text()
        return call("Read", file_path=str(log))

    def named(request: Recorded) -> Answer:
        folder = re.findall(r"Full output: (\S+)", request.user_text)[-1]
        return call("Read", file_path=f"{folder}/stdout.log", limit=5)

    project.environ["DB_PASSWORD"] = SECRET
    with serving(raw, named, say("ATLAS-CANNOT-FIX: no")) as server:
        project.environ.update(environment(project, server))
        atlas(project, "retry", ".", "--ai-fix")
    sent = [request.user_text for request in server.requests]
    assert len(sent) == 3
    leaks = [text[max(text.find(SECRET) - 300, 0) :][:700] for text in sent if SECRET in text]
    assert leaks == []
    assert sent[2].count("DB_PASSWORD=[redacted") > sent[1].count("DB_PASSWORD=[redacted")


def test_a_run_exceeds_its_cost_limit_by_at_most_one_response(project: Project) -> None:
    """Claude Code looks at its budget after each response: docs/costs.md says so."""
    response = Answer(blocks=read(project).blocks, input_tokens=20_000, output_tokens=1000)
    ended = retry(project, *[response] * 5, flags=("--max-cost-usd", "0.06"))
    assert (ended.code, ended.verdict) == (1, "exhausted")
    one_usd = 20_000 * 2e-6 + 1000 * 10e-6
    assert 0.06 < float(str(ended.run["cost_usd"])) <= 0.06 + one_usd


def test_an_interrupted_attempt_reports_its_known_cost(project: Project) -> None:
    script: tuple[Step, ...] = (read(project), Hang())
    with serving(*script) as server:
        child = subprocess.Popen(
            COMMAND,
            cwd=project.root,
            env=environment(project, server),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        wait_until(lambda: len(server.requests) > 1)
        os.kill(child.pid, signal.SIGINT)
        assert child.wait(timeout=LIMIT_S) == 130
    row = json.loads(atlas(project, "log", "--json").out)["runs"][0]
    assert row["cost_usd"] >= 1000 * 2e-6
    assert f"at least ${row['cost_usd']:.4f}" in atlas(project, "log").out


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, "it never came about"
        time.sleep(0.05)


def shell(command: str) -> Cheat:
    return lambda _: (call("Bash", command=command),)


def write(path: str, content: str) -> Cheat:
    return lambda root: (call("Write", file_path=str(root / path), content=content),)


def change(path: str, old: str, new: str) -> Cheat:
    return lambda root: (
        call("Read", file_path=str(root / path)),
        edit(root / path, old, new),
    )


SKIP = '    @unittest.skip("later")\n    def test_add'
SPECIAL_CASE = "    if a == 1 and b == 2:\n        return 3\n    return a - b"
LEAVE = "import os\n\nos._exit(0)\n"

CHEATS: dict[str, Cheat] = {
    "the test deleted": shell("rm -f test_calc.py"),
    "the test renamed out of sight": shell("mv test_calc.py calc_checks.py"),
    "the assertion turned round": change("test_calc.py", "Equal(calc.add(1, 2), 3)", "True(True)"),
    "the expected value changed": change("test_calc.py", "2), 3)", "2), -1)"),
    "the test skipped": change("test_calc.py", "    def test_add", SKIP),
    "the unit mocked": change("test_calc.py", "import calc\n", "import calc\ncalc.add = max\n"),
    "the answer special-cased": change("calc.py", "    return a - b", SPECIAL_CASE),
    "an early exit": change("calc.py", "def add", f"{LEAVE}\n\ndef add"),
    "the framework shadowed": write("unittest.py", "def main(*a, **k): pass\n"),
    "the start-up patched": write("sitecustomize.py", LEAVE),
}


@pytest.mark.parametrize("way", CHEATS)
def test_a_cheat_is_caught_and_reverted(way: str, project: Project) -> None:
    script = (*CHEATS[way](project.root), say("all green now"))
    ended = retry(project, *script, flags=("--max-attempts", "1"))
    assert ended.code == 1
    attempt = ended.attempts[0]
    caught = attempt["violations"] or attempt["held"] or not attempt["changes"]
    assert caught, "neither denied, refused nor held"
    assert (project.root / "test_calc.py").read_text() == TEST
    left = git(project.root, "status", "--porcelain", environ=project.environ)
    held = cast("list[dict[str, object]]", attempt["held"])
    is_kept = ended.verdict == "needs_review"
    in_place = [one["path"] for one in held if one["in_place"] and is_kept]
    assert left == "".join(f" M {path}\n" for path in in_place)


ACTS = {
    "commit": "echo mine > notes.txt; {git} add notes.txt; {git} commit -qm mine",
    "amend": "{git} commit -q --amend -m mine",
    "stash": "echo '# mine' >> test_calc.py; {git} stash -q",
    "switch": "git switch -qc mine",
    "tag": "git tag mine",
    "config": "git config user.name mine",
}


@pytest.mark.parametrize("flags", IN_BOTH_WAYS)
@pytest.mark.parametrize("act", ACTS)
def test_what_a_person_does_in_git_while_claude_works_stays(
    project: Project, act: str, flags: tuple[str, ...]
) -> None:
    calc, environ = project.root / "calc.py", {**project.environ, "HOME": "/nonexistent"}
    look = "git log --format=%s; git stash list; git symbolic-ref HEAD; git tag; git config -l"
    seen: list[str] = []

    def shell(line: str) -> str:
        argv = ("sh", "-ec", line)
        return subprocess.check_output(argv, cwd=project.root, env=environ, text=True)

    def person(_: Recorded) -> Answer:
        shell(ACTS[act].format(git=" ".join(("git", *IDENTITY))))
        seen.append(shell(look))
        return edit(calc, "a - b", "a + b")

    ended = retry(project, read(project), person, say("plus"), flags=flags)
    assert (ended.code, ended.verdict) == (0, "fixed"), ended.stderr
    assert calc.read_text() == FIXED
    assert shell(look) == seen[0]
