"""What the guard answered to each change, what became of it and what to type. Pure; judges not."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from hashlib import sha256
from itertools import chain

from msgspec import Struct

from atlas_retry.model import Attempt, Diagnostic, Held, Level, Outcome, Region, Verdict, Violation


class AnswerWord(StrEnum):
    """As people read it."""

    REFUSED = "refused"
    HELD = "held"
    REVIEW = "review"
    """Held, and left in place."""
    NOTED = "noted"


LEVELS = {
    AnswerWord.REFUSED: Level.ERROR,
    AnswerWord.HELD: Level.WARNING,
    AnswerWord.REVIEW: Level.WARNING,
    AnswerWord.NOTED: Level.NOTE,
}
TOOL = "atlas guard"
ACCEPT = " --held"


class Finding(Struct, frozen=True, kw_only=True):
    """One answer to one change."""

    answer: AnswerWord
    seen: Violation | Held
    fate: str
    """The answer with what became of the change: `held and restored, and the gates pass ...`."""
    level: Level
    command: str | None = None
    """What to type: to accept what is held, else to look at it. None where no run made it."""

    @property
    def where(self) -> str:
        return f"{self.seen.path}:{self.seen.line}" if self.seen.line else self.seen.path

    @property
    def sentence(self) -> str:
        """All of it but rule and place: what became of it, why, and what to type."""
        text = f"{self.fate}: {self.seen.detail}" if self.seen.detail else self.fate
        if self.command is None:
            return text
        verb = "accept" if self.is_accepting else "look at"
        return f"{text.rstrip('.')}. To {verb} it: {self.command}"

    @property
    def is_accepting(self) -> bool:
        """Whether what there is to type accepts it."""
        return self.command is not None and self.command.endswith(ACCEPT)

    @property
    def diagnostic(self) -> Diagnostic:
        """For formats that know only those; the fingerprint outlives runs and moved lines."""
        line, identity = self.seen.line, (self.answer, self.seen.rule, self.seen.path)
        return Diagnostic(
            tool=TOOL,
            rule_id=self.seen.rule,
            level=self.level,
            message=self.sentence,
            path=self.seen.path,
            region=Region(start_line=line) if line else None,
            fingerprint=sha256("\0".join(identity).encode(errors="replace")).hexdigest()[:16],
        )


def of_change(
    refused: Iterable[Violation], held: Iterable[Held], noted: Iterable[Violation]
) -> tuple[Finding, ...]:
    """Of a change that no run has made: nothing was restored."""
    return tuple(
        Finding(answer=answer, seen=seen, fate=_fate_of_change(answer, seen), level=LEVELS[answer])
        for answer, seen in _answers(refused, held, noted)
    )


def of_attempt(run: Outcome, attempt: Attempt) -> tuple[Finding, ...]:
    """Of one attempt."""
    return tuple(
        Finding(
            answer=answer,
            seen=seen,
            fate=_fate(answer, seen, attempt),
            level=_level(answer, seen, run),
            command=_command(seen, run, attempt),
        )
        for answer, seen in _answers(attempt.violations, attempt.held, attempt.noted)
    )


def of_run(run: Outcome) -> tuple[Finding, ...]:
    """Of all attempts; of what several of them were answered alike, the last."""
    every = chain.from_iterable(of_attempt(run, attempt) for attempt in run.attempts)
    latest = {(finding.answer, finding.seen.rule, finding.where): finding for finding in every}
    return tuple(sorted(latest.values(), key=lambda finding: [*AnswerWord].index(finding.answer)))


def _answers(
    refused: Iterable[Violation], held: Iterable[Held], noted: Iterable[Violation]
) -> Iterator[tuple[AnswerWord, Violation | Held]]:
    yield from ((AnswerWord.REFUSED, one) for one in refused)
    yield from ((AnswerWord.REVIEW if one.in_place else AnswerWord.HELD, one) for one in held)
    yield from ((AnswerWord.NOTED, one) for one in noted)


def _level(answer: AnswerWord, seen: Violation | Held, run: Outcome) -> Level:
    """What was refused on the way to a green failed nothing."""
    if answer is AnswerWord.REFUSED and run.verdict.is_green:
        return Level.WARNING
    unneeded = isinstance(seen, Held) and seen.needed is False
    return Level.NOTE if unneeded else LEVELS[answer]


def _fate_of_change(answer: AnswerWord, seen: Violation | Held) -> str:
    if not isinstance(seen, Held):
        return answer.value
    if seen.in_place:
        return "for review"
    if seen.needed is None:
        return "held for a person"
    need = "the gates pass only with it" if seen.needed else "the gates do not need it"
    return f"held for a person, and {need}"


def _fate(answer: AnswerWord, seen: Violation | Held, attempt: Attempt) -> str:
    match answer:
        case AnswerWord.REFUSED if seen.path in (left.path for left in attempt.left):
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
    if not isinstance(seen, Held):
        return "noted"
    passed = attempt.validation is not None and attempt.validation.success
    need = "pass without it" if passed else "fail with it as well"
    needs = {None: "were not tried with it", True: "pass only with it", False: need}
    return f"held and restored, and the gates {needs[seen.needed]}"


def _command(seen: Violation | Held, run: Outcome, attempt: Attempt) -> str:
    """What was not kept is not to be picked over a green, nor what fails all the same."""
    look = f"atlas diff {run.run_id} {attempt.number}"
    if not isinstance(seen, Held) or seen.in_place or seen.by_hand:
        return look
    is_of_use = attempt.kept if run.verdict.is_green else seen.needed is not False
    return pick_command(run, attempt) if is_of_use else look


def pick_command(run: Outcome, attempt: Attempt) -> str:
    """What accepts everything that was held of an attempt."""
    return f"atlas pick {run.run_id} {attempt.number}{ACCEPT}"
