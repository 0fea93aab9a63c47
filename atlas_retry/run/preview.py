"""The prompt that would be sent, without a run: from a validation now, or from a recorded one."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.errors import UsageError
from atlas_retry.gates.validation import run_gates
from atlas_retry.history import reading
from atlas_retry.history.learning import recalled
from atlas_retry.model import Validation
from atlas_retry.prompt import Brief, compose
from atlas_retry.reports.subject import Recorded
from atlas_retry.run.briefing import first_brief, traced_brief
from atlas_retry.run.from_report import aligned, completed
from atlas_retry.run.open import OpenWorkspace, open_configured, plan, validation_logs
from atlas_retry.settings import Settings
from atlas_retry.text.redaction import secret_values


def preview(
    root: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
    *,
    recorded: Recorded | None,
    max_chars: int | None,
) -> str:
    """The first prompt for what fails, or a sentence that nothing does.

    With a recorded failure any folder will do: its configuration is used where it has one.
    `overrides` are configuration keys, dotted, that flags set.
    Raises ConfigError, UsageError.
    """
    validation, brief = (
        _recorded(root, environ, overrides, recorded)
        if recorded
        else _current(open_configured(root, environ, overrides))
    )
    if not validation.failures:
        return "nothing fails, so there is nothing to ask\n"
    made = brief()
    return compose(replace(made, budget_chars=max_chars or made.budget_chars)).text


Found = tuple[Validation, Callable[[], Brief]]
"""What was found, and what a prompt about it starts from: looked up only where something fails."""


def _recorded(
    root: Path, environ: Mapping[str, str], overrides: Mapping[str, object], recorded: Recorded
) -> Found:
    settings = (
        config.load(root, environ=environ, overrides=overrides)
        if config.is_configured(root)
        else Settings(gates=recorded.gates)
    )
    hidden = secret_values(environ)
    validation = completed(recorded.validation, root, settings, hidden)
    with suppress(UsageError):  # of another project, the failure is shown as it was recorded
        validation = aligned(validation, settings.gates)
    return validation, lambda: first_brief(root, settings, environ, validation)


def _current(opened: OpenWorkspace) -> Found:
    logs = validation_logs(opened)
    how = replace(plan(opened, logs), flake_reruns=opened.settings.retry.flake_reruns)
    validation = run_gates(opened.settings.gates, how)

    def brief() -> Brief:
        found = traced_brief(opened, validation, logs)
        return replace(found, learnings=_learnings(opened, validation)) if opened.has_git else found

    return validation, brief


def _learnings(opened: OpenWorkspace, validation: Validation) -> tuple[str, ...]:
    with reading(opened.state) as journal:
        return recalled(
            lambda query, *values: journal.execute(query, values).fetchall(),
            str(opened.git.common_dir),
            validation,
        )
