"""Counts which lines failing and passing tests of unittest run. Judges nothing.

Given to the project's own Python as its `sitecustomize`, beside the recording: unittest has no
plugins. Tests beside the failing ones are run until there are enough; the rest is left out.
"""

from __future__ import annotations  # the project's Python may be an older one

import atexit
import unittest
from collections.abc import Callable

from atlas_recording import (  # type: ignore[import-not-found]  # given beside it
    FAILING,
    MAX_PASSING,
    Recorder,
)

_MODULES = tuple(test.rsplit(".", 2)[0] + "." for test in FAILING)
_SEEN = Recorder()
_run: Callable[..., unittest.TestResult | None] = unittest.TestCase.run


def _recorded(
    case: unittest.TestCase, result: unittest.TestResult | None = None
) -> unittest.TestResult | None:
    name = case.id()
    is_wanted = name in FAILING or (name.startswith(_MODULES) and _SEEN.tests[False] < MAX_PASSING)
    if result is None or not is_wanted:
        return result
    before = _complaints(result)
    with _SEEN.watching():
        ended = _run(case, result)
    if _complaints(result) > before:
        _SEEN.failed.add(name)
    _SEEN.count(name)
    return ended


def _complaints(result: unittest.TestResult) -> int:
    return len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)


unittest.TestCase.run = _recorded  # type: ignore[method-assign, assignment]  # what this module is for
atexit.register(_SEEN.write)
