"""Input and output of agents' hooks, and the records of their sessions. Values only.

Source: code.claude.com/docs/en/hooks, and observations of CLI 2.1: docs/hook.md.
"""

from collections.abc import Mapping
from typing import Annotated, TypeVar

import msgspec
from msgspec.structs import replace

from atlas_retry.model import GateResult
from atlas_retry.settings import Settings

BLOCK_CAP = 8
"""Consecutive blocks that Claude Code accepts; it overrides the next one and reports success."""
_NOTIFICATION = "<task-notification>"
T = TypeVar("T")
_Folder = Annotated[str, msgspec.Meta(pattern=r"^[^\x00]*$")]
"""A path as the system takes one."""


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that the agent scheduled for itself."""

    prompt: str = ""


class HookTurn(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's input to a hook at the start of a session, at a prompt, and at a stop."""

    session_id: str
    cwd: _Folder = "."
    source: str = ""
    """How the session started: startup, resume, clear, fork or compact."""
    prompt: str = ""
    prompt_id: str | None = None
    """None: the agent gives none, and the start of a turn makes one."""
    turn_id: str | None = None
    """Codex CLI's name for `prompt_id`."""
    transcript_path: str | None = None
    tool_input: object = None
    """What a tool is about to be called with."""
    is_cut_off: bool = False
    """Whether the user or an error ended the turn; no answer is read then."""
    stop_hook_active: bool = False
    """Whether the turn continues because a Stop hook blocked its end."""
    session_crons: tuple[Cron, ...] = ()
    background_tasks: tuple[object, ...] = ()
    """Tasks that the agent started and that still run."""

    @property
    def command(self) -> str:
        """The line that the agent's shell is about to run; empty if it is none."""
        given = self.tool_input if isinstance(self.tool_input, Mapping) else {}
        return str(given.get("command", ""))


class HookAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """A hook's answer to the agent. Empty: the turn may end."""

    decision: str | None = None
    reason: str | None = None
    """For the model, with `decision: block`."""
    continues: bool = msgspec.field(default=True, name="continue")
    stop_reason: str | None = None
    """For the user, with `continue: false`."""
    system_message: str | None = None
    """For the user."""


class _CursorTurn(msgspec.Struct, frozen=True, kw_only=True):
    """Cursor's input to a hook."""

    conversation_id: str
    workspace_roots: tuple[_Folder, ...] = (".",)
    prompt: str = ""
    status: str = "completed"
    """How the turn ended: completed, aborted or error."""
    loop_count: int = 0
    """Follow-ups that the stop hook has already caused."""


def read_turn(content: bytes) -> HookTurn:
    """Read the hook input of an agent that follows Claude Code. Raises msgspec.MsgspecError."""
    turn = _decoded(content, HookTurn)
    return replace(turn, prompt_id=turn.prompt_id or turn.turn_id)


def of_cursor(content: bytes) -> HookTurn:
    """Read Cursor's hook input. Raises msgspec.MsgspecError."""
    cursor = _decoded(content, _CursorTurn)
    return HookTurn(
        session_id=cursor.conversation_id,
        cwd=cursor.workspace_roots[0] if cursor.workspace_roots else ".",
        prompt=cursor.prompt,
        stop_hook_active=cursor.loop_count > 0,
        is_cut_off=cursor.status != "completed",
    )


def _decoded(content: bytes, kind: type[T]) -> T:
    try:
        content.decode()
    except UnicodeDecodeError as error:
        raise msgspec.DecodeError(f"it is not UTF-8 (byte {error.start})") from error
    return msgspec.json.decode(content, type=kind)


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """The state when a turn began."""

    id: str
    """Like a run's id, with the suffix `-hook`."""
    root: str
    taken_at: str
    prompt_id: str | None = None
    """None at the start of the session."""
    settings: Settings | None = None
    snapshot: str | None = None
    """None without git."""
    problem: str = ""
    """Why `settings` is None."""
    failed: tuple[GateResult, ...] = ()
    """Failures that were known then; no gate was run for it."""
    left: str | None = None
    """Snapshot after the turn and its gates; None while it runs."""
    ended_at: str | None = None
    written: tuple[str, ...] = ()
    """Files that only the gates have written since the turn began."""


class HookSession(msgspec.Struct, frozen=True, kw_only=True):
    """A session of an agent."""

    root: str
    transcript: str = ""
    """Absolute path; empty if the agent gives none."""


class BlockTally(msgspec.Struct, frozen=True, kw_only=True):
    """Blocks since the user's last prompt, or since the gates last passed."""

    prompt_id: str | None = None
    sent: int = 0
    by_gate: Mapping[str, int] = {}
    failing: tuple[GateResult, ...] = ()
    """Failures at the end of the last turn, which the agent may fix."""
    scheduled: tuple[str, ...] = ()
    """Prompts that the agent scheduled for itself."""
    reason: str = ""
    """Why the last turn was sent back: some agents get it as a prompt of its own."""
    line: str = ""
    """First line of the last answer."""
    gates: str = ""
    """The outcome that the line says, as in `TurnResult`."""
    green: str = ""
    """Snapshot after the last turn, if its gates were green."""
    refused_tree: str | None = None
    """Tree id of the files after the last turn, if some of them were refused."""


def is_from_a_person(turn: HookTurn, tally: BlockTally) -> bool:
    """Whether a person typed this prompt; tasks, timers and the hook's own answers make some too.

    Qwen Code makes an empty one after each tool.
    """
    said = turn.prompt.strip()
    others = {"", *(text.strip() for text in (tally.reason, *tally.scheduled))}
    return not said.startswith(_NOTIFICATION) and said not in others
