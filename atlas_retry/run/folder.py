"""Where a run keeps its prompts, logs and transcripts. Writes nothing into them."""

from pathlib import Path

from msgspec import Struct

from atlas_retry import state_dir
from atlas_retry.run.open import OpenWorkspace


class RunFolder(Struct, frozen=True, kw_only=True):
    """Where a run keeps its prompts, logs and transcripts, in the state directory."""

    path: Path

    @property
    def events(self) -> Path:
        return self.path / "events.jsonl"

    def logs(self, number: int) -> Path:
        """Of the n-th validation; 0 is the baseline. The oldest may go, see `state_dir.trim`."""
        parent = state_dir.folder(self.path, "logs")
        state_dir.trim(parent)
        return state_dir.folder(parent, str(number))

    def aside(self, number: int) -> Path:
        """Of the n-th time that gates ran with other files in place."""
        parent = state_dir.folder(self.path, "asides")
        state_dir.trim(parent)
        return state_dir.folder(parent, str(number))

    def scratch(self, attempt: int) -> Path:
        return state_dir.folder(self.path, "attempts", str(attempt))


def run_folder(opened: OpenWorkspace, run_id: str) -> RunFolder:
    """The folder of a run, which the run makes."""
    return RunFolder(path=opened.state / "runs" / run_id)
