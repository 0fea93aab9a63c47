"""Runs failing tests once more to see what they execute and the passing ones do not.

Writes to its scratch folder only. A trace that is not available is an empty one.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import sqrt

import msgspec

from atlas_retry.gates.plan import Plan
from atlas_retry.gates.trace.tracers import (
    PATTERN,
    Seen,
    TraceRequest,
    seen_in_go,
    seen_in_node,
    seen_in_python,
)
from atlas_retry.model import Diagnostic, Frame, Gate, GateResult, Kind, Validation
from atlas_retry.prompt import Traced

TRACERS: Mapping[str, Callable[[TraceRequest, Plan], list[Seen]]] = {
    "pytest": seen_in_python,
    "unittest": seen_in_python,
    "go-test": seen_in_go,
    **dict.fromkeys(PATTERN, seen_in_node),
}
"""By the tool of the diagnostics that name the failing tests."""
MAX_S, MIN_S = 20.0, 5.0
"""Of one gate's trace: a gate that itself takes longer is not traced."""
MAX_TIMES = 2
"""How much longer than the gate a trace may take."""
MAX_TRACED = 1_000


def requests_of(failed: Validation, gates: Mapping[str, Gate]) -> list[TraceRequest]:
    """What is worth tracing: the failing tests of these gates by name, but of slow ones."""
    requests: list[TraceRequest] = []
    for result in failed.failures:
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
    safe = "".join(char if char.isalnum() else "-" for char in gate.name)
    return TraceRequest(
        gate=gate,
        runner=runner,
        tests=tuple(tests),
        name=f"trace-{safe}-{runner}",
        timeout_s=min(MAX_S, max(MIN_S, twice_s), gate.timeout_s or MAX_S),
    )


def seen_of(request: TraceRequest, plan: Plan) -> list[Seen]:
    """What the tests ran, one for each process; empty where that is not available.

    `plan.logs` is the scratch folder. Raises Interrupted.
    """
    try:
        return TRACERS[request.runner](request, plan)
    except (OSError, UnicodeError, msgspec.DecodeError):
        return []


def _runner(test: Diagnostic) -> str:
    if not test.test_id:
        return ""
    return "pytest" if ".py::" in test.test_id else test.tool


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
        path, first, name, line = place
        figure = bad / sqrt(failed * (bad + passing[place]))
        function = (path, first or line, name)
        best[function] = max(best.get(function, 0.0), figure)
    order = sorted(best.items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        Traced(frame=Frame(path=path, line=first, function=name or None), suspicion=figure)
        for (path, first, name), figure in order[:MAX_TRACED]
    )
