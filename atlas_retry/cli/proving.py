"""`atlas prove`: which gates notice a fault."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import monotonic
from typing import Annotated

import typer
from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.cli import options, output
from atlas_retry.cli.app import app, examples
from atlas_retry.cli.documents import ProofDocument, write
from atlas_retry.errors import ExitCode
from atlas_retry.model import Kind
from atlas_retry.run.open import open_configured, plan, select, validation_logs
from atlas_retry.run.proving import Planting, ProvenGate, prove

MAX_MINUTES = 10.0


@app.command("prove", epilog=examples("atlas prove", "atlas prove --only test --faults 20"))
def prove_gates(
    path: options.Folder = Path(),
    *,
    config_file: options.ConfigFile = None,
    only: options.Only = None,
    faults: Annotated[
        int, typer.Option(help="Functions that get a fault, for test gates.", min=1)
    ] = 5,
    max_minutes: Annotated[
        float | None, typer.Option(help="Plant no further fault after this time.", min=0)
    ] = None,
    json: options.Json = False,
    quiet: options.Quiet = 0,
) -> ExitCode:
    """Plant faults on a copy, and name the gates that do not notice them."""
    opened = open_configured(path.resolve(), os.environ, config.naming(config_file))
    gates = [g for g in select(opened.settings.gates, only or ()) if g.kind is not Kind.REVIEW]
    how = replace(plan(opened, validation_logs(opened)), jobs=opened.settings.jobs)
    max_s = (MAX_MINUTES if max_minutes is None else max_minutes) * 60
    with output.screen(os.environ, plain=False, to_stderr=json) as shown:
        with output.naming_interruption(shown) as emit:
            planting = Planting(
                opened=opened, how=how, emit=emit, functions=faults, ends_s=monotonic() + max_s
            )
            proofs = prove(gates, planting)
        if not quiet:
            shown.write([(line, "") for line in _lines(proofs)])
    success = not any(proof.is_blind for proof in proofs)
    if json:
        write(ProofDocument(success=success, gates=proofs))
    if not any(proof.tried for proof in proofs):
        return ExitCode.BROKEN
    return ExitCode.OK if success else ExitCode.FAILED


def _lines(proofs: Sequence[ProvenGate]) -> Iterator[str]:
    width = max((len(proof.gate) for proof in proofs), default=0)
    for proof in proofs:
        yield f"{proof.gate:<{width}}  {_said(proof)}"
        if proof.is_blind or proof.kind is Kind.TEST:
            for fault in proof.unseen:
                yield f"{'':<{width}}    still passes with {fault}"
        for folder in proof.not_covered:
            yield f"{'':<{width}}    does not see {folder}"


def _said(proof: ProvenGate) -> str:
    if proof.why_not:
        return f"not tried: {proof.why_not}"
    if proof.is_blind:
        return f"BLIND: `{proof.command}` noticed none of {proof.tried}"
    if proof.kind is Kind.TEST:
        return f"noticed {proof.seen} of {proof.tried}"
    return "can fail"
