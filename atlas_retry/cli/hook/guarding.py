"""What a turn left, and what the guard says of it. Only this module asks the judge."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.cli.hook.turns import Start
from atlas_retry.errors import StateError
from atlas_retry.events import now
from atlas_retry.guard import judge
from atlas_retry.guard.judge import seals
from atlas_retry.guard.judgement import Judgement
from atlas_retry.model import GateResult
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.workspace import gitfacts, shadow, snapshots, state

_ORDINARY = ("refs/", "state:", "worktrees/", "config:branch.", "config:remote.")
_ORDINARY_FACTS = frozenset({"HEAD", "index", "stash", "shallow"})


def sealed(opened: OpenWorkspace) -> bytes:
    """The state of everything that decides, as bytes to keep, without the environment's secrets."""
    seal = seals.seal(opened.root, opened.settings, opened.environ)
    return msgspec.msgpack.encode(replace(seal, environ={}), enc_hook=str)


def judged(
    opened: OpenWorkspace, before: str, after: str, *, seal: bytes, failing: Sequence[GateResult]
) -> Judgement:
    """The guard's answers about what a turn made of the snapshot `before`.

    `seal` is what `sealed` gave when the turn began, `failing` the gates that the agent knew to
    fail. Raises StateError for a seal that cannot be read, WorkspaceError.
    """
    guard = opened.settings.guard
    if guard.mode == "off":
        return Judgement()
    turn = judge.JudgedTurn(origin=before, before=before, after=after, failing=tuple(failing))
    judgement = judge.judge_attempt(
        opened.git,
        turn,
        _unsealed(seal, opened.environ),
        notes_reviews=guard.review == "note",
    )
    left = (replace(held, in_place=True) for held in judgement.held)
    return replace(judgement, held=tuple(left), blocks=guard.mode == "block")


def _unsealed(content: bytes, environ: Mapping[str, str]) -> judge.Seal:
    """The seal with the environment of now, and with git as far as a person has an agent use it."""
    try:
        taken = msgspec.msgpack.decode(content, type=judge.Seal, dec_hook=_path)
    except msgspec.MsgspecError as error:
        raise StateError(f"the state at the turn's beginning cannot be read: {error}") from error
    now_facts = gitfacts.facts_since(taken.root, taken.facts, environ=environ)
    # of before, but for commits, branches, stashes and the like as they are now
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
    """What an agent left, before any gate ran."""

    snapshot: str
    tree: str
    """Equal exactly when the files that git does not ignore are."""
    of_gates: frozenset[str]
    """Files that differ from the turn's beginning by what earlier gates wrote, and by that alone.
    """


def left_by(opened: OpenWorkspace, start: Start) -> Left:
    """What is there now. Raises WorkspaceError."""
    there = snapshots.snapshot(opened.git)
    moved = _differing(opened, start.left or start.snapshot or "", there.id)
    of_gates = frozenset(start.written) - moved
    return Left(snapshot=there.id, tree=there.work, of_gates=of_gates)


def ended(opened: OpenWorkspace, start: Start, left: Left, *, alone: bool) -> Start:
    """The turn with what its agent and then the gates left, held for `atlas undo`.

    `alone`: nothing but the gates can have written meanwhile.
    """
    after = snapshots.snapshot(opened.git).id
    shadow.keep(opened.git, f"runs/{start.id}/end", after)
    agents = _differing(opened, start.snapshot or "", left.snapshot) - left.of_gates
    wrote = _differing(opened, left.snapshot, after) - agents
    written = left.of_gates | wrote if alone else left.of_gates
    return replace(start, left=after, ended_at=now(), written=tuple(sorted(written)))


def _differing(opened: OpenWorkspace, before: str, after: str) -> frozenset[str]:
    return frozenset(c.path for c in state.changes(opened.git, before, after, ignored=True))
