"""What gates wrote in environments after a turn, and what explains it. Puts nothing back.

Code that a turn changed may do that while a gate runs it; a gate's own command may do it, too.
"""

from collections.abc import Collection
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.events import Emit, Notice, unseen
from atlas_retry.gates.plan import Plan
from atlas_retry.gates.validation import run_gates
from atlas_retry.guard import Judgement, judge
from atlas_retry.guard.judge import seals
from atlas_retry.guard.places import is_code, suffix
from atlas_retry.guard.settings import is_manifest
from atlas_retry.model import Contents
from atlas_retry.run.open import OpenWorkspace, beside
from atlas_retry.text.units import first_few
from atlas_retry.workspace.installed import Holding, copied_again, digest, note_written
from atlas_retry.workspace.snapshot import trees
from atlas_retry.workspace.snapshot.unheld import REMOVED


class GatedTurn(Struct, frozen=True, kw_only=True):
    """A turn after its gates have run."""

    opened: OpenWorkspace
    taken: seals.Seal
    """Taken before the turn."""
    first: str
    """Snapshot before the first turn."""
    now: str
    """Snapshot of the present tree."""
    how: Plan
    """To run the gates again."""
    known: Collection[str] = ()
    """The turn's own changes of environments."""
    folder: Path | None = None
    """Where to note for an undo what was installed."""
    emit: Emit = unseen


def is_touched(moved: seals.Moved) -> bool:
    """Whether anything of an environment is not as before the turn."""
    return any((moved.installed, moved.made, moved.tools))


def by_gates(turn: GatedTurn, moved: seals.Moved) -> Judgement:
    """The guard's judgement of what gates wrote and nothing but code of the turn explains.

    The rest is noted for an undo. `moved` is what is not as before the turn. What was not there
    can always be taken away again.
    """
    installed = tuple(path for path in (*moved.installed, *moved.made) if path not in turn.known)
    beside = replace(
        moved,
        outside=(),
        nested=(),
        hiding=(),
        modes=(),
        tools=tuple(tool for tool in moved.tools if tool.path not in turn.known),
        installed=installed,
        restorable=moved.restorable.union(moved.made),
        unseen=(),
    )
    now, facts = turn.now, turn.taken.facts
    same = judge.JudgedTurn(origin=now, before=now, after=now, puts_back=True, git_after=facts)
    judgement = judge.judge_attempt(turn.opened.git, same, turn.taken, beside)
    paths = frozenset(one.path for one in judgement.refused)
    if paths:
        paths = _unexplained(turn, paths)
    if turn.folder:
        ours, there = set(installed).difference(paths), seals.installed_before(turn.taken)
        holding = Holding.opened(turn.taken.root, turn.taken.held)
        note_written(holding, ours, there, turn.folder)
    back = tuple(path for path in judgement.reinstate if path in paths)
    return replace(
        judgement,
        answers=tuple(one for one in judgement.refused if one.path in paths),
        reinstate=back,
        ends=judgement.ends if paths.difference(back) else None,
    )


def _unexplained(turn: GatedTurn, paths: frozenset[str]) -> frozenset[str]:
    """Those of the written files that nothing but code of the turn explains.

    Explained is a copy that follows its source. Then, what the gates' own commands make alike with
    the code of the first snapshot, in environments as they were; and what they make with other
    content each time. Data stay as changed for that: a manifest names what is installed.
    """
    git, span = turn.opened.git, (turn.first, turn.now)
    names = {path.rpartition("/")[2] for path in paths}
    moved = frozenset(trees.moved(git, *span, ignored=True)) - paths
    code = frozenset(filter(_may_run, moved))
    moved = code.union(path for path in moved if path.rpartition("/")[2] in names)
    was, now = (trees.tree(git, one, ignored=True).contents(moved) for one in span)
    holding = Holding.opened(turn.taken.root, turn.taken.held)
    left = paths - copied_again(holding, paths, was, now)
    if not left:
        return left
    earlier = {path: was[path] for path in code}
    earlier |= {path: holding.file(path) for path in left if not path.startswith("/")}
    return _not_made(turn, earlier, left)


def _not_made(turn: GatedTurn, earlier: Contents, left: frozenset[str]) -> frozenset[str]:
    """Those of the written files that the gates do not make with earlier files in place."""
    text = "  running again with the earlier code, because gates wrote in environments"
    turn.emit(Notice(text=f"{text}: {first_few(sorted(left))}"))
    wrote = {path: digest(turn.opened.root, path) for path in left}
    first = _made(turn, earlier, left)
    left = left.difference(path for path in left if first[path] == wrote[path])
    second = _made(turn, earlier, left) if left else first
    return left.difference(path for path in left if first[path] != second[path])


def _made(turn: GatedTurn, earlier: Contents, paths: frozenset[str]) -> dict[str, str]:
    """The digests of these paths after the gates ran with earlier files in place."""
    opened = turn.opened
    # an overlay shows no other state of these, so the run itself begins with what was there
    outside = [path for path in paths if path.startswith("/")]
    seals.put_back(turn.taken, outside, opened.git.home / REMOVED / "environments")
    gates = [gate for gate in opened.settings.gates if gate.prompt is None]  # a review costs
    with beside(opened, gates, earlier, turn.how) as (how, there):
        run_gates(gates, how)
        seen = {path: path if path.startswith("/") else there.file(path) for path in paths}
        return {path: digest(opened.root, f"{at}") if at else "" for path, at in seen.items()}


def _may_run(path: str) -> bool:
    return is_code(path) or not (suffix(path) or is_manifest(path))
