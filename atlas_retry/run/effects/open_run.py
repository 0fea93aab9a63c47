"""A run in one workspace: what all its effects share."""

from collections.abc import Callable, Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field

from atlas_retry import state_dir
from atlas_retry.events import Emit, Notice
from atlas_retry.guard.judge import seals
from atlas_retry.history import reviews
from atlas_retry.history.journal import Journal
from atlas_retry.model import Agent, Gate, Level
from atlas_retry.run import irreversible
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.run.progress import Run
from atlas_retry.workspace import gitmoves

if TYPE_CHECKING:
    from atlas_retry.run.channel import Channel
    from atlas_retry.workspace.files import Stat


def run_folder(opened: OpenWorkspace, run_id: str) -> Path:
    """Folder of a run in the state directory, for its prompts, logs and transcripts."""
    return opened.state / "runs" / run_id


class LastTurn(Struct):
    """What was noted about the agent's last turn; None or empty before the first."""

    sealed: seals.Seal | None = None
    """What decides apart from the workspace's files, before it."""
    files: "Mapping[str, Stat]" = field(default_factory=dict)
    """Stat data of the files before it."""
    at_home: irreversible.SettingsAtHome | None = None
    """Atlas's own configuration at home before it."""
    git: gitmoves.GitTurn | None = None
    """Who moved git's state in it."""
    installed: Mapping[str, str] = field(default_factory=dict)
    """Digests of files of environments as it left them, of those that were put back."""


class OpenRun(Struct, kw_only=True):
    """One run in one workspace: its agent, its observers, and what it has counted."""

    run: Run
    opened: OpenWorkspace
    folder: Path
    agent: Agent
    reviewer: Callable[[Gate], Agent]
    """The agent of a review gate. Raises AgentError."""
    journal: Journal
    emit: Emit
    started_s: float
    budget: SharedBudget
    """Budget that the runs of a batch share."""
    channel: "Channel | None" = None
    """Connection to the atlas outside, for a run in an overlay."""
    is_agent_there: bool = False
    last_turn: LastTurn = field(default_factory=LastTurn)
    validations: Iterator[int] = field(default_factory=count)
    """Numbers of validations, for the folders of their logs."""
    asides: Iterator[int] = field(default_factory=lambda: count(1))
    asked: dict[int, tuple[reviews.Question, ...]] = field(default_factory=dict)
    """Attempts whose questions for a person were raised, with those that could not be kept."""

    def warn(self, text: str) -> None:
        self.emit(Notice(level=Level.WARNING, text=text))

    def logs(self, kind: str, number: int) -> Path:
        """Folder for the logs of the n-th run of this kind; may remove old ones, see `trim`."""
        parent = state_dir.folder(self.folder, kind)
        state_dir.trim(parent)
        return state_dir.folder(parent, str(number))

    def attempt_folder(self, number: int) -> Path:
        return state_dir.folder(self.folder, "attempts", str(number))


class Part(Struct, frozen=True):
    """A part of the effects of a run, by what it touches."""

    of: OpenRun

    @property
    def opened(self) -> OpenWorkspace:
        return self.of.opened

    @property
    def last_turn(self) -> LastTurn:
        return self.of.last_turn

    def warn(self, text: str) -> None:
        self.of.warn(text)
