"""The Stop hook of Claude Code: gates at the end of every turn, until green or the limit.

Infrastructure trouble never blocks a turn: what cannot be judged is told.
"""

from atlas_retry.hook.answering import stop
from atlas_retry.hook.settings_file import install, merged, planned
from atlas_retry.hook.turn import Answer

__all__ = ["Answer", "install", "merged", "planned", "stop"]
