"""Records an agent's prompts, replies and edits in the layout of the scripted agent."""

import shutil
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.agents.scripted import PATCH, PROMPT, REPLY, reviews_file
from atlas_retry.errors import UsageError
from atlas_retry.model import Agent, AgentReply, AgentRequest
from atlas_retry.workspace import discovery
from atlas_retry.workspace.snapshot import snapshots, trees


def open_folder(folder: Path, root: Path) -> None:
    """Create the folder of a new recording, if it is missing.

    Raises UsageError if it is not empty or inside the workspace.
    """
    if folder.resolve().is_relative_to(root.resolve()):
        raise UsageError(
            f"--record {folder}: the folder is in the workspace, so it would be part of the change",
            remedy=f"use one outside {root}",
        )
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        raise UsageError(f"--record {folder}: the folder is not empty", remedy="use a new one")


class CapturingAgent(Struct, frozen=True, kw_only=True):
    """An agent that calls another one and records its work."""

    agent: Agent
    git: discovery.Workspace
    folder: Path

    def __call__(self, request: AgentRequest) -> AgentReply:
        if request.schema is not None:
            return self._review(request)
        before = snapshots.snapshot(self.git)
        reply = self.agent(request)
        after = snapshots.snapshot(self.git)
        step = self.folder / str(request.attempt)
        shutil.rmtree(step, ignore_errors=True)
        step.mkdir()
        (step / PROMPT).write_text(request.prompt, encoding="utf-8", errors="replace")
        (step / REPLY).write_bytes(_written(reply))
        edits = trees.patch(self.git, before.id, after.id, whole=True)
        if edits:
            (step / PATCH).write_bytes(edits)
        return reply

    def _review(self, request: AgentRequest) -> AgentReply:
        reply = self.agent(request)
        file = reviews_file(self.folder, request)
        file.parent.mkdir(exist_ok=True)
        file.with_suffix(".md").write_text(request.prompt, encoding="utf-8", errors="replace")
        file.write_bytes(_written(reply))
        return reply


def _written(reply: AgentReply) -> bytes:
    """The reply as JSON, without the session, which a replay cannot resume."""
    return msgspec.json.format(msgspec.json.encode(replace(reply, session_id=None)), indent=2)
