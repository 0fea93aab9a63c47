"""The sealed replay: runs the failed gates with all held changes reverted."""

import tempfile
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.errors import UsageError
from atlas_retry.guard import Judgement
from atlas_retry.guard.judge import ChangeAsked, base_tree
from atlas_retry.model import Content
from atlas_retry.process import Command, run_all
from atlas_retry.workspace.discovery import open_workspace
from atlas_retry.workspace.isolation.isolated import beside

TIMEOUT_S = 300.0


def replayed(asked: ChangeAsked, judgement: Judgement, environ: Mapping[str, str]) -> Judgement:
    """The judgement with its held changes marked as needed by the failed gates or not.

    Executes the project's code outside the workspace. Raises UsageError if the workspace is not
    under git, WorkspaceError.
    """
    lines = [result.command for result in asked.failing if result.command]
    if not lines or not judgement.held_paths:
        return judgement
    if not (asked.workspace / ".git").exists():
        raise UsageError(
            "--replay needs a workspace under git",
            remedy="git init && git add -A && git commit -m start",
        )
    before = base_tree(asked, environ)
    sealed: dict[str, Content | None] = dict(judgement.as_before)
    for path in judgement.held_paths:
        mode, content = before.mode(path), before.read(path)
        sealed[path] = (mode, content) if mode and content is not None else None
    sealed |= judgement.rewrite
    needed = not _pass(lines, sealed, asked.workspace, environ)
    held = (one.tried(needed=needed) for one in judgement.held)
    return replace(judgement, answers=(*judgement.refused, *held, *judgement.noted))


def _pass(
    lines: list[str], sealed: Mapping[str, Content | None], root: Path, environ: Mapping[str, str]
) -> bool:
    ws = open_workspace(root, state_dir.locate(environ), environ=environ)
    with tempfile.TemporaryDirectory() as logs, beside(ws, sealed, lines) as there:
        commands = [
            Command(
                argv=("/bin/sh", "-c", line),
                cwd=root,
                env=dict(environ),
                timeout_s=TIMEOUT_S,
                log_dir=Path(logs, str(number)),
            )
            for number, line in enumerate(lines)
        ]
        ended = run_all([there.wrap(command) for command in commands], jobs=1)
    return all(done is not None and done.exit_code == 0 for done in ended)
