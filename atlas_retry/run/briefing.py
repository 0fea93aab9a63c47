"""The brief that every prompt of a workspace starts from. Knows no attempt, and asks nobody."""

import secrets
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import workspace
from atlas_retry.gates.redacted_logs import shown_logs
from atlas_retry.guard.judge import seals
from atlas_retry.model import Tree, Validation
from atlas_retry.prompt import Brief
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.run.tracing import traced
from atlas_retry.settings import Settings, attempts_of_run
from atlas_retry.text.globs import Globs
from atlas_retry.text.redaction import clean, redact, secret_values

SHOWN = "logs"
"""What an agent may read of what gates have printed."""


def first_brief(
    root: Path,
    settings: Settings,
    environ: Mapping[str, str],
    validation: Validation,
    files: Tree | None = None,
) -> Brief:
    """Of a first attempt, from the files as they are now; nothing is run."""
    tree = files or workspace.source_tree(root)
    hidden = secret_values(environ)
    return Brief(
        validation=validation,
        read=tree.read,
        paths=tree.paths,
        gates=settings.gates,
        max_attempts=attempts_of_run(settings),
        changed=workspace.changed_lines(root, settings.triage_baseline, environ=environ),
        protected=_worth_showing(seals.protected(root, settings), settings, tree),
        settings=settings.prompt,
        budget_chars=settings.context.max_chars,
        error_chars=settings.context.max_chars_per_error,
        marker=secrets.token_hex(4),
        redact=lambda text: redact(clean(text), hidden),
    )


def _worth_showing(protected: Iterable[str], settings: Settings, tree: Tree) -> tuple[str, ...]:
    """The user's own globs first, then those of which there is a file: room is scarce."""
    own, wanted = settings.guard.protect, tuple(protected)
    there = _with_a_file(wanted, tuple(tree.paths()))
    shown = (glob for glob in wanted if glob in own or glob in there)
    return tuple(sorted(shown, key=lambda glob: glob not in own))


@lru_cache(maxsize=4)
def _with_a_file(globs: tuple[str, ...], paths: tuple[str, ...]) -> frozenset[str]:
    """Those that match any path; the paths of a run's attempts are mostly the same."""
    every = Globs(globs)
    matched = tuple(filter(every.match, paths))
    return frozenset(glob for glob in globs if any(map(Globs((glob,)).match, matched)))


def traced_brief(opened: OpenWorkspace, validation: Validation, scratch: Path) -> Brief:
    """A first brief, with what failing tests ran where that is cheap.

    `scratch` is an empty folder outside the workspace; its `SHOWN` gets the logs that the brief
    names. Raises Interrupted.
    """
    hidden = secret_values(opened.environ)
    validation = shown_logs(validation, opened.state, scratch / SHOWN, hidden)
    found = opened.tracker.scan() if opened.has_git else None
    sources = workspace.source_tree(opened.root, found=found)
    brief = first_brief(opened.root, opened.settings, opened.environ, validation, sources)
    return replace(brief, trace=traced(opened, validation, scratch))
