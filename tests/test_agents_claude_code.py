"""The Claude Code agent end to end, against a scripted Messages API on loopback.

Each promise is kept by the real CLI (marker `claude`) and, for speed and for machines that cannot
have its binary, by a small stand-in that speaks as the CLI does (`fake_claude.py`).
"""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.agents import claude_code
from atlas_retry.agents.models import MODELS, cost_usd
from atlas_retry.events import AgentActivity, Event, TransportRetried
from atlas_retry.model import AgentReply, AgentRequest, ReplyStatus, Session
from atlas_retry.settings import AgentSettings
from tests.messages_server import (
    Answer,
    Block,
    Failure,
    Hang,
    MessagesServer,
    Recorded,
    Reply,
    Step,
    call,
    edit,
    say,
    serving,
)
from tests.processes import PYTHON

RETRIABLE: tuple[tuple[str, str], ...] = ()
NO_RETRY = (("x-should-retry", "false"),)


def real_claude() -> str | None:
    spec = importlib.util.find_spec("claude_agent_sdk")
    if spec is None or spec.origin is None:
        return None
    binary = Path(spec.origin).parent / "_bundled" / "claude"
    return str(binary) if binary.is_file() else None


def real() -> str:
    return real_claude() or pytest.skip(
        "the Claude Code CLI is not installed: pip install 'atlas-retry[claude]'"
    )


@pytest.fixture
def fake(tmp_path: Path) -> str:
    program = tmp_path / "bin" / "claude"
    program.parent.mkdir()
    source = Path(__file__).with_name("fake_claude.py")
    program.write_text(f'#!/bin/sh\nexec {PYTHON} -S -E "{source}" "$@"\n')
    program.chmod(0o755)
    return str(program)


@pytest.fixture(params=["fake", pytest.param("real", marks=pytest.mark.claude)])
def cli(request: pytest.FixtureRequest, fake: str) -> str:
    return fake if request.param == "fake" else real()


class ReviewInputs(Struct, frozen=True):
    """A workspace with a bug, a clean home, and what was seen."""

    root: Path
    home: Path
    scratch: Path
    seen: list[Event]

    @property
    def calc(self) -> Path:
        return self.root / "calc.py"

    def environ(self, url: str, **more: str) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.home / "config"),
            "LANG": "C.UTF-8",
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "dummy-key",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_TELEMETRY": "1",
            "DISABLE_AUTOUPDATER": "1",
            "DISABLE_ERROR_REPORTING": "1",
            **more,
        }

    def request(self, **fields: object) -> AgentRequest:
        asked = AgentRequest(
            prompt="Previous validation failed with these errors: ...",
            workspace=str(self.root),
            scratch=str(self.scratch),
            model="sonnet",
            timeout_s=60.0,
            idle_timeout_s=30.0,
        )
        return replace(asked, **fields)

    def ask(
        self,
        cli: str,
        server: MessagesServer | str,
        request: AgentRequest | None = None,
        settings: AgentSettings | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> AgentReply:
        url = server if isinstance(server, str) else server.url
        agent = claude_code.claude_code(
            replace(settings or AgentSettings(), path=cli),
            self.seen.append,
            self.environ(url, **(environ or {})),
        )
        return agent(request or self.request())

    def messages(self, kind: type[Event]) -> list[str]:
        return [event.message for event in self.seen if isinstance(event, kind)]


@pytest.fixture
def desk(tmp_path: Path) -> ReviewInputs:
    made = ReviewInputs(tmp_path / "calc", tmp_path / "home", tmp_path / "scratch", [])
    for folder in (made.root, made.home, made.scratch):
        folder.mkdir()
    made.calc.write_text("def add(a, b):\n    return a - b\n")
    (made.root / "test_calc.py").write_text("from calc import add\n")
    return made


def fix(desk: ReviewInputs) -> tuple[Step, ...]:
    return (
        call("Read", file_path=str(desk.calc)),
        edit(desk.calc, "a - b", "a + b"),
        say("Fixed the sign."),
    )


def test_one_turn_fixes_a_bug_and_reports_cost_model_and_activity(
    cli: str, desk: ReviewInputs
) -> None:
    with serving(*fix(desk)) as server:
        reply = desk.ask(cli, server)
    assert reply.status is ReplyStatus.DONE, reply.error
    assert desk.calc.read_text() == "def add(a, b):\n    return a + b\n"
    assert (reply.summary, reply.touched, reply.denials) == ("Fixed the sign.", ("calc.py",), ())
    assert (reply.tokens.input, reply.tokens.output) == (3000, 30)
    assert reply.cost_usd == pytest.approx(3000 * 2e-6 + 30 * 10e-6)
    assert reply.model == MODELS["sonnet"].id
    assert reply.session_id
    assert desk.messages(AgentActivity) == ["Read calc.py", "Edit calc.py"]
    assert "Previous validation failed" in server.requests[0].user_text


def test_a_resumed_session_is_charged_for_its_own_turn_only(cli: str, desk: ReviewInputs) -> None:
    (desk.root / "CLAUDE.md").write_text("House rule: tabs.")
    with serving(edit(desk.calc, "a - b", "a * b"), say("done"), *fix(desk)[2:]) as server:
        first = desk.ask(cli, server, desk.request(prompt="FIRST"))
        second = desk.ask(
            cli,
            server,
            desk.request(
                prompt="SECOND",
                attempt=2,
                session=Session.RESUME,
                session_id=first.session_id,
                session_cost_usd=first.cost_usd,
            ),
        )
    assert second.session_id == first.session_id
    assert second.cost_usd == pytest.approx(1000 * 2e-6 + 10 * 10e-6)
    heard = server.requests[-1].user_text
    assert heard.index("FIRST") < heard.index("SECOND")
    assert heard.count("House rule") == 1


def test_a_lost_session_is_replaced_by_a_new_one(cli: str, desk: ReviewInputs) -> None:
    gone = "99999999-2222-4333-8444-555555555555"
    with serving(say("done")) as server:
        reply = desk.ask(cli, server, desk.request(session=Session.RESUME, session_id=gone))
    assert (reply.status, reply.summary) == (ReplyStatus.DONE, "done")
    assert reply.session_id != gone


def test_a_protected_file_is_unchanged_and_the_denial_reported(
    cli: str, desk: ReviewInputs
) -> None:
    tests = desk.root / "tests"
    tests.mkdir()
    script = (
        call("Read", file_path=str(desk.root / "test_calc.py")),
        edit(desk.root / "test_calc.py", "add", "sub"),
        call("Write", file_path=str(tests / "new.py"), content="x"),
        call("Bash", command="curl http://127.0.0.1:9", description="look"),
        say("I could not."),
    )
    with serving(*script) as server:
        reply = desk.ask(cli, server, desk.request(protected=("test_*.py", "tests/**")))
    assert (desk.root / "test_calc.py").read_text() == "from calc import add\n"
    assert list(tests.iterdir()) == []
    assert reply.status is ReplyStatus.DONE
    assert "Bash: curl http://127.0.0.1:9" in reply.denials


def test_only_the_exact_gate_command_is_allowed(cli: str, desk: ReviewInputs) -> None:
    gate = f"{PYTHON} -c \"open('ran', 'w')\""
    other = f"{PYTHON} -c \"open('other', 'w')\""
    script = (
        call("Bash", command=gate, description="check"),
        call("Bash", command=other, description="check"),
        say("done"),
    )
    with serving(*script) as server:
        reply = desk.ask(cli, server, desk.request(commands=(gate,)))
    assert (desk.root / "ran").exists()
    assert not (desk.root / "other").exists()
    assert reply.denials == (f"Bash: {other}",)


def test_an_agent_that_edits_nothing_is_done(fake: str, desk: ReviewInputs) -> None:
    with serving(say("ATLAS-CANNOT-FIX: the test is wrong")) as server:
        reply = desk.ask(fake, server)
    assert (reply.status, reply.touched) == (ReplyStatus.DONE, ())
    assert reply.gave_up == "the test is wrong"


def test_reaching_the_turn_limit_fails_the_attempt(fake: str, desk: ReviewInputs) -> None:
    with serving(*fix(desk)) as server:
        reply = desk.ask(fake, server, settings=AgentSettings(max_turns=1))
    assert reply.status is ReplyStatus.FAILED
    assert "maximum number of turns (1)" in (reply.error or "")


REFUSALS = [
    (401, "authentication_error", "/login"),
    (403, "permission_error", "auth status"),
    (429, "rate_limit_error", "until the limit is lifted"),
    (529, "overloaded_error", "status.anthropic.com"),
]


@pytest.mark.parametrize(("status", "kind", "remedy"), REFUSALS)
def test_an_api_refusal_is_unavailable_at_once(
    fake: str, desk: ReviewInputs, status: int, kind: str, remedy: str
) -> None:
    refused_at_once(fake, desk, status, kind, remedy)


@pytest.mark.claude
@pytest.mark.parametrize(("status", "kind", "remedy"), REFUSALS[1:])
def test_the_real_cli_reports_an_api_refusal_the_same_way(
    desk: ReviewInputs, status: int, kind: str, remedy: str
) -> None:
    refused_at_once(real(), desk, status, kind, remedy)


def refused_at_once(cli: str, desk: ReviewInputs, status: int, kind: str, remedy: str) -> None:
    with serving(Failure(status=status, kind=kind, headers=NO_RETRY)) as server:
        reply = desk.ask(cli, server, settings=AgentSettings(models=("sonnet",)))
        assert len(server.requests) == 1
    assert reply.status is ReplyStatus.UNAVAILABLE
    assert str(status) in (reply.error or "")
    assert remedy in (reply.remedy or "")


@pytest.mark.claude
def test_an_overloaded_model_is_replaced_by_the_next_one_listed(desk: ReviewInputs) -> None:
    def answer(request: Recorded) -> Reply:
        if request.body["model"] == "claude-sonnet-5-5":
            return Failure(status=529, kind="overloaded_error", headers=NO_RETRY)
        return say("done")

    with serving(*[answer] * 12) as server:
        reply = desk.ask(real(), server, settings=AgentSettings(models=("sonnet", "opus")))
    assert (reply.status, reply.model) == (ReplyStatus.DONE, "claude-opus-5-5")
    assert "claude-sonnet-5-5 is not available now: continuing with claude-opus-5-5" in (
        desk.messages(AgentActivity)
    )


def test_a_refused_connection_is_unavailable(cli: str, desk: ReviewInputs) -> None:
    with socket.socket() as taken:
        # bound, so that no server of another test gets the port; nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        reply = desk.ask(cli, url, environ={"CLAUDE_CODE_MAX_RETRIES": "1"})
    assert reply.status is ReplyStatus.UNAVAILABLE
    assert "network" in (reply.remedy or "")
    assert len(desk.messages(TransportRetried)) == reply.transport_retries == 1


def test_a_repeatedly_refused_key_costs_two_retries_and_little_time(
    cli: str, desk: ReviewInputs
) -> None:
    refused = Failure(status=401, kind="authentication_error", headers=RETRIABLE)
    started = time.monotonic()
    with serving(*[refused] * 12) as server:
        reply = desk.ask(cli, server)
        assert len(server.requests) == 2
    assert reply.status is ReplyStatus.UNAVAILABLE
    assert "/login" in (reply.remedy or "")
    assert time.monotonic() - started < 100


def test_a_temporary_overload_is_a_retry_not_a_failure(fake: str, desk: ReviewInputs) -> None:
    overloaded = Failure(status=529, kind="overloaded_error", headers=RETRIABLE)
    with serving(overloaded, say("done")) as server:
        reply = desk.ask(fake, server)
    assert (reply.status, reply.transport_retries) == (ReplyStatus.DONE, 1)
    assert desk.messages(TransportRetried)[0].startswith("[RETRY 1] API error: 529")


def processes_with(word: str) -> list[str]:
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if word in line and int(folder.name) != os.getpid():
            processes.append(line)
    return processes


def test_a_silent_api_times_out_after_the_idle_time(cli: str, desk: ReviewInputs) -> None:
    with serving(Hang()) as server:
        started = time.monotonic()
        reply = desk.ask(cli, server, desk.request(idle_timeout_s=2.0))
    assert reply.status is ReplyStatus.TIMED_OUT
    assert time.monotonic() - started < 50
    assert processes_with(str(desk.scratch)) == []


def test_a_hanging_tool_is_ended_with_its_agent(cli: str, desk: ReviewInputs) -> None:
    word = f"sleeper-of-{desk.home}"
    gate = f"{PYTHON} -c 'import time; time.sleep(600)' {word}"
    with serving(call("Bash", command=gate, description="wait")) as server:
        reply = desk.ask(cli, server, desk.request(commands=(gate,), idle_timeout_s=3.0))
    assert reply.status is ReplyStatus.TIMED_OUT
    assert reply.cost_usd == pytest.approx(1000 * 2e-6 + 10 * 10e-6, rel=0.05)
    assert processes_with(word) == []


_INTERRUPTED = """
    import sys
    from atlas_retry import process
    from atlas_retry.agents import claude_code
    from atlas_retry.errors import Interrupted
    from atlas_retry.model import AgentRequest
    from atlas_retry.settings import AgentSettings
    import json, os
    root, scratch, cli = sys.argv[1:]
    agent = claude_code.claude_code(
        AgentSettings(path=cli), lambda event: print(event.message, flush=True), dict(os.environ)
    )
    with process.handle_signals():
        try:
            agent(AgentRequest(prompt="p", workspace=root, scratch=scratch))
        except Interrupted as stop:
            print("interrupted", stop.signum, flush=True)
"""


def test_an_interrupt_ends_the_agent_and_is_raised(cli: str, desk: ReviewInputs) -> None:
    steps = (call("Read", file_path=str(desk.calc)), Hang())
    with serving(*steps) as server:
        driver = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(_INTERRUPTED), desk.root, desk.scratch, cli],
            env=desk.environ(server.url),
            cwd=Path(__file__).parents[1],
            stdout=subprocess.PIPE,
            text=True,
        )
        with driver:
            assert driver.stdout is not None
            assert driver.stdout.readline() == "Read calc.py\n"
            driver.send_signal(signal.SIGINT)
            assert driver.stdout.read() == "cut off\ninterrupted 2\n"
    assert processes_with(str(desk.scratch)) == []


@pytest.mark.claude
def test_settings_of_an_untrusted_repository_are_not_run(desk: ReviewInputs) -> None:
    trap = desk.home / "trapped"
    hook = {"hooks": [{"type": "command", "command": f"touch {trap}"}]}
    brought = {
        ".claude/settings.json": json.dumps(
            {
                "hooks": {"SessionStart": [hook], "Stop": [hook]},
                "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"},
            }
        ),
        ".mcp.json": json.dumps({"mcpServers": {"x": {"command": "touch", "args": [str(trap)]}}}),
        ".claude/commands/usr.md": "TRAPPED",
        "CLAUDE.md": "House rule: tabs.",
    }
    for name, content in brought.items():
        (desk.root / name).parent.mkdir(exist_ok=True)
        (desk.root / name).write_text(content)
    with serving(say("done")) as server:
        reply = desk.ask(real(), server)
    assert (reply.status, trap.exists()) == (ReplyStatus.DONE, False)
    heard = server.requests[0].user_text
    assert "House rule: tabs." in heard
    assert "TRAPPED" not in heard


@pytest.mark.claude
@pytest.mark.parametrize("prompt", ["- see @{secret} and\n@{secret}", "/compact the errors"])
def test_prompt_syntax_of_the_cli_is_sent_as_text(desk: ReviewInputs, prompt: str) -> None:
    secret = desk.home / "secret"
    secret.write_text("TOP-SECRET")
    text = prompt.format(secret=secret)
    with serving(say("done")) as server:
        desk.ask(real(), server, desk.request(prompt=text))
    assert text in server.requests[0].user_text
    assert "TOP-SECRET" not in json.dumps(server.requests[0].body)


@pytest.mark.claude
@pytest.mark.parametrize("alias", ["haiku", "opus"])
def test_the_model_table_matches_the_cli(desk: ReviewInputs, alias: str) -> None:
    answer = Answer(blocks=(Block(text="ok"),), input_tokens=100_001, output_tokens=1000)
    with serving(answer) as server:
        reply = desk.ask(real(), server, desk.request(model=alias))
    assert server.requests[0].body["model"] == MODELS[alias].id
    assert reply.cost_usd == pytest.approx(cost_usd(alias, reply.tokens))


@pytest.mark.parametrize(("key", "usable"), [("dummy-key", True), (None, False)])
def test_a_missing_login_is_detected_before_any_request(
    cli: str, desk: ReviewInputs, key: str | None, *, usable: bool
) -> None:
    environ = desk.environ("http://127.0.0.1:9")
    if key is None:
        del environ["ANTHROPIC_API_KEY"]
    unavailable = claude_code.check(AgentSettings(path=cli), environ)
    assert (unavailable is None) is usable
    assert usable or "/login" in ((unavailable and unavailable.remedy) or "")


def test_a_missing_cli_is_reported_with_how_to_install_it(desk: ReviewInputs) -> None:
    reply = desk.ask(str(desk.home / "nowhere"), "http://127.0.0.1:9")
    assert reply.status is ReplyStatus.UNAVAILABLE
    assert "agent.path" in (reply.remedy or "")
