"""A failure that another runner recorded, made as good as one of our own. Runs nothing."""

from collections.abc import Sequence
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.errors import UsageError
from atlas_retry.gates.results import OutputContext, skipped, with_diagnostics
from atlas_retry.model import Gate, GateResult, Status, Validation
from atlas_retry.settings import Settings


def completed(
    validation: Validation, root: Path, settings: Settings, hidden: frozenset[str]
) -> Validation:
    """The same with the diagnostics that its runner did not know to make."""
    reading = OutputContext(root=root, secrets=hidden, parsers=settings.parsers)
    results = tuple(with_diagnostics(result, reading) for result in validation.results)
    return replace(validation, results=results)


def aligned(validation: Validation, gates: Sequence[Gate]) -> Validation:
    """The results in the order of these gates, told by command, else by name.

    A gate without a record counts as skipped: the validation after the first attempt runs it. What
    another run has paid is not this one's.
    Raises UsageError where no gate is spoken of.
    """
    results = tuple(_result_of(gate, validation.results) for gate in gates)
    if all(result.status is Status.SKIPPED for result in results):
        known = ", ".join(gate.run for gate in gates)
        raise UsageError(
            "the report speaks of no gate of this configuration",
            remedy=f"the commands are: {known}",
        )
    return replace(validation, results=results)


def _result_of(gate: Gate, results: Sequence[GateResult]) -> GateResult:
    for result in results:
        if result.command == gate.run or (result.name == gate.name and result.kind is gate.kind):
            return replace(
                result, name=gate.name, kind=gate.kind, required=gate.required, cost_usd=None
            )
    return skipped(gate, "not in the report")
