"""A pytest plugin that counts which lines failing and passing tests run. Judges nothing.

A copy of it runs in the project's own Python, together with the recording: it uses the standard
library and pytest only.
"""

from __future__ import annotations  # the project's Python may be an older one

from collections.abc import Generator

import pytest
from atlas_recording import (  # type: ignore[import-not-found]  # copied next to it
    FAILING,
    MAX_PASSING,
    Recorder,
    is_among,
)

_MODULES = frozenset(test.partition("::")[0] for test in FAILING)
_SEEN = Recorder()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Turn coverage off: it would write its data, and it uses the same hook of Python."""
    early_config.known_args_namespace.no_cov = True


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Do not stop at the first failure, nor overwrite the reports of the gate's own run."""
    config.option.maxfail = 0
    config.option.xmlpath = None
    config.option.htmlpath = None
    config.option.json_report_file = "none"


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the failing tests and some passing tests of the same modules."""
    failing = [item for item in items if is_among(item.nodeid, FAILING)]
    others = [item for item in items if is_among(item.nodeid.partition("::")[0], _MODULES)]
    passing = [item for item in others if item not in failing]
    kept = {*failing, *passing[:: 1 + len(passing) // MAX_PASSING]}
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = [item for item in items if item in kept]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, None, None]:
    """Trace each test with its setup and teardown."""
    with _SEEN.watching(item.nodeid):
        yield
    _SEEN.count(item.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip passing tests once enough of them have run; the failing ones may be the last."""
    if _SEEN.has_enough() and not is_among(item.nodeid, FAILING):
        pytest.skip("traced enough")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Count a failure of setup or teardown as one of the test."""
    if report.failed:
        _SEEN.failed.add(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write the result."""
    _SEEN.write()
