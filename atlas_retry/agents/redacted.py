"""Removes secrets from an agent's texts, which are logged, kept and shown."""

from msgspec.structs import replace

from atlas_retry.events import AgentActivity, AnswerRetried, Emit, Event, TransportRetried
from atlas_retry.model import Agent, AgentReply, AgentRequest
from atlas_retry.text.redaction import redact


def redacted_agent(agent: Agent, hidden: frozenset[str]) -> Agent:
    """The agent with replies without recognisable secrets and `hidden` values.

    `structured` is unchanged, because it is parsed first.
    """

    def clean(text: str) -> str:
        return redact(text, hidden)

    def ask(request: AgentRequest) -> AgentReply:
        reply = agent(request)
        return replace(
            reply,
            summary=clean(reply.summary),
            error=reply.error and clean(reply.error),
            gave_up=reply.gave_up and clean(reply.gave_up),
            denials=tuple(map(clean, reply.denials)),
        )

    return ask


def redacted_emit(emit: Emit, hidden: frozenset[str]) -> Emit:
    """The emitter with redacted events of the agent."""

    def redacted(event: Event) -> None:
        if isinstance(event, AgentActivity):
            event = replace(event, text=redact(event.text, hidden))
        elif isinstance(event, TransportRetried | AnswerRetried):
            event = replace(event, reason=redact(event.reason, hidden))
        emit(event)

    return redacted
