"""Judges a change: kept, held, refused or noted, by the files that decide. Pure.

`assess(case)` returns the judgement; `rulings(case)` the ruling of each mechanism on each path.
"""

from atlas_retry.guard.case import Case, Judgement, Ruling
from atlas_retry.guard.inspection import assess, rulings
from atlas_retry.model import Content

__all__ = ["Case", "Content", "Judgement", "Ruling", "assess", "rulings"]
