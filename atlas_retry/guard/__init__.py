"""Judges a change: kept, held, refused or noted, by what decides. Pure; executes nothing.

`assess(case)` gives the answers and what follows; `rulings(case)` which mechanism spoke of what.
"""

from atlas_retry.guard.case import Case
from atlas_retry.guard.inspection import Ruling, assess, rulings
from atlas_retry.guard.judgement import Content, Judgement

__all__ = ["Case", "Content", "Judgement", "Ruling", "assess", "rulings"]
