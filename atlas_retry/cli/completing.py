"""What the shell offers for the values of options and arguments. Never fails, never prints."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from atlas_retry.errors import AtlasError


def gates(incomplete: str) -> list[str]:
    """Kinds and names of the gates that are configured here."""
    from atlas_retry import config

    with suppress(AtlasError):
        found = config.load(Path.cwd(), environ=os.environ, overrides={}).gates
        return _beginning(incomplete, [*(gate.kind for gate in found), *(g.name for g in found)])
    return []


def agents(incomplete: str) -> list[str]:
    """The built-in backends."""
    from atlas_retry.agents import AGENTS

    return _beginning(incomplete, list(AGENTS))


def formats(incomplete: str) -> list[str]:
    """The formats of `--report`, each with its `=`."""
    from atlas_retry.reports.formats import REPORTS

    return _beginning(incomplete, [f"{name}=" for name in REPORTS])


def runs(incomplete: str) -> list[str]:
    """The runs of this workspace, newest first."""
    from atlas_retry import config, history, state_dir
    from atlas_retry.history import archive

    with suppress(AtlasError), history.reading(state_dir.locate(os.environ)) as connection:
        rows = archive.runs(connection, str(config.root_of(Path.cwd())))
        return _beginning(incomplete, [row.id for row in rows])
    return []


def workspaces(incomplete: str) -> list[str]:
    """Named workspaces, and folders that begin so."""
    return _beginning(incomplete, list(_workspaces(incomplete)))


def _workspaces(incomplete: str) -> Iterator[str]:
    from atlas_retry import state_dir, workspace

    with suppress(AtlasError):
        here = workspace.open_workspace(
            Path.cwd(), state_dir.locate(os.environ), environ=os.environ
        )
        yield from (one.name for one in workspace.list_worktrees(here))
    folder = Path(incomplete).parent if incomplete else Path()
    with suppress(OSError):
        yield from (str(path) for path in sorted(folder.iterdir()) if path.is_dir())


def _beginning(incomplete: str, values: list[str]) -> list[str]:
    return [value for value in dict.fromkeys(values) if value.startswith(incomplete)]
