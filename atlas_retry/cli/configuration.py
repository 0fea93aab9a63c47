"""`atlas config`: the effective values and where each comes from, errors, schemas."""

import os
import sys
from pathlib import Path

from atlas_retry import config
from atlas_retry.reports import documents
from atlas_retry.reports.documents import encode
from atlas_retry.text.units import counted


def show(path: Path = Path(), *, config_file: Path | None = None, json: bool = False) -> int:
    """Print every effective value and where it comes from."""
    rows = config.explain(path.resolve(), environ=os.environ, overrides=config.naming(config_file))
    if json:
        print(encode(rows), end="")
        return 0
    width = max(len(row.key) for row in rows)
    for row in rows:
        print(f"{row.key:<{width}}  {row.value}  ({row.origin})")
    return 0


def check(path: Path = Path(), *, config_file: Path | None = None, json: bool = False) -> int:
    """Check the configuration, and warn of what is unwise."""
    settings = config.load(path.resolve(), environ=os.environ, overrides=config.naming(config_file))
    if settings.triage_baseline:
        from atlas_retry.run.triage import check_baseline

        check_baseline(config.root_of(path), settings, os.environ)
    if json:
        facts = {"gates": len(settings.gates), "sources": settings.sources}
        print(encode({**facts, "warnings": settings.warnings}), end="")
        return 0
    for warning in settings.warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{counted(len(settings.gates), 'gate')}, read from {', '.join(settings.sources)}")
    return 0


def schema(
    *,
    report: bool = False,
) -> int:
    """Print the JSON Schema of the configuration, for editors."""
    print(encode(documents.schema() if report else config.schema()), end="")
    return 0
