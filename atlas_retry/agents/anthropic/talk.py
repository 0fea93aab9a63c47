"""One conversation with the model: tool calls, an answer, and corrections of bad files."""

from collections.abc import Callable
from functools import partial
from typing import Final, cast

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.agents.answers import MAX_REASON_CHARS, gave_up, one_line
from atlas_retry.agents.anthropic.checks import CheckError, Write
from atlas_retry.agents.anthropic.faults import TurnEndedError, given_up, of_turn, stopped
from atlas_retry.agents.anthropic.looks import Looker, LookError
from atlas_retry.agents.anthropic.texts import written
from atlas_retry.agents.anthropic.transport import Connection
from atlas_retry.agents.anthropic.wire import (
    ANSWER,
    Block,
    Call,
    FixAnswer,
    FixedFile,
    ModelTurn,
    Question,
)
from atlas_retry.events import AgentActivity, AnswerRetried, Emit
from atlas_retry.model import Level, ReplyStatus

MAX_REQUESTS: Final = 25
_CACHED: Final[Block] = {"cache_control": {"type": "ephemeral"}}
_NOT_LOOKED: Final = "not executed: it came with the answer"


class Talk(Struct, kw_only=True):
    """A conversation. Marks what the API may cache: rules, task, and all messages so far."""

    question: Question
    """Request body without messages."""
    line: Connection
    looker: Looker
    max_requests: int = MAX_REQUESTS
    messages: list[Block] = field(default_factory=list)
    unanswered: tuple[Call, ...] = ()
    """Calls of the model without a result, which the API requires for each."""
    _asked: int = 0

    def say(self, text: str, *, stable_chars: int = 0) -> None:
        """Add a message to the model; its first `stable_chars` may be cached."""
        head, rest = text[:stable_chars], text[stable_chars:]
        results = [_result(call, _NOT_LOOKED, is_error=True) for call in self.unanswered]
        parts = [_text(head) | _CACHED] if head.strip() else []
        parts += [_text(rest)] if rest.strip() else []
        self._add_user((*results, *parts))

    def answered(self, tool: str, in_text: Callable[[str], bytes | None] = lambda _: None) -> Call:
        """The model's call of `tool`, after any number of other tool calls.

        `in_text` finds its arguments in a text. Raises TurnEndedError.
        """
        is_reminded = False
        while True:
            turn = self._turn()
            calls = [call for call in turn.calls if call.name == tool]
            if len(calls) == 1:
                return calls[0]
            if calls:
                self.refuse(f"{tool} was called {len(calls)} times: call it once, with everything")
            elif turn.calls:
                self._look(turn.calls)
            elif arguments := in_text(turn.text):
                return Call(id="", name=tool, arguments=arguments)
            else:
                self._remind(tool, turn.text, is_last=is_reminded)
                is_reminded = True

    def _remind(self, tool: str, text: str, *, is_last: bool) -> None:
        if reason := gave_up(text):
            raise given_up(reason)
        if is_last:
            raise stopped(f"bad output: the model did not call {tool}: {one_line(text)}")
        self.say(f"Call {tool} now: nothing else counts as an answer.")

    def refuse(self, why: str) -> None:
        """Tell the model why its last calls, or its last text, are refused."""
        results = tuple(_result(call, why, is_error=True) for call in self.unanswered)
        self._add_user(results or (_text(why),))

    def _turn(self) -> ModelTurn:
        if self._asked == self.max_requests:
            raise stopped(f"the model gave no answer in {self._asked} requests")
        allowed_usd = self.line.request.cost_usd
        if allowed_usd is not None and (self.line.cost_usd or 0.0) >= allowed_usd > 0:
            raise stopped(f"the cost limit of the attempt is reached: ${allowed_usd:.2f}")
        self._asked += 1
        # the last block is marked for caching, as the next request repeats what is before it
        *earlier, last = self.messages
        *blocks, newest = cast("list[Block]", last["content"])
        marked = last | {"content": [*blocks, newest | _CACHED]}
        turn = self.line.ask(self.question | {"messages": [*earlier, marked]})
        if fault := of_turn(turn):
            # what one answer lacks the next may have
            raise TurnEndedError(replace(fault.reply, status=ReplyStatus.FAILED))
        self.messages.append({"role": "assistant", "content": list(turn.blocks)})
        self.unanswered = turn.calls
        return turn

    def _look(self, calls: tuple[Call, ...]) -> None:
        results = []
        for call in calls:
            arguments = call.arguments.decode("utf-8", "replace")
            text = one_line(f"{call.name} {arguments}")
            self.line.emit(AgentActivity(text=text, cost_usd=self.line.cost_usd))
            try:
                results.append(_result(call, self.looker.look(call), is_error=False))
            except LookError as error:
                results.append(_result(call, str(error), is_error=True))
        if self._asked == self.max_requests - 1:
            results.append(_text("This was your last tool call: answer now."))
        self._add_user(tuple(results))

    def _add_user(self, blocks: tuple[Block, ...]) -> None:
        self.messages.append({"role": "user", "content": list(blocks)})
        self.unanswered = ()


def _text(text: str) -> Block:
    return {"type": "text", "text": text.encode("utf-8", "replace").decode()}


def _result(call: Call, content: str, *, is_error: bool) -> Block:
    shown = content.encode("utf-8", "replace").decode()
    return {"type": "tool_result", "tool_use_id": call.id, "content": shown, "is_error": is_error}


MAX_FILE_TRIES: Final = 3
MAX_FILES: Final = 200
MAX_FAULT_CHARS: Final = 600


class Fix(Struct, frozen=True, kw_only=True):
    """A checked answer."""

    diagnosis: str
    writes: tuple[Write, ...]


class Fixing(Struct, kw_only=True):
    """Gets an answer, and corrections of its files that fail the checks."""

    talk: Talk
    check: Callable[[FixedFile], Write]
    """Raises CheckError."""
    emit: Emit

    def fix(self) -> Fix:
        """The checked fix. Raises TurnEndedError."""
        answer = self._whole_answer()
        kept: dict[str, Write] = {}
        bad: list[tuple[FixedFile, str]] = []
        for file in answer.files:
            try:
                kept[file.path] = self._checked(file, kept)
            except CheckError as error:
                bad.append((file, str(error)))
        for file, fault in bad:
            write = self._asked_again(file, fault, kept)
            kept[write.path] = write
        return Fix(diagnosis=answer.diagnosis.strip(), writes=tuple(kept.values()))

    def _whole_answer(self) -> FixAnswer:
        for number in range(1, MAX_FILE_TRIES + 1):
            try:
                return answer_of(self.talk.answered(ANSWER, partial(written, file=None)))
            except CheckError as error:
                fault = str(error)
            self._report(number, fault)
            self.talk.refuse(f"The answer cannot be used: {fault}. Call {ANSWER} again.")
        raise stopped(f"bad output: no usable answer in {MAX_FILE_TRIES} tries: {fault}")

    def _checked(self, file: FixedFile, kept: dict[str, Write]) -> Write:
        if file.path in kept:
            raise CheckError("is listed twice: list it once, with all of its changes")
        for path in kept:
            if path.startswith(f"{file.path}/") or file.path.startswith(f"{path}/"):
                raise CheckError(f"and {path} cannot both exist")
        return self.check(file)

    def _asked_again(self, file: FixedFile, fault: str, kept: dict[str, Write]) -> Write:
        """A corrected file; the others are kept in memory meanwhile."""
        others = f"These files are correct and kept: {', '.join(sorted(kept))}. " if kept else ""
        for number in range(1, MAX_FILE_TRIES):
            self._report(number, f"{file.path} {fault}")
            self.talk.refuse(
                f"{others}This file cannot be written: {file.path} {fault}. "
                f"Call {ANSWER} with only this file, corrected."
            )
            try:
                call = self.talk.answered(ANSWER, partial(written, file=file))
                file = _only(answer_of(call), file.path)
                return self._checked(file, kept)
            except CheckError as error:
                fault = str(error)
        self._report(MAX_FILE_TRIES, f"{file.path} {fault}")
        raise stopped(
            f"{one_line(file.path)} failed its checks in {MAX_FILE_TRIES} tries, "
            f"so nothing was written: {fault}"
        )

    def _report(self, number: int, fault: str) -> None:
        reason = f"Validation: {one_line(fault, limit=MAX_FAULT_CHARS)}"
        self.emit(AnswerRetried(level=Level.WARNING, number=number, reason=reason))


def answer_of(call: Call) -> FixAnswer:
    """The answer in a call. Raises CheckError if invalid, TurnEndedError if the model gave up."""
    try:
        answer = msgspec.json.decode(call.arguments, type=FixAnswer)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CheckError(f"it does not match the schema of {ANSWER}: {error}") from error
    if not answer.success:
        reason = " ".join(answer.diagnosis.split())[:MAX_REASON_CHARS]
        raise given_up(reason or "no reason given")
    if not answer.files:
        raise CheckError("success is true, but no file changes")
    if len(answer.files) > MAX_FILES:
        raise CheckError(f"it changes {len(answer.files)} files, more than {MAX_FILES}")
    return answer


def _only(answer: FixAnswer, path: str) -> FixedFile:
    """The requested file: by its path, or as the only one."""
    files = [file for file in answer.files if file.path == path] or answer.files
    if len(files) != 1:
        raise CheckError("must be sent alone, exactly once")
    return files[0]
