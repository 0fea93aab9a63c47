"""How a review gate asks its agent: about the user's change and the run's, paid from a budget."""

from collections.abc import Callable
from pathlib import Path

from atlas_retry import state_dir
from atlas_retry.agents import review
from atlas_retry.model import Agent, Gate, GateResult
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.settings import for_attempt
from atlas_retry.text.redaction import redact, secret_values
from atlas_retry.workspace.changed import diff_since, merge_base


def reviewer(
    opened: OpenWorkspace,
    agent: Callable[[Gate], Agent],
    budget: SharedBudget,
    *,
    scratch: Path,
    attempt: int = 1,
) -> Callable[[Gate], GateResult]:
    """A function that makes a review of all changes since the merge base.

    `scratch` is a folder of the state directory. The function raises AgentError.
    """
    settings, root = opened.settings, opened.root
    hidden = secret_values(opened.environ)

    def diff() -> str:
        base = merge_base(root, opened.environ, settings.triage_baseline)
        return diff_since(root, opened.environ, base)

    desk = review.ReviewInputs(
        root=root,
        diff=diff,
        agent=agent,
        promised_usd=lambda: budget.promise(str(root), settings.retry.budget.cost_usd),
        redact=lambda text: redact(text, hidden),
        scratch=scratch,
        answers=state_dir.folder(opened.state, "opinions"),
        backend=settings.agent.backend,
        model=for_attempt(settings.agent.models, 1),
        attempt=attempt,
        idle_timeout_s=settings.agent.idle_timeout_s,
    )

    def reviewed(gate: Gate) -> GateResult:
        result = review.review(gate, desk)
        budget.settle(str(root), result.cost_usd or 0.0)
        return result

    return reviewed
