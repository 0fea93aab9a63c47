"""How a run of Claude Code that ended is understood: the table of ends measured on 2.1.330."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from atlas_retry.agents.claude_code.reply import reply_of
from atlas_retry.agents.claude_code.stream import Transcript
from atlas_retry.model import AgentReply, AgentRequest, ReplyStatus, Session, Tokens
from atlas_retry.process import Command, Completed, Ended
from atlas_retry.process.values import Output

COMMAND = Command(argv=("claude",), cwd=Path("/"), env={})
INIT: Mapping[str, object] = {
    "type": "system",
    "subtype": "init",
    "session_id": "s-1",
    "model": "claude-sonnet-5-5",
}


def request(session: Session = Session.NEW, session_cost_usd: float = 0.0) -> AgentRequest:
    return AgentRequest(
        prompt="fix it",
        workspace="/w",
        scratch="/s",
        session=session,
        session_cost_usd=session_cost_usd,
    )


def reply(
    *events: Mapping[str, object],
    exit_code: int | None = 0,
    ended: Ended = Ended.EXITED,
    stderr: str = "",
    error: str | None = None,
    of: AgentRequest | None = None,
) -> AgentReply:
    transcript = Transcript(root="/w")
    for event in events:
        transcript.feed(json.dumps(event).encode() + b"\n")
    done = Completed(
        command=COMMAND, ended=ended, exit_code=exit_code, stderr=Output(head=stderr), error=error
    )
    return reply_of(of or request(), transcript, done)


def result(**fields: object) -> dict[str, object]:
    return {"type": "result", "subtype": "success", "is_error": False, "result": "done", **fields}


def api_error(status: int | None, text: str, **fields: object) -> dict[str, object]:
    return result(
        is_error=True, api_error_status=status, terminal_reason="api_error", result=text, **fields
    )


def synthetic(error: str) -> dict[str, object]:
    message = {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": "API"}]}
    return {"type": "assistant", "message": message, "error": error}


def test_done_needs_exit_0_a_result_and_no_error() -> None:
    assert reply(INIT, result()).status is ReplyStatus.DONE


def test_an_empty_result_is_done() -> None:
    assert reply(INIT, result(result="")).status is ReplyStatus.DONE


UNAVAILABLE = [
    (401, "API Error: 401 invalid x-api-key", "authentication_failed", "/login"),
    (403, "API Error: 403 forbidden", "unknown", "auth status"),
    (404, "There's an issue with the selected model", "model_not_found", "--model"),
    (407, "API Error: 407 proxy", "unknown", "HTTPS_PROXY"),
    (429, "You've hit your limit · resets 1pm", "rate_limit", "run the same command again"),
    (500, "API Error: 500 oops", "server_error", "status.anthropic.com"),
    (529, "API Error: 529 overloaded", "server_error", "status.anthropic.com"),
    (400, "Credit balance is too low", "billing_error", "add credit"),
    (None, "API Error: Connection refused (ECONNREFUSED)", "unknown", "network"),
    (None, "Request timed out. No data arrived for more than 5 minutes", "unknown", "network"),
    (None, "Not logged in · Please run /login", "authentication_failed", "ANTHROPIC_API_KEY"),
]


@pytest.mark.parametrize(("status", "text", "error", "remedy"), UNAVAILABLE)
def test_a_transport_failure_is_unavailable_with_a_remedy(
    status: int | None, text: str, error: str, remedy: str
) -> None:
    outcome = reply(INIT, synthetic(error), api_error(status, text), exit_code=1)
    assert outcome.status is ReplyStatus.UNAVAILABLE
    assert outcome.error == text
    assert remedy in (outcome.remedy or "")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("API Error: 529 overloaded", "status.anthropic.com"),
        ("API Error: 401 bad key", "/login"),
        ("You've hit your limit · resets 1pm", "until the limit is lifted"),
        ("Not logged in · Please run /login", "/login"),
    ],
)
def test_an_api_error_reported_as_success_is_unavailable(text: str, remedy: str) -> None:
    outcome = reply(INIT, result(result=text, usage={"output_tokens": 0}))
    assert outcome.status is ReplyStatus.UNAVAILABLE
    assert remedy in (outcome.remedy or "")


def test_a_model_that_mentions_api_errors_is_done() -> None:
    outcome = reply(INIT, result(result="API Error: handled now", usage={"output_tokens": 9}))
    assert outcome.status is ReplyStatus.DONE


FAILED = [
    result(
        is_error=True,
        subtype="error_max_turns",
        terminal_reason="max_turns",
        result=None,
        errors=["Reached maximum number of turns (2)"],
    ),
    result(
        is_error=True,
        subtype="error_max_budget_usd",
        terminal_reason="budget_exhausted",
        result=None,
        errors=["Reached maximum budget ($0.06)"],
    ),
    api_error(None, "API Error: refused", stop_reason="refusal"),
    api_error(413, "Request too large") | {"terminal_reason": "image_error"},
    api_error(400, "Prompt is too long") | {"terminal_reason": "prompt_too_long"},
    api_error(400, "API Error: 400 tools.0: bad schema"),
    result(
        is_error=True, subtype="error_during_execution", terminal_reason="aborted_tools", result=""
    ),
    result(is_error=None),
]


@pytest.mark.parametrize("end", FAILED, ids=range(len(FAILED)))
def test_an_error_of_the_turn_itself_is_a_failed_attempt(end: dict[str, object]) -> None:
    outcome = reply(INIT, end, exit_code=1)
    assert outcome.status is ReplyStatus.FAILED
    assert outcome.error
    assert outcome.remedy is None


def test_output_cut_by_the_token_limit_is_a_failed_attempt() -> None:
    outcome = reply(INIT, synthetic("max_output_tokens"), api_error(None, "cut"), exit_code=1)
    assert outcome.status is ReplyStatus.FAILED


@pytest.mark.parametrize(
    ("ended", "exit_code", "error"),
    [
        (Ended.EXITED, 0, None),
        (Ended.EXITED, 143, None),
        (Ended.SIGNALLED, -9, "ended by signal 9"),
    ],
)
def test_an_end_without_a_result_is_a_failed_attempt(
    ended: Ended, exit_code: int, error: str | None
) -> None:
    outcome = reply(INIT, ended=ended, exit_code=exit_code, error=error)
    assert outcome.status is ReplyStatus.FAILED
    assert "without a result" in (outcome.error or "")


def test_a_result_with_a_failing_exit_code_is_not_done() -> None:
    assert reply(INIT, result(), exit_code=1).status is ReplyStatus.FAILED


def test_a_cli_that_does_not_start_is_unavailable_with_its_error() -> None:
    outcome = reply(exit_code=1, stderr="error: unknown option '--include-partial-messages'\n")
    assert outcome.status is ReplyStatus.UNAVAILABLE
    assert "unknown option" in (outcome.error or "")
    assert outcome.remedy


def test_a_program_that_could_not_be_started_is_unavailable() -> None:
    outcome = reply(exit_code=None, ended=Ended.NOT_STARTED, error="claude: no such file")
    assert (outcome.status, outcome.error) == (ReplyStatus.UNAVAILABLE, "claude: no such file")


RETRY = {"type": "system", "subtype": "api_retry", "attempt": 1, "error_status": 529}


@pytest.mark.parametrize(
    ("events", "status"),
    [
        ([INIT], ReplyStatus.TIMED_OUT),
        ([INIT, RETRY], ReplyStatus.UNAVAILABLE),
        (
            [INIT, RETRY, {"type": "assistant", "message": {"id": "m", "content": []}}],
            ReplyStatus.TIMED_OUT,
        ),
    ],
    ids=["silent", "api-never-answered", "after-an-answer"],
)
@pytest.mark.parametrize("ended", [Ended.TIMED_OUT, Ended.IDLE])
def test_a_timeout_caused_by_the_api_is_unavailable(
    events: list[Mapping[str, object]], status: ReplyStatus, ended: Ended
) -> None:
    outcome = reply(*events, exit_code=None, ended=ended, error="nothing printed for 600 s")
    assert outcome.status is status
    assert "nothing printed for 600 s" in (outcome.error or "")


@pytest.mark.parametrize(
    ("session", "before", "cost"), [(Session.NEW, 0.0, 0.075), (Session.RESUME, 0.05, 0.025)]
)
def test_the_cost_covers_this_turn_only(session: Session, before: float, cost: float) -> None:
    outcome = reply(
        INIT, result(total_cost_usd=0.075), of=request(session=session, session_cost_usd=before)
    )
    assert outcome.cost_usd == pytest.approx(cost)


def test_an_interrupted_run_is_priced_by_its_requests() -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": 100_000}
    answer = {"id": "m", "model": "claude-sonnet-5-5", "content": [], "usage": usage}
    outcome = reply(INIT, {"type": "assistant", "message": answer}, ended=Ended.TIMED_OUT)
    assert outcome.cost_usd == pytest.approx(3.0)
    assert outcome.tokens == Tokens(input=1_000_000, output=100_000)


@pytest.mark.parametrize("fields", [{"total_cost_usd": -3.0}, {"total_cost_usd": None}])
def test_a_negative_cost_is_replaced_by_the_price_of_the_requests(
    fields: dict[str, object],
) -> None:
    usage = {"input_tokens": 1_000_000, "output_tokens": -100_000}
    answer = {"id": "m", "model": "claude-sonnet-5-5", "content": [], "usage": usage}
    got = reply(INIT, {"type": "assistant", "message": answer}, result(usage=usage, **fields))
    assert got.cost_usd == pytest.approx(2.0)
    assert got.tokens == Tokens(input=1_000_000)


def test_an_unknown_price_gives_no_cost() -> None:
    usage = {"input_tokens": 10}
    answer = {"id": "m", "model": "claude-unheard-of", "content": [], "usage": usage}
    init = {**INIT, "model": "claude-unheard-of"}
    outcome = reply(init, {"type": "assistant", "message": answer}, ended=Ended.TIMED_OUT)
    assert outcome.cost_usd is None


def test_giving_up_is_read_from_the_final_message() -> None:
    outcome = reply(
        INIT, result(result="I looked.\n\nATLAS-CANNOT-FIX: the test\nis wrong.\n\nBye")
    )
    assert (outcome.status, outcome.gave_up) == (ReplyStatus.DONE, "the test is wrong.")
