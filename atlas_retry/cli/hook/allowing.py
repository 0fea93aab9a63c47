"""`atlas hook allow`: records what a person allows the agent sessions in this workspace."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry import config, state_dir
from atlas_retry.cli.accepting import only_a_person
from atlas_retry.cli.app import examples, hook_app
from atlas_retry.cli.hook import memory
from atlas_retry.errors import UsageError
from atlas_retry.text.commands import quoted


@hook_app.command("allow", epilog=examples("atlas hook allow tests/test_api.py"))
def hook_allow(
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="A file or folder, as in the message.")
    ],
) -> None:
    """Allow a change that the guard refused or held, in this session; only a person can."""
    recorded = allow(path, Path.cwd(), os.environ, has_terminal=sys.stdin.isatty())
    print(f"{recorded} may change in the agent sessions seen here")


def allow(path: str, at: Path, environ: Mapping[str, str], *, has_terminal: bool) -> str:
    """Allow a file or folder to change in every session seen in the workspace around `at`.

    Returns the path as recorded. Raises UsageError if not run by a person at a terminal or if no
    session was seen, and StateError.
    """
    only_a_person(f"atlas hook allow {quoted(path)}", environ, has_terminal=has_terminal)
    root = config.root_of(at)
    recorded = os.path.normpath(path)  # it may be a deleted file, named from the root
    if os.path.lexists(at / path):
        there = Path(os.path.realpath((at / path).parent), Path(path).name)
        recorded = there.relative_to(root).as_posix() if there.is_relative_to(root) else str(there)
    if not memory.allow(state_dir.locate(environ), root, recorded):
        raise UsageError(
            f"no agent session has been seen in {root}",
            remedy="run it in the workspace of the session; to allow it always, set guard.allow",
        )
    return recorded
