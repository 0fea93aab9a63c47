"""Counts which lines of a project failing and passing tests run. Knows no test runner.

A copy of it runs in the project's own Python, so it uses the standard library only. The file that
`ATLAS_TRACE` names says what to look at; results are written next to that file.
"""

from __future__ import annotations  # the project's Python may be an older one

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Place = tuple[str, int, str, int]
    """Path below the root, first line of the function, its name, line."""

MAX_PASSING = 80
"""Limit of passing tests to trace; more of them add little."""

_ASKED = Path(os.environ["ATLAS_TRACE"])
_REQUEST = json.loads(_ASKED.read_text(encoding="utf-8"))
_ROOT = os.path.realpath(_REQUEST["root"]) + os.sep
FAILING: frozenset[str] = frozenset(_REQUEST["failing"])


class Recorder:
    """Number of failing and passing tests that ran each line, in one process."""

    def __init__(self) -> None:
        self.is_watching = False
        self.present: set[Place] = set()
        self.failed: set[str] = set()
        self.counted: dict[bool, Counter[Place]] = {True: Counter(), False: Counter()}
        self.tests: Counter[bool] = Counter()
        self._paths: dict[str, str] = {}

    def enter(self, frame: FrameType, _event: str, _arg: object) -> Any:  # noqa: ANN401 - as sys.settrace requires
        name = frame.f_code.co_filename
        if name not in self._paths:
            path = "" if name.startswith("<") else os.path.realpath(name)
            is_own = path.startswith(_ROOT) and "site-packages" not in path
            self._paths[name] = path[len(_ROOT) :] if is_own else ""
        return self.step(frame, "line", None) if self._paths[name] else None

    def step(self, frame: FrameType, event: str, _arg: object) -> Any:  # noqa: ANN401 - as sys.settrace requires
        if event == "line":
            # equal functions in two files have equal code objects
            code = frame.f_code
            path = self._paths[code.co_filename]
            self.present.add((path, code.co_firstlineno, code.co_name, frame.f_lineno))
        return self.step

    def count(self, test: str) -> None:
        has_failed = test in self.failed
        self.tests[has_failed] += 1
        self.counted[has_failed].update(self.present)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Trace one test and the threads that it starts."""
        before = sys.gettrace()
        self.present = set()
        self.is_watching = True
        threading.settrace(self.enter)
        sys.settrace(self.enter)
        try:
            yield
        finally:
            self.is_watching = False
            sys.settrace(before)
            threading.settrace(before)

    def write(self) -> None:
        """Write the result; every process of a distributed run writes its own file."""
        if self.tests:
            failing, passing = self.counted[True], self.counted[False]
            lines = [[*place, count, passing[place]] for place, count in failing.items()]
            text = json.dumps({"failed": self.tests[True], "lines": lines})
            _ASKED.with_name(f"seen-{os.getpid()}.json").write_text(text, encoding="utf-8")
