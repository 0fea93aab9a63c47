"""What gates have printed, as an agent may read it: without secrets. Raw logs stay as they are."""

from pathlib import Path

from msgspec.structs import replace

from atlas_retry.model import GateResult, Validation
from atlas_retry.state_dir import folder
from atlas_retry.text.redaction import clean, redact

MAX_BYTES = 512 << 10
"""Of the head and of the tail of a stream each; redaction takes a second or more for both."""
MARGIN_BYTES = 64 << 10
"""Before the tail: no secret that would be known by its beginning is longer."""


def shown_logs(
    validation: Validation, state: Path, target: Path, hidden: frozenset[str]
) -> Validation:
    """The same, the logs of what failed copied to `target` without secrets; others are not named.

    Only what lies in the state directory is copied: a recorded report may name any file.
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
    for name, text in (("stdout.log", result.stdout), ("stderr.log", result.stderr)):
        told = _ends(source / name, hidden) if result.output_omitted_bytes else text
        (target / name).write_text(told, encoding="utf-8", errors="replace")
    return str(target)


def _ends(path: Path, hidden: frozenset[str]) -> str:
    """As much of a log as an agent may want, said where something is left out."""
    try:
        with path.open("rb") as file:
            size = path.stat().st_size
            head = file.read(MAX_BYTES if size > 2 * MAX_BYTES else size)
            if size == len(head):
                return redact(clean(_text(head)), hidden)
            file.seek(max(size - MAX_BYTES - MARGIN_BYTES, len(head)))
            margin, tail = file.read(MARGIN_BYTES), file.read(MAX_BYTES)
    except OSError:
        return ""
    # whole lines: half a secret is not known as one; clean and redact keep the number of lines
    head = head[: head.rfind(b"\n") + 1]
    before = margin.count(b"\n") + 1
    shown = "\n".join(redact(clean(_text(margin + tail)), hidden).split("\n")[before:])
    middle = f"... of {size} bytes the middle is left out ...\n"
    return redact(clean(_text(head)), hidden) + middle + shown


def _text(content: bytes) -> str:
    return content.decode("utf-8", "replace")
