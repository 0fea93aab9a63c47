"""A fleet from end to end: real server, real workers, real runs."""

import asyncio
import json
import os
import socket
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, suppress
from datetime import timedelta
from html import unescape
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from tests import fleets
from tests.commands import run_atlas
from tests.fleet_agent import TURN_USD
from tests.fleets import Scene, until

if not fleets.is_there():
    pytest.skip(f"no fleet: {fleets.WHY_NOT}", allow_module_level=True)

from temporalio import activity
from temporalio.client import Client
from temporalio.worker import Worker

from atlas_retry.errors import AtlasError, UsageError
from atlas_retry.fleet import client as clients
from atlas_retry.fleet.batch import Assignment, BatchStatus, Ending, ItemResult, Stage
from atlas_retry.fleet.books import Beat
from atlas_retry.fleet.client import CONVERTER, MAX_BYTES, SECRETS, ask, connect
from atlas_retry.fleet.manifest import BatchLimits, Manifest, Repository
from atlas_retry.fleet.store import Store
from atlas_retry.fleet.workflow import ACTIVITY, Fleet
from atlas_retry.model import Verdict
from atlas_retry.settings import CascadeSettings
from tests.certificates import Authority, Certificate, door


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    scene = fleets.scene(tmp_path_factory.mktemp("fleet") / "scene")
    with fleets.server(scene):
        yield scene


@pytest.mark.slow
def test_another_worker_takes_over_without_losing_costs(at: Scene) -> None:
    (at.notes / "hold").touch()
    manifest = at.repositories([1, 1])
    started = at.fleet("start", str(manifest), "--id", "takeover")
    assert started.returncode == 0, started.stderr
    with at.worker("doomed") as doomed:
        until(lambda: fleets.workspaces_asked(at))
        doomed.kill()
        until(lambda: not fleets.children(at))
    (at.notes / "hold").unlink()
    with at.worker("heir"):
        until(lambda: any("machine-heir" in one for one in fleets.workspaces_asked(at)))
        with at.worker("doomed"):  # the machine is back, and says what it had spent
            ended = at.status("takeover", "--wait")["status"]
    assert ended["ended"] == {"agent": 1, "replay": 1}
    assert ended["held_usd"] == 0
    assert ended["known_usd"] == pytest.approx(at.spent_usd("takeover"))
    assert ended["known_usd"] > TURN_USD
    page = at.root / "fleet.html"
    report = at.fleet("report", "takeover", "--html", str(page), "--json")
    assert report.returncode == 0
    assert sorted(row["ending"] for row in json.loads(report.stdout)["rows"]) == ["agent", "replay"]
    assert "fixed by another one's patch" in unescape(page.read_text())


SIDE_BY_SIDE = 2


class Held:
    """Runs that end when the test says so, each clean at no cost."""

    def __init__(self) -> None:
        self.let_go = asyncio.Event()
        self.is_full = asyncio.Event()
        self.begun: list[str] = []
        self.called_off: list[str] = []

    @activity.defn(name=ACTIVITY)
    async def run(self, one: Assignment) -> ItemResult:
        self.begun.append(one.run)
        if len(self.begun) == SIDE_BY_SIDE:
            self.is_full.set()
        try:
            while not self.let_go.is_set():
                activity.heartbeat(Beat(run=one.run, machine="m", number=one.number))
                await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            self.called_off.append(one.run)
            return ItemResult(run=one.run, machine="m", cost_usd=0.5)
        return ItemResult(run=one.run, machine="m", verdict=Verdict.CLEAN)


async def held_batch(
    at: Scene, batch: str, count: int, course: Callable[[Client, Held], Awaitable[None]]
) -> tuple[BatchStatus, Held]:
    """A batch of runs that are held, with what is done to it meanwhile; how it ended."""
    client, held = await connect(at.address), Held()
    repositories = tuple(Repository(url=f"/r{index}") for index in range(count))
    whole = Manifest(
        version=1, repositories=repositories, limits=BatchLimits(runs_at_once=SIDE_BY_SIDE)
    )
    async with Worker(
        client,
        task_queue=batch,
        workflows=[Fleet],
        activities=[held.run],
        max_heartbeat_throttle_interval=timedelta(seconds=1),
    ):
        await clients.start(client, batch, Store(str(at.store)), batch, whole)
        await held.is_full.wait()
        await course(client, held)
        return await clients.wait(client, batch), held


async def idle(client: Client, batch: str) -> BatchStatus:
    """The status once nothing runs."""
    for _ in range(int(fleets.LIMIT_S * 10)):
        status = (await clients.live(client, batch)).status
        if not status.running:
            return status
        await asyncio.sleep(0.1)
    raise AssertionError("it goes on running")


def test_a_paused_batch_starts_no_run_until_resumed(at: Scene) -> None:
    async def course(client: Client, held: Held) -> None:
        await clients.signal(client, "paused", "pause", "the registry is down")
        held.let_go.set()
        now = await idle(client, "paused")
        assert (now.paused, len(held.begun)) == ("the registry is down", 2)
        await clients.signal(client, "paused", "resume")

    status, held = asyncio.run(held_batch(at, "paused", 4, course))
    assert (status.ended[Ending.CLEAN], len(held.begun)) == (4, 4)


def test_a_stopped_batch_ends_its_runs_and_counts_their_cost(at: Scene) -> None:
    async def course(client: Client, _: Held) -> None:
        await clients.signal(client, "stopped", "stop")

    status, held = asyncio.run(held_batch(at, "stopped", 4, course))
    assert sorted(held.called_off) == sorted(held.begun)
    assert (status.stopped, status.known_usd, dict(status.ended)) == (True, 1.0, {})


LIMIT_USD = 8.0
MACHINES = 50


class Spenders:
    """Machines that spend what they are promised, in steps that others see at once."""

    def __init__(self) -> None:
        self.spent_usd = 0.0
        self.most_usd = 0.0
        self.machines: set[str] = set()

    def machine(self, name: str) -> Callable[[Assignment], Awaitable[ItemResult]]:
        @activity.defn(name=ACTIVITY)
        async def run(one: Assignment) -> ItemResult:
            result = ItemResult(run=one.run, machine=name, verdict=Verdict.FAILED)
            if one.stage is Stage.LOOK:
                return result
            self.machines.add(name)
            cost_usd = await self._spend(one.promised_usd or 0.0)
            return replace(result, verdict=Verdict.FIXED, cost_usd=cost_usd, attempts=1)

        return run

    async def _spend(self, promised_usd: float) -> float:
        for _ in range(4):
            self.spent_usd += promised_usd / 4
            self.most_usd = max(self.most_usd, self.spent_usd)
            await asyncio.sleep(0.1)
        return promised_usd


def test_fifty_workers_together_stay_within_the_cost_limit(at: Scene) -> None:
    async def course() -> tuple[BatchStatus, Spenders]:
        client, spenders = await connect(at.address), Spenders()
        repositories = tuple(Repository(url=f"/r{index}") for index in range(2 * MACHINES))
        limits = BatchLimits(
            max_cost_usd=LIMIT_USD, max_cost_usd_per_run=0.15, runs_at_once=MACHINES
        )
        cascade = CascadeSettings(enabled=False)
        whole = Manifest(
            version=1, repositories=repositories, ai_fix=True, canary=False,
            limits=limits, cascade=cascade,
        )  # fmt: skip
        async with AsyncExitStack() as stack:
            for number in range(MACHINES):
                worker = Worker(
                    await connect(at.address),  # as a machine of its own has
                    task_queue="fifty",
                    workflows=[] if number else [Fleet],
                    activities=[spenders.machine(f"m{number}")],
                    max_concurrent_activities=1,
                )
                await stack.enter_async_context(worker)
            await clients.start(client, "fifty", Store(str(at.store)), "fifty", whole)
            return await clients.wait(client, "fifty"), spenders

    status, spenders = asyncio.run(course())
    assert len(spenders.machines) > 1
    assert spenders.most_usd <= LIMIT_USD + 1e-6
    assert status.known_usd == pytest.approx(spenders.spent_usd)
    assert status.known_usd > LIMIT_USD - 0.15
    assert status.ended[Ending.UNPAID] == 2 * MACHINES - status.ended[Ending.AGENT] > 0


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Authority:
    """An authority that the environment trusts; none of the server's variables is set else."""
    for name in [name for name in os.environ if name.startswith(SECRETS)]:
        monkeypatch.delenv(name)
    authority = Authority(tmp_path, "authority")
    monkeypatch.setenv("TEMPORAL_TLS_SERVER_CA_CERT_PATH", str(authority.certificate))
    return authority


def show(monkeypatch: pytest.MonkeyPatch, own: Certificate) -> None:
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_CERT_PATH", str(own.certificate))
    monkeypatch.setenv("TEMPORAL_TLS_CLIENT_KEY_PATH", str(own.key))


def test_a_server_with_mutual_tls_accepts_only_valid_certificates(
    at: Scene, keys: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with door(at.port, keys) as address:
        with pytest.raises(AtlasError, match="does not talk to Temporal's client"):
            ask(address, lambda client: clients.live(client, "nothing"))
        (tmp_path / "other").mkdir()
        show(monkeypatch, Authority(tmp_path / "other", "authority").issue("stranger"))
        with pytest.raises(AtlasError, match="does not talk to Temporal's client"):
            ask(address, lambda client: clients.live(client, "nothing"))
        show(monkeypatch, keys.issue("worker"))
        with pytest.raises(UsageError, match="there is no batch nothing"):
            ask(address, lambda client: clients.live(client, "nothing"))


def test_an_api_key_is_never_sent_without_tls(
    at: Scene, keys: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEMPORAL_API_KEY", "made-up")
    with pytest.raises(AtlasError, match="does not talk to Temporal's client"):
        ask(at.address, lambda client: clients.live(client, "nothing"))
    show(monkeypatch, keys.issue("worker"))
    with (
        door(at.port, keys) as address,
        pytest.raises(UsageError, match="there is no batch nothing"),
    ):
        ask(address, lambda client: clients.live(client, "nothing"))


@pytest.mark.parametrize(
    ("server", "words"),
    [
        ("127.0.0.1:1", "no Temporal server at 127.0.0.1:1: connection refused"),
        ("nosuch.invalid:7233", "the name nosuch.invalid is unknown"),
        ("nosuch", "expected HOST:PORT"),
    ],
)
def test_a_worker_with_a_wrong_server_ends_with_3_in_plain_words(
    at: Scene, tmp_path: Path, server: str, words: str
) -> None:
    command = ("fleet", "worker", "--store", str(tmp_path / "store"), "--server", server)
    done = run_atlas(command, cwd=tmp_path, environ=at.environ, limit_s=fleets.LIMIT_S)
    assert (done.returncode, done.stdout) == (3, "")
    assert words in done.stderr
    assert "tonic" not in done.stderr


def test_a_worker_at_the_port_of_another_program_ends_with_3(at: Scene, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:

        def greet_and_leave() -> None:
            with suppress(OSError):
                while True:
                    other.accept()[0].close()

        threading.Thread(target=greet_and_leave, daemon=True).start()
        address = f"127.0.0.1:{other.getsockname()[1]}"
        command = ("fleet", "worker", "--store", str(tmp_path / "store"), "--server", address)
        done = run_atlas(command, cwd=tmp_path, environ=at.environ, limit_s=fleets.LIMIT_S)
        other.shutdown(socket.SHUT_RDWR)
    assert done.returncode == 3
    assert f"{address} does not talk to Temporal's client" in done.stderr


def test_a_large_payload_is_refused() -> None:
    with pytest.raises(ValueError, match="use the store"):
        CONVERTER.payload_converter.to_payloads(["x" * (MAX_BYTES + 1)])


def test_results_can_be_stored_in_s3(monkeypatch: pytest.MonkeyPatch) -> None:
    # only here: they take long, and every process of tests reads this module
    import s3fs  # type: ignore[import-untyped]
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(port=0)
    server.start()
    try:
        host, port = server.get_host_and_port()
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://{host}:{port}",
            "AWS_ACCESS_KEY_ID": "made-up",
            "AWS_SECRET_ACCESS_KEY": "made-up",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            monkeypatch.setenv(name, value)
        s3fs.S3FileSystem().mkdir("fleet")
        store = Store("s3://fleet/atlas")
        result = ItemResult(run="b-0-look", machine="m", verdict=Verdict.CLEAN)
        store.put("b", "b-0-look/result.json", msgspec.json.encode(result))
        assert store.result("b", "b-0-look") == result
        assert store.results("b") == {"b-0-look": result}
        assert store.get("b", "b-1-look/result.json") is None
    finally:
        server.stop()
