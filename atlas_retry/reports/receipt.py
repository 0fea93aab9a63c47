"""The receipt of a validation, which ties its result to a tree and gates. Pure."""

import hashlib
from collections.abc import Iterator, Sequence

import msgspec
from msgspec import Struct

from atlas_retry import __version__
from atlas_retry.errors import UsageError
from atlas_retry.model import Answer, Gate, Held, Kind, OpenReview, Status, Validation, Violation
from atlas_retry.text import json_text
from atlas_retry.text.redaction import redact

RECEIPT = "atlas.receipt/1"


class GateReceipt(Struct, frozen=True, kw_only=True):
    """One gate and how it ended."""

    name: str
    kind: Kind
    command: str
    required: bool
    digest: str
    """SHA-256 of the whole definition."""
    status: Status
    exit_code: int | None
    tool: str | None
    """First line of the program's `--version`; None if it fails."""


class GuardReceipt(Struct, frozen=True, kw_only=True):
    """The guard's answers to the changes since a commit."""

    base: str
    refused: tuple[Violation, ...] = ()
    held: tuple[Held, ...] = ()
    noted: tuple[Answer, ...] = ()


class Receipt(Struct, frozen=True, kw_only=True, tag_field="schema", tag=RECEIPT):
    """`atlas.receipt/1`; fields are only ever added."""

    atlas_version: str
    made_at: str
    tree: str
    """Id of the git tree of all files that git does not ignore."""
    configuration: str
    """SHA-256 of the configuration's files."""
    verdict: str
    """passed, failed or broken."""
    gates: tuple[GateReceipt, ...]
    guard: GuardReceipt | None
    open_reviews: tuple[OpenReview, ...] = ()
    """Changes in the tree that a person must review."""


class Present(Struct, frozen=True, kw_only=True):
    """The present state, to make a receipt of or compare one with."""

    tree: str
    configuration: str
    gates: tuple[Gate, ...]
    open_reviews: tuple[OpenReview, ...] = ()


def make_receipt(
    validation: Validation,
    present: Present,
    guard: GuardReceipt | None,
    tools: Sequence[str | None],
) -> Receipt:
    """The receipt of a validation of these gates, in order; `tools` are their versions."""
    green = "passed" if validation.success else "failed"
    rows = zip(present.gates, validation.results, tools, strict=True)
    return Receipt(
        atlas_version=__version__,
        made_at=validation.completed_at,
        tree=present.tree,
        configuration=present.configuration,
        verdict="broken" if validation.broken else green,
        gates=tuple(
            GateReceipt(
                name=gate.name,
                kind=gate.kind,
                command=redact(gate.run),
                required=gate.required,
                digest=digest_of(gate),
                status=result.status,
                exit_code=result.exit_code,
                tool=tool,
            )
            for gate, result, tool in rows
        ),
        guard=guard,
        open_reviews=present.open_reviews,
    )


def problems(receipt: Receipt, present: Present) -> Iterator[str]:
    """Why the receipt does not match the present state; empty if it does."""
    if receipt.verdict != "passed":
        yield f"it is the receipt of a validation that {receipt.verdict}"
    if receipt.tree != present.tree:
        yield f"it is for the tree {receipt.tree[:12]}, but this is {present.tree[:12]}"
    if receipt.configuration != present.configuration:
        yield "it was made with another configuration"
    passed = {gate.digest for gate in receipt.gates if gate.status in (Status.PASSED, Status.FLAKY)}
    for gate in present.gates:
        if gate.required and digest_of(gate) not in passed:
            yield f"it has no pass of the gate {gate.name}"
    waiting = dict.fromkeys(one.place for one in (*receipt.open_reviews, *present.open_reviews))
    yield from (f"a person must review {place}" for place in waiting)
    if receipt.guard is None:
        yield "the guard has not judged the change"
    elif receipt.guard.refused:
        yield f"the guard refused {receipt.guard.refused[0].path}"


def digest_of(gate: Gate) -> str:
    """SHA-256 of a gate's whole definition."""
    return hashlib.sha256(json_text.encode(gate)).hexdigest()


def read_receipt(content: bytes, source: str) -> Receipt:
    """Parse a receipt. Raises UsageError if it is not one."""
    try:
        return msgspec.json.decode(content, type=Receipt)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            f"{source} is not a receipt: {error}", remedy="atlas validate --receipt FILE"
        ) from error
