"""Classifies API errors: retry, or what the user must do. Pure.

Source of the codes: https://platform.claude.com/docs/en/api/errors.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from atlas_retry.agents import unavailable
from atlas_retry.agents.answers import one_line
from atlas_retry.agents.anthropic.wire import MAX_TOKENS, ModelTurn
from atlas_retry.agents.unavailable import AGAIN, Unavailable
from atlas_retry.model import AgentReply, ReplyStatus

if TYPE_CHECKING:
    import anthropic

MAX_RETRY_AFTER_S: Final = 60.0
"""Longest Retry-After that is waited for, in seconds."""

KEY: Final = "export ANTHROPIC_API_KEY=sk-ant-..., from https://console.anthropic.com/settings/keys"
_SMALLER: Final = "make the prompt smaller with context.max_chars"
_SPEND_LIMIT: Final = f"raise the spend limit of the workspace or organisation, {AGAIN}"

_REMEDIES: Final[Mapping[int, str]] = {
    **unavailable.BY_STATUS,
    400: f"check agent.models and agent.effort, see the error; {AGAIN}",
    401: KEY,
    403: "check the permissions of the key: https://console.anthropic.com/settings/keys",
    413: _SMALLER,
    422: f"see the error of the API, {AGAIN}",
}
_BY_TEXT: Final = (
    ("credit balance", unavailable.BILLING),
    ("usage limits", _SPEND_LIMIT),
    ("spend limit", _SPEND_LIMIT),
    ("prompt is too long", _SMALLER),
    ("context limit", _SMALLER),
)
"""Remedies by a lower-case part of the text of a 400."""

_TRANSIENT: Final = frozenset({408, 409, 425, 429, 499})
_OK, _REDIRECT, _CLIENT, _SERVER, _OVERLOADED = 200, 300, 400, 500, 529
_NEVER: Final = frozenset({"enforced_spend_limit_reached"})
"""Codes of a 429 that waiting does not fix."""


class ApiFault(Unavailable, frozen=True, kw_only=True):
    """Why there is no answer."""

    is_transient: bool = False
    retry_after_s: float | None = None

    @property
    def is_long(self) -> bool:
        """Whether the API asks for a longer wait than a run can make."""
        return (self.retry_after_s or 0.0) > MAX_RETRY_AFTER_S

    def given_up(self, tries: int) -> Unavailable:
        """Why there is no answer after so many tries."""
        if self.is_long:
            wait_s = self.retry_after_s or 0.0
            error = f"the API asks to wait {wait_s:.0f} s: {self.error}"
            remedy = f"run the same command again in {wait_s / 60:.0f} minutes"
            return Unavailable(error=error, remedy=remedy)
        times = f"{tries} tries" if tries > 1 else "one try"
        error = f"the API did not answer in {times}: {self.error}"
        return Unavailable(error=error, remedy=self.remedy)


class TurnEndedError(Exception):
    """The turn ended without a usable answer; the reply says why."""

    def __init__(self, reply: AgentReply) -> None:
        super().__init__(reply.error)
        self.reply = reply


def stopped(why: str, status: ReplyStatus = ReplyStatus.FAILED) -> TurnEndedError:
    """The model gave no answer; this counts as an attempt."""
    return TurnEndedError(AgentReply(status=status, error=why))


def given_up(reason: str) -> TurnEndedError:
    """The model says that it cannot be done."""
    return TurnEndedError(AgentReply(status=ReplyStatus.DONE, summary=reason, gave_up=reason))


def of_status(refusal: "anthropic.APIStatusError") -> ApiFault:
    """The fault of an HTTP error, or of an error event in a stream."""
    status, kind = refusal.status_code, f"{refusal.type or ''}"
    if _OK <= status < _REDIRECT:  # an error event in a stream
        status = _OVERLOADED if kind == "overloaded_error" else _SERVER
    message = f"{refusal.api_message or refusal.message}"
    headers = refusal.response.headers
    is_final = refusal.error_code in _NEVER
    # the server can forbid a retry, as in the official SDKs
    may_repeat = not is_final and headers.get("x-should-retry") != "false"
    if _REDIRECT <= status < _CLIENT:
        remedy = "set ANTHROPIC_BASE_URL to the API's address"
    elif status == _CLIENT:
        named = (remedy for words, remedy in _BY_TEXT if words in message.casefold())
        remedy = next(named, _REMEDIES[_CLIENT])
    else:
        usual = unavailable.OVERLOADED if status >= _SERVER else _REMEDIES[_CLIENT]
        remedy = _REMEDIES.get(status, usual)
    retry_after_s = None
    with suppress(ValueError):  # a date (RFC 9110 §10.2.3) is not read
        retry_after_s = max(float(headers.get("retry-after", "")), 0.0)
    return ApiFault(
        error=one_line(f"{status} {kind} {message}", limit=600),
        remedy=_SPEND_LIMIT if is_final else remedy,
        is_transient=may_repeat and (status in _TRANSIENT or status >= _SERVER),
        retry_after_s=retry_after_s,
    )


def broken_connection(why: str) -> ApiFault:
    """The fault of a missing or incomplete answer."""
    return ApiFault(
        error=one_line(why, limit=300), remedy=unavailable.NO_CONNECTION, is_transient=True
    )


_STOPS: Final[Mapping[str | None, tuple[str, str]]] = {
    "refusal": (
        "the model refuses to answer",
        "check the prompt (atlas prompt), or choose another model: --model",
    ),
    "max_tokens": (
        f"the answer did not fit in {MAX_TOKENS} tokens",
        "lower agent.effort, or --agent claude-code",
    ),
    "model_context_window_exceeded": (
        "the conversation exceeded the model's context window",
        _SMALLER,
    ),
}
_EMPTY: Final = ("the model's answer is empty", f"choose another model: --model, {AGAIN}")


def of_turn(turn: ModelTurn) -> ApiFault | None:
    """Why a complete message is not an answer; None if it may be one."""
    is_empty = not turn.calls and not turn.text
    error, remedy = _STOPS.get(turn.stop_reason, _EMPTY if is_empty else ("", ""))
    why = f": {one_line(turn.refusal)}" if turn.refusal else ""
    return ApiFault(error=f"{error}{why}", remedy=remedy) if error else None
