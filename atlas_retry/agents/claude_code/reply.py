"""Makes an AgentReply from the output and exit of Claude Code. Pure."""

from typing import Final

from msgspec.structs import replace

from atlas_retry.agents import unavailable
from atlas_retry.agents.answers import gave_up, last_lines, one_line
from atlas_retry.agents.claude_code.binary import LOG_IN
from atlas_retry.agents.claude_code.stream import Line, Transcript
from atlas_retry.model import AgentReply, AgentRequest, ReplyStatus, Session, total_tokens
from atlas_retry.patterns import regex
from atlas_retry.process import Completed, Ended

SESSION_GONE: Final = "No conversation found with session ID"
MAX_SUMMARY_CHARS: Final = 4000

_LOG_IN: Final = f"{LOG_IN}; if you are logged in, check the clock"
_REMEDY_BY_STATUS: Final = {
    **unavailable.BY_STATUS,
    401: _LOG_IN,
    403: "check the account and its permissions: claude auth status",
}
_REMEDY_BY_FAULT: Final = {
    "authentication_failed": _LOG_IN,
    "billing_error": unavailable.BILLING,
    "model_not_found": unavailable.MODEL,
    "rate_limit": unavailable.LIMIT,
}
_SERVER_ERROR: Final = 500
_OF_THE_TURN: Final = frozenset({"max_output_tokens", "invalid_request"})
"""API errors that may not recur in another attempt: they count as an attempt."""

_REMEDY_BY_TEXT: Final = (
    (regex(r"Not logged in|Invalid API key"), _LOG_IN),
    (regex(r"Credit balance"), unavailable.BILLING),
    (regex(r".{0,20}hit your .{0,20}limit"), unavailable.LIMIT),
    (regex(r"API Error"), None),
)
"""Starts of the CLI's error texts, used if it gives neither status nor fault."""
_STATUS_IN_TEXT: Final = regex(r"API Error: (\d{3})\b")
_STOPPED: Final = {
    Ended.NOT_STARTED: (
        ReplyStatus.UNAVAILABLE,
        "the CLI could not be started",
        "see agent.path",
    ),
    Ended.TIMED_OUT: (ReplyStatus.TIMED_OUT, "timed out", None),
    Ended.IDLE: (ReplyStatus.TIMED_OUT, "timed out", None),
    Ended.OUTPUT_LIMIT: (ReplyStatus.FAILED, "too much output", None),
}
"""Status, usual error and remedy of a CLI that did not end by itself."""


def reply_of(request: AgentRequest, transcript: Transcript, done: Completed) -> AgentReply:
    """The reply to `request`; cost and tokens are those of this turn only."""
    reply = _without_result(transcript, done)
    if reply is None and transcript.result:
        reply = _with_result(transcript, transcript.result, done)
    reply = reply or AgentReply(status=ReplyStatus.DONE)
    text = (transcript.result and transcript.result.result) or transcript.text
    is_api_error = reply.status is ReplyStatus.UNAVAILABLE
    answer = bytes(transcript.result.structured_output) if transcript.result else b""
    structured = answer.decode("utf-8", "replace") or None
    return replace(
        _with_figures(reply, request, transcript),
        summary="" if is_api_error else text.strip()[:MAX_SUMMARY_CHARS],
        gave_up=gave_up(text),
        structured=structured,
        turns=transcript.result.num_turns if transcript.result else None,
        denials=transcript.denials,
        touched_all=transcript.result is not None and not transcript.ran_more,
    )


def login_refused(request: AgentRequest, transcript: Transcript) -> AgentReply:
    """The reply if the CLI was stopped because the API kept refusing the login."""
    error = f"the API refused the login {transcript.refused_logins} times (401 or 403)"
    reply = AgentReply(status=ReplyStatus.UNAVAILABLE, error=error, remedy=_LOG_IN)
    return _with_figures(reply, request, transcript)


def _with_figures(reply: AgentReply, request: AgentRequest, transcript: Transcript) -> AgentReply:
    """The reply with the turn's usage and cost.

    `total_cost_usd` is cumulative over a session. If it is missing, as after an interruption, or
    negative, the usage is priced by the table of models, so that the budget also holds then.
    """
    result = transcript.result
    total_usd = result.total_cost_usd if result else None
    cost_usd = transcript.cost_usd
    if total_usd is not None and total_usd >= 0:
        before_usd = request.session_cost_usd if request.session is Session.RESUME else 0.0
        cost_usd = max(0.0, total_usd - before_usd)
    usages = [result.usage] if result and result.usage else transcript.usage.values()
    return replace(
        reply,
        session_id=transcript.session_id,
        model=transcript.model,
        cost_usd=cost_usd,
        tokens=total_tokens(usage.tokens for usage in usages),
        transport_retries=transcript.retries,
        touched=tuple(transcript.touched),
    )


def _without_result(transcript: Transcript, done: Completed) -> AgentReply | None:
    """The reply if the CLI gave no result, or was stopped; None if it gave one."""
    if done.ended in _STOPPED:
        status, usual, remedy = _STOPPED[done.ended]
        error = done.error or usual
        if status is ReplyStatus.TIMED_OUT and transcript.retries and not transcript.answered:
            status, remedy = ReplyStatus.UNAVAILABLE, unavailable.OVERLOADED
            error = f"the API did not answer in {transcript.retries + 1} tries: {error}"
        return AgentReply(status=status, error=error, remedy=remedy)
    if transcript.result:
        return None
    printed = last_lines(done.stderr.text) or last_lines(done.stdout.text)
    if not transcript.started and done.ended is Ended.EXITED:
        return AgentReply(
            status=ReplyStatus.UNAVAILABLE,
            error=f"Claude Code did not start (exit {done.exit_code}): {printed or 'no output'}",
            remedy="check agent.extra_args and `claude --version`; the newest version may help",
        )
    how = done.error or f"exit {done.exit_code}"
    return AgentReply(
        status=ReplyStatus.FAILED,
        error=f"bad output: Claude Code ended without a result ({how}) {printed}".rstrip(),
    )


def _with_result(transcript: Transcript, result: Line, done: Completed) -> AgentReply | None:
    if result.is_error is False:
        # a success may be an API error: exit 0, an error text, no output tokens
        wrote = result.usage and result.usage.output_tokens
        if not wrote and any(start.match(result.text) for start, _ in _REMEDY_BY_TEXT):
            return _api_fault(transcript, result)
        if done.exit_code == 0:
            return None
        return AgentReply(status=ReplyStatus.FAILED, error=f"Claude Code exited {done.exit_code}")
    if result.is_error and result.subtype == "success" and _is_unavailable(transcript, result):
        return _api_fault(transcript, result)
    why = one_line(result.text or last_lines(done.stderr.text), limit=600)
    reason = result.terminal_reason or result.subtype or "no reason given"
    return AgentReply(status=ReplyStatus.FAILED, error=why or f"Claude Code stopped: {reason}")


def _is_unavailable(transcript: Transcript, result: Line) -> bool:
    """Whether the API or the account failed, not the turn."""
    if transcript.fault in _REMEDY_BY_FAULT:
        return True
    if result.stop_reason == "refusal" or transcript.fault in _OF_THE_TURN:
        return False
    if result.terminal_reason not in (None, "api_error", "completed"):
        return False
    status = result.api_error_status
    return status is None or status in _REMEDY_BY_STATUS or status >= _SERVER_ERROR


def _api_fault(transcript: Transcript, result: Line) -> AgentReply:
    in_text = _STATUS_IN_TEXT.search(result.text)
    status = result.api_error_status or (int(in_text[1]) if in_text else None)
    starts = (remedy for start, remedy in _REMEDY_BY_TEXT if start.match(result.text))
    by_text = next(starts, None)
    by_code = _REMEDY_BY_STATUS.get(status or 0) or _REMEDY_BY_FAULT.get(transcript.fault or "")
    return AgentReply(
        status=ReplyStatus.UNAVAILABLE,
        error=one_line(result.text, limit=600) or "API error",
        remedy=by_text
        or by_code
        or (unavailable.OVERLOADED if status else unavailable.NO_CONNECTION),
    )
