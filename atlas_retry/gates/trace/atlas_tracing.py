"""A pytest plugin that counts which lines failing and passing tests run. Judges nothing.

It runs in the project's own Python and is given to it as a copy, beside the recording: the
standard library and pytest only.
"""

from __future__ import annotations  # the project's Python may be an older one

from collections.abc import Generator

import pytest
from atlas_recording import (  # type: ignore[import-not-found]  # given beside it
    FAILING,
    MAX_PASSING,
    Recorder,
)

_MODULES = frozenset(test.partition("::")[0] for test in FAILING)
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
    failing = [item for item in items if _is_in(item.nodeid, FAILING)]
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
    """Each test with its setup and teardown."""
    with _SEEN.watching():
        yield
    _SEEN.count(item.nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A failure of the setup or the teardown is one of the test."""
    if report.failed:
        _SEEN.failed.add(report.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Write what was seen."""
    _SEEN.write()
