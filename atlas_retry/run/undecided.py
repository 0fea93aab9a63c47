"""What the guard would refuse or hold between two snapshots, apart from a turn's judgement."""

from collections.abc import Collection

from atlas_retry.guard import Case, assess
from atlas_retry.guard.judge import folders
from atlas_retry.settings import Settings
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.snapshot import trees


def undecided(
    ws: Workspace,
    span: tuple[str, str],
    paths: Collection[str],
    settings: Settings,
    ignored: Collection[str] = (),
) -> tuple[str, ...]:
    """Those of the paths whose change between the snapshots would be refused or held."""
    before, after = (trees.tree(ws, name, ignored=True) for name in span)
    judgement = assess(
        Case(
            before=before,
            after=after,
            changed=tuple(sorted(paths)),
            in_run=True,
            ignored=frozenset(ignored),
            gates=settings.gates,
            protect=settings.guard.protect,
            allow=settings.guard.allow,
            mentions=folders.searching(ws.root, before, paths),
        )
    )
    refused = (violation.path for violation in judgement.refused)
    return tuple(dict.fromkeys((*refused, *judgement.held_paths)))
