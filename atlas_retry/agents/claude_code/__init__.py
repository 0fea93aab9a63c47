"""The Claude Code CLI as a headless agent."""

import uuid
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.agents.answers import CUT_OFF
from atlas_retry.agents.claude_code import binary, invocation
from atlas_retry.agents.claude_code.reply import SESSION_GONE, login_refused, reply_of
from atlas_retry.agents.claude_code.stream import Transcript
from atlas_retry.agents.notes import project_notes
from atlas_retry.agents.unavailable import Unavailable
from atlas_retry.errors import Interrupted
from atlas_retry.events import Emit, Notice
from atlas_retry.model import Agent, AgentReply, AgentRequest, Level, Session
from atlas_retry.settings import AgentSettings
from atlas_retry.workspace import gittrace

REFUSED_LOGINS = 2
"""Refusals after which the CLI is stopped: only the first retry may have a fresh token."""


class _LoginRefusedError(Exception):
    """Raised while reading the stream, to end a CLI that keeps using a refused key."""


def claude_code(settings: AgentSettings, emit: Emit, environ: Mapping[str, str]) -> Agent:
    """An agent that calls the Claude Code CLI, which is searched for at each call."""
    return _CliCaller(settings=settings, emit=emit, environ=environ)


def check(settings: AgentSettings, environ: Mapping[str, str]) -> Unavailable | None:
    """Why the CLI cannot be used; None if it can. Takes 0.3 s and makes no request."""
    env = invocation.environment(environ)
    cli = binary.find(settings.path, environ, env)
    return cli if isinstance(cli, Unavailable) else binary.why_not_logged_in(cli, env)


class _CliCaller(Struct, frozen=True, kw_only=True):
    settings: AgentSettings
    emit: Emit
    environ: Mapping[str, str]

    def __call__(self, request: AgentRequest) -> AgentReply:
        cli = binary.find(self.settings.path, self.environ, self._env)
        if isinstance(cli, Unavailable):
            return cli.reply
        if cli.warning and request.attempt == 1:
            self.emit(Notice(text=cli.warning, level=Level.WARNING))
        reply = self._ask(cli, request)
        if request.session is Session.RESUME and SESSION_GONE in (reply.error or ""):
            self.emit(Notice(text="the agent's conversation no longer exists: starting a new one"))
            reply = self._ask(cli, _anew(request))
        log_in = binary.log_in(cli.path, self.environ)
        remedy = (reply.remedy or "").replace(binary.LOG_IN, log_in)
        return replace(reply, remedy=remedy or None)

    @property
    def _env(self) -> dict[str, str]:
        return invocation.environment(self.environ)

    def _ask(self, cli: binary.Cli, request: AgentRequest) -> AgentReply:
        if request.session is Session.RESUME and request.session_id is None:
            request = _anew(request)
        transcript = Transcript(root=str(Path(request.workspace).resolve()))
        try:
            done = process.run(
                self._command(cli, request),
                on_stdout=lambda chunk: self._read(transcript, chunk),
            )
        except _LoginRefusedError:
            return login_refused(request, transcript)
        except Interrupted:
            self.emit(transcript.activity(CUT_OFF))
            raise
        for event in transcript.finish():
            self.emit(event)
        return reply_of(request, transcript, done)

    def _read(self, transcript: Transcript, chunk: bytes) -> None:
        for event in transcript.feed(chunk):
            self.emit(event)
        is_patient = invocation.MAX_RETRIES in self.environ  # the user set the number of retries
        if transcript.refused_logins >= REFUSED_LOGINS and not is_patient:
            raise _LoginRefusedError

    def _command(self, cli: binary.Cli, request: AgentRequest) -> process.Command:
        settings_path = Path(request.scratch) / "claude-settings.json"
        settings_path.write_bytes(invocation.settings_json(request))
        # a new id must be unused, or the CLI refuses it
        resumed = request.session_id if request.session is Session.RESUME else None
        session_id = resumed or str(uuid.uuid4())
        # the notes are the same in each attempt, so a resumed conversation has them
        text = ("" if resumed else project_notes(Path(request.workspace))) + request.prompt
        if text.lstrip().startswith("/"):
            # it would run as a command of the CLI, despite `--disable-slash-commands`
            text = f"The task:\n{text}"
        return process.Command(
            argv=invocation.argv(
                cli.path,
                request,
                self.settings,
                session_id=session_id,
                settings_path=str(settings_path),
            ),
            cwd=Path(request.workspace),
            env={**self._env, **gittrace.variables(Path(request.scratch))},
            stdin=text.encode("utf-8", "replace"),
            timeout_s=request.timeout_s,
            idle_timeout_s=request.idle_timeout_s,
            log_dir=Path(request.scratch) / "claude-code",
        )


def _anew(request: AgentRequest) -> AgentRequest:
    return replace(request, session=Session.NEW, session_id=None, session_cost_usd=0.0)
