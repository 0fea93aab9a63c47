"""Reverted changes of a run's attempts, and how they are named. Pure; ends no run."""

from collections.abc import Iterable, Sequence
from itertools import chain

from atlas_retry.model import EDITING_TOOLS, Answer, Attempt, Held
from atlas_retry.text.units import first_few

CHANGED_IN_GIT = "changed-in-git"
"""Rule of files that a person's git changed during an attempt: no question about the agent."""

Attempts = Sequence[Attempt]


def restored(attempt: Attempt) -> tuple[Held, ...]:
    """Held changes that are not in the workspace."""
    return tuple(held for held in attempt.held if not held.in_place)


def held_paths(attempt: Attempt) -> frozenset[str]:
    """Paths of held changes that are not in the workspace."""
    return frozenset(held.path for held in restored(attempt))


def needed_paths(attempt: Attempt) -> frozenset[str]:
    """Paths of held changes without which gates fail."""
    return frozenset(held.path for held in restored(attempt) if held.needed)


def is_by_hand(attempt: Attempt) -> bool:
    """Whether `atlas pick` cannot apply any of the held changes."""
    every = restored(attempt)
    return bool(every) and all(held.by_hand for held in every)


def is_pickable(attempt: Attempt) -> bool:
    """Whether `atlas pick` can accept something that was held."""
    return any(not held.by_hand for held in restored(attempt))


def denied_edits(attempts: Attempts) -> tuple[str, ...]:
    """Paths that agents were not permitted to edit, each once."""
    calls = chain.from_iterable(attempt.denials for attempt in attempts)
    named = (call.partition(": ") for call in calls)
    paths = (path for tool, _, path in named if tool in EDITING_TOOLS)
    return tuple(dict.fromkeys(filter(None, paths)))


def for_review(attempt: Attempt) -> tuple[Held, ...]:
    """Changes of an attempt that it left in the workspace for a person to review."""
    left = (one for one in attempt.held if one.in_place)
    own = (one for one in left if one.rule != CHANGED_IN_GIT)
    return () if attempt.rolled_back else tuple(own)


def unstaged(attempts: Attempts) -> tuple[str, ...]:
    """Files in the workspace that a gate judges as they are staged, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(one.unstaged for one in in_place(attempts))))


def in_place(attempts: Attempts) -> tuple[Attempt, ...]:
    """Attempts whose edits are in the workspace; worse ones are reverted before the next one."""
    earlier, last = attempts[:-1], attempts[-1:]
    stay = (attempt for attempt in earlier if not attempt.worse)
    return tuple(attempt for attempt in (*stay, *last) if not attempt.rolled_back)


def standing(attempts: Attempts) -> Attempt | None:
    """The last attempt that left any change: the workspace is its tree."""
    return next((a for a in reversed(in_place(attempts)) if a.changes), None)


def has_new_reversal(attempts: Attempts) -> bool:
    """Whether a path was reverted after the last attempt for the first time in the run."""
    *earlier, last = attempts
    known = frozenset[str]().union(*map(_reverted_paths, earlier))
    return not _reverted_paths(last) <= known


def _reverted_paths(attempt: Attempt) -> frozenset[str]:
    return held_paths(attempt) | {violation.path for violation in attempt.violations}


def repeats(attempts: Attempts) -> bool:
    """Whether the needed held changes of one attempt were held again in the next."""
    if len(attempts) < 2:  # noqa: PLR2004 - a pair
        return False
    before, last = map(needed_paths, attempts[-2:])
    return bool(before) and before <= last


def account(attempts: Attempts) -> str:
    """Names of everything refused and held in the attempts; empty if nothing was."""
    refused = named(chain.from_iterable(attempt.violations for attempt in attempts))
    held = [*chain.from_iterable(map(restored, attempts))]
    of_use = named(one for one in held if one.needed is not False)
    vain = named(one for one in held if one.needed is False)
    parts = (
        ("the guard refused ", refused),
        ("held for a person to accept: ", of_use),
        ("held and restored: ", vain),
    )
    return "; ".join(text + names for text, names in parts if names)


def named(judged: Iterable[Answer]) -> str:
    """`a.py (rule), b.py (rule) and 3 more`, each once."""
    return first_few(dict.fromkeys(f"{one.path} ({one.rule})" for one in judged))
