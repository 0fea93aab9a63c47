"""The prompt that would be sent, without a run: from a validation now, or from a recorded one."""

import secrets
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import config, gates, workspace
from atlas_retry.model import Gate, Validation
from atlas_retry.prompt import Brief, compose
from atlas_retry.recorded import completed
from atlas_retry.redaction import clean, redact, secret_values
from atlas_retry.reports import Recorded
from atlas_retry.settings import Settings
from atlas_retry.site import open_site, plan, validation_logs


def preview(
    root: Path, environ: Mapping[str, str], *, recorded: Recorded | None, max_chars: int | None
) -> str:
    """The first prompt for what fails, or a sentence that nothing does.

    With a recorded failure any folder will do: its configuration is used where it has one.
    Raises ConfigError, UsageError.
    """
    hidden = secret_values(environ)
    if recorded:
        settings = _settings(root, environ, recorded.gates)
        validation = completed(recorded.validation, root, settings, hidden)
    else:
        site = open_site(root, environ)
        root, settings = site.root, site.settings
        how = replace(plan(site, validation_logs(site)), flake_reruns=settings.retry.flake_reruns)
        validation = gates.validate(settings.gates, how)
    if validation.success:
        return "nothing fails, so there is nothing to ask\n"
    return compose(_brief(root, settings, validation, hidden, max_chars)).text


def _settings(root: Path, environ: Mapping[str, str], known: tuple[Gate, ...]) -> Settings:
    if config.is_configured(root):
        return config.load(root, environ=environ, overrides={})
    return Settings(gates=known)


def _brief(
    root: Path,
    settings: Settings,
    validation: Validation,
    hidden: frozenset[str],
    max_chars: int | None,
) -> Brief:
    tree = workspace.directory_tree(root)
    return Brief(
        validation=validation,
        read=tree.read,
        paths=tree.paths,
        gates=settings.gates,
        max_attempts=settings.retry.budget.attempts,
        settings=settings.prompt,
        budget_chars=max_chars or settings.context.max_chars,
        error_chars=settings.context.max_chars_per_error,
        marker=secrets.token_hex(4),
        redact=lambda text: redact(clean(text), hidden),
    )
