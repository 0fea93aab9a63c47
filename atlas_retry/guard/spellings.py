"""Two assertions that lint rules and migrations put for each other: as good, spelled anew. No rule.

Facts: Ruff's B017, PT011, PT012; Clippy's len_zero; eslint-plugin-jest's and jest-dom's `prefer-*`.
"""

import builtins
import re

from atlas_retry.guard.outcomes import is_error_now
from atlas_retry.guard.units import VOID, Check, Unit
from atlas_retry.guard.words import words

_BROADEST = frozenset({"Exception", "BaseException"})
_EMPTY = re.compile(r"(?<!\(!)\b\w[\w.()]*\.is_?empty\(|Empty ", re.IGNORECASE)
_NO_LENGTH = re.compile(
    r"(assert_eq|assertEquals|Equal|if|assert|assertTrue) .*(len|size|length)\b", re.IGNORECASE
)
_CALLS = re.compile(r"\.mock\.calls\.length|\.callCount\b")
_MESSAGE = re.compile(r"\.(message|code)")
_THROWS = re.compile(
    r"(toThrow(Error)?|toMatchObject) .*\.rejects\.|(throws|rejects) .*(message|code):"
)
_THROWN = re.compile(r"\.toThrow(Error)?\((?!\))")
_NO_ERROR = re.compile(
    r"(toBeNull|toBeFalsy|toBeUndefined|ifError|isNull|equal|strictEqual|toBe|eql?) "
)
_OF_ERRORS = words(
    "err error e expect assert toBeNull toBeFalsy toBeUndefined ifError isNull equal strictEqual"
    " toBe eq eql to not exist undefined toThrow toThrowError rejects resolves"
)


def as_good(old: Check, new: Check, after: Unit) -> bool:
    """Whether an assertion claims what the earlier one did, in words that share little with it."""
    if new.strength == VOID or new.guarded > old.guarded:
        return False
    if _is_measured_still(old, new):
        return True
    if new.loosening - old.loosening:
        return False
    return (
        _raises_as_much(old, new, after)
        or _is_empty_still(old, new)
        or _is_attribute_now(old, new)
        or (old.literals <= new.literals and _is_matcher_of(old, new))
        or (old.literals <= new.literals and is_error_now(old.outcome, new.outcome))
    )


def is_thrown_now(check: Check, old: Unit, new: Unit) -> bool:
    """Whether a callback was told of no error where the test now waits, and the error is thrown."""
    speaks = check.names & {"err", "error", "e"} and check.names <= _OF_ERRORS
    waits = "await" in new.dump and "await" not in old.dump and not check.literals
    return bool(waits and speaks and _NO_ERROR.match(check.text) and "catch" not in new.dump)


def _raises_as_much(old: Check, new: Check, after: Unit) -> bool:
    """The same error or a narrower one, of what came last within the block."""
    if not (old.text.startswith("raises ") and new.text.startswith("raises ")):
        return False
    was, is_ = (check.text[len("raises ") :].split("] [", 2) for check in (old, new))
    if len(was) < 3 or len(is_) < 3 or not was[2].endswith(is_[2].removeprefix('"')):  # noqa: PLR2004 - kind, message, block
        return False
    told = not was[1] or was[1] == is_[1]
    return told and _is_narrower(was[0], is_[0]) and old.literals - new.literals <= after.own


def _is_narrower(was: str, is_: str) -> bool:
    old, new = (getattr(builtins, kind.strip("['\""), None) for kind in (was, is_))
    if isinstance(old, type) and isinstance(new, type):
        return issubclass(new, old)
    return was == is_ or was.strip("['\"") in _BROADEST


def _is_measured_still(old: Check, new: Check) -> bool:
    """`assert.Len(t, x, 3)` as `if len(x) != 3`."""
    spoken = old.names - {"assert", "require", "t", "Len"} <= new.names
    counted = old.text.startswith("Len ") and re.match(r"if len\([\w.]+\)!=\d+$", new.text)
    return bool(counted) and spoken and old.literals == new.literals


def _is_empty_still(old: Check, new: Check) -> bool:
    """`assert_eq!(x.len(), 0)` as `assert!(x.is_empty())`."""
    counted = _NO_LENGTH.match(old.text) and not re.search(r"assert_ne|NotEqual|\(!|[<>]", old.text)
    return bool(counted and _EMPTY.search(new.text)) and old.literals - new.literals == {"0"}


def _is_attribute_now(old: Check, new: Check) -> bool:
    """`r["name"] == "x"` as `r.name == "x"`."""
    lost = {text.strip("\"'`") for text in old.literals - new.literals}
    if not lost or new.literals - old.literals or new.strength < old.strength:
        return False
    return lost <= new.names and all(
        f"slice=Constant(value='{word}')" in old.text or f"[{word}]" in old.text for word in lost
    )


def _is_matcher_of(old: Check, new: Check) -> bool:
    """A matcher of Jest's own for what was read and compared."""
    counted = _CALLS.search(old.text) and new.text.startswith("toHaveBeenCalledTimes ")
    thrown = _MESSAGE.search(old.text) and _THROWS.match(new.text)
    alike = old.text.startswith("toThrow") and new.text.startswith(("throws ", "rejects "))
    named = old.names - _OF_ERRORS <= new.names and _THROWN.search(old.text)
    return bool(counted or thrown or (alike and named)) and ".not." not in new.text
