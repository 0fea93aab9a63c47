"""Traces failing tests of pytest and unittest, in the gate's own command. Ranks nothing."""

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec.structs import replace

from atlas_retry.gates.plan import Plan, command_of
from atlas_retry.gates.trace.values import Seen, TraceRequest
from atlas_retry.process import run

RECORDING, PLUGIN = "atlas_recording", "atlas_tracing"
GIVEN: Mapping[str, Mapping[str, str]] = {
    "pytest": {RECORDING: RECORDING, PLUGIN: PLUGIN},
    "unittest": {RECORDING: RECORDING, "atlas_unittest": "sitecustomize"},
}
"""Modules that the project's Python is given, by runner, and under which names."""
_PATH_SET = re.compile(r"(?<![\w$])PYTHONPATH=[\"']?")
"""A line that sets the variable itself, so that what it is given has to go there."""


def seen_in_python(wanted: TraceRequest, plan: Plan) -> list[Seen]:
    """What the gate's own command shows of these tests and of their neighbours.

    Raises Interrupted, OSError, UnicodeError, msgspec.DecodeError.
    """
    folder = plan.logs / wanted.name
    request = folder / "asked.json"
    folder.mkdir(parents=True, exist_ok=True)
    for module, given in GIVEN[wanted.runner].items():
        shutil.copy(Path(__file__).with_name(f"{module}.py"), folder / f"{given}.py")
    failing = [test.test_id for test in wanted.tests]
    request.write_bytes(msgspec.json.encode({"root": str(plan.root), "failing": failing}))
    line = _PATH_SET.sub(rf"\g<0>{folder}:", wanted.gate.run)
    command = command_of(wanted.gate, line, plan, wanted.name)
    env = _environment(command.env, request)
    if wanted.runner == "pytest":
        env["PYTEST_ADDOPTS"] = f"{env.get('PYTEST_ADDOPTS', '')} -p {PLUGIN}".strip()
    run(replace(command, env=env, timeout_s=wanted.timeout_s, keep_daemons=False))
    written = sorted(folder.glob("seen-*.json"))
    return [msgspec.json.decode(one.read_bytes(), type=Seen) for one in written]


def _environment(env: Mapping[str, str], asked: Path) -> dict[str, str]:
    """The gate's own, with what it is given and what it writes beside that."""
    folder = asked.parent
    return {
        **env,
        "ATLAS_TRACE": str(asked),
        "COVERAGE_FILE": str(folder / "coverage"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": ":".join(filter(None, (str(folder), env.get("PYTHONPATH")))),
    }
