"""The runs as a table for other programs, one function a format."""

import csv
import io
from collections.abc import Callable, Sequence

from atlas_retry.text import json_text

Rows = Sequence[dict[str, object]]


def _csv(rows: Rows) -> str:
    """RFC 4180, with a header where there is any row."""
    out = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(out, rows[0].keys())
        writer.writeheader()
        writer.writerows(rows)
    return out.getvalue()


def _json(rows: Rows) -> str:
    return json_text.encode(rows).decode() + "\n"


EXPORTS: dict[str, Callable[[Rows], str]] = {"csv": _csv, "json": _json}
