"""Append every event of a run to its `events.jsonl`, one frozen event a line."""

import os
from pathlib import Path
from typing import Self

import msgspec

from atlas_retry.errors import StateError
from atlas_retry.events import Event, GateProgress
from atlas_retry.text import json_text


def line_of(event: Event) -> bytes:
    """One JSON object: when, how bad, the event's scope, its name and message, then the rest.

    Ends with a newline. Bytes that are not UTF-8 are escaped as in `json_text`.
    """
    fields = msgspec.to_builtins(event)
    scope = fields.pop("scope")
    head = {"time": fields.pop("time"), "level": fields.pop("level")} | scope
    entry = head | {"event": event.kind, "message": event.message} | fields
    return json_text.encode(entry) + b"\n"


class EventLog:
    """An observer that appends to a file; each line is whole or not there.

    Raises StateError when the file cannot be opened or written.
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
        try:
            os.write(self._descriptor, line_of(event))
        except OSError as error:
            raise StateError(
                f"the event log {self.path} cannot be written: {error}",
                remedy="free some space, or export ATLAS_HOME=/another/folder",
            ) from error
