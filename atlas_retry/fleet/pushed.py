"""The latest attempt of a run, from which another machine can continue.

There it is replayed as the first attempt at no cost; guard and gates judge it again.
"""

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import agents
from atlas_retry.agents.models import MODELS
from atlas_retry.agents.presets import PRESETS
from atlas_retry.agents.scripted import scripted
from atlas_retry.events import Emit
from atlas_retry.history import archive, database, rescue
from atlas_retry.model import Agent, AgentReply, AgentRequest
from atlas_retry.settings import AgentSettings
from atlas_retry.workspace import discovery
from atlas_retry.workspace.snapshot import trees

BACKEND = f"{__name__}:continuing"
"""Value for `agent.backend`."""
AGENT, SCRIPT = "ATLAS_FLEET_AGENT", "ATLAS_FLEET_SCRIPT"
"""Variables with the agent to ask after the replay, and the folder to replay."""


class PushedAttempt(Struct, frozen=True, kw_only=True):
    """The latest tree of a run, as a patch of the one it started from."""

    attempts: int
    """Number of finished attempts."""
    patch: bytes


def latest(home: Path, environ: Mapping[str, str], root: Path, run: str) -> PushedAttempt | None:
    """The latest attempt of a run on this machine; None if there is nothing to continue from."""
    with database.reading(home) as connection:
        rows = archive.of_batch(connection, run)
        done = archive.attempts(connection, rows[0].id) if rows else ()
    result = done[-1].result if done else None
    if result is None:
        return None
    ws = discovery.open_workspace(root, home, environ=environ)
    origin = rescue.snapshots(ws, rows[0]).get(rescue.ORIGIN)
    patch = trees.patch(ws, origin, result, whole=True) if origin else b""
    return PushedAttempt(attempts=len(done), patch=patch) if patch else None


def continuing(settings: AgentSettings, emit: Emit, environ: Mapping[str, str]) -> Agent:
    """An agent that replays the pushed attempt first, and then asks another agent."""
    replayed = scripted(replace(settings, path=environ[SCRIPT]), emit, environ)
    backend = environ[AGENT]
    asked = agents.resolve(backend)(replace(settings, backend=backend), emit, environ)

    def ask(request: AgentRequest) -> AgentReply:
        if request.attempt == 1 and request.schema is None:
            return replayed(request)
        is_claudes = backend in PRESETS and request.model in MODELS  # by default, not by choice
        return asked(replace(request, model=None) if is_claudes else request)

    return ask
