"""Judges a change: kept, held, refused or noted, by what decides. Pure; executes nothing.

`assess(case)` gives the answers and what follows; `rulings(case)` which mechanism spoke of what.
"""

from atlas_retry.guard.case import Answer, Case, OutsideChange, Tool
from atlas_retry.guard.inspection import Ruling, assess, rulings
from atlas_retry.guard.judgement import Content, Judgement
from atlas_retry.guard.protection import protected_globs

__all__ = [
    "Answer",
    "Case",
    "Content",
    "Judgement",
    "OutsideChange",
    "Ruling",
    "Tool",
    "assess",
    "protected_globs",
    "rulings",
]
