"""A pytest plugin that counts which lines failing and passing tests run. Judges nothing.

It runs in the project's own Python and is given to it as a copy: the standard library and pytest
only. What it has to look at stands in the file that `ATLAS_TRACE` names; what it has seen goes
beside that file.
"""

import json
import os
import sys
import threading
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

MAX_PASSING = 80
"""More say little more; of more, every second or third is taken."""

_ASKED = Path(os.environ["ATLAS_TRACE"])
_REQUEST = json.loads(_ASKED.read_text(encoding="utf-8"))
_ROOT = os.path.realpath(_REQUEST["root"]) + os.sep
_FAILING = frozenset(_REQUEST["failing"])
_MODULES = frozenset(test.partition("::")[0] for test in _FAILING)

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


_SEEN = Recorder()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """No coverage: it would write its data, and it wants the same hook of Python."""
    early_config.known_args_namespace.no_cov = True


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """No stop at the first failure, no report that the gate's own run has written."""
    config.option.maxfail = 0
    config.option.xmlpath = None
    config.option.htmlpath = None
    config.option.json_report_file = "none"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """The failing tests and some of those that pass beside them."""
    failing = [item for item in items if _is_in(item.nodeid, _FAILING)]
    others = [item for item in items if _is_in(item.nodeid.partition("::")[0], _MODULES)]
    passing = [item for item in others if item not in failing]
    kept = {*failing, *passing[:: 1 + len(passing) // MAX_PASSING]}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


def _is_in(name: str, names: frozenset[str]) -> bool:
    """Whether it is one of them; pytest's root may lie above or below that of the project."""
    return any(name == one or name.endswith("/" + one) or one.endswith("/" + name) for one in names)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    """Each test with its setup and teardown, and the threads that it starts."""
    before = sys.gettrace()
    _SEEN.present = set()
    threading.settrace(_SEEN.enter)
    sys.settrace(_SEEN.enter)
    yield
    sys.settrace(before)
    threading.settrace(before)
    _SEEN.count(item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A failure of the setup or the teardown is one of the test."""
    if report.failed:
        _SEEN.failed.add(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write what was seen; every worker of a distributed run writes its own."""
    if _SEEN.tests:
        told = json.dumps(_SEEN.told())
        _ASKED.with_name(f"seen-{os.getpid()}.json").write_text(told, encoding="utf-8")
