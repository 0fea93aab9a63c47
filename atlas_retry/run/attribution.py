"""Tells the user's edits during an agent's turn from the agent's, where its reply allows it."""

from atlas_retry.events import Notice
from atlas_retry.model import AgentReply, Level
from atlas_retry.run.decide import Progress
from atlas_retry.run.effects import Effects, Taken
from atlas_retry.text.units import some

MAX_SHOWN = 8


def before_the_agent(
    before: Taken, after: Taken, reply: AgentReply, number: int, do: Effects
) -> tuple[Taken, frozenset[str]]:
    """What was there before the turn, with what somebody else has edited meanwhile, and what.

    Whatever is judged or restored from there on is the agent's alone. It is `before` itself where
    nobody knows: then everything counts as its own.
    """
    changed = _paths(before.id, after.id, do)
    theirs = do.by_others(changed, reply)
    if not theirs:
        return before, theirs
    named = some(sorted(theirs), MAX_SHOWN)
    text = f"edited while the agent worked, and not by it: {named}; left as it is"
    do.emit(Notice(level=Level.WARNING, text=text))
    ours = changed - theirs
    if not ours:
        return after, theirs
    do.restore(before.id, after.id, ours)
    mixed = do.snapshot(f"{number}-before")
    do.restore(after.id, mixed.id, ours)
    return mixed, theirs


def go_back(target: str, progress: Progress, do: Effects) -> None:
    """Bring back an earlier snapshot, but for what is the user's."""
    paths = _paths(progress.current, target, do) - progress.theirs if progress.theirs else None
    do.restore(target, progress.current, paths)


def _paths(before: str, after: str, do: Effects) -> frozenset[str]:
    return frozenset(change.path for change in do.changes(before, after))
