"""What every test gets: no home but its own, and an environment made from nothing."""

import gc
import json
import os
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import suppress
from pathlib import Path

import hypothesis
import pytest

from atlas_retry.process import proc
from atlas_retry.workspace.discovery import Workspace
from tests.needs import needed, require
from tests.programs import USUAL, path_of
from tests.projects import Project, make_project
from tests.repositories import opened, repository
from tests.tools import remove_tools

Write = Callable[..., Path]

# examples take as long as a busy machine makes them; a database would be written where tests start
hypothesis.settings.register_profile(
    "atlas",
    database=None,
    deadline=None,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("atlas")


def pytest_configure() -> None:
    """A shell's background job ignores SIGINT, and one under `nohup` SIGHUP, as its children would.

    A handler that does nothing is as good for us and is not inherited.
    """
    for number in (signal.SIGINT, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collecting makes millions of objects that stay: looking for garbage among them is in vain."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--max-skips", type=int, help="fail if more tests than these are skipped")
    parser.addoption("--every", type=int, default=1, help="run each Nth test only")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A second Python in CI runs a part of every file, within the time that there is."""
    step = config.getoption("--every")
    config.hook.pytest_deselected(items=[one for at, one in enumerate(items) if at % step])
    items[:] = items[::step]


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A machine on which nothing should be missing says so if something is."""
    allowed = session.config.getoption("--max-skips")
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if allowed is None or reporter is None:
        return
    skipped = len(reporter.stats.get("skipped", ()))
    if skipped > allowed:
        reporter.write_line(f"\n{skipped} tests are skipped, and at most {allowed} may be")
        session.exitstatus = session.exitstatus or pytest.ExitCode.TESTS_FAILED


def pytest_unconfigure() -> None:
    remove_tools()


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that needs what this machine lacks, with the reason and what brings it."""
    for name in needed(item):
        require(name)


@pytest.fixture
def environ(tmp_path: Path, request: pytest.FixtureRequest) -> dict[str, str]:
    """The environment of every child process: nothing of this machine's but usual programs.

    And those that the test `needs`.

    With ATLAS_TEST_ISOLATION=overlay runs work in layers, and write to the test's folder all the
    same: what is true of runs in place has to be true of them, but where a test is `in_place`.
    """
    home = tmp_path / "home"
    home.mkdir()
    isolation = os.environ.get("ATLAS_TEST_ISOLATION")
    if isolation and (only := request.node.get_closest_marker("in_place")):
        pytest.skip(only.args[0])
    isolated = {
        "ATLAS_AGENT__ISOLATION": f"{isolation}",
        "ATLAS_AGENT__WRITABLE": json.dumps([str(tmp_path)]),
    }
    return (isolated if isolation else {}) | {
        "PATH": path_of(*USUAL, *needed(request.node)),
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "ATLAS_HOME": str(tmp_path / "state"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
    }


@pytest.fixture(autouse=True)
def _homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """Code that looks for a home of its own accord, instead of being told, fails."""
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.delenv("ATLAS_HOME", raising=False)


@pytest.fixture(autouse=True)
def _no_zombies() -> Iterator[None]:
    """Orphans of an atlas that a test killed come to us, and each later command looks at all."""
    yield
    here = os.getsid(0)
    for child in filter(None, map(proc.member, proc.children())):
        if child.is_zombie and child.session != here:
            with suppress(ChildProcessError):
                os.waitpid(child.pid, os.WNOHANG)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with two files and an executable, committed."""
    return repository(tmp_path / "repo")


@pytest.fixture
def ws(root: Path) -> Workspace:
    return opened(root)


@pytest.fixture
def project(tmp_path: Path, environ: dict[str, str]) -> Project:
    """A project with a bug, for a script to fix."""
    return make_project(tmp_path, environ)
