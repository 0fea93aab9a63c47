"""`atlas hook start`: record the state as a session starts and at each prompt. Prints nothing.

Errors are kept and reported at the end of the turn; the session continues.
"""

import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from atlas_retry import config, state_dir
from atlas_retry.agents.unavailable import INSIDE_AGENT
from atlas_retry.cli import options
from atlas_retry.cli.app import examples, hook_app
from atlas_retry.cli.hook import memory
from atlas_retry.cli.hook.guarding import sealed
from atlas_retry.cli.hook.hosts import HOSTS, Host
from atlas_retry.cli.hook.turns import (
    BlockTally,
    HookSession,
    HookTurn,
    Start,
    is_from_a_person,
)
from atlas_retry.errors import AtlasError
from atlas_retry.events import now
from atlas_retry.gates.memory import Memory
from atlas_retry.model import GateResult
from atlas_retry.run.open import OpenWorkspace, answers, open_configured
from atlas_retry.workspace import discovery
from atlas_retry.workspace.snapshot import snapshots, store

KEPT_SNAPSHOTS = 50
"""Turns of a workspace that `atlas undo` can restore."""
_WITHIN_A_TURN = "compact"


@hook_app.command("start", epilog=examples("atlas hook start < turn.json"), hidden=True)
def hook_start(*, host: options.Host = "claude") -> None:
    """Record the state as a session starts or a prompt is given, as JSON on stdin.

    Prints nothing and always exits with 0: at a prompt, exit code 2 would swallow the prompt.
    """
    start(sys.stdin.buffer.read(), os.environ, HOSTS[host])


def start(document: bytes, environ: Mapping[str, str], host: Host = HOSTS["claude"]) -> None:
    """Record the state at the start of the turn that this document of the agent describes."""
    with suppress(AtlasError, OSError, ValueError, msgspec.MsgspecError):
        turn = host.read(document)
        if not environ.get(INSIDE_AGENT) and turn.source != _WITHIN_A_TURN:
            _begin(turn, environ)


def project(turn: HookTurn, environ: Mapping[str, str]) -> Path:
    """The folder that Claude Code was started in; `cwd` follows the agent's shell."""
    return Path(environ.get("CLAUDE_PROJECT_DIR") or turn.cwd)


def _begin(turn: HookTurn, environ: Mapping[str, str]) -> None:
    home = state_dir.locate(environ)
    root = str(config.root_of(project(turn, environ)))
    session = HookSession(root=root, transcript=turn.transcript_path or "")
    memory.keep_session(home, turn.session_id, session)
    last = memory.start(home, turn.session_id)
    new_id = state_dir.exact_id(state_dir.TURN)
    # agents without ids of prompts get ours
    prompt_id = turn.prompt_id or (None if turn.source else new_id)
    if last and prompt_id is not None:
        continued = _continued(turn, prompt_id, last, environ)
        if continued:
            memory.keep_start(home, turn.session_id, continued)
            return
    begun = Start(id=new_id, root=root, taken_at=now(), prompt_id=prompt_id)
    seal = None
    try:
        opened = open_configured(project(turn, environ), environ)
        begun = replace(begun, settings=opened.settings)
        if opened.has_git:
            taken = snapshots.snapshot(opened.git)
            # before the first prompt no agent changes files: there is nothing to undo
            name = "start" if turn.prompt_id else "session"
            _hold(opened.git, begun.id, name, taken.id)
            begun, seal = replace(begun, snapshot=taken.id), sealed(opened)
        tally = memory.load(home, turn.session_id)
        begun = replace(begun, failed=_known_failures(opened, tally))
    except (AtlasError, OSError, ValueError) as error:
        begun = replace(begun, settings=None, problem=" ".join(str(error).split()))
    memory.keep_start(home, turn.session_id, begun, seal)


def _known_failures(opened: OpenWorkspace, tally: BlockTally) -> tuple[GateResult, ...]:
    """Failures on these files, or else those at the end of the last turn. Runs no gate."""
    remembered = Memory(answers(opened.state, opened.root), opened.root, opened.environ)
    gates, files = opened.settings.gates, opened.tracker.files
    known = remembered.recall(gates, lambda: files()[1], only_red=False).values()
    names = {result.name for result in known}
    late = (result for result in tally.failing if result.name not in names)
    return (*(result for result in known if result.blocks), *late)


def _continued(
    turn: HookTurn, prompt_id: str, last: Start, environ: Mapping[str, str]
) -> Start | None:
    """The last turn, if only the agent has changed files since it began; else None.

    So it is if no person typed the prompt, or if the files are still those of the refused turn.
    """
    if last.prompt_id == prompt_id:
        return last  # typed while the agent works
    home = state_dir.locate(environ)
    tally = memory.load(home, turn.session_id)
    if not is_from_a_person(turn, tally):
        # without an id of its own it may be the hook's answer, of which attempts are counted
        return replace(last, prompt_id=prompt_id) if turn.prompt_id else last
    if tally.refused_tree is None:
        return None
    ws = discovery.open_workspace(Path(last.root), home, environ=environ)
    is_refused = snapshots.snapshot(ws).tree == tally.refused_tree
    return replace(last, prompt_id=prompt_id) if is_refused else None


def _hold(ws: discovery.Workspace, turn_id: str, name: str, snapshot_id: str) -> None:
    """Keep the snapshot as that of a run, and drop those of the oldest turns."""
    store.keep(ws, f"runs/{turn_id}/{name}", snapshot_id)
    kept = {name: name.split("/")[1] for name in store.kept(ws) if name.startswith("runs/")}
    known = sorted({of for of in kept.values() if of.endswith(state_dir.TURN)})
    gone = set(known[:-KEPT_SNAPSHOTS])
    if gone:
        store.drop(ws, *(name for name, of in kept.items() if of in gone))
