"""The agents that have hooks: where each is told of them, what it says, what it hears.

Claude Code and Codex CLI were observed (docs/hook.md); of Codex see also
developers.openai.com/codex/hooks. Cursor: cursor.com/docs/agent/hooks, not run.
"""

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.cli.hook.turn import BLOCK_CAP, HookAnswer
from atlas_retry.cli.hook.values import HookTurn

START, STOP = "hook start", "hook stop"
_TURNS = {"SessionStart": START, "UserPromptSubmit": START, "Stop": STOP}
_GO_ON = """echo '{"continue": true}'"""


class Host(Struct, frozen=True, kw_only=True):
    """An agent that has hooks."""

    name: str
    file: Path
    """Relative to the root of the project."""
    events: Mapping[str, str]
    """Which of our commands each calls."""
    reference: str
    is_flat: bool = False
    """An event lists its hooks, and not groups of them."""
    top: Mapping[str, object] = {}
    """What the file says besides."""
    after_start: str = "true"
    """Run in any case: what keeps a prompt from being swallowed."""
    of_stop: Mapping[str, object] = {}
    """More keys of the entry that calls `atlas hook stop`."""


HOSTS = {
    "claude": Host(
        name="Claude Code",
        file=Path(".claude") / "settings.json",
        events=_TURNS,
        reference="code.claude.com/docs/en/hooks",
    ),
    "codex": Host(
        name="Codex CLI",
        file=Path(".codex") / "hooks.json",
        events=_TURNS,
        reference="developers.openai.com/codex/hooks",
    ),
    "cursor": Host(
        name="Cursor",
        file=Path(".cursor") / "hooks.json",
        events={"beforeSubmitPrompt": START, "stop": STOP},
        reference="cursor.com/docs/agent/hooks",
        is_flat=True,
        top={"version": 1},
        after_start=_GO_ON,
        # Cursor itself stops after so many; atlas stops before.
        of_stop={"loop_limit": BLOCK_CAP},
    ),
}
CLAUDE = HOSTS["claude"]


class _CursorTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What Cursor tells its hooks."""

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
