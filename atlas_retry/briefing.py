"""The brief that every prompt of a workspace starts from. Knows no attempt, and asks nobody."""

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import judge, workspace
from atlas_retry.guard.globs import Globs
from atlas_retry.model import Tree, Validation
from atlas_retry.prompt import Brief
from atlas_retry.redaction import clean, redact, secret_values
from atlas_retry.scratch import laid_out
from atlas_retry.settings import Settings, attempts_of_run
from atlas_retry.shown_logs import shown_logs
from atlas_retry.site import Site, plan
from atlas_retry.trace import traced

SHOWN = "logs"
"""What an agent may read of what gates have printed."""


def first_brief(
    root: Path, settings: Settings, environ: Mapping[str, str], validation: Validation
) -> Brief:
    """Of a first attempt, from the files as they are now; nothing is run."""
    tree = workspace.source_tree(root)
    hidden = secret_values(environ)
    return Brief(
        validation=validation,
        read=tree.read,
        paths=tree.paths,
        gates=settings.gates,
        max_attempts=attempts_of_run(settings),
        changed=workspace.changed_lines(root, settings.triage_baseline, environ=environ),
        protected=_worth_telling(judge.protected(root, settings), settings, tree),
        settings=settings.prompt,
        budget_chars=settings.context.max_chars,
        error_chars=settings.context.max_chars_per_error,
        marker=secrets.token_hex(4),
        redact=lambda text: redact(clean(text), hidden),
    )


def _worth_telling(protected: Iterable[str], settings: Settings, tree: Tree) -> tuple[str, ...]:
    """The user's own globs first, then those of which there is a file: room is scarce."""
    own, paths = settings.guard.protect, tuple(tree.paths())
    told = (glob for glob in protected if glob in own or any(map(Globs((glob,)).match, paths)))
    return tuple(sorted(told, key=lambda glob: glob not in own))


def traced_brief(site: Site, validation: Validation, scratch: Path) -> Brief:
    """A first brief, with what failing tests ran where `context.trace` asks for it.

    They run in a copy, so that nothing that they write stays. `scratch` is an empty folder
    outside the workspace; its `SHOWN` gets the logs that the brief names. Raises Interrupted.
    """
    hidden = secret_values(site.environ)
    validation = shown_logs(validation, site.state, scratch / SHOWN, hidden)
    brief = first_brief(site.root, site.settings, site.environ, validation)
    if not site.settings.context.trace:
        return brief
    tree = workspace.directory_tree(site.root)
    with laid_out(tree.paths(), lambda _path: tree, site.root) as copy:
        found = traced(validation, site.settings.gates, replace(plan(site, scratch), root=copy))
    return replace(brief, trace=found)
