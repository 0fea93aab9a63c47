"""A fleet on this machine: the demo, and what docs/fleet.md says in figures.

.venv/bin/python bench/fleet.py demo
.venv/bin/python bench/fleet.py items 10000
.venv/bin/python bench/fleet.py kills 30
.venv/bin/python bench/fleet.py versus 200
"""

import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from temporalio import activity
from temporalio.worker import Worker

from atlas_retry.fleet import client as clients
from atlas_retry.fleet.batch import Assignment, ItemResult
from atlas_retry.fleet.client import connect
from atlas_retry.fleet.manifest import BatchLimits, Manifest, Repository
from atlas_retry.fleet.store import Store
from atlas_retry.fleet.workflow import ACTIVITY, Fleet
from atlas_retry.model import Verdict
from tests import fleet_agent, fleets
from tests.fleets import Scene, until

SEED = 20261122
ENDED_BEFORE = 4
"""Repositories of the demo, when a worker is killed."""
NOTHING_USD = 1e-6


@activity.defn(name=ACTIVITY)
async def nothing(one: Assignment) -> ItemResult:
    """A run of zero length."""
    return ItemResult(run=one.run, machine="m", verdict=Verdict.CLEAN)


async def items(at: Scene, count: int) -> None:
    """So many runs of zero length through one workflow."""
    client = await connect(at.address)
    store = Store(str(at.store))
    repositories = tuple(Repository(url=f"/r{index}") for index in range(count))
    whole = Manifest(version=1, repositories=repositories, limits=BatchLimits(runs_at_once=50))
    async with Worker(
        client,
        task_queue="bench",
        workflows=[Fleet],
        activities=[nothing],
        max_concurrent_activities=50,
    ):
        start_s, start_cpu_s = time.monotonic(), time.process_time()
        await clients.start(client, "bench", store, "items", whole)
        status = await clients.wait(client, "items")
        wall_s, cpu_s = time.monotonic() - start_s, time.process_time() - start_cpu_s
        now = await clients.live(client, "items")
        first = client.get_workflow_handle("items", run_id=await _first_run(client))
        described = (await first.describe()).raw_description.workflow_execution_info
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{count} items in {wall_s:.0f} s: {count / wall_s:.0f} a second; worker {cpu_s:.0f} s CPU"
    )
    print(f"worker's peak memory {peak_mb:.0f} MB; {dict(status.ended)}")
    print(
        f"history of a segment: {described.history_length} events, {described.history_size_bytes}"
    )
    print(f"of the last one: {now.history_events} events, {now.history_bytes} bytes")


async def _first_run(client: clients.Client) -> str:
    runs = [one async for one in client.list_workflows("WorkflowId = 'items'")]
    return min(runs, key=lambda one: one.start_time).run_id


def demo(folder: Path) -> int:
    """Twenty repositories, two workers, one of them killed; 0 where all ends green."""
    at = fleets.scene(folder)
    start_s = time.monotonic()
    with fleets.server(at), at.worker("one", agent="scripted"):
        with at.worker("two", agent="scripted") as doomed:
            manifest = at.repositories([n % 4 for n in range(20)], "scripted")
            print(f"{time.monotonic() - start_s:5.1f} s  a server, two workers, 20 repositories")
            print(at.fleet("start", str(manifest), "--id", "demo").stdout, end="")
            until(lambda: _ended(at, "demo") >= ENDED_BEFORE)
            doomed.kill()
            print(f"{time.monotonic() - start_s:5.1f} s  one worker is killed")
        at.fleet("status", "demo")
        with at.worker("two", agent="scripted"):
            print(f"{time.monotonic() - start_s:5.1f} s  and started again")
            done = at.fleet("status", "demo", "--wait")
        print(done.stdout)
        print(at.fleet("report", "demo", "--html", str(folder / "fleet.html")).stdout, end="")
        color = "not green" if done.returncode else "green"
        print(f"{time.monotonic() - start_s:5.1f} s  {color}")
        return done.returncode


def _ended(at: Scene, batch: str) -> int:
    items: dict[str, int] = at.status(batch)["status"]["ended"]
    return sum(items.values())


def kills(folder: Path, count: int) -> int:
    """Kill workers in the middle of a turn; what the batch knows against what journals hold."""
    chance = random.Random(SEED)  # noqa: S311 - moments, not secrets
    at = fleets.scene(folder)
    limits = {"deaths": 1000, "runs_at_once": 8, "max_cost_usd_per_run": 2, "settle_minutes": 5}
    (at.notes / "step_s").write_text("1")
    roots = [at.repository(n, n + 1) for n in range(count + 4)]
    manifest = at.manifest(roots, limits=limits, canary=False)
    with fleets.server(at):
        at.fleet("start", str(manifest), "--id", "kills")
        done = 0
        with at.worker("steady", slots=1):
            while done < count:
                with at.worker("doomed") as doomed:
                    before = _turns(at, "doomed")
                    until(lambda now=before: _turns(at, "doomed") > now)
                    time.sleep(chance.random() * fleet_agent.STEPS)
                    doomed.kill()
                done += 1
            with at.worker("doomed"):
                status = at.status("kills", "--wait")["status"]
        not_green = _not_green(at, "kills")
    truth = at.spent_usd("kills")
    print(f"{done} kills; known ${status['known_usd']:.4f}, journals ${truth:.4f}")
    print(f"lost or counted twice ${abs(status['known_usd'] - truth):.4f}; {status['ended']}")
    print(f"not green: {not_green}")
    asked = fleets.workspaces_asked(at)
    print(f"{len(asked)} turns for {len(roots)} repositories of ${fleet_agent.TURN_USD:.2f} each")
    return 0 if abs(status["known_usd"] - truth) < NOTHING_USD else 1


def _not_green(at: Scene, batch: str) -> list[str]:
    rows = json.loads(at.fleet("report", batch, "--json").stdout)
    failed = [row for row in rows if not row["is_green"]]
    return [f"{row['name']}: {row['ending']}: {row['error']}" for row in failed]


def _turns(at: Scene, machine: str) -> int:
    return sum(f"machine-{machine}/" in one for one in fleets.workspaces_asked(at))


def versus(folder: Path, count: int) -> int:
    """So many repositories by four workers, and by one process with four jobs."""
    at = fleets.scene(folder)
    roots = [at.repository(n, 1 + n % 5, "scripted") for n in range(count)]
    with fleets.server(at) as server:
        start_s, start_cpu_s = time.monotonic(), _children_cpu_s()
        with ExitStack() as stack:
            workers = [
                stack.enter_context(at.worker(f"w{n}", agent="scripted", slots=1)) for n in range(4)
            ]
            manifest = at.manifest(roots, limits={"runs_at_once": 8})
            at.fleet("start", str(manifest), "--id", "versus")
            status = at.status("versus", "--wait")["status"]
            wall_s = time.monotonic() - start_s
            memory_mb = [round(_memory_mb(worker.pid)) for worker in workers]
        cpu_s = _children_cpu_s() - start_cpu_s
        print(f"fleet: {wall_s:.0f} s, {cpu_s:.0f} s CPU of workers and runs, each {memory_mb} MB")
        print(f"server: {_cpu_s(server.pid):.0f} s CPU, {_memory_mb(server.pid):.0f} MB")
        print(status["ended"])
    start_s, start_cpu_s = time.monotonic(), _children_cpu_s()
    argv = (sys.executable, "-m", "atlas_retry", "retry", *map(str, roots))
    done = subprocess.run(
        (*argv, "--ai-fix", "--jobs", "4", "--max-cost-usd", "1000", "--json"),
        env={**at.environ, "ATLAS_HOME": str(at.home("one"))},
        cwd=at.root,
        capture_output=True,
        check=False,
    )
    cpu_s = _children_cpu_s() - start_cpu_s
    print(f"one process: {time.monotonic() - start_s:.0f} s, {cpu_s:.0f} s CPU")
    print(f"exit code {done.returncode}")
    return done.returncode


def _children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> int:
    """Run one of them in a folder of its own."""
    what, *rest = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="atlas-fleet-", ignore_cleanup_errors=True) as name:
        folder = Path(name) / "fleet"
        if what == "demo":
            return demo(folder)
        if what == "kills":
            return kills(folder, int(rest[0]))
        if what == "versus":
            return versus(folder, int(rest[0]))
        if what == "items":
            at = fleets.scene(folder)
            with fleets.server(at) as server:
                asyncio.run(items(at, int(rest[0])))
                print(f"server: {_memory_mb(server.pid):.0f} MB")
    return 0


def _memory_mb(pid: int) -> float:
    text = Path(f"/proc/{pid}/status").read_text()
    line = next(one for one in text.splitlines() if one.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    sys.exit(main())
