"""Take what is there as a session of Claude Code starts, and at each prompt. Says nothing.

Whatever goes wrong is kept, for the end of the turn to tell; the session goes on.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from atlas_retry import config, state_dir, workspace
from atlas_retry.agents.environment import nested
from atlas_retry.cli.hook import memory
from atlas_retry.cli.hook.guarding import sealed
from atlas_retry.cli.hook.hosts import read_turn
from atlas_retry.cli.hook.values import TURN_SUFFIX, BlockTally, HookTurn, Start, is_from_a_person
from atlas_retry.errors import AtlasError
from atlas_retry.events import now
from atlas_retry.run.open import OpenWorkspace, open_configured

KEPT_SNAPSHOTS = 50
"""Of a workspace: turns that `atlas undo` can go back to."""
_WITHIN_A_TURN = "compact"


def start(document: bytes, environ: Mapping[str, str]) -> None:
    """Keep what is there when a turn begins; `told` is what Claude Code says of it."""
    with suppress(AtlasError, OSError, ValueError, msgspec.MsgspecError):
        turn = read_turn(document)
        if not nested(environ) and turn.source != _WITHIN_A_TURN:
            _begin(turn, environ)


def project(turn: HookTurn, environ: Mapping[str, str]) -> Path:
    """The folder that Claude Code was started in; `cwd` goes where the agent's shell goes."""
    return Path(environ.get("CLAUDE_PROJECT_DIR") or turn.cwd)


def _begin(turn: HookTurn, environ: Mapping[str, str]) -> None:
    home = state_dir.locate(environ)
    tally = memory.load(home, turn.session_id)
    last = memory.start(home, turn.session_id, tally.prompt_id)
    if turn.prompt_id is not None and memory.start(home, turn.session_id, turn.prompt_id):
        return  # typed while the agent works: what has moved since is the agent's
    if last and _goes_on(turn, tally, last, environ):
        memory.keep_start(home, turn.session_id, replace(last, prompt_id=turn.prompt_id))
        return
    try:
        begun, seal = _taken(open_configured(project(turn, environ), environ), turn.prompt_id)
    except (AtlasError, OSError, ValueError) as error:
        begun, seal = _failed(turn, environ, " ".join(str(error).split())), None
    memory.keep_start(home, turn.session_id, begun, seal)


def _goes_on(turn: HookTurn, tally: BlockTally, last: Start, environ: Mapping[str, str]) -> bool:
    """Whether nobody but the agent has worked since the last turn began.

    So it is where the prompt is nobody's, and where what was refused is still all that is there.
    """
    if turn.prompt_id is None:
        return False
    if not is_from_a_person(turn, tally):
        return True
    if tally.refused_tree is None:
        return False
    ws = workspace.open_workspace(Path(last.root), state_dir.locate(environ), environ=environ)
    return workspace.snapshot(ws).work == tally.refused_tree


def _taken(opened: OpenWorkspace, prompt_id: str | None) -> tuple[Start, bytes | None]:
    begun = Start(
        id=state_dir.new_run_id() + TURN_SUFFIX,
        root=str(opened.root),
        taken_at=now(),
        prompt_id=prompt_id,
        settings=opened.settings,
    )
    if not opened.has_git:
        return begun, None
    taken = workspace.snapshot(opened.git)
    _hold(opened.git, begun.id, taken.id)
    return replace(begun, snapshot=taken.id), sealed(opened)


def _hold(ws: workspace.Workspace, turn_id: str, snapshot_id: str) -> None:
    """Keep the snapshot as that of a run; those of the oldest turns go."""
    workspace.keep(ws, f"runs/{turn_id}/start", snapshot_id)
    kept = {name: name.split("/")[1] for name in workspace.kept(ws) if name.startswith("runs/")}
    known = sorted({of for of in kept.values() if of.endswith(TURN_SUFFIX)})
    gone = set(known[:-KEPT_SNAPSHOTS])
    if gone:
        workspace.drop(ws, *(name for name, of in kept.items() if of in gone))


def _failed(turn: HookTurn, environ: Mapping[str, str], problem: str) -> Start:
    return Start(
        id=state_dir.new_run_id() + TURN_SUFFIX,
        root=str(config.root_of(project(turn, environ))),
        taken_at=now(),
        prompt_id=turn.prompt_id,
        problem=problem,
    )
