"""Runs failing Python tests once more to see what they execute and the passing ones do not.

Knows pytest and unittest. Writes to its scratch folder only; a trace that cannot be had is an
empty one.
"""

import shlex
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from math import sqrt
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.gates.plan import Plan, command_of
from atlas_retry.model import Frame, Gate, GateResult, Kind, Validation
from atlas_retry.process import run
from atlas_retry.prompt import Traced

RECORDING, PLUGIN = "atlas_recording", "atlas_tracing"
GIVEN: Mapping[str, Mapping[str, str]] = {
    "pytest": {RECORDING: RECORDING, PLUGIN: PLUGIN},
    "unittest": {RECORDING: RECORDING, "atlas_unittest": "sitecustomize"},
}
"""Modules that the project's Python is given, by runner, and under which names."""
TIMEOUT_S = 120.0
MAX_TRACED = 400


class Seen(Struct, frozen=True, kw_only=True):
    """What one process of a traced run saw."""

    failed: int
    passed: int
    lines: tuple[tuple[str, int, str, int, int, int], ...]
    """Path, first line of the function, its name, line, failing and passing tests that ran it."""


def traced(failed: Validation, gates: Iterable[Gate], plan: Plan) -> tuple[Traced, ...]:
    """The functions that failing tests ran, most suspect first; empty where none could be traced.

    `plan.logs` is the scratch folder. Raises Interrupted.
    """
    by_name = {gate.name: gate for gate in gates}
    found: list[Seen] = []
    for number, result in enumerate(failed.failures):
        gate = by_name.get(result.name)
        for runner in GIVEN:
            tests = _tests(result, runner)
            if result.kind is Kind.TEST and tests and gate:
                asked = _Asked(runner=runner, tests=tests, name=f"trace-{number}-{runner}")
                found += _seen(gate, asked, plan)
    return ranked(found)


def _tests(result: GateResult, runner: str) -> tuple[str, ...]:
    """The failed tests that this runner can be asked for by name."""
    told = ((d.tool, d.test_id) for d in result.diagnostics if d.test_id)
    return tuple(
        test for tool, test in told if (".py::" in test if runner == "pytest" else tool == runner)
    )


class _Asked(Struct, frozen=True, kw_only=True):
    """Which tests are to be traced, by which runner, and what the run is called."""

    runner: str
    tests: tuple[str, ...]
    name: str


def _seen(gate: Gate, asked: _Asked, plan: Plan) -> list[Seen]:
    """What the gate's own command shows of these tests and of their neighbours."""
    folder = plan.logs / asked.name
    request = folder / "asked.json"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for module, given in GIVEN[asked.runner].items():
            shutil.copy(Path(__file__).with_name(f"{module}.py"), folder / f"{given}.py")
        request.write_bytes(msgspec.json.encode({"root": str(plan.root), "failing": asked.tests}))
        command = command_of(gate, gate.run, plan, asked.name)
        run(
            replace(
                command,
                env=_environment(command.env, request, plan.root)
                | _options(command.env, asked, folder),
                timeout_s=min(TIMEOUT_S, gate.timeout_s or TIMEOUT_S),
                keep_daemons=False,
            )
        )
        told = sorted(folder.glob("seen-*.json"))
        return [msgspec.json.decode(one.read_bytes(), type=Seen) for one in told]
    except (OSError, UnicodeError, msgspec.DecodeError):
        return []


def _environment(env: Mapping[str, str], asked: Path, root: Path) -> dict[str, str]:
    """The gate's own, with what it is given and what it writes beside that.

    The sources of `root` go before those of an editable installation, which may lie elsewhere.
    """
    folder = asked.parent
    paths = [str(folder), env.get("PYTHONPATH", ""), str(root / "src"), str(root)]
    return {
        **env,
        "ATLAS_TRACE": str(asked),
        "COVERAGE_FILE": str(folder / "coverage"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": ":".join(filter(None, paths)),
    }


def _options(env: Mapping[str, str], asked: _Asked, folder: Path) -> dict[str, str]:
    if asked.runner != "pytest":
        return {}
    added = f"-p {PLUGIN} -o cache_dir={shlex.quote(str(folder / 'cache'))}"
    return {"PYTEST_ADDOPTS": f"{env.get('PYTEST_ADDOPTS', '')} {added}".strip()}


def ranked(seen: Iterable[Seen]) -> tuple[Traced, ...]:
    """Ochiai's figure of each function's most suspect line; the functions of equal ones in order.

    Source: Abreu, Zoeteweij, van Gemund, "On the accuracy of spectrum-based fault localization",
    2007.
    """
    failing, passing = Counter[tuple[str, int, str, int]](), Counter[tuple[str, int, str, int]]()
    failed = 0
    for one in seen:
        failed += one.failed
        for path, first, name, line, bad, good in one.lines:
            failing[path, first, name, line] += bad
            passing[path, first, name, line] += good
    best: dict[tuple[str, int, str], float] = {}
    for place, bad in failing.items():
        figure = bad / sqrt(failed * (bad + passing[place]))
        best[place[:3]] = max(best.get(place[:3], 0.0), figure)
    order = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Traced(frame=Frame(path=path, line=first, function=name), suspicion=figure)
        for (path, first, name), figure in order[:MAX_TRACED]
    )
