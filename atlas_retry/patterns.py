"""Constants: lists of words, and regular expressions that are compiled when first used.

A run imports hundreds of them and uses a third; compiling all took a tenth of a small run.
"""

import re
from typing import AnyStr, cast


class LatePattern:
    """A pattern that is compiled when one of its attributes is first used."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> object:
        answer: object = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, answer)
        return answer


def regex(text: AnyStr, flags: int = 0) -> "re.Pattern[AnyStr]":
    """Like `re.compile`, for constants; a test compiles them all."""
    return cast("re.Pattern[AnyStr]", LatePattern(text, flags))


def words(text: str) -> frozenset[str]:
    """The words of a text, separated by white space."""
    return frozenset(text.split())
