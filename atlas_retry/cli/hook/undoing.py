"""A turn of Claude Code as a run, so that what puts runs back puts it back as well."""

from pathlib import Path

from atlas_retry.cli.hook import memory
from atlas_retry.cli.hook.values import TURN_SUFFIX, Start
from atlas_retry.events import now
from atlas_retry.history import RunRow
from atlas_retry.history.states import RunState


def is_turn(run_id: str) -> bool:
    """Whether this is the id of a turn."""
    return run_id.endswith(TURN_SUFFIX)


def turn_run(home: Path, root: Path, name: str | None) -> RunRow | None:
    """The turn of this id, without one the newest that may have changed something; else None."""
    known = memory.turns(home, root)
    if name is not None:
        return _run(known[name]) if name in known else None
    changed = [begun for begun in known.values() if _may_have_changed(begun)]
    return _run(changed[-1]) if changed else None


def _may_have_changed(begun: Start) -> bool:
    """A turn that was cut off may have; before the first prompt nothing has."""
    return begun.left != begun.snapshot if begun.left else begun.prompt_id is not None


def _run(begun: Start) -> RunRow:
    return RunRow(
        id=begun.id,
        root=begun.root,
        name=Path(begun.root).name,
        repository="",
        state=RunState.ABANDONED,
        with_agent=True,
        started_at=begun.taken_at,
        last_at=begun.taken_at,
        segment_at=begun.taken_at,
        ended_at=begun.ended_at or now(),
        start=begun.snapshot or "",
        left_behind=begun.left,
    )
