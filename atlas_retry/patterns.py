"""Regular expressions that are compiled when they are first used.

A run imports hundreds of them and uses a third; compiling all of them was a tenth of a small one.
"""

import re
from typing import AnyStr, cast


class LatePattern:
    """Stands for a pattern: what is first asked of it compiles it, and the answer stays."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text, self._flags = text, flags

    def __getattr__(self, name: str) -> object:
        answer: object = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, answer)
        return answer


def regex(text: AnyStr, flags: int = 0) -> "re.Pattern[AnyStr]":
    """As `re.compile`, for a constant; a test compiles them all."""
    return cast("re.Pattern[AnyStr]", LatePattern(text, flags))
