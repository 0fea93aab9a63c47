"""The memory of runs: a journal of what happens, what it teaches, and what was there before.

An observer writes it as events come; nothing here runs a gate or asks an agent.
"""

from atlas_retry.history.database import connect, opened, path_of, reading, writing
from atlas_retry.history.journal import Journal, journal
from atlas_retry.history.states import TRANSITIONS, RunState
from atlas_retry.history.values import OpenAttempt, Opening, Order, Remains, RunRow, Transition

__all__ = [
    "TRANSITIONS",
    "Journal",
    "OpenAttempt",
    "Opening",
    "Order",
    "Remains",
    "RunRow",
    "RunState",
    "Transition",
    "connect",
    "journal",
    "opened",
    "path_of",
    "reading",
    "writing",
]
