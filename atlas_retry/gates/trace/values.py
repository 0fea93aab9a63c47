"""What is asked of a tracer, and what it has seen. Runs nothing."""

from msgspec import Struct

from atlas_retry.model import Diagnostic, Gate


class TraceRequest(Struct, frozen=True, kw_only=True):
    """The failing tests of one gate that one runner is asked for."""

    gate: Gate
    runner: str
    """The tool of the diagnostics."""
    tests: tuple[Diagnostic, ...]
    """At least one; each has a `test_id`."""
    name: str
    """Of the folder that the tracer writes to."""
    timeout_s: float


class Seen(Struct, frozen=True, kw_only=True):
    """What one traced run saw."""

    failed: int
    passed: int
    lines: tuple[tuple[str, int, str, int, int, int], ...]
    """Path, first line of the function (0: not known), its name (empty: not known), line, failing
    and passing tests that ran it."""
