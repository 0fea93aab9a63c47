"""Passages of source around diagnostics, and their text within a limit. Ranks nothing."""

from atlas_retry.source.excerpt.cutting import Excerpt, excerpt
from atlas_retry.source.excerpt.places import (
    Mark,
    Passage,
    Read,
    anchor,
    marked,
    note_of,
    passage_at,
    shortened,
)

__all__ = [
    "Excerpt",
    "Mark",
    "Passage",
    "Read",
    "anchor",
    "excerpt",
    "marked",
    "note_of",
    "passage_at",
    "shortened",
]
