"""Counts which lines failing and passing tests of unittest run. Judges nothing.

Copied for the project's own Python as its `sitecustomize`, next to the recording, because unittest
has no plugins. Other tests of the same modules run until there are enough; the rest is skipped.
"""

from __future__ import annotations  # the project's Python may be an older one

import atexit
import sys
import unittest
from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from pathlib import Path

from atlas_recording import (  # type: ignore[import-not-found]  # copied next to it
    FAILING,
    Recorder,
)

_MODULES = tuple(test.rsplit(".", 2)[0] + "." for test in FAILING)
_SEEN = Recorder()
_run: Callable[..., unittest.TestResult | None] = unittest.TestCase.run


def _recorded(
    case: unittest.TestCase, result: unittest.TestResult | None = None
) -> unittest.TestResult | None:
    name = case.id()
    if _SEEN.running or not isinstance(result, unittest.TestResult):
        return _run(case, result)  # a test of a test runner, or pytest's own
    if name not in FAILING and not (name.startswith(_MODULES) and not _SEEN.has_enough()):
        return result
    before = _problems(result)
    with _SEEN.watching(name):
        ended = _run(case, result)
    if _problems(result) > before:
        _SEEN.failed.add(name)
    _SEEN.count(name)
    return ended


def _problems(result: unittest.TestResult) -> int:
    return len(result.failures) + len(result.errors) + len(result.unexpectedSuccesses)


def _run_shadowed() -> None:
    """Run the `sitecustomize` of the project or its Python, which this one shadows."""
    own = Path(__file__).resolve().parent
    spec = PathFinder.find_spec(
        __name__, [path for path in sys.path if Path(path).resolve() != own]
    )
    if spec and spec.loader:
        module = sys.modules[__name__] = module_from_spec(spec)
        spec.loader.exec_module(module)


unittest.TestCase.run = _recorded  # type: ignore[method-assign, assignment]  # what this module is for
atexit.register(_SEEN.write)
_run_shadowed()
