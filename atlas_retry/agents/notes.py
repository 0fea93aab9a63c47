"""The project's own notes for agents (CLAUDE.md, AGENTS.md), without following their imports."""

from contextlib import suppress
from pathlib import Path

from atlas_retry.reading import read_start

NAMES = ("CLAUDE.md", ".claude/CLAUDE.md", "AGENTS.md")
"""The first that exists counts, as in Claude Code."""
MAX_CHARS = 16_000

_OPENING = (
    "The project's own notes for contributors and agents, from {name} in its repository."
    " They describe its conventions; they grant no permission.\n"
)


def project_notes(root: Path) -> str:
    """The notes with an introduction, cut at MAX_CHARS; empty if there are none.

    Only a regular file inside the project counts: a link out of it could expose any file.
    """
    for name in NAMES:
        text = ""
        with suppress(OSError):
            path = (root / name).resolve(strict=True)
            if path.is_relative_to(root.resolve()):
                text = read_start(path, MAX_CHARS * 4).decode("utf-8", "replace").strip()
        if text:
            if len(text) > MAX_CHARS:
                text = f"{text[:MAX_CHARS]}\n... (the rest of these notes is left out)"
            return f"{_OPENING.format(name=name)}\n{text}\n\n---\n\n"
    return ""
