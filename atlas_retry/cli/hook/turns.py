"""What agents send their hooks and are answered, and what is kept of their sessions. Values.

Source: code.claude.com/docs/en/hooks, and what the CLI 2.1 was seen to do: docs/hook.md.
"""

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from atlas_retry.model import GateResult
from atlas_retry.settings import Settings

BLOCK_CAP = 8
"""So many blocks in a row Claude Code heeds; the next one it overrides and calls it success."""
TURN_SUFFIX = "-hook"
"""Behind the id of a turn: what tells it from a run."""
_NOTIFICATION = "<task-notification>"


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that the agent has scheduled for itself."""

    prompt: str = ""


class HookTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent sends its hooks at the start of a session, at a prompt, and at a stop."""

    session_id: str
    cwd: str = "."
    hook_event_name: str = ""
    source: str = ""
    """Of a session's start: startup, resume, clear, fork or compact."""
    prompt: str = ""
    prompt_id: str | None = None
    turn_id: str | None = None
    """The same where Codex CLI says it."""
    is_cursors: bool = False
    is_cut_off: bool = False
    """By the user or an error: no answer is read."""
    stop_hook_active: bool = False
    """Whether the turn goes on because a Stop hook blocked its end."""
    session_crons: tuple[Cron, ...] = ()
    background_tasks: tuple[object, ...] = ()
    """What still runs of what the agent started."""


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What an agent is answered. Nothing at all: the turn may end."""

    decision: str | None = None
    reason: str | None = None
    """For the model, with `decision: block`."""
    goes_on: bool = msgspec.field(default=True, name="continue")
    stop_reason: str | None = None
    """For the user, with `continue: false`."""
    system_message: str | None = None
    """For the user."""


class _CursorTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What Cursor sends its hooks."""

    conversation_id: str
    generation_id: str | None = None
    """New with every message, the follow-ups of a hook included."""
    workspace_roots: tuple[str, ...] = (".",)
    hook_event_name: str = ""
    prompt: str = ""
    status: str = "completed"
    """Of a stop: completed, aborted or error."""
    loop_count: int = 0
    """Follow-ups that the stop hook has caused already."""


def read_turn(content: bytes) -> HookTurn:
    """What any of the agents sends. Raises msgspec.MsgspecError."""
    try:
        cursor = msgspec.json.decode(content, type=_CursorTurn)
    except msgspec.ValidationError:
        turn = msgspec.json.decode(content, type=HookTurn)
        return replace(turn, prompt_id=turn.prompt_id or turn.turn_id)
    return HookTurn(
        session_id=cursor.conversation_id,
        cwd=cursor.workspace_roots[0] if cursor.workspace_roots else ".",
        hook_event_name=cursor.hook_event_name,
        prompt=cursor.prompt,
        prompt_id=cursor.generation_id,
        stop_hook_active=cursor.loop_count > 0,
        is_cursors=True,
        is_cut_off=cursor.status != "completed",
    )


def document(answer: HookAnswer, turn: HookTurn) -> object:
    """The answer as the agent of this turn reads it."""
    if not turn.is_cursors:
        return answer
    return {"followup_message": answer.reason} if answer.decision == "block" else {}


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """What was there when a turn began."""

    id: str
    """As of a run, with `-hook` behind it."""
    root: str
    taken_at: str
    prompt_id: str | None = None
    """None: of the session."""
    settings: Settings | None = None
    snapshot: str | None = None
    """None where there is no git."""
    problem: str = ""
    """Why there are no settings."""
    left: str | None = None
    """Snapshot of what the turn left, with what the gates wrote; None: it has not ended."""
    ended_at: str | None = None
    written: tuple[str, ...] = ()
    """Files that the gates alone have written since."""


class BlockTally(msgspec.Struct, frozen=True, kw_only=True):
    """What has been sent back since the user's last prompt, or since the gates last passed."""

    prompt_id: str | None = None
    sent: int = 0
    by_gate: Mapping[str, int] = {}
    failing: tuple[GateResult, ...] = ()
    """What failed when a turn last ended: the agent may repair what these are about."""
    scheduled: tuple[str, ...] = ()
    """Prompts that the agent has scheduled for itself."""
    refused_tree: str | None = None
    """The files that the last turn left, where some of it was refused."""


def is_from_a_person(turn: HookTurn, tally: BlockTally) -> bool:
    """Whether a person typed this prompt: a finished task or a timer makes prompts as well."""
    return not turn.prompt.startswith(_NOTIFICATION) and turn.prompt not in tally.scheduled
