"""Judges a change: pure rules over two trees and what is beside them. Executes nothing.

`inspect(case)` gives the violations; `findings(case)` tells besides which of them a sealed replay
may excuse. A rule is a row of `RULES`.
"""

from atlas_retry.guard import places
from atlas_retry.guard.case import Case, OutsideChange, Tool
from atlas_retry.guard.inspection import findings, inspect, separable
from atlas_retry.guard.protection import protected_globs
from atlas_retry.guard.rules import RULES

__all__ = [
    "RULES",
    "Case",
    "OutsideChange",
    "Tool",
    "findings",
    "inspect",
    "places",
    "protected_globs",
    "separable",
]
