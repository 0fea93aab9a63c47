"""Any command as an agent that reads the prompt and edits the workspace."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from atlas_retry import process
from atlas_retry.agents.answers import gave_up, last_lines
from atlas_retry.agents.command_output import read
from atlas_retry.agents.unavailable import Unavailable, agent_environment
from atlas_retry.events import AgentActivity, Emit
from atlas_retry.model import Agent, AgentReply, AgentRequest, ReplyStatus
from atlas_retry.patterns import regex
from atlas_retry.process import Completed, Ended
from atlas_retry.reading import read_text
from atlas_retry.settings import AgentSettings
from atlas_retry.workspace import gittrace

_PLACEHOLDER: Final = regex(r"\{(prompt_file|workspace|scratch)\}")
_CANNOT_RUN: Final = frozenset({126, 127})
"""POSIX shell: found but not executable, not found."""
MAX_SUMMARY_CHARS: Final = 4000
_CORRECT: Final = "correct agent.command; the file and line that set it: atlas config show"

_NO_COMMAND: Final = Unavailable(
    error="agent.command is not set",
    remedy='agent: {backend: command, command: "my-agent --edit < {prompt_file}"}',
)


def command(settings: AgentSettings, emit: Emit, environ: Mapping[str, str]) -> Agent:
    """An agent that runs `agent.command` with `/bin/sh -c` in the workspace.

    `{prompt_file}`, `{workspace}` and `{scratch}`, the folder of the attempt, are replaced by
    quoted absolute paths; the prompt is also on stdin. Exit code 0 is DONE, 126 and 127 are
    UNAVAILABLE, all others FAILED.
    """
    return calling(settings.command, None, emit, environ, _CORRECT)


def calling(
    line: str | None,
    answer_file: str | None,
    emit: Emit,
    environ: Mapping[str, str],
    remedy: str,
) -> Agent:
    """An agent that runs this line, with its answer in a file of the attempt's folder.

    Without the file, its output is the answer. `remedy` is for a line that cannot start.
    """
    env = agent_environment(environ)

    def ask(request: AgentRequest) -> AgentReply:
        if not line:
            return _NO_COMMAND.reply
        emit(AgentActivity(text=line))
        scratch, prompt = Path(request.scratch), request.prompt.encode("utf-8", "replace")
        (scratch / "prompt.md").write_bytes(prompt)
        values = {
            "prompt_file": str(scratch / "prompt.md"),
            "workspace": request.workspace,
            "scratch": request.scratch,
        }
        shell_line = _PLACEHOLDER.sub(lambda name: shlex.quote(values[name[1]]), line)
        command = process.Command(
            argv=("/bin/sh", "-c", shell_line),
            cwd=Path(request.workspace),
            env={**env, **gittrace.variables(scratch)},
            stdin=prompt,
            timeout_s=request.timeout_s,
            idle_timeout_s=request.idle_timeout_s,
            log_dir=scratch / "agent",
        )
        done = process.run(command)
        answer = scratch / (answer_file or "")
        output = read(read_text(answer) if answer.is_file() else done.stdout.text)
        status = _status(done)
        printed = last_lines(done.stderr.text) or last_lines(done.stdout.text)
        error = " ".join(filter(None, (done.error or f"exit {done.exit_code}:", printed)))
        if status is ReplyStatus.UNAVAILABLE:
            error = f"the agent's command could not start: {error}"
        return AgentReply(
            status=status,
            summary=output.words.strip()[-MAX_SUMMARY_CHARS:],
            error=None if status is ReplyStatus.DONE else error,
            remedy=remedy if status is ReplyStatus.UNAVAILABLE else None,
            gave_up=gave_up(output.words),
            session_id=output.session_id,
            cost_usd=output.cost_usd,
            tokens=output.tokens,
        )

    return ask


def check(settings: AgentSettings, _: Mapping[str, str]) -> Unavailable | None:
    """Why the command cannot be run, checked without running it."""
    return None if settings.command else _NO_COMMAND


def _status(done: Completed) -> ReplyStatus:
    match done.ended:
        case Ended.NOT_STARTED:
            return ReplyStatus.UNAVAILABLE
        case Ended.TIMED_OUT | Ended.IDLE:
            return ReplyStatus.TIMED_OUT
        case _ if done.exit_code in _CANNOT_RUN:
            return ReplyStatus.UNAVAILABLE
        case Ended.EXITED if done.exit_code == 0:
            return ReplyStatus.DONE
        case _:
            return ReplyStatus.FAILED
