"""The guard's answer to each change, the fate of the change and the next command. Pure."""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from itertools import chain

from msgspec import Struct

from atlas_retry.digests import sha256_of
from atlas_retry.model import Attempt, Diagnostic, Held, Level, Outcome, Region, Verdict, Violation


class AnswerWord(StrEnum):
    """The answer as shown to people."""

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
    """One answer of the guard to one change."""

    answer: AnswerWord
    seen: Violation | Held
    fate: str
    """The answer and what happened to the change: `held and restored, and the gates pass ...`."""
    level: Level
    command: str | None = None
    """Command to accept a held change, else to look at it. None if no run made it."""

    @property
    def where(self) -> str:
        return f"{self.seen.path}:{self.seen.line}" if self.seen.line else self.seen.path

    @property
    def sentence(self) -> str:
        """Everything except rule and place: fate, reason, and command."""
        text = f"{self.fate}: {self.seen.detail}" if self.seen.detail else self.fate
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
        line, identity = self.seen.line, (self.answer, self.seen.rule, self.seen.path)
        return Diagnostic(
            tool=TOOL,
            rule_id=self.seen.rule,
            level=self.level,
            message=self.sentence,
            path=self.seen.path,
            region=Region(start_line=line) if line else None,
            fingerprint=sha256_of("\0".join(identity).encode(errors="replace"))[:16],
        )


def of_change(
    refused: Iterable[Violation], held: Iterable[Held], noted: Iterable[Violation]
) -> tuple[Finding, ...]:
    """Findings about a change outside a run, of which nothing was restored."""
    return tuple(
        Finding(answer=answer, seen=seen, fate=_fate_of_change(answer, seen), level=LEVELS[answer])
        for answer, seen in _answers(refused, held, noted)
    )


def of_attempt(run: Outcome, attempt: Attempt) -> tuple[Finding, ...]:
    """Findings about one attempt."""
    return tuple(
        Finding(
            answer=answer,
            seen=seen,
            fate=_fate(answer, seen, run, attempt),
            level=_level(answer, seen, run),
            command=_command(seen, run, attempt),
        )
        for answer, seen in _answers(attempt.violations, attempt.held, attempt.noted)
    )


def of_run(run: Outcome) -> tuple[Finding, ...]:
    """Findings about all attempts; of equal ones, the last."""
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
    """Level of a finding; a refusal is only a warning if the run ended green."""
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


def _fate(answer: AnswerWord, seen: Violation | Held, run: Outcome, attempt: Attempt) -> str:
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
    is_past = run.verdict.is_green and not attempt.kept
    without = "pass without it"
    need = without if passed else "fail even with it"
    needs = {None: "were not tried with it", True: "pass only with it", False: need}
    return f"held and restored, and the gates {without if is_past else needs[seen.needed]}"


def _command(seen: Violation | Held, run: Outcome, attempt: Attempt) -> str:
    """Command to accept a held change, if that is useful, else to look at it."""
    look = f"atlas diff {run.run_id} {attempt.number}"
    if not isinstance(seen, Held) or seen.in_place or seen.by_hand:
        return look
    is_of_use = attempt.kept if run.verdict.is_green else seen.needed is not False
    return pick_command(run, attempt) if is_of_use else look


def pick_command(run: Outcome, attempt: Attempt) -> str:
    """Command that accepts all held changes of an attempt."""
    return f"atlas pick {run.run_id} {attempt.number}{ACCEPT}"
