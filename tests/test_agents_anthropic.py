"""The Messages API agent, with the real SDK against a scripted server on loopback."""

import json
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import Struct, field

from atlas_retry import process
from atlas_retry.agents import anthropic, check
from atlas_retry.agents.anthropic import anthropic_api
from atlas_retry.agents.anthropic.transport import Connection, Patience
from atlas_retry.errors import Interrupted
from atlas_retry.events import AgentActivity, Event
from atlas_retry.model import Agent, AgentReply, AgentRequest, ReplyStatus, Session
from atlas_retry.settings import AgentSettings
from tests.messages_server import (
    Answer,
    Block,
    Drop,
    Failure,
    Hang,
    MessagesServer,
    Raw,
    Recorded,
    Step,
    call,
    say,
    serving,
)

CALC = "def add(a, b):\n    return a - b\n"
FIXED = "def add(a, b):\n    return a + b\n"
BROKEN = "def add(a, b:\n    return a + b\n"
QUICK = Patience(first_wait_s=0.01, total_s=20.0)
OVERLOADED = Failure(status=529, kind="overloaded_error", message="Overloaded", headers=())


def modify(content: str, path: str = "calc.py") -> dict[str, object]:
    return {"path": path, "action": "modify", "content": content}


def edit(path: str, *pairs: tuple[str, str]) -> dict[str, object]:
    edits = [{"old": old, "new": new} for old, new in pairs]
    return {"path": path, "action": "modify", "edits": edits}


def submit(*files: Mapping[str, object], diagnosis: str = "a minus for a plus") -> Answer:
    return call("submit_fix", success=True, diagnosis=diagnosis, files=list(files))


class Bench(Struct, kw_only=True, dict=True):
    """A workspace, a server, and an agent between them."""

    root: Path
    server: MessagesServer
    environ: Mapping[str, str]
    events: list[Event] = field(default_factory=list)

    def agent(self, patience: Patience = QUICK, **settings: object) -> Agent:
        chosen = AgentSettings(backend="anthropic", **settings)  # type: ignore[arg-type]
        return anthropic_api(chosen, self.events.append, self.environ, patience=patience)

    def request(self, **fields: object) -> AgentRequest:
        given = {"prompt": "Fix it.", "timeout_s": 30.0, "idle_timeout_s": 20.0} | fields
        return AgentRequest(
            workspace=str(self.root),
            scratch=str(self.root.parent),
            **given,  # type: ignore[arg-type]
        )

    def ask(self, **fields: object) -> AgentReply:
        return self.agent()(self.request(**fields))

    @property
    def calc(self) -> str:
        return (self.root / "calc.py").read_text()

    @property
    def log(self) -> list[str]:
        return [event.message for event in self.events if event.message.startswith("[RETRY")]


@contextmanager
def bench(root: Path, *script: Step) -> Iterator[Bench]:
    with serving(*script) as server:
        environ = {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "HOME": "/nonexistent",
            "ANTHROPIC_API_KEY": "dummy-key",
            "ANTHROPIC_BASE_URL": server.url,
        }
        yield Bench(root=root, server=server, environ=environ)
    assert {request.path for request in server.requests} <= {"/v1/messages"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "calc.py").write_text(CALC)
    return folder


def files_of(root: Path) -> dict[str, bytes]:
    return {str(p.relative_to(root)): p.read_bytes() for p in root.rglob("*") if p.is_file()}


# --- the seven scenarios of the specification -------------------------------------------------


def test_t010_success_first_attempt(root: Path) -> None:
    with bench(root, submit(modify(FIXED))) as b:
        reply = b.ask()
        assert reply.status is ReplyStatus.DONE
        assert (reply.summary, reply.touched) == ("a minus for a plus", ("calc.py",))
        assert b.calc == FIXED
        assert len(b.server.requests) == 1
        assert b.log == []


def test_t020_retry_on_validation_error(root: Path) -> None:
    with bench(root, submit(modify(BROKEN)), submit(modify(FIXED))) as b:
        assert b.ask().status is ReplyStatus.DONE
        assert b.calc == FIXED
        assert len(b.server.requests) == 2
        assert len(b.log) == 1


def test_t030_retry_on_api_error(root: Path) -> None:
    with bench(root, OVERLOADED, submit(modify(FIXED))) as b:
        reply = b.ask()
        assert (reply.status, reply.transport_retries) == (ReplyStatus.DONE, 1)
        assert b.calc == FIXED
        assert len(b.server.requests) == 2


def test_t040_exhaust_retries_validation(root: Path) -> None:
    with bench(root, *[submit(modify(BROKEN))] * 5) as b:
        reply = b.ask()
        assert reply.status is ReplyStatus.FAILED
        assert reply.error
        assert "calc.py failed its checks in 3 tries" in reply.error
        assert b.calc == CALC
        assert len(b.server.requests) == 3


def test_t050_exhaust_retries_api(root: Path) -> None:
    with bench(root, *[OVERLOADED] * 5) as b:
        reply = b.ask()
        assert reply.status is ReplyStatus.UNAVAILABLE
        assert reply.error
        assert "did not answer in 3 tries: 529" in reply.error
        assert b.calc == CALC
        assert len(b.server.requests) == 3


def test_t060_error_included_in_retry_prompt(root: Path) -> None:
    with bench(root, submit(modify(BROKEN)), submit(modify(FIXED))) as b:
        b.ask()
        assert "calc.py syntax error in line 1: '(' was never closed" in (
            b.server.requests[1].user_text
        )


def test_t070_logging_on_retry(root: Path) -> None:
    script = (OVERLOADED, submit(modify(BROKEN)), submit(modify(BROKEN)), submit(modify(BROKEN)))
    with bench(root, *script) as b:
        b.ask()
    assert b.log == [
        "[RETRY 1] API error: 529 overloaded_error Overloaded",
        *(
            f"[RETRY {n}] Validation: calc.py syntax error in line 1: '(' was never closed"
            for n in (1, 2, 3)
        ),
    ]


# --- errors of the API ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "hiccup",
    [
        Failure(status=429, kind="rate_limit_error", headers=(("retry-after", "0"),)),
        Failure(status=500, headers=()),
        Failure(status=503, headers=()),
        OVERLOADED,
        Failure(status=408, kind="timeout_error", headers=()),
        Drop(),
        Answer(blocks=(Block(text="I will"), Block(text="never come")), cut=True),
    ],
    ids=["429", "500", "503", "529", "408", "dropped", "cut"],
)
def test_a_temporary_api_error_is_retried_and_counts_no_attempt(root: Path, hiccup: Step) -> None:
    with bench(root, hiccup, submit(modify(FIXED))) as b:
        reply = b.ask()
        assert (reply.status, reply.transport_retries) == (ReplyStatus.DONE, 1)
        assert b.calc == FIXED
        assert b.log[0].startswith("[RETRY 1] API error: ")


@pytest.mark.parametrize(
    ("refusal", "remedy"),
    [
        (Failure(status=400, kind="invalid_request_error", headers=()), "agent.models"),
        (
            Failure(status=400, message="Your credit balance is too low", headers=()),
            "settings/billing",
        ),
        (Failure(status=400, message="prompt is too long: 9 > 8", headers=()), "context.max_chars"),
        (Failure(status=401, kind="authentication_error", headers=()), "ANTHROPIC_API_KEY"),
        (Failure(status=402, kind="billing_error", headers=()), "settings/billing"),
        (Failure(status=403, kind="permission_error", headers=()), "settings/keys"),
        (Failure(status=404, kind="not_found_error", headers=()), "--model"),
        (Failure(status=413, kind="request_too_large", headers=()), "context.max_chars"),
        (Failure(status=307, headers=(("location", "/elsewhere"),)), "ANTHROPIC_BASE_URL"),
        (Failure(status=429, headers=(("retry-after", "3600"),)), "60 minutes"),
        (Failure(status=529), "status.anthropic.com"),
    ],
    ids=lambda value: str(getattr(value, "status", ""))[:20] or None,
)
def test_a_permanent_api_error_costs_one_request_and_names_the_remedy(
    root: Path, refusal: Step, remedy: str
) -> None:
    with bench(root, refusal, submit(modify(FIXED))) as b:
        reply = b.ask()
        assert reply.status is ReplyStatus.UNAVAILABLE
        assert reply.error
        assert remedy in (reply.remedy or "")
        assert len(b.server.requests) == 1
        assert b.calc == CALC


@pytest.mark.parametrize(
    ("answer", "remedy"),
    [
        (say("no", stop_reason="refusal"), "another model"),
        (say("def", stop_reason="max_tokens"), "agent.effort"),
        (say("def", stop_reason="model_context_window_exceeded"), "context.max_chars"),
        (Answer(blocks=()), "another model"),
    ],
)
def test_an_answer_that_is_none_is_an_attempt(root: Path, answer: Step, remedy: str) -> None:
    with bench(root, answer) as b:
        reply = b.ask()
        assert reply.status is ReplyStatus.FAILED
        assert remedy in (reply.remedy or "")
        assert (len(b.server.requests), b.calc) == (1, CALC)


def test_a_spending_limit_is_not_waited_for(root: Path) -> None:
    def limited(_: Recorded) -> Failure:
        return Failure(status=429, headers=(("x-should-retry", "false"),))

    with bench(root, limited) as b:
        assert b.ask().status is ReplyStatus.UNAVAILABLE
        assert len(b.server.requests) == 1


def test_without_a_key_no_request_is_made(root: Path) -> None:
    with bench(root) as b:
        agent = anthropic_api(AgentSettings(), b.events.append, {"PATH": "/usr/bin"})
        reply = agent(b.request())
        assert (reply.status, len(b.server.requests)) == (ReplyStatus.UNAVAILABLE, 0)
    unavailable = check(AgentSettings(backend="anthropic"), {})
    assert unavailable
    assert unavailable.error == "ANTHROPIC_API_KEY is not set"
    assert (unavailable.remedy or "").startswith("export")
    assert anthropic.check(AgentSettings(), {"ANTHROPIC_API_KEY": "k"}) is None


def test_retry_after_is_honoured(root: Path) -> None:
    asked = Failure(status=429, headers=(("retry-after", "1"),))
    with bench(root, asked, submit(modify(FIXED))) as b:
        started_s = time.monotonic()
        assert b.ask().status is ReplyStatus.DONE
        assert time.monotonic() - started_s >= 1.0


@pytest.mark.parametrize("step", [Hang(), OVERLOADED], ids=["answer", "next try"])
def test_a_stop_ends_waiting_at_once(root: Path, step: Step) -> None:
    with bench(root, step, step) as b, process.handle_signals():
        threading.Timer(0.5, process.request_stop, args=(15,)).start()
        started_s = time.monotonic()
        with pytest.raises(Interrupted):
            b.agent(Patience(first_wait_s=100.0))(b.request(timeout_s=None))
        assert time.monotonic() - started_s < 60.0
        assert b.calc == CALC


def test_an_attempt_times_out(root: Path) -> None:
    with bench(root, Hang()) as b:
        reply = b.ask(timeout_s=0.5)
        assert reply.status is ReplyStatus.TIMED_OUT


def test_silence_is_an_api_error(root: Path) -> None:
    stalled = Answer(blocks=(Block(text="well"), Block(text="never")), stall=True)
    with bench(root, stalled, submit(modify(FIXED))) as b:
        reply = b.ask(idle_timeout_s=3.0)
        assert (reply.status, reply.transport_retries) == (ReplyStatus.DONE, 1)


def test_pings_do_not_count_as_progress(root: Path) -> None:
    pinging = Answer(blocks=(Block(text="well"),), pings=True)
    with bench(root, pinging, submit(modify(FIXED))) as b:
        reply = b.ask(idle_timeout_s=1.0)
        assert (reply.status, reply.transport_retries) == (ReplyStatus.DONE, 1)
        assert b.log == ["[RETRY 1] API error: silence for 1 s"]


DEEP = b"[" * 100_000 + b"]" * 100_000
STARTED = b'event: message_start\ndata: {"type": "message_start", "message": %b}\n\n'
LOST_DELTA = (
    b"event: content_block_delta\n"
    b'data: {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta"}}\n\n'
)


@pytest.mark.parametrize(
    "odd",
    [
        Raw(STARTED % DEEP),
        Raw(STARTED % b"null"),
        Raw(STARTED % b'{"usage": {"input_tokens": "many"}}'),
        Raw(LOST_DELTA),
        Raw(STARTED % (b'{"usage": ' + b'{"a": ' * 900 + b"1" + b"}" * 901)),
        Answer(blocks=(Block(tool="submit_fix", raw=DEEP.decode()),)),
        Answer(blocks=(Block(tool="read_file", raw=DEEP.decode()),)),
        Answer(blocks=(Block(tool="submit_fix", raw='{"a": ' * 900 + "1" + "}" * 900),)),
        Failure(status=400, message="odd", headers=(), document=DEEP),
    ],
    ids=["event", "no message", "no count", "no block", "message", "answer", "look", "sent back",
         "refusal"],
)  # fmt: skip
def test_an_odd_stream_is_a_bad_answer(odd: Step, root: Path) -> None:
    with bench(root, odd, submit(modify(FIXED))) as b:
        assert b.ask().status in {ReplyStatus.DONE, ReplyStatus.UNAVAILABLE}


def test_the_timeout_starts_after_the_sdk_is_imported() -> None:
    line = Connection(
        environ={"ANTHROPIC_API_KEY": "dummy-key"},
        patience=QUICK,
        emit=lambda _: None,
        request=AgentRequest(prompt="", workspace="/", scratch="/", timeout_s=0.5),
        model="",
    )
    time.sleep(0.6)  # as long as an import may take on a slow machine
    with line:
        assert line._left_s()


# --- the request, its cost, the conversation ---------------------------------------------------


def test_the_stable_prompt_is_cached_and_no_tool_is_forced(root: Path) -> None:
    with bench(root, submit(modify(FIXED))) as b:
        b.ask(prompt="stable words. volatile words.", stable_chars=14)
        body = b.server.requests[0].body
    marked = {"cache_control": {"type": "ephemeral"}}
    assert b.server.requests[0].messages[0]["content"] == [
        {"type": "text", "text": "stable words. "} | marked,
        {"type": "text", "text": "volatile words."} | marked,
    ]
    assert json.dumps(body["system"]).count("ephemeral") == 1
    assert "tool_choice" not in body
    assert "thinking" not in body
    assert all(tool["strict"] for tool in body["tools"])  # type: ignore[attr-defined]


def test_model_and_effort_follow_the_attempt(root: Path) -> None:
    with bench(root, submit(modify(FIXED))) as b:
        agent = b.agent(effort=("low", "high"))
        agent(b.request(attempt=3, model="opus"))
        body = b.server.requests[0].body
    assert (body["model"], body["output_config"]) == ("claude-opus-5-5", {"effort": "high"})


def test_every_request_is_charged(root: Path) -> None:
    cut = Answer(blocks=(Block(text="a"), Block(text="b")), cut=True, input_tokens=1000)
    with bench(root, cut, submit(modify(BROKEN)), submit(modify(FIXED))) as b:
        reply = b.ask(model="sonnet")
    assert (reply.tokens.input, reply.tokens.output) == (3000, 21)
    assert reply.cost_usd == pytest.approx(3000 * 2e-6 + 21 * 10e-6)
    assert reply.model == "claude-sonnet-5-5"


def test_negative_token_counts_are_ignored(root: Path) -> None:
    odd = Answer(blocks=submit(modify(BROKEN)).blocks, input_tokens=-5_000_000, output_tokens=-1)
    with bench(root, odd, submit(modify(FIXED))) as b:
        reply = b.ask(model="sonnet")
    assert (reply.tokens.input, reply.tokens.output) == (1000, 10)
    assert reply.cost_usd == pytest.approx(1000 * 2e-6 + 10 * 10e-6)


def test_a_turn_that_timed_out_is_charged_for_its_requests(root: Path) -> None:
    stalled = Answer(blocks=(Block(text="well"),), stall=True)
    with bench(root, call("list_files"), stalled) as b:
        reply = b.ask(model="sonnet", timeout_s=3.0)
    assert reply.status is ReplyStatus.TIMED_OUT
    assert (reply.tokens.input, reply.tokens.output) == (2000, 11)


def test_no_request_is_made_beyond_the_cost_limit(root: Path) -> None:
    with bench(root, submit(modify(BROKEN)), submit(modify(FIXED))) as b:
        reply = b.ask(cost_usd=0.001)
        assert (reply.status, len(b.server.requests)) == (ReplyStatus.FAILED, 1)
        assert "cost limit of the attempt" in (reply.error or "")


def test_a_model_without_a_known_price_is_reported(root: Path) -> None:
    with bench(root, submit(modify(FIXED))) as b:
        assert b.ask(model="my-own-model").cost_usd is None
    assert "the price of my-own-model is unknown" in b.events[0].message


def test_a_session_is_resumed_only_with_the_same_model(root: Path) -> None:
    with bench(root, *[submit(modify(FIXED)), submit(modify(CALC))] * 2) as b:
        agent = b.agent()
        first = agent(b.request(prompt="one"))
        again = {"session": Session.RESUME, "session_id": first.session_id}
        second = agent(b.request(prompt="two", **again))
        other = agent(b.request(prompt="three", model="opus", **again))
        assert second.session_id == first.session_id != other.session_id
    assert [len(request.messages) for request in b.server.requests] == [1, 3, 1]
    assert "one" in b.server.requests[1].user_text


def test_an_answer_is_sent_back_unchanged(root: Path) -> None:
    with bench(root, call("list_files"), submit(modify(FIXED))) as b:
        b.ask()
        sent = b.server.requests[1].messages[1]["content"]
    assert sent == [
        {"type": "tool_use", "id": "toolu_scripted_0001_0", "name": "list_files", "input": {}}
    ]


def test_an_answer_without_a_fix_is_requested_once_more(root: Path) -> None:
    with bench(root, say("It is the minus."), submit(modify(FIXED))) as b:
        assert b.ask().status is ReplyStatus.DONE
    with bench(root, say("It is the minus."), say("Really.")) as b:
        reply = b.ask()
        assert reply.status is ReplyStatus.FAILED
        assert "did not call submit_fix" in (reply.error or "")


WHOLE = {"success": True, "diagnosis": "minus", "files": [modify(FIXED)]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(WHOLE),
        f"The cause is the minus.\n\n```json\n{json.dumps(WHOLE, indent=2)}\n```\nDone.",
        f"It is the minus.\n\n```python calc.py\n{FIXED}```\n",
        f"It is the minus.\n\n**calc.py**\n\n```python\n{FIXED}```\n",
        f'```python title="calc.py"\n{FIXED}```',
    ],
)
def test_an_answer_in_text_counts_as_a_call(root: Path, text: str) -> None:
    with bench(root, say(text)) as b:
        assert b.ask().status is ReplyStatus.DONE
        assert (b.calc, len(b.server.requests)) == (FIXED, 1)


def test_a_block_of_code_answers_for_the_file_that_is_asked_for_again(root: Path) -> None:
    with bench(root, submit(modify("def add(:")), say(f"```python\n{FIXED}```")) as b:
        assert b.ask().status is ReplyStatus.DONE
        assert b.calc == FIXED


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"```python\n{FIXED}```", "Call submit_fix now"),
        ("```python calc.py\ndef add(:\n```", "This file cannot be written: calc.py"),
        (json.dumps(WHOLE | {"files": [modify(FIXED) | {"path": "../x"}]}), "cannot be written"),
        (json.dumps(WHOLE | {"files": "calc.py"}), "does not match the schema"),
    ],
)
def test_an_answer_in_text_passes_the_same_checks(root: Path, text: str, why: str) -> None:
    with bench(root, say(text), submit(modify(FIXED))) as b:
        assert b.ask().status is ReplyStatus.DONE
        assert why in b.server.requests[1].user_text
        assert b.calc == FIXED


@pytest.mark.parametrize(
    "answer",
    [
        call("submit_fix", success=False, diagnosis="the test is wrong", files=[]),
        call("submit_fix", success=False, diagnosis="the test is wrong", files=[modify(FIXED)]),
        say("ATLAS-CANNOT-FIX: the test is wrong"),
    ],
)
def test_giving_up_reports_the_reason_and_writes_nothing(root: Path, answer: Answer) -> None:
    with bench(root, answer) as b:
        reply = b.ask()
        assert (reply.status, reply.gave_up) == (ReplyStatus.DONE, "the test is wrong")
        assert b.calc == CALC


# --- looking -----------------------------------------------------------------------------------


@pytest.fixture
def project(root: Path, environ: dict[str, str]) -> Path:
    (root / ".gitignore").write_text("build/\n")
    (root / "build").mkdir()
    (root / "build" / "out.py").write_text("ignored = 1\n")
    (root / ".env").write_text("API_TOKEN=abcd1234efgh5678\n")
    (root / "conf.py").write_text("url = 'https://user:hunter22@host/x'\n")
    (root.parent / "outside.py").write_text("outside = 1\n")
    (root / "link.py").symlink_to("../outside.py")
    subprocess.run(("git", "init", "-q"), cwd=root, env=environ, check=True)
    return root


@pytest.mark.parametrize(
    ("look", "shown"),
    [
        (call("list_files"), ".gitignore\ncalc.py\nconf.py"),
        (call("list_files", glob="*.md"), "no files"),
        (call("read_file", path="calc.py"), "calc.py, lines 1 to 3 of 3:\ndef add(a, b):"),
        (call("read_file", path="calc.py", first_line=2, last_line=2), "2 to 2 of 3:\n    return"),
        (call("search", text="a - b"), "calc.py:2: return a - b"),
        (call("search", text="outside"), "no lines"),
        (call("search", text="ignored ="), "no lines"),
        (call("read_file", path="conf.py"), "[redacted:"),
        (call("read_file", path=".env"), "may have secrets"),
        (call("read_file", path="build/out.py"), "git ignores it"),
        (call("read_file", path="link.py"), "not a file of the project"),
        (call("read_file", path="../outside.py"), "leads out"),
        (call("read_file", path="/etc/passwd"), "must be relative"),
        (call("read_file", path=".git/config"), "belongs to git"),
        (call("read_file", path="absent.py"), "not a file of the project"),
        (call("read_file", line=3), "invalid arguments for read_file"),
        (call("run", command="id"), "unknown tool 'run'"),
        (Answer(blocks=(Block(tool="search", raw='{"text": "a'),)), "invalid arguments for search"),
    ],
)
def test_the_model_reads_only_the_project(project: Path, look: Answer, shown: str) -> None:
    with bench(project, look, submit(modify(FIXED))) as b:
        assert b.ask().status is ReplyStatus.DONE
        assert shown in b.server.requests[1].user_text
        assert any(isinstance(event, AgentActivity) for event in b.events)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("build/out.py", "is ignored by git"),
        (".env", "must not be changed"),
        ("link.py", "is a link"),
        ("../outside.py", "leads out"),
        (".git/config", "belongs to git"),
    ],
)
def test_the_model_writes_only_the_project(project: Path, path: str, why: str) -> None:
    bad = submit(modify("x = 2\n", path))
    with bench(project, bad, bad, bad) as b:
        before = files_of(project.parent)
        reply = b.ask()
        assert reply.status is ReplyStatus.FAILED
        assert why in (reply.error or "")
        assert files_of(project.parent) == before


def test_requests_without_an_answer_are_limited(root: Path) -> None:
    with bench(root, *[call("list_files")] * 5) as b:
        reply = b.agent(max_turns=3)(b.request())
        assert (reply.status, len(b.server.requests)) == (ReplyStatus.FAILED, 3)
        assert "no answer in 3 requests" in (reply.error or "")
        assert "your last tool call" in b.server.requests[2].user_text


# --- what is written ---------------------------------------------------------------------------


def test_correct_files_are_kept_until_the_last_one_checks(root: Path) -> None:
    good = {"path": "more.py", "action": "create", "content": "x = 1\n"}
    seen: list[bool] = []

    def second(_: Recorded) -> Answer:
        seen.append((root / "more.py").exists())
        return submit(modify(FIXED))

    with bench(root, submit(good, modify(BROKEN)), second) as b:
        assert b.ask().touched == ("more.py", "calc.py")
        assert "These files are correct and kept: more.py." in b.server.requests[1].user_text
    assert seen == [False]
    assert (b.calc, (root / "more.py").read_text()) == (FIXED, "x = 1\n")


def test_one_file_that_fails_all_tries_discards_the_others(root: Path) -> None:
    good = {"path": "more.py", "action": "create", "content": "x = 1\n"}
    with bench(root, submit(good, modify(BROKEN)), *[submit(modify(BROKEN))] * 3) as b:
        assert b.ask().status is ReplyStatus.FAILED
    assert files_of(root) == {"calc.py": CALC.encode()}


def test_one_answer_can_edit_delete_and_create(root: Path) -> None:
    (root / "old.py").write_text("x = 1\n")
    made = {"path": "pkg/__init__.py", "action": "create", "content": ""}
    gone = {"path": "old.py", "action": "delete"}
    with bench(root, submit(edit("calc.py", ("a - b", "a + b")), made, gone)) as b:
        assert b.ask().touched == ("calc.py", "pkg/__init__.py", "old.py")
    assert files_of(root) == {"calc.py": FIXED.encode(), "pkg/__init__.py": b""}


def test_a_protected_file_is_reported_back_to_the_model(root: Path) -> None:
    (root / "test_calc.py").write_text("x = 1\n")
    bad = modify("x = 2\n", "test_calc.py")
    with bench(root, submit(bad), submit(modify(FIXED))) as b:
        assert b.ask(protected=("test_*.py",)).status is ReplyStatus.DONE
        assert "test_calc.py must not be changed" in b.server.requests[1].user_text


def test_a_failed_write_restores_the_other_files(root: Path) -> None:
    (root / "shut").mkdir()
    (root / "shut" / "a.py").write_text("x = 1\n")
    (root / "shut" / "a.py").chmod(0o600)
    before = files_of(root)
    blocked = {"path": "shut/" + "n" * 300 + ".py", "action": "create", "content": "x = 2\n"}
    with bench(root, submit(modify(FIXED), modify("x = 3\n", "shut/a.py"), blocked)) as b:
        reply = b.ask()
        assert reply.status is ReplyStatus.FAILED
        assert "nothing was written" in (reply.error or "")
    assert files_of(root) == before
    assert (root / "shut" / "a.py").stat().st_mode & 0o777 == 0o600
