"""The problems of a gate in the form that all formats share: order, places, number left out."""

from collections.abc import Iterable

from msgspec.structs import replace

from atlas_retry.model import Diagnostic, GateResult, Level, Status
from atlas_retry.text.units import counted

SIGNS = {
    Status.PASSED: "✓",
    Status.FAILED: "✗",
    Status.TIMED_OUT: "⏱",
    Status.BROKEN: "!",
    Status.VACUOUS: "∅",
    Status.FLAKY: "~",
    Status.SKIPPED: "–",  # noqa: RUF001 - a dash for nothing
}


def tests_first(result: GateResult) -> list[Diagnostic]:
    """The diagnostics of a gate, failing tests first."""
    return sorted(result.diagnostics, key=lambda diagnostic: diagnostic.test_id is None)


def listed(result: GateResult) -> tuple[Diagnostic, ...]:
    """The diagnostics, failing tests first; if a failing gate has none, one that says so.

    Errors of an optional gate become warnings.
    """
    every = tests_first(result)
    if not every and not result.success:
        every = [Diagnostic(tool=result.name, message=reason(result))]
    if result.required:
        return tuple(every)
    warning = Level.WARNING
    return tuple(replace(d, level=warning) if d.level is Level.ERROR else d for d in every)


def problems(result: GateResult) -> tuple[Diagnostic, ...]:
    """The listed diagnostics, and one that counts the problems left out."""
    shown = listed(result)
    left = more(result, shown)
    if not left:
        return shown
    whole = f"; the whole output: {result.log_path}" if result.log_path else ""
    level = Level.ERROR if result.required else Level.WARNING
    return (*shown, Diagnostic(tool=result.name, message=f"and {left}{whole}", level=level))


def more(result: GateResult, shown: Iterable[Diagnostic]) -> str:
    """Number of problems left out: `3 more problems`, `at least 3 more problems`, or empty."""
    left = result.problems - sum(diagnostic.count for diagnostic in shown)
    if left > 0:
        return f"{'at least ' if result.at_least else ''}{counted(left, 'more problem')}"
    return "perhaps more: part of the output could not be parsed" if result.at_least else ""


def tally(result: GateResult) -> str:
    """Number of problems of a gate: `3`, `at least 30000`; empty for none."""
    least = "at least " if result.at_least else ""
    return f"{least}{result.problems}" if result.problems else ""


def reason(result: GateResult) -> str:
    """Why a gate did not pass or was flaky, in one sentence with the command."""
    flaked = "failed, then passed on an unchanged tree"
    why = flaked if result.status is Status.FLAKY else result.error
    why = why or f"exit code {result.exit_code}"
    return f"{result.status.replace('_', ' ')}: {result.command}: {why}"


def place(diagnostic: Diagnostic) -> str:
    """The test's id, else the known parts of `path:line:column`, else empty."""
    return diagnostic.test_id or position(diagnostic)


def position(diagnostic: Diagnostic) -> str:
    """The known parts of `path:line:column`."""
    if diagnostic.path is None:
        return ""
    region = diagnostic.region
    numbers = (region.start_line, region.start_column) if region else ()
    return ":".join((diagnostic.path, *(str(number) for number in numbers if number)))
