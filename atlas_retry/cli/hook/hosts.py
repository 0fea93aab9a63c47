"""The agents with hooks, a row each: where their hooks stand, and what these are answered.

Codex CLI: developers.openai.com/codex/hooks. Gemini CLI: geminicli.com/docs/hooks. Copilot CLI:
docs.github.com, "Hooks reference". Cursor: cursor.com/docs/agent/hooks, which was not run.
"""

from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.cli.hook.turns import BLOCK_CAP, HookAnswer, HookTurn, of_cursor, read_turn

START, PUSH, STOP = "hook start", "hook push", "hook stop"
_TURNS = {"SessionStart": START, "UserPromptSubmit": START, "PreToolUse": PUSH, "Stop": STOP}
_QUIET = {START: "|| true", PUSH: "|| true"}


def _as_it_is(answer: HookAnswer) -> object:
    return answer


def _denied(answer: HookAnswer) -> object:
    """Before a tool, as Claude Code has it: whatever is not denied is left to its permissions."""
    if answer.decision is None:
        return answer
    denial = {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": answer.reason,
    }
    told = {"systemMessage": answer.system_message} if answer.system_message else {}
    return {"hookSpecificOutput": denial, **told}


def _of_qwen(answer: HookAnswer) -> object:
    """Qwen Code takes `continue: false` at a stop for the wish to go on."""
    return replace(answer, continues=True, stop_reason=None)


def _of_cursor(answer: HookAnswer) -> object:
    return {"followup_message": answer.reason} if answer.decision else {}


class Host(Struct, frozen=True, kw_only=True):
    """An agent with hooks."""

    name: str
    file: str
    """Relative to the root of the project."""
    events: Mapping[str, str] = field(default_factory=lambda: _TURNS)
    """Event names and the command of atlas that each calls."""
    reference: str
    shell_tool: str = "Bash"
    """Its name for the tool that runs commands, for which alone `hook push` is called."""
    is_flat: bool = False
    """Whether an event lists hooks instead of groups of hooks."""
    top: Mapping[str, object] = {}
    """Other keys of the file."""
    per_s: int = 1
    """What a second is in its time limits."""
    after: Mapping[str, str] = field(default_factory=lambda: _QUIET)
    """What follows the call of a command in its line.

    By default it hides exit code 2, by which an atlas without the command would swallow a prompt.
    """
    of_entry: Mapping[str, Mapping[str, object]] = {}
    """Extra keys of the entry that calls this command of atlas."""
    read: Callable[[bytes], HookTurn] = read_turn
    """What it tells a hook."""
    at_stop: Callable[[HookAnswer], object] = _as_it_is
    """What it is answered at the end of a turn."""
    at_push: Callable[[HookAnswer], object] = _denied
    """The same before a command of its shell."""

    @property
    def tells_pushes(self) -> bool:
        """Whether it asks before a command of its shell."""
        return PUSH in self.events.values()


_ROWS = (
    Host(
        name="claude",
        file=".claude/settings.json",
        reference="code.claude.com/docs/en/hooks",
        # so that no other command waits for atlas to start
        of_entry={PUSH: {"if": "Bash(git *)"}},
    ),
    Host(name="codex", file=".codex/hooks.json", reference="developers.openai.com/codex/hooks"),
    Host(
        name="gemini",
        file=".gemini/settings.json",
        events={
            "SessionStart": START,
            "BeforeAgent": START,
            "BeforeTool": PUSH,
            "AfterAgent": STOP,
        },
        reference="geminicli.com/docs/hooks/reference",
        shell_tool="run_shell_command",
        per_s=1000,
        at_push=_as_it_is,
    ),
    Host(
        name="copilot",
        file=".github/hooks/atlas.json",
        reference="docs.github.com/en/copilot/reference/hooks-reference",
        is_flat=True,
        top={"version": 1},
    ),
    Host(
        name="qwen",
        file=".qwen/settings.json",
        reference="qwenlm.github.io/qwen-code-docs/en/users/features/hooks",
        shell_tool="run_shell_command",
        per_s=1000,
        at_stop=_of_qwen,
    ),
    Host(
        name="cursor",
        file=".cursor/hooks.json",
        events={"beforeSubmitPrompt": START, "stop": STOP},
        reference="cursor.com/docs/agent/hooks",
        is_flat=True,
        top={"version": 1},
        after={START: """; echo '{"continue": true}'"""},
        # Cursor stops after this many; atlas stops earlier.
        of_entry={STOP: {"loop_limit": BLOCK_CAP}},
        read=of_cursor,
        at_stop=_of_cursor,
    ),
)
HOSTS = {row.name: row for row in _ROWS}
