"""What an agent says is kept without the secrets in it."""

from pathlib import Path

import pytest
from msgspec import Struct

from atlas_retry.agents.redacted import redacted_agent, redacted_emit
from atlas_retry.events import AgentActivity, AnswerRetried, Event, TransportRetried
from atlas_retry.model import AgentReply, AgentRequest, ReplyStatus
from tests.projects import WORSE, Project

VALUE = "correct-horse-battery-staple"
HIDDEN = frozenset({VALUE})


class Talker(Struct, frozen=True):
    reply: AgentReply

    def __call__(self, _: AgentRequest) -> AgentReply:
        return self.reply


def test_every_text_of_a_reply_is_redacted() -> None:
    text = f"used {VALUE}"
    reply = AgentReply(
        status=ReplyStatus.FAILED, summary=text, error=text, gave_up=text, denials=(text,)
    )
    request = AgentRequest(prompt="?", workspace="/w", scratch="/s")
    assert VALUE not in str(redacted_agent(Talker(reply), HIDDEN)(request))


def test_a_reply_without_secrets_is_unchanged() -> None:
    reply = AgentReply(status=ReplyStatus.DONE, summary="plus, not minus", structured="{}")
    request = AgentRequest(prompt="?", workspace="/w", scratch="/s")
    assert redacted_agent(Talker(reply), HIDDEN)(request) == reply


@pytest.mark.parametrize(
    "event",
    [
        AgentActivity(text=f"Bash echo {VALUE}"),
        TransportRetried(number=1, reason=f"401 for {VALUE}"),
        AnswerRetried(number=1, reason=f"no syntax: {VALUE}"),
    ],
)
def test_activity_of_an_agent_is_redacted(event: Event) -> None:
    events: list[Event] = []
    redacted_emit(events.append, HIDDEN)(event)
    assert VALUE not in events[0].message
    assert events[0].time == event.time


def test_the_folder_of_a_run_never_holds_a_secret_the_agent_repeated(project: Project) -> None:
    project.environ["DEPLOY_TOKEN"] = VALUE
    project.attempt(1, {"calc.py": WORSE}, summary=f"tried {VALUE}", error=f"no {VALUE}")
    outcome = project.retry(retry__max_ai_retry_attempts=1)
    folder = Path(project.environ["ATLAS_HOME"]) / "runs" / outcome.run_id
    holding = [
        file.name
        for file in folder.rglob("*")
        if file.is_file() and VALUE.encode() in file.read_bytes()
    ]
    assert holding == []
    assert VALUE not in str(outcome)
