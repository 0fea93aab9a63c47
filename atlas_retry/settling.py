"""What an agent's turn comes to: guard and gates, until what passed is what is there."""

from msgspec.structs import replace

from atlas_retry.decision import Progress
from atlas_retry.effects import Effects, Judgement, Taken
from atlas_retry.events import ViolationsFound
from atlas_retry.model import Attempt, ChangeStatus, Level, Validation, Violation

MAX_VALIDATIONS = 3
RESTLESS = "restless"
"""The rule for files that move each time the gates run."""


def settle(
    attempt: Attempt, before: Taken, after: Taken, progress: Progress, do: Effects
) -> tuple[Attempt, Taken, Validation | None]:
    """The attempt after guard and gates, what is there then, and the validation if it counts.

    Gates run what the agent wrote, so the guard looks again after them. A green counts when no
    file moved meanwhile but by a gate's own hand: what moves a second time is its product.
    """
    if not attempt.changes:
        return attempt, after, None
    attempt, judged = _guarded(attempt, before, after, progress, do)
    previous, known = progress.latest, frozenset[str]()
    for _ in range(MAX_VALIDATIONS):
        if attempt.rolled_back:
            return attempt, judged, None
        validation = previous = do.validate(previous)
        end = do.snapshot(f"{attempt.number}-end")
        moved = _moved(judged, end, validation, progress, do) - known
        attempt, judged = _guarded(attempt, before, end, progress, do)
        if judged is end and not (moved and validation.success):
            return attempt, end, validation
        known |= moved
        attempt = replace(attempt, reviews_usd=attempt.reviews_usd + validation.cost_usd)
    return (*_undone(attempt, before, judged, known, do), None)


def _moved(
    judged: Taken, end: Taken, validation: Validation, progress: Progress, do: Effects
) -> frozenset[str]:
    """Files that changed while the gates ran, but for what gates write: now, or in the baseline."""
    if judged.tree == end.tree:
        return frozenset()
    baseline = {*progress.fixers_changed, *_written(progress.baseline), *_written(progress.settled)}
    products = {change.path for change in do.changes(progress.start, progress.origin)} - baseline
    return frozenset(
        change.path
        for change in do.changes(judged.id, end.id)
        if change.status is not ChangeStatus.ADDED
        and change.path not in products | _written(validation)
    )


def _written(validation: Validation) -> set[str]:
    """What the writers say they changed."""
    return {path for result in validation.results for path in result.changed}


def _guarded(
    attempt: Attempt, before: Taken, after: Taken, progress: Progress, do: Effects
) -> tuple[Attempt, Taken]:
    """Put violating files back, or all of the attempt where they cannot be told apart.

    `after` itself is the answer when nothing had to be put back.
    """
    judgement = do.judge(before.id, after.id, progress.latest)
    if not judgement.violations:
        return attempt, after
    attempt = _blamed(attempt, judgement.violations)
    if not judgement.blocks:
        do.emit(_found(judgement, rolled_back=False))
        return attempt, after
    do.restore(before.id, after.id, judgement.put_back)
    left = do.snapshot(f"{attempt.number}-guarded")
    rolled_back = judgement.put_back is None or left.tree == before.tree
    if not rolled_back and do.judge(before.id, left.id, progress.latest).violations:
        do.restore(before.id, after.id, None)
        left, rolled_back = do.snapshot(f"{attempt.number}-guarded"), True
    do.emit(_found(judgement, rolled_back=rolled_back))
    return replace(attempt, rolled_back=rolled_back), left


def _blamed(attempt: Attempt, violations: tuple[Violation, ...]) -> Attempt:
    return replace(attempt, violations=tuple(dict.fromkeys((*attempt.violations, *violations))))


def _found(judgement: Judgement, *, rolled_back: bool) -> ViolationsFound:
    return ViolationsFound(
        level=Level.WARNING, violations=judgement.violations, rolled_back=rolled_back
    )


def _undone(
    attempt: Attempt, before: Taken, there: Taken, moved: frozenset[str], do: Effects
) -> tuple[Attempt, Taken]:
    """The attempt put back whole, for no result of the gates is about what is there after them."""
    if attempt.rolled_back:
        return attempt, there
    detail = "It moved again each time the gates ran, so nothing they say is about what is there."
    found = tuple(Violation(rule=RESTLESS, path=path, detail=detail) for path in sorted(moved))
    do.emit(_found(Judgement(violations=found or attempt.violations), rolled_back=True))
    do.restore(before.id, there.id, None)
    left = do.snapshot(f"{attempt.number}-guarded")
    return replace(_blamed(attempt, found), rolled_back=True), left
