"""Appends every event of a run to its `events.jsonl`, one frozen event a line.

The file's time stamp is a sign of life (`state_dir.beating`) and shows when a run was killed.
"""

import os
from pathlib import Path
from typing import Self

import msgspec

from atlas_retry.errors import StateError
from atlas_retry.events import Event, GateProgress
from atlas_retry.text import json_text

NAME = "events.jsonl"


class EventLog:
    """An observer that appends whole lines to a file.

    Raises StateError if the file cannot be opened or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o600)
        except OSError as error:
            raise StateError(f"the event log cannot be opened: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def __call__(self, event: Event) -> None:
        if isinstance(event, GateProgress):
            return
        fields = msgspec.to_builtins(event)
        scope = fields.pop("scope")
        head = {"time": fields.pop("time"), "level": fields.pop("level")} | scope
        entry = head | {"event": event.kind, "message": event.message} | fields
        try:
            os.write(self._descriptor, json_text.encode(entry) + b"\n")
        except OSError as error:
            raise StateError(
                f"the event log {self.path} cannot be written: {error}",
                remedy="free some space, or export ATLAS_HOME=/another/folder",
            ) from error
