"""The brief that every prompt of a workspace starts from. Knows no attempt, and asks nobody."""

import secrets
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import workspace
from atlas_retry.gates.redacted_logs import shown_logs
from atlas_retry.guard.judge import seals
from atlas_retry.model import Tree, Validation
from atlas_retry.prompt import Brief
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.run.tracing import traced
from atlas_retry.settings import Settings, attempts_of_run
from atlas_retry.text.globs import with_a_match
from atlas_retry.text.redaction import clean, redact, secret_values

SHOWN = "logs"
"""What an agent may read of what gates have printed."""


class KnownFiles(Struct, frozen=True, kw_only=True):
    """What is known of the files of a work tree as they are now."""

    files: Tree
    uncommitted: Collection[str]
    """The paths that may not be as in the last commit."""


def first_brief(
    root: Path,
    settings: Settings,
    environ: Mapping[str, str],
    validation: Validation,
    known: KnownFiles | None = None,
) -> Brief:
    """Of a first attempt, from the files as they are now; nothing is run."""
    tree = known.files if known else workspace.source_tree(root)
    hidden = secret_values(environ)
    return Brief(
        validation=validation,
        read=tree.read,
        paths=tree.paths,
        gates=settings.gates,
        max_attempts=attempts_of_run(settings),
        changed=workspace.changed_lines(
            root,
            settings.triage_baseline,
            environ=environ,
            changed=known.uncommitted if known else None,
        ),
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
    worth = {*own, *with_a_match(wanted, tuple(tree.paths()))}
    shown = (glob for glob in wanted if glob in worth)
    return tuple(sorted(shown, key=lambda glob: glob not in own))


def traced_brief(opened: OpenWorkspace, validation: Validation, scratch: Path) -> Brief:
    """A first brief, with what failing tests ran where that is cheap.

    `scratch` is an empty folder outside the workspace; its `SHOWN` gets the logs that the brief
    names. Raises Interrupted.
    """
    hidden = secret_values(opened.environ)
    validation = shown_logs(validation, opened.state, scratch / SHOWN, hidden)
    known = _known(opened) if opened.has_git else None
    brief = first_brief(opened.root, opened.settings, opened.environ, validation, known)
    return replace(brief, trace=traced(opened, validation, scratch))


def _known(opened: OpenWorkspace) -> KnownFiles:
    files = workspace.source_tree(opened.root, found=opened.tracker.scan())
    return KnownFiles(files=files, uncommitted=opened.tracker.uncommitted().paths)
