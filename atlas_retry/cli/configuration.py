"""`atlas config`: the effective values and where each comes from, errors, schemas."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry import config
from atlas_retry.cli import options
from atlas_retry.reports import documents
from atlas_retry.reports.documents import encode


def show(path: options.PathArgument = Path(), *, as_json: options.Json = False) -> int:
    """Print every effective value and where it comes from."""
    rows = config.explain(path.resolve(), environ=os.environ, overrides={})
    if as_json:
        print(encode(rows), end="")
        return 0
    width = max(len(row.key) for row in rows)
    for row in rows:
        print(f"{row.key:<{width}}  {row.value}  ({row.origin})")
    return 0


def check(path: options.PathArgument = Path(), *, as_json: options.Json = False) -> int:
    """Check the configuration, and warn of what is unwise."""
    settings = config.load(path.resolve(), environ=os.environ, overrides={})
    if as_json:
        counted = {"gates": len(settings.gates), "sources": settings.sources}
        print(encode({**counted, "warnings": settings.warnings}), end="")
        return 0
    for warning in settings.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{len(settings.gates)} gates, read from {', '.join(settings.sources)}")
    return 0


def schema(
    *,
    report: Annotated[
        bool, typer.Option("--report", help="Describe the JSON output of atlas instead.")
    ] = False,
) -> int:
    """Print the JSON Schema of the configuration, for editors."""
    print(encode(documents.schema() if report else config.schema()), end="")
    return 0
