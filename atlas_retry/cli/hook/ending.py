"""What a turn left, and whose it is: the agent's, or that of the gates which ran at its end."""

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import workspace
from atlas_retry.cli.hook.values import Start
from atlas_retry.events import now
from atlas_retry.run.open import OpenWorkspace


class Left(Struct, frozen=True, kw_only=True):
    """What an agent left, before any gate ran."""

    snapshot: str
    tree: str
    """Equal exactly when the files that git does not ignore are."""
    of_gates: frozenset[str]
    """Files that differ from the turn's beginning by what earlier gates wrote, and by that alone.
    """


def left_by(opened: OpenWorkspace, start: Start) -> Left:
    """What is there now. Raises WorkspaceError."""
    there = workspace.snapshot(opened.git)
    moved = _differing(opened, start.left or start.snapshot or "", there.id)
    of_gates = frozenset(start.written) - moved
    return Left(snapshot=there.id, tree=there.work, of_gates=of_gates)


def ended(opened: OpenWorkspace, start: Start, left: Left, *, alone: bool) -> Start:
    """The turn with what its agent and then the gates left, held for `atlas undo`.

    `alone` says that nobody but the gates can have written meanwhile.
    """
    after = workspace.snapshot(opened.git).id
    workspace.keep(opened.git, f"runs/{start.id}/end", after)
    agents = _differing(opened, start.snapshot or "", left.snapshot) - left.of_gates
    wrote = _differing(opened, left.snapshot, after) - agents
    written = left.of_gates | wrote if alone else left.of_gates
    return replace(start, left=after, ended_at=now(), written=tuple(sorted(written)))


def _differing(opened: OpenWorkspace, before: str, after: str) -> frozenset[str]:
    return frozenset(c.path for c in workspace.changes(opened.git, before, after, ignored=True))
