"""A journal of many runs: how long `atlas stats`, `atlas status` and `atlas log` take over it.

.venv/bin/python bench/journal.py 10000
"""

import os
import resource
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent.parent))

from atlas_retry.events import (
    AttemptFinished,
    AttemptStarted,
    Event,
    EventScope,
    RunFinished,
    RunStarted,
    ValidationFinished,
    ValidationStarted,
)
from atlas_retry.history.database import connect, path_of, writing
from atlas_retry.history.entries import write
from atlas_retry.history.values import Opening, Order
from atlas_retry.model import Diagnostic, Kind, Outcome, Status, Validation, Verdict, WorkspaceFacts
from tests.values import attempt, result, validation

ROOTS, GATES, START = 40, 5, datetime(2026, 1, 1, tzinfo=UTC)


def main() -> int:
    """Fill a journal and time the commands; 1 where one takes a second or more."""
    count = int(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="atlas-journal-") as folder:
        home = Path(folder)
        with closing(connect(home)) as connection, writing(connection) as to:
            for number in range(count):
                for event in _events(number):
                    write(to, _opening(number), event)
        print(f"{count} runs, {path_of(home).stat().st_size / 1e6:.1f} MB")
        return max(_timed(home, name) for name in ("stats", "status", "learnings", "log"))


def _opening(number: int) -> Opening:
    return Opening(run_id=f"run-{number:06}", order=Order(ai_fix=True), repository="r", mark="m")


def _events(number: int) -> list[Event]:
    """One run of two attempts, the second of which is green four times in five."""
    red, green = _validation(passes=False), _validation(passes=number % 5 > 0)
    root = f"/projects/{number % ROOTS}"
    facts = WorkspaceFacts(name=str(number % ROOTS), root=root)
    made = [
        attempt(n, after, cost_usd=0.1, fixed=("f0",) if n > 1 else (), session_id="s", model="m")
        for n, after in ((1, red), (2, green))
    ]
    verdict = Verdict.FIXED if green.success else Verdict.EXHAUSTED
    ended = Outcome(
        run_id=f"run-{number:06}",
        verdict=verdict,
        workspace=facts,
        baseline=red,
        final=green,
        attempts=tuple(made),
        cost_usd=0.2,
        duration_ms=60_000,
    )
    events: list[Event] = [
        RunStarted(facts=facts, start_snapshot="s"),
        ValidationStarted(gates=()),
        ValidationFinished(validation=red),
    ]
    for each in made:
        events += [_started(each.number), ValidationStarted(gates=())]
        events += [ValidationFinished(validation=each.validation or red)]
        events += [AttemptFinished(result=each)]
    events.append(RunFinished(outcome=ended))
    at = (START + timedelta(minutes=number)).isoformat(timespec="seconds")
    return [replace(event, time=at, scope=EventScope(run=ended.run_id)) for event in events]


def _started(number: int) -> AttemptStarted:
    return AttemptStarted(
        number=number,
        agent="claude-code",
        model="sonnet",
        session_id="s",
        snapshot="s",
        prompt_chars=9000,
        prompt_path="prompt.md",
    )


def _validation(*, passes: bool) -> Validation:
    results = [result(f"gate {n}", Status.PASSED, kind=Kind.LINT) for n in range(GATES - 1)]
    told = tuple(
        Diagnostic(tool="ruff", rule_id=f"F40{n}", message=f"m{n}", fingerprint=f"f{n}", path="a")
        for n in range(8)
    )
    last = result("tests", Status.PASSED if passes else Status.FAILED)
    return validation(*results, last if passes else replace(last, diagnostics=told))


def _timed(home: Path, name: str) -> int:
    """Best of three, the interpreter's start included, and the least processor time."""
    environ = {"PATH": os.environ["PATH"], "HOME": str(home), "ATLAS_HOME": str(home)}
    environ["PYTHONPATH"] = str(Path(__file__).parent.parent)
    times, processor_s = [], []
    for _ in range(3):
        started_s, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            (sys.executable, "-m", "atlas_retry", name),
            cwd="/",
            env=environ,
            check=True,
            stdout=subprocess.DEVNULL,
        )
        times.append(time.monotonic() - started_s)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        processor_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    print(f"atlas {name}: {min(times):.2f} s, {min(processor_s):.2f} s of processor time")
    return int(min(times) >= 1)


if __name__ == "__main__":
    sys.exit(main())
