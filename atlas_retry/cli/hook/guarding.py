"""The changes of a turn and the guard's judgement. Only this module calls the judge."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.cli.hook.feedback import TurnOpinion
from atlas_retry.cli.hook.turns import Start
from atlas_retry.errors import StateError, WorkspaceError
from atlas_retry.events import now
from atlas_retry.gates.plan import Plan
from atlas_retry.guard import Judgement, judge
from atlas_retry.guard.judge import seals
from atlas_retry.model import GateResult, Held
from atlas_retry.run import environments
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.workspace import gitfacts, installed
from atlas_retry.workspace.snapshot import snapshots, store, trees
from atlas_retry.workspace.snapshot.unheld import REMOVED

_ORDINARY = ("refs/", "state:", "worktrees/", "config:branch.", "config:remote.")
_ORDINARY_FACTS = frozenset({"HEAD", "index", "stash", "shallow"})


def sealed(opened: OpenWorkspace) -> bytes:
    """Serialised seal of everything that decides, without environment variables."""
    seal = seals.seal(opened.root, opened.settings, opened.environ, held=opened.git.installed)
    return msgspec.msgpack.encode(replace(seal, environ={}), enc_hook=str)


def judged(
    opened: OpenWorkspace, before: str, after: str, *, seal: bytes, failing: Sequence[GateResult]
) -> Judgement:
    """The guard's judgement of a turn's changes to the snapshot `before`.

    `seal` comes from `sealed` at the start of the turn; `failing` are the failures that the agent
    knew of. Raises StateError for an unreadable seal, WorkspaceError.
    """
    guard = opened.settings.guard
    if guard.mode == "off":
        return Judgement()
    turn = judge.JudgedTurn(origin=before, before=before, after=after, failing=tuple(failing))
    judgement = judge.judge_attempt(opened.git, turn, _unsealed(seal, opened.environ))
    left = (replace(a, in_place=True) if isinstance(a, Held) else a for a in judgement.answers)
    return replace(judgement, answers=tuple(left), blocks=guard.mode == "block")


def with_gates(
    opened: OpenWorkspace, start: Start, seal: bytes, how: Plan, opinion: TurnOpinion
) -> Judgement:
    """The judgement of a turn with what its code wrote in environments while gates ran it.

    Unless the turn itself wrote the same, that is put back. Without what the gates' own commands
    make, whoever ran them first; but outside the workspace, what the turn wrote stays refused.
    """
    taken, judgement = _unsealed(seal, opened.environ), opinion.judgement
    own = frozenset(violation.path for violation in judgement.refused)
    known = {*judgement.unseen, *(finding.path for finding in opinion.allowed)}
    known.update(path for path in own if path.startswith("/"))
    moved = seals.compared(taken)
    if not environments.is_touched(moved):
        return judgement
    now_id = snapshots.snapshot(opened.git).id
    first = start.snapshot or now_id
    turn = environments.GatedTurn(
        opened=opened, taken=taken, first=first, now=now_id, how=how, known=known
    )
    found = environments.by_gates(turn, moved)
    back = [path for path in found.reinstate if path not in own]
    seals.put_back(taken, back, opened.git.home / REMOVED / start.id)
    looked_at = {*moved.installed}.difference(known)
    stay = (violation for violation in judgement.refused if violation.path not in looked_at)
    refused = dict.fromkeys((*stay, *found.refused))
    return replace(judgement, answers=(*refused, *judgement.held, *judgement.noted))


def _unsealed(content: bytes, environ: Mapping[str, str]) -> seals.Seal:
    """The seal with the present environment and the git facts that an agent may change."""
    try:
        taken = msgspec.msgpack.decode(content, type=seals.Seal, dec_hook=_path)
    except msgspec.MsgspecError as error:
        raise StateError(f"the state at the start of the turn cannot be read: {error}") from error
    now_facts = gitfacts.git_facts(taken.root, environ=environ)
    # commits, branches, stashes and the like may change during a turn
    facts = {name: value for name, value in taken.facts.items() if not _is_ordinary(name)}
    facts |= {name: value for name, value in now_facts.items() if _is_ordinary(name)}
    return replace(taken, environ=environ, facts=facts)


def _path(kind: type, value: object) -> object:
    return Path(str(value)) if kind is Path else value


def _is_ordinary(name: str) -> bool:
    own = name.rpartition(":")[2] if name.startswith("submodules/") else name
    return own in _ORDINARY_FACTS or (
        own.startswith(_ORDINARY) and not own.startswith("refs/replace/")
    )


class Left(Struct, frozen=True, kw_only=True):
    """The state at the end of a turn, before or after its gates."""

    snapshot: str
    tree: str
    """Equal if and only if the files that git does not ignore are equal."""
    of_gates: frozenset[str]
    """Files that only earlier gates have changed since the turn began."""


def left_by(opened: OpenWorkspace, start: Start) -> Left:
    """The present state. Raises WorkspaceError."""
    there = snapshots.snapshot(opened.git)
    moved = _differing(opened, start.left or start.snapshot or "", there.id)
    of_gates = frozenset(start.written) - moved
    return Left(snapshot=there.id, tree=there.tree, of_gates=of_gates)


def changed_in(opened: OpenWorkspace, start: Start, left: Left) -> frozenset[str]:
    """The files that the turn changed, without those that only gates wrote."""
    return _differing(opened, start.snapshot or "", left.snapshot) - left.of_gates


def is_still(opened: OpenWorkspace, snapshot_id: str, left: Left) -> bool:
    """Whether no file has changed since this snapshot; False if there is none, or none any more."""
    if not snapshot_id:
        return False
    with suppress(WorkspaceError):
        return not _differing(opened, snapshot_id, left.snapshot)
    return False


def ended(opened: OpenWorkspace, start: Start, left: Left, *, alone: bool) -> tuple[Start, Left]:
    """The turn with the state that its agent and then the gates left, kept for `atlas undo`.

    `alone`: only the gates can have written since the agent stopped.
    """
    installed.note_end(opened.git.installed)
    taken = snapshots.snapshot(opened.git)
    after = taken.id
    store.keep(opened.git, f"runs/{start.id}/start", start.snapshot or "")
    store.keep(opened.git, f"runs/{start.id}/end", after)
    agents = changed_in(opened, start, left)
    wrote = _differing(opened, left.snapshot, after) - agents
    written = left.of_gates | wrote if alone else left.of_gates
    ended_turn = replace(start, left=after, ended_at=now(), written=tuple(sorted(written)))
    return ended_turn, replace(left, snapshot=after, tree=taken.tree)


def _differing(opened: OpenWorkspace, before: str, after: str) -> frozenset[str]:
    return frozenset(c.path for c in trees.changes(opened.git, before, after, ignored=True))
