"""Logs of gates: read again if output is long, and copied without secrets for an agent."""

from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from atlas_retry.model import GateResult, Validation
from atlas_retry.process import Completed
from atlas_retry.state_dir import folder
from atlas_retry.text.redaction import clean, redact

MAX_READ_BYTES = 4 << 20
"""Limit of one stream; parsing that much takes 2 s and 120 MB (ruff's concise output)."""
MAX_COPIED_BYTES = 1 << 20
"""Limit of a log that is copied in full; redacting that much takes a second or more."""
_GAP = b"\n... (not read)\n"


def logged(completed: Completed) -> tuple[str, str, bool]:
    """Text of stdout and stderr, and whether it is complete.

    Control sequences are removed, secrets are not.
    """
    logs = completed.command.log_dir
    if logs is None:
        return clean(completed.stdout.text), clean(completed.stderr.text), False
    out, err = _read(logs / "stdout.log"), _read(logs / "stderr.log")
    sizes = completed.stdout.size_bytes, completed.stderr.size_bytes
    is_whole = (len(out), len(err)) == sizes and max(sizes) <= MAX_READ_BYTES
    return _text(out), _text(err), is_whole


def _read(log: Path) -> bytes:
    """A whole log, or the lines at its head and tail if it is long."""
    half = MAX_READ_BYTES // 2
    with suppress(OSError), log.open("rb") as file:
        head = file.read(MAX_READ_BYTES)
        size = log.stat().st_size
        if size <= MAX_READ_BYTES:
            return head
        file.seek(size - half)
        return head[:half].rpartition(b"\n")[0] + _GAP + file.read().partition(b"\n")[2]
    return b""


def _text(log: bytes) -> str:
    return clean(log.decode("utf-8", "replace"))


def shown_logs(
    validation: Validation, state: Path, target: Path, hidden: frozenset[str]
) -> Validation:
    """The validation with logs of failed gates copied to `target` without secrets.

    Other logs are not named. Only files in the state directory are copied, because a recorded
    report may name any file.
    """
    return replace(
        validation,
        results=tuple(
            replace(result, log_path=_copied(result, state, target / str(number), hidden))
            for number, result in enumerate(validation.results)
        ),
    )


def _copied(result: GateResult, state: Path, target: Path, hidden: frozenset[str]) -> str | None:
    source = Path(result.log_path or "/")
    if result.success or not source.resolve().is_relative_to(state.resolve()):
        return None
    folder(target)
    for name, kept in (("stdout.log", result.stdout), ("stderr.log", result.stderr)):
        text = kept
        with suppress(OSError):
            size = (source / name).stat().st_size
            if result.output_omitted_bytes and size <= MAX_COPIED_BYTES:
                text = redact(_text((source / name).read_bytes()), hidden) or kept
        if text:
            (target / name).write_text(text, encoding="utf-8", errors="replace")
    return str(target)
