"""The question whether a run whose budget is spent goes on, and for how much."""

import math
import os
import sys

import typer

from atlas_retry.cli import places
from atlas_retry.cli.accepting import is_inside_agent
from atlas_retry.model import Outcome, Verdict
from atlas_retry.reports.handoff import counted_problems, next_usd
from atlas_retry.text.units import usd


def more_usd(outcome: Outcome) -> float | None:
    """The money that a person adds for what is left; None if the run is over.

    Asks only at a terminal, and only if the last attempt made progress that was paid for.
    """
    last = outcome.attempts[-1] if outcome.attempts else None
    has_progress = last is not None and last.kept and last.fixed
    price = next_usd(outcome)
    if outcome.verdict is not Verdict.EXHAUSTED or not has_progress or price is None:
        return None
    if not places.can_ask(sys.stderr) or is_inside_agent(os.environ):
        return None
    found, left = counted_problems(outcome)
    amount = float(math.ceil(price))
    spent = f"{left} of {found} left to fix, {usd(outcome.cost_usd)} spent"
    return amount if typer.confirm(f"{spent}: go on with {usd(amount)}?", err=True) else None
