"""From the model's answer to what is to be written: each file checked, bad ones asked for again."""

from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from atlas_retry.agents.answers import MAX_REASON_CHARS, one_line
from atlas_retry.agents.anthropic.checks import CheckError, Write
from atlas_retry.agents.anthropic.talk import GaveUpError, StoppedError, Talk
from atlas_retry.agents.anthropic.wire import ANSWER, Call, FixAnswer, FixedFile
from atlas_retry.events import AnswerRetried, Emit
from atlas_retry.model import Level

MAX_FILE_TRIES: Final = 3
MAX_FILES: Final = 200
MAX_FAULT_CHARS: Final = 600


class Fix(Struct, frozen=True, kw_only=True):
    """An answer that can be written."""

    diagnosis: str
    writes: tuple[Write, ...]


class Fixing(Struct, kw_only=True):
    """Takes one answer, and better versions of those of its files that do not check."""

    talk: Talk
    check: Callable[[FixedFile], Write]
    """Raises CheckError."""
    emit: Emit

    def fix(self) -> Fix:
        """What to write. Raises GaveUpError, StoppedError and what `Talk.answered` raises."""
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
                return answer_of(self.talk.answered(ANSWER))
            except CheckError as error:
                fault = str(error)
            self._report(number, fault)
            self.talk.refuse(f"The answer cannot be used: {fault}. Call {ANSWER} again.")
        raise StoppedError(f"bad output: no usable answer in {MAX_FILE_TRIES} tries: {fault}")

    def _checked(self, file: FixedFile, kept: dict[str, Write]) -> Write:
        if file.path in kept:
            raise CheckError("is named twice: once, with everything that changes in it")
        if clash := next((path for path in kept if _inside(path, file.path)), None):
            raise CheckError(f"and {clash} cannot both be there")
        return self.check(file)

    def _asked_again(self, file: FixedFile, fault: str, kept: dict[str, Write]) -> Write:
        """A file that checks; the others wait in memory meanwhile."""
        for number in range(1, MAX_FILE_TRIES + 1):
            self._report(number, f"{file.path} {fault}")
            if number == MAX_FILE_TRIES:
                break
            self.talk.refuse(_again(file.path, fault, kept))
            try:
                file = _only(answer_of(self.talk.answered(ANSWER)), file.path)
                return self._checked(file, kept)
            except CheckError as error:
                fault = str(error)
        raise StoppedError(
            f"{one_line(file.path)} did not check in {MAX_FILE_TRIES} tries, "
            f"so nothing was written: {fault}"
        )

    def _report(self, number: int, fault: str) -> None:
        reason = f"Validation: {one_line(fault, limit=MAX_FAULT_CHARS)}"
        self.emit(AnswerRetried(level=Level.WARNING, number=number, reason=reason))


def answer_of(call: Call) -> FixAnswer:
    """The answer in a call. Raises CheckError where there is none, GaveUpError without success."""
    try:
        answer = msgspec.json.decode(call.arguments, type=FixAnswer)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise CheckError(f"it is not what {ANSWER} takes: {error}") from error
    if not answer.success:
        reason = " ".join(answer.diagnosis.split())[:MAX_REASON_CHARS]
        raise GaveUpError(reason or "no reason given")
    if not answer.files:
        raise CheckError("success is true, but no file changes")
    if len(answer.files) > MAX_FILES:
        raise CheckError(f"it changes {len(answer.files)} files, more than {MAX_FILES}")
    return answer


def _only(answer: FixAnswer, path: str) -> FixedFile:
    """The file that was asked for: by its path, or because it is the only one."""
    named = [file for file in answer.files if file.path == path]
    files = named or list(answer.files)
    if len(files) != 1:
        raise CheckError("was asked for alone, once")
    return files[0]


def _again(path: str, fault: str, kept: dict[str, Write]) -> str:
    others = f"These are right and kept: {', '.join(sorted(kept))}. " if kept else ""
    return (
        f"{others}This file cannot be written: {path} {fault}. "
        f"Call {ANSWER} with this file alone, fixed."
    )


def _inside(one: str, other: str) -> bool:
    return one.startswith(f"{other}/") or other.startswith(f"{one}/")
