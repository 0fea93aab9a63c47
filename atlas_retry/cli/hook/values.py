"""What Claude Code tells its hooks, and what is kept of its sessions. Values, no behaviour.

Source: code.claude.com/docs/en/hooks, and what the CLI 2.1 was seen to do: docs/hook.md.
"""

from collections.abc import Mapping

import msgspec

from atlas_retry.model import GateResult
from atlas_retry.settings import Settings

TURN_SUFFIX = "-hook"
"""Behind the id of a turn: what tells it from a run."""
_NOTIFICATION = "<task-notification>"


class Cron(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt that the agent has scheduled for itself."""

    prompt: str = ""


class HookTurn(msgspec.Struct, frozen=True, kw_only=True):
    """What Claude Code tells its hooks at the start of a session, at a prompt, and at a stop."""

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
    """By the user or an error: nobody waits for an answer."""
    stop_hook_active: bool = False
    """Whether the turn goes on because a Stop hook blocked its end."""
    session_crons: tuple[Cron, ...] = ()
    background_tasks: tuple[object, ...] = ()
    """What still runs of what the agent started."""


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
    """Whether somebody typed this prompt: a finished task or a timer makes prompts as well."""
    return not turn.prompt.startswith(_NOTIFICATION) and turn.prompt not in tally.scheduled
