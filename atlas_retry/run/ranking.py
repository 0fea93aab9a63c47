"""Which attempt is worth keeping, and which left things worse. Pure."""

from atlas_retry.diagnostics.counting import compared, cut_short, total
from atlas_retry.model import Attempt, GateResult, Status, Validation
from atlas_retry.run.decide import Progress

Standing = tuple[int, int, int]
"""Required gates that did not pass, how many could not count, problems; less is better."""


def best(progress: Progress) -> Attempt | None:
    """The attempt worth keeping when a run does not end green; None when the start was no worse.

    Order: required gates that pass, fewest remaining, fewest introduced, smallest change. Where a
    gate could not count its problems, that is more than any number of them.
    """
    candidates = filter(_is_candidate, progress.attempts)
    chosen = min(candidates, key=lambda attempt: _rank(attempt, progress.settled), default=None)
    if chosen is None or chosen.validation is None:
        return None
    return chosen if is_worse(progress.settled, than=chosen.validation) else None


def _is_candidate(attempt: Attempt) -> bool:
    return bool(attempt.validation and attempt.result and not attempt.rolled_back)


def _rank(attempt: Attempt, start: Validation) -> tuple[Standing, int, int]:
    validation = attempt.validation or start
    _, _, introduced = compared(start, validation)
    size = sum((c.added or 0) + (c.removed or 0) for c in attempt.since_start)
    return _standing(validation, start), len(introduced), size


def is_worse(validation: Validation, *, than: Validation) -> bool:
    """Whether fewer required gates pass, or as many and there are more problems."""
    return _standing(validation, than) > _standing(than, validation)


def _is_red(result: GateResult) -> bool:
    """Whether a required gate did not pass."""
    return result.blocks or (result.required and result.status is Status.SKIPPED)


def _standing(validation: Validation, other: Validation) -> Standing:
    red = list(filter(_is_red, validation.results))
    return len(red), cut_short(validation, other), total(validation)
