"""The Messages API as an agent, for machines without Claude Code.

The model reads files that git does not ignore, then submits whole files or edits. They are
written only if all of them pass the checks.
"""

import secrets
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace
from pathspec import GitIgnoreSpec

from atlas_retry.agents import models
from atlas_retry.agents.answers import CUT_OFF
from atlas_retry.agents.anthropic import faults, wire
from atlas_retry.agents.anthropic.checks import CheckError, Write, checked
from atlas_retry.agents.anthropic.faults import TurnEndedError
from atlas_retry.agents.anthropic.looks import (
    Looker,
    fault_of_name,
    is_secret,
    source_of,
    write_all,
)
from atlas_retry.agents.anthropic.talk import MAX_REQUESTS, Fix, Fixing, Talk
from atlas_retry.agents.anthropic.transport import Connection, Patience, has_key
from atlas_retry.agents.notes import project_notes
from atlas_retry.agents.unavailable import Unavailable
from atlas_retry.errors import Interrupted
from atlas_retry.events import AgentActivity, Emit, Notice
from atlas_retry.model import Agent, AgentReply, AgentRequest, Level, ReplyStatus, Session, Tokens
from atlas_retry.settings import AgentSettings, for_attempt
from atlas_retry.text.redaction import redact, secret_values
from atlas_retry.workspace.snapshot.trees import source_tree

DEFAULT_MODEL: Final = "sonnet"
_NO_KEY: Final = Unavailable(error="ANTHROPIC_API_KEY is not set", remedy=faults.KEY)
_USUAL: Final = Patience()


def anthropic_api(
    settings: AgentSettings, emit: Emit, environ: Mapping[str, str], *, patience: Patience = _USUAL
) -> Agent:
    """An agent that calls the Messages API with the key from the environment."""
    return _ApiCaller(settings=settings, emit=emit, environ=environ, patience=patience)


def check(_: AgentSettings, environ: Mapping[str, str]) -> Unavailable | None:
    """Why the API cannot be used; None if it may work. Makes no request."""
    return None if has_key(environ) else _NO_KEY


class _ApiCaller(Struct, kw_only=True):
    settings: AgentSettings
    emit: Emit
    environ: Mapping[str, str]
    patience: Patience
    talks: dict[str, Talk] = field(default_factory=dict)
    """Conversations by session; each stays with its model, because it has thinking blocks."""

    def __call__(self, request: AgentRequest) -> AgentReply:
        if not has_key(self.environ):
            return _NO_KEY.reply
        model = models.api_model(request.model or DEFAULT_MODEL)
        if models.cost_usd(model, Tokens()) is None:
            text = f"the price of {model} is unknown: its cost is not counted"
            self.emit(Notice(level=Level.WARNING, text=text))
        line = Connection(
            environ=self.environ,
            patience=self.patience,
            emit=self.emit,
            request=request,
            model=model,
        )
        work = self._fixed if request.schema is None else self._judged
        with line:
            try:
                reply = work(line)
            except TurnEndedError as error:
                reply = error.reply
            except Interrupted:
                self.emit(AgentActivity(text=CUT_OFF, cost_usd=line.cost_usd))
                raise
        return replace(
            reply,
            model=model,
            cost_usd=line.cost_usd,
            tokens=line.tokens,
            transport_retries=line.retries,
        )

    def _judged(self, line: Connection) -> AgentReply:
        """An opinion: nothing is written."""
        request = line.request
        talk = self._talk(line, wire.READ_ONLY, wire.opinion(request.schema or b"{}"))
        talk.say(request.prompt, stable_chars=request.stable_chars)
        answer = talk.answered(wire.OPINION).arguments.decode("utf-8", "replace")
        return AgentReply(status=ReplyStatus.DONE, structured=answer)

    def _fixed(self, line: Connection) -> AgentReply:
        request = line.request
        session_id = secrets.token_hex(8)
        talk = self._talk(line, wire.RULES, wire.SUBMIT)
        before = self.talks.get(request.session_id or "")
        if request.session is Session.RESUME and before and before.line.model == line.model:
            session_id = request.session_id or session_id
            talk.messages, talk.unanswered = before.messages, before.unanswered
        talk.say(request.prompt, stable_chars=request.stable_chars)
        root = Path(request.workspace)
        protected = GitIgnoreSpec.from_lines(request.protected)

        def check_file(file: wire.FixedFile) -> Write:
            if fault := fault_of_name(file.path):
                raise CheckError(fault)
            if is_secret(file.path) or protected.match_file(file.path):
                raise CheckError("must not be changed")
            source = source_of(root, file.path)
            if source is not None and talk.looker.tree.mode(file.path) is None:
                raise CheckError("is ignored by git, and must not be changed")
            return checked(file, source)

        self.talks[session_id] = talk
        fix = Fixing(talk=talk, check=check_file, emit=self.emit).fix()
        return self._written(root, fix, session_id)

    def _written(self, root: Path, fix: Fix, session_id: str) -> AgentReply:
        try:
            paths = write_all(root, fix.writes)
        except OSError as error:
            return AgentReply(status=ReplyStatus.FAILED, error=f"nothing was written: {error}")
        for path in paths:
            self.emit(AgentActivity(text=f"Write {path}", session_id=session_id))
        return AgentReply(
            status=ReplyStatus.DONE,
            summary=fix.diagnosis,
            session_id=session_id,
            touched=paths,
            touched_all=True,
        )

    def _talk(self, line: Connection, rules: str, tool: wire.Block) -> Talk:
        """A conversation with these rules and a tool for the result."""
        effort = for_attempt(self.settings.effort, line.request.attempt)
        root = Path(line.request.workspace)
        system = f"{rules}\n\n{project_notes(root)}".strip()
        return Talk(
            question={
                "model": line.model,
                "max_tokens": wire.MAX_TOKENS,
                "system": [
                    {"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}
                ],
                "tools": [*wire.LOOKING, tool],
                **({"output_config": {"effort": effort}} if effort else {}),
            },
            line=line,
            looker=Looker(
                tree=source_tree(root, environ=self.environ),
                redact=partial(redact, values=secret_values(self.environ)),
            ),
            max_requests=self.settings.max_turns or MAX_REQUESTS,
        )
