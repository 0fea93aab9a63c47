"""The guard's answer to each change, the fate of the change and the next command. Pure."""

from collections.abc import Iterable
from itertools import chain

from msgspec import Struct

from atlas_retry.digests import sha256_of
from atlas_retry.model import (
    Answer,
    AnswerWord,
    Attempt,
    Diagnostic,
    Held,
    Level,
    Outcome,
    Region,
    Verdict,
)

LEVELS = {
    AnswerWord.REFUSED: Level.ERROR,
    AnswerWord.HELD: Level.WARNING,
    AnswerWord.REVIEW: Level.WARNING,
    AnswerWord.NOTED: Level.NOTE,
}
TOOL = "atlas guard"
ACCEPT = " --held"


class Finding(Struct, frozen=True, kw_only=True):
    """An answer of the guard as reports show it."""

    answer: Answer
    fate: str
    """The answer and what happened to the change: `held and restored, and the gates pass ...`."""
    level: Level
    command: str | None = None
    """Command to accept a held change, else to look at it. None if no run made it."""

    @property
    def sentence(self) -> str:
        """Everything except rule and place: fate, reason, and command."""
        text = f"{self.fate}: {self.answer.detail}" if self.answer.detail else self.fate
        if self.command is None:
            return text
        verb = "accept" if self.is_accepting else "look at"
        return f"{text.rstrip('.')}. To {verb} it: {self.command}"

    @property
    def is_accepting(self) -> bool:
        """Whether the command accepts the change."""
        return self.command is not None and self.command.endswith(ACCEPT)

    @property
    def diagnostic(self) -> Diagnostic:
        """The finding for formats of diagnostics; its fingerprint is stable across runs."""
        answer = self.answer
        identity = (answer.word, answer.rule, answer.path)
        return Diagnostic(
            tool=TOOL,
            rule_id=answer.rule,
            level=self.level,
            message=self.sentence,
            path=answer.path,
            region=Region(start_line=answer.line) if answer.line else None,
            fingerprint=sha256_of("\0".join(identity).encode(errors="replace"))[:16],
        )


def of_change(answers: Iterable[Answer]) -> tuple[Finding, ...]:
    """Findings about a change outside a run, of which nothing was restored."""
    return tuple(
        Finding(answer=one, fate=_fate_of_change(one), level=LEVELS[one.word]) for one in answers
    )


def of_attempt(run: Outcome, attempt: Attempt) -> tuple[Finding, ...]:
    """Findings about one attempt."""
    return tuple(
        Finding(
            answer=one,
            fate=_fate(one, run, attempt),
            level=_level(one, run),
            command=_command(one, run, attempt),
        )
        for one in (*attempt.violations, *attempt.held, *attempt.noted)
    )


def of_run(run: Outcome) -> tuple[Finding, ...]:
    """Findings about all attempts; of equal ones, the last."""
    every = chain.from_iterable(of_attempt(run, attempt) for attempt in run.attempts)
    latest = {(finding.answer.word, finding.answer.place): finding for finding in every}
    order = [*AnswerWord]
    return tuple(sorted(latest.values(), key=lambda finding: order.index(finding.answer.word)))


def _level(answer: Answer, run: Outcome) -> Level:
    """Level of a finding; a refusal is only a warning if the run ended green."""
    if answer.word is AnswerWord.REFUSED and run.verdict.is_green:
        return Level.WARNING
    unneeded = isinstance(answer, Held) and answer.needed is False
    return Level.NOTE if unneeded else LEVELS[answer.word]


def _fate_of_change(answer: Answer) -> str:
    if not isinstance(answer, Held):
        return answer.word.value
    if answer.in_place:
        return "for review"
    if answer.needed is None:
        return "held for a person"
    need = "the gates pass only with it" if answer.needed else "the gates do not need it"
    return f"held for a person, and {need}"


def _fate(answer: Answer, run: Outcome, attempt: Attempt) -> str:
    match answer.word:
        case AnswerWord.REFUSED if answer.path in (left.path for left in attempt.left):
            return "refused, and still there: atlas cannot restore it"
        case AnswerWord.REFUSED if attempt.rolled_back:
            return "refused, all of the attempt restored"
        case AnswerWord.REFUSED:
            stays = attempt.ends is Verdict.REJECTED or attempt.result == attempt.snapshot
            return "refused" if stays else "refused and restored"
        case AnswerWord.REVIEW:
            return (
                "restored with its attempt" if attempt.rolled_back else "left in place for review"
            )
    if not isinstance(answer, Held):
        return "noted"
    is_past = run.verdict.is_green and not attempt.kept
    without = "pass without it"
    need = without if attempt.passed else "fail even with it"
    needs = {None: "were not tried with it", True: "pass only with it", False: need}
    return f"held and restored, and the gates {without if is_past else needs[answer.needed]}"


def _command(answer: Answer, run: Outcome, attempt: Attempt) -> str:
    """Command to accept a held change, if that is useful, else to look at it."""
    look = f"atlas diff {run.run_id} {attempt.number}"
    if not isinstance(answer, Held) or answer.in_place or answer.by_hand:
        return look
    is_of_use = attempt.kept if run.verdict.is_green else answer.needed is not False
    return pick_command(run, attempt) if is_of_use else look


def pick_command(run: Outcome, attempt: Attempt) -> str:
    """Command that accepts all held changes of an attempt."""
    return f"atlas pick {run.run_id} {attempt.number}{ACCEPT}"
