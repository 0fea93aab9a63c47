"""Counts which lines of a project failing and passing tests run. Knows no test runner.

A copy of it runs in the project's own Python, so it uses the standard library only. The file that
`ATLAS_TRACE` names says what to look at; results are written next to that file.
"""

from __future__ import annotations  # the project's Python may be an older one

import json
import os
import signal
import sys
import threading
import time
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
SHARE_OF_PASSING, MIN_PASSING_S = 0.25, 0.5
"""Time for passing tests: a share of what the gate took, and seconds that they get at least."""

_ASKED = Path(os.environ["ATLAS_TRACE"])
_REQUEST = json.loads(_ASKED.read_text(encoding="utf-8"))
_ROOT = os.path.realpath(_REQUEST["root"]) + os.sep
_PASSING_S = max(MIN_PASSING_S, SHARE_OF_PASSING * _REQUEST["gate_s"])
FAILING: frozenset[str] = frozenset(_REQUEST["failing"])


def is_among(test: str, names: frozenset[str]) -> bool:
    """Whether a test is one of these; a runner's root may be above or below the project's."""
    return any(test == one or test.endswith("/" + one) or one.endswith("/" + test) for one in names)


class Recorder:
    """Number of failing and passing tests that ran each line, in one process."""

    def __init__(self) -> None:
        self.running = ""
        self.present: set[Place] = set()
        self.failed: set[str] = set()
        self.counted: dict[bool, Counter[Place]] = {True: Counter(), False: Counter()}
        self.tests: Counter[bool] = Counter()
        self._passing_s = 0.0
        self._paths: dict[str, str] = {}

    def has_enough(self) -> bool:
        """Whether no more passing tests are wanted."""
        return self.tests[False] >= MAX_PASSING or self._passing_s >= _PASSING_S

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
    def watching(self, test: str) -> Iterator[None]:
        """Trace one test and the threads that it starts."""
        before, began_s = sys.gettrace(), time.monotonic()
        is_main = threading.current_thread() is threading.main_thread()
        self.present = set()
        self.running = test
        ended = signal.signal(signal.SIGTERM, self._end) if is_main else None
        threading.settrace(self.enter)
        sys.settrace(self.enter)
        try:
            yield
        finally:
            self.running = ""
            self._passing_s += 0.0 if test in self.failed else time.monotonic() - began_s
            sys.settrace(before)
            threading.settrace(before)
            if is_main:
                signal.signal(signal.SIGTERM, ended or signal.SIG_DFL)

    def _end(self, _signal: int, _frame: object) -> None:
        """Keep what was seen when the time is over, the test that runs now included."""
        if is_among(self.running, FAILING):
            self.failed.add(self.running)
            self.count(self.running)
        self.write()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    def write(self) -> None:
        """Write the result; every process of a distributed run writes its own file."""
        if self.tests:
            failing, passing = self.counted[True], self.counted[False]
            lines = [[*place, count, passing[place]] for place, count in failing.items()]
            text = json.dumps({"failed": self.tests[True], "lines": lines})
            _ASKED.with_name(f"seen-{os.getpid()}.json").write_text(text, encoding="utf-8")
