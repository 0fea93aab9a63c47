"""Run failing tests again to find code that they execute and passing tests do not.

Writes to its scratch folder only. If no trace is available, it is empty.
"""

import re
import shlex
import shutil
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from math import sqrt
from pathlib import Path
from time import monotonic

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.gates.plan import Plan, command_of, environment
from atlas_retry.model import Diagnostic, Frame, Gate, GateResult, Kind
from atlas_retry.patterns import regex
from atlas_retry.process import Completed, run
from atlas_retry.prompt import Traced
from atlas_retry.reading import read_text

MAX_S, MIN_S, MIN_GO_S = 20.0, 5.0, 12.0
"""Time limits of a gate's trace; slower gates are not traced. Go must compile again."""
MAX_TIMES = 2
"""Time limit of a trace, as a multiple of the gate's own duration."""
MAX_TRACED = 1_000


class TraceRequest(Struct, frozen=True, kw_only=True):
    """The failing tests of one gate to trace with one runner."""

    gate: Gate
    runner: str
    """Tool of the diagnostics."""
    tests: tuple[Diagnostic, ...]
    """At least one; each has a `test_id`."""
    name: str
    """Name of the folder that the tracer writes to."""
    timeout_s: float
    gate_s: float
    """What the gate took when it failed."""


class Seen(Struct, frozen=True, kw_only=True):
    """Result of one traced run."""

    failed: int
    """Number of tests that failed when they were traced."""
    lines: tuple[tuple[str, int, str, int, int, int], ...]
    """Path, first line of the function (0: unknown), its name (empty: unknown), line, number of
    failing and of passing tests that ran it."""


def requests_of(failures: Iterable[GateResult], gates: Mapping[str, Gate]) -> list[TraceRequest]:
    """The failing tests to trace, of these gates by name; slow gates are left out."""
    requests: list[TraceRequest] = []
    for result in failures:
        gate = gates.get(result.name)
        is_slow = result.duration_ms > MAX_S * 1000
        if gate is None or is_slow or result.kind is not Kind.TEST:
            continue
        tests: dict[str, list[Diagnostic]] = {}
        for diagnostic in result.diagnostics:
            tests.setdefault(_runner(diagnostic), []).append(diagnostic)
        known = tests.keys() & TRACERS.keys()
        requests += (_request(result, gate, runner, tests[runner]) for runner in sorted(known))
    return requests


def _request(result: GateResult, gate: Gate, runner: str, tests: list[Diagnostic]) -> TraceRequest:
    twice_s = MAX_TIMES * result.duration_ms / 1000
    least_s = MIN_GO_S if runner == "go-test" else MIN_S
    safe = "".join(char if char.isalnum() else "-" for char in gate.name)
    return TraceRequest(
        gate=gate,
        runner=runner,
        tests=tuple(tests),
        name=f"trace-{safe}-{runner}",
        timeout_s=min(MAX_S, max(least_s, twice_s), gate.timeout_s or MAX_S),
        gate_s=result.duration_ms / 1000,
    )


def seen_of(request: TraceRequest, plan: Plan) -> list[Seen]:
    """What the tests executed, one item per process; empty if not available.

    `plan.logs` is the scratch folder. Raises Interrupted.
    """
    try:
        return TRACERS[request.runner](request, plan)
    except (OSError, UnicodeError, msgspec.DecodeError):
        return []


def _runner(test: Diagnostic) -> str:
    if not test.test_id or (test.tool in PATTERN and "::" not in test.test_id):
        return ""  # a file of which no test could start
    return "pytest" if ".py::" in test.test_id else test.tool


def ranked(seen: Iterable[Seen]) -> tuple[Traced, ...]:
    """Functions by the Ochiai coefficient of their most suspect line, highest first.

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
        path, first, name, line = place
        figure = bad / sqrt(failed * (bad + passing[place]))
        function = (path, first or line, name)
        best[function] = max(best.get(function, 0.0), figure)
    order = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Traced(frame=Frame(path=path, line=first, function=name or None), suspicion=figure)
        for (path, first, name), figure in order[:MAX_TRACED]
    )


RECORDING, PLUGIN = "atlas_recording", "atlas_tracing"
GIVEN: Mapping[str, Mapping[str, str]] = {
    "pytest": {RECORDING: RECORDING, PLUGIN: PLUGIN},
    "unittest": {RECORDING: RECORDING, "atlas_unittest": "sitecustomize"},
}
"""Modules copied for the project's Python, by runner, with their names there."""
_PATH_SET = regex(r"(?<![\w$])PYTHONPATH=[\"']?")
"""A command that sets the variable itself, so the folder must be added there."""

HOOK = "atlas_coverage.cjs"
PATTERN: Mapping[str, str] = {
    "jest": "--coverage=false -t",
    "vitest": "--coverage=false -t",
    "mocha": "-g",
    "node-test": "--test-name-pattern",
}
"""Options by which runners take a regular expression for the full titles of tests."""
MIN_LEFT_S = 0.1
_SCRIPTS = regex(r"^(?:npm (?:test|t|run(?:-script)? \S+))(?! --)")
_SEPARATOR = regex(r"&&|\|\||[;|\n]")

MAX_FAILING, MAX_PASSING, MAX_PACKAGES = 12, 40, 2
_MODULE = regex(r"^module\s+(\S+)", re.MULTILINE)
# https://go.dev/blog/cover: name.go:line.column,line.column numberOfStatements count
_BLOCK = regex(r"^(\S+\.go):(\d+)\.\d+,\d+\.\d+ \d+ ([1-9]\d*)$", re.MULTILINE)
_SCRIPT = """\
go test -c -cover -coverpkg=./... -o {out}/bin {package} || exit 1
cd {package} || exit 1
{failing}
{out}/bin -test.list '^Test' | grep -vxF -e ok {excluded} | head -n {limit} |
while read -r name; do
  {out}/bin -test.run "^$name\\$" -test.coverprofile "{out}/passing-$name" >{out}/said 2>&1 ||
    rm -f "{out}/passing-$name"
done
"""


def _run(wanted: TraceRequest, plan: Plan, line: str, timeout_s: float, **env: str) -> Completed:
    command = command_of(wanted.gate, line, plan, wanted.name)
    env = {**command.env, **env}
    # on TERM the tracer writes what it has
    stop = signal.SIGTERM
    return run(replace(command, env=env, timeout_s=timeout_s, keep_daemons=False, stop_signal=stop))


def _folder(plan: Plan, name: str) -> Path:
    folder = plan.logs / name
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def seen_in_python(wanted: TraceRequest, plan: Plan) -> list[Seen]:
    """Trace these tests and others of their modules with the gate's own command."""
    folder = _folder(plan, wanted.name)
    for module, given in GIVEN[wanted.runner].items():
        shutil.copy(Path(__file__).with_name(f"{module}.py"), folder / f"{given}.py")
    failing = [test.test_id for test in wanted.tests]
    asked = folder / "asked.json"
    facts = {"root": str(plan.root), "failing": failing, "gate_s": wanted.gate_s}
    asked.write_bytes(msgspec.json.encode(facts))
    line = _PATH_SET.sub(rf"\g<0>{folder}:", wanted.gate.run)
    env = environment(wanted.gate, plan.environ)
    more = {
        "ATLAS_TRACE": str(asked),
        "COVERAGE_FILE": str(folder / "coverage"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONPATH": ":".join(filter(None, (str(folder), env.get("PYTHONPATH")))),
    }
    if wanted.runner == "pytest":
        more["PYTEST_ADDOPTS"] = f"{env.get('PYTEST_ADDOPTS', '')} -p {PLUGIN}".strip()
    _run(wanted, plan, line, wanted.timeout_s, **more)
    written = sorted(folder.glob("seen-*.json"))
    return [msgspec.json.decode(one.read_bytes(), type=Seen) for one in written]


def seen_in_node(wanted: TraceRequest, plan: Plan) -> list[Seen]:
    """Trace failing and other tests by V8's coverage.

    V8 does not tell tests apart, so the failing tests run first, then the others; with Node's own
    runner then all of them, because before 22.1 it has no pattern that excludes tests.
    """
    named = (str(test.test_id).partition("::")[2] for test in wanted.tests)
    spelled = (re.escape(re.sub(r" [\u203a>] ", " ", title)) for title in named)
    titles = "|".join(dict.fromkeys(spelled))
    until_s = monotonic() + wanted.timeout_s
    failing, has_passed = _run_in_node(f"^(?:{titles})$", "failing", wanted, plan, until_s)
    if not failing or has_passed:
        return []
    passing, _ = _run_in_node(f"^(?!.*(?:{titles})$)", "passing", wanted, plan, until_s)
    lines = tuple(
        (path, line, name, line, 1, int((path, name, line) in passing))
        for path, name, line in failing
    )
    return [Seen(failed=1, lines=lines)]


def _run_in_node(
    titles: str, which: str, wanted: TraceRequest, plan: Plan, until_s: float
) -> tuple[frozenset[tuple[str, str, int]], bool]:
    """Path, name and line of every function that ran, and whether the tests passed."""
    folder = _folder(plan, f"{wanted.name}-{which}")
    hook = shutil.copy(Path(__file__).with_name(HOOK), folder / HOOK)
    options = f"{PATTERN[wanted.runner]} {shlex.quote(titles)}"
    last = _SEPARATOR.split(wanted.gate.run)[-1].strip()
    line = f"{wanted.gate.run} {'-- ' if _SCRIPTS.match(last) else ''}{options}"
    own = environment(wanted.gate, plan.environ).get("NODE_OPTIONS", "")
    env = {
        "NODE_OPTIONS": f"{own} --require {shlex.quote(str(hook))}".strip(),
        "ATLAS_TRACE": str(folder),
        "ATLAS_TRACE_ROOT": str(plan.root),
    }
    done = _run(wanted, plan, line, max(until_s - monotonic(), MIN_LEFT_S), **env)
    written = sorted(folder.glob("seen-*.json"))
    kind = list[tuple[str, str, int]]
    places = [msgspec.json.decode(one.read_bytes(), type=kind) for one in written]
    return frozenset(chain.from_iterable(places)), done.exit_code == 0


def seen_in_go(wanted: TraceRequest, plan: Plan) -> list[Seen]:
    """Trace each failing test and some others of its package; a test that panics has no trace.

    Builds one test binary with coverage, and runs it once per test.
    """
    root = plan.root / wanted.gate.cwd
    tests: dict[str, list[str]] = {}
    for test in wanted.tests:
        package, _, name = str(test.test_id).partition("::")
        tests.setdefault(package, []).append(name)
    chosen = list(tests.items())[:MAX_PACKAGES]
    seen: list[Seen] = []
    for number, (package, names) in enumerate(chosen):
        folder = _folder(plan, f"{wanted.name}-{number}")
        script = _go_script(package, list(dict.fromkeys(names)), folder)
        _run(wanted, plan, script, wanted.timeout_s / len(chosen))
        seen += _profiles(folder, root)
    return seen


def _go_script(package: str, names: list[str], folder: Path) -> str:
    out = shlex.quote(str(folder))
    failing = []
    for number, name in enumerate(names[:MAX_FAILING]):
        pattern = "/".join(f"^{re.escape(level)}$" for level in name.split("/"))
        profile = f"{out}/failing-{number}"
        failing.append(
            f"{out}/bin -test.run {shlex.quote(pattern)} "
            f"-test.coverprofile {profile} >{out}/said 2>&1 && rm {profile}"
        )
    excluded = (f"-e {shlex.quote(name.partition('/')[0])}" for name in names)
    return _SCRIPT.format(
        out=out,
        package=shlex.quote(f"./{package}"),
        failing="\n".join(failing),
        excluded=" ".join(excluded),
        limit=MAX_PASSING,
    )


def _profiles(folder: Path, root: Path) -> list[Seen]:
    failing = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("failing-*"))]
    passing = [file.read_text(encoding="utf-8") for file in sorted(folder.glob("passing-*"))]
    module = _MODULE.search(read_text(root / "go.mod")) if failing else None
    if not module:
        return []
    bad, good = _counted(failing, module[1]), _counted(passing, module[1])
    lines = tuple((path, 0, "", line, bad[path, line], good[path, line]) for path, line in bad)
    return [Seen(failed=len(failing), lines=lines)]


def _counted(profiles: list[str], module: str) -> Counter[tuple[str, int]]:
    """Number of profiles that ran a block, by path below the module and first line."""
    counted = Counter[tuple[str, int]]()
    for profile in profiles:
        ran = {(path, int(line)) for path, line, _ in _BLOCK.findall(profile)}
        counted.update((path.removeprefix(f"{module}/"), line) for path, line in ran)
    return counted


TRACERS: Mapping[str, Callable[[TraceRequest, Plan], list[Seen]]] = {
    "pytest": seen_in_python,
    "unittest": seen_in_python,
    "go-test": seen_in_go,
    **dict.fromkeys(PATTERN, seen_in_node),
}
"""Tracers by the tool of the diagnostics that name the failing tests."""
