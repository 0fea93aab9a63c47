"""Counts which lines of a project failing and passing tests run. Knows no test runner.

It runs in the project's own Python and is given to it as a copy: the standard library only. What
it has to look at stands in the file that `ATLAS_TRACE` names; what it has seen goes beside that
file.
"""

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

MAX_PASSING = 80
"""More say little more."""

_ASKED = Path(os.environ["ATLAS_TRACE"])
_REQUEST = json.loads(_ASKED.read_text(encoding="utf-8"))
_ROOT = os.path.realpath(_REQUEST["root"]) + os.sep
FAILING: frozenset[str] = frozenset(_REQUEST["failing"])

Place = tuple[CodeType, int]


class Recorder:
    """What one process saw: how many tests of each kind ran a line."""

    def __init__(self) -> None:
        self.present: set[Place] = set()
        self.failed: set[str] = set()
        self.counted = {True: Counter[Place](), False: Counter[Place]()}
        self.tests = Counter[bool]()
        self._own: dict[str, bool] = {}

    def enter(self, frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401 - what sys.settrace wants
        name = frame.f_code.co_filename
        if name not in self._own:
            path = "" if name.startswith("<") else os.path.realpath(name)
            self._own[name] = path.startswith(_ROOT) and "site-packages" not in path
        if not self._own[name]:
            return None
        self.present.add((frame.f_code, frame.f_lineno))
        return self.step

    def step(self, frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401 - what sys.settrace wants
        if event == "line":
            self.present.add((frame.f_code, frame.f_lineno))
        return self.step

    def count(self, test: str) -> None:
        has_failed = test in self.failed
        self.tests[has_failed] += 1
        self.counted[has_failed].update(self.present)

    def told(self) -> dict[str, object]:
        failing, passing = self.counted[True], self.counted[False]
        return {
            "failed": self.tests[True],
            "passed": self.tests[False],
            "lines": [
                [
                    os.path.realpath(code.co_filename)[len(_ROOT) :],
                    code.co_firstlineno,
                    code.co_name,
                    line,
                    count,
                    passing[(code, line)],
                ]
                for (code, line), count in failing.items()
            ],
        }

    @contextmanager
    def watching(self) -> Iterator[None]:
        """One test and the threads that it starts."""
        before = sys.gettrace()
        self.present = set()
        threading.settrace(self.enter)
        sys.settrace(self.enter)
        try:
            yield
        finally:
            sys.settrace(before)
            threading.settrace(before)

    def write(self) -> None:
        """Every process of a distributed run writes its own."""
        if self.tests:
            told = json.dumps(self.told())
            _ASKED.with_name(f"seen-{os.getpid()}.json").write_text(told, encoding="utf-8")
