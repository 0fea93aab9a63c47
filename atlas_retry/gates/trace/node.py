"""Traces failing tests of Node's runners, by the coverage that V8 counts. Ranks nothing.

V8 does not tell one test from another: the failing tests run once, then the others; with Node's own
runner all of them, for it knows no pattern that leaves tests out before 22.1.
"""

import re
import shlex
import shutil
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from time import monotonic

import msgspec
from msgspec.structs import replace

from atlas_retry.gates.plan import Plan, command_of
from atlas_retry.gates.trace.values import Seen, TraceRequest
from atlas_retry.process import run

HOOK = "atlas_coverage.cjs"
PATTERN: Mapping[str, str] = {
    "jest": "--coverage=false -t",
    "vitest": "--coverage=false -t",
    "mocha": "-g",
    "node-test": "--test-name-pattern",
}
"""How a runner is given a regular expression for the full titles of tests."""
MIN_LEFT_S = 0.1
_SCRIPTS = re.compile(r"^(?:npm (?:test|t|run(?:-script)? \S+))(?! --)")
_SEPARATOR = re.compile(r"&&|\|\||[;|\n]")
_Place = tuple[str, str, int]


def seen_in_node(wanted: TraceRequest, plan: Plan) -> list[Seen]:
    """What the failing tests run, and what the others do.

    Raises Interrupted, OSError, UnicodeError, msgspec.DecodeError.
    """
    titles = "|".join(dict.fromkeys(_title(str(test.test_id)) for test in wanted.tests))
    until_s = monotonic() + wanted.timeout_s
    failing = _ran(f"^(?:{titles})$", "failing", wanted, plan, until_s)
    passing: frozenset[_Place] = frozenset()
    if failing:
        passing = _ran(f"^(?!.*(?:{titles})$)", "passing", wanted, plan, until_s)
    lines = tuple(
        (path, line, name, line, 1, int((path, name, line) in passing))
        for path, name, line in failing
    )
    return [Seen(failed=1, passed=1, lines=lines)] if lines else []


def _title(test_id: str) -> str:
    return re.escape(re.sub(r" [\u203a>] ", " ", test_id.partition("::")[2]))


def _ran(
    titles: str, which: str, wanted: TraceRequest, plan: Plan, until_s: float
) -> frozenset[_Place]:
    folder = plan.logs / f"{wanted.name}-{which}"
    folder.mkdir(parents=True, exist_ok=True)
    hook = shutil.copy(Path(__file__).with_name(HOOK), folder / HOOK)
    line = _selecting(wanted.gate.run, f"{PATTERN[wanted.runner]} {shlex.quote(titles)}")
    command = command_of(wanted.gate, line, plan, wanted.name)
    options = f"{command.env.get('NODE_OPTIONS', '')} --require {shlex.quote(str(hook))}".strip()
    env = {
        **command.env,
        "NODE_OPTIONS": options,
        "ATLAS_TRACE": str(folder),
        "ATLAS_TRACE_ROOT": str(plan.root),
    }
    left_s = max(until_s - monotonic(), MIN_LEFT_S)
    run(replace(command, env=env, timeout_s=left_s, keep_daemons=False))
    written = sorted(folder.glob("seen-*.json"))
    places = [msgspec.json.decode(one.read_bytes(), type=list[_Place]) for one in written]
    return frozenset(chain.from_iterable(places))


def _selecting(line: str, options: str) -> str:
    """The gate's line with options for what runs last in it."""
    last = _SEPARATOR.split(line)[-1].strip()
    return f"{line} -- {options}" if _SCRIPTS.match(last) else f"{line} {options}"
