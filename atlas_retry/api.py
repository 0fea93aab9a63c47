"""Validation and the loop for Python programs, as the command line runs them. Prints nothing.

Heavy modules are imported when one of the functions is called, so importing this one is cheap.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from atlas_retry.events import Emit, unseen
from atlas_retry.model import Outcome, Validation


def validate(
    path: str | os.PathLike[str] = ".",
    *,
    only: Sequence[str] = (),
    check: bool = False,
    settings: Mapping[str, object] | None = None,
    on_event: Emit = unseen,
) -> Validation:
    """Run the gates of a workspace without an agent; reads the configuration and `os.environ`.

    `only` are kinds or names of gates, `check` fails gates that change files, `settings` are keys
    of the configuration with dots: {"validation.timeout": "1m"}. Raises an AtlasError for what
    must be fixed first: ConfigError, UsageError, WorkspaceError.
    """
    from msgspec.structs import replace

    from atlas_retry.gates.validation import run_gates
    from atlas_retry.run.open import open_configured, plan, select, validation_logs

    opened = open_configured(Path(path).resolve(), os.environ, settings)
    how = replace(plan(opened, validation_logs(opened)), check=check)
    return run_gates(select(opened.settings.gates, only), how, on_event)


def retry(
    path: str | os.PathLike[str] = ".",
    *,
    ai_fix: bool = False,
    settings: Mapping[str, object] | None = None,
    on_event: Emit = unseen,
) -> Outcome:
    """Validate and fix what fails; with `ai_fix` by asking the agent, which may cost money.

    `Outcome.verdict` says how it ended; nothing that an agent does raises. `settings` as for
    `validate`: {"retry.max_cost_usd": 1}. Raises an AtlasError for what must be fixed first, and
    Interrupted once everything is restored, if signals are handled by
    `atlas_retry.process.handle_signals`.
    """
    from atlas_retry.history.values import Order
    from atlas_retry.run.one import RunOptions, opened_with, run_one

    asked = RunOptions(order=Order(ai_fix=ai_fix, overrides=settings or {}))
    return run_one(opened_with(Path(path).resolve(), asked, os.environ), asked, on_event)
