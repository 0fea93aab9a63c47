"""How a review gate asks its agent: about the user's change and the run's, paid from a budget."""

from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec.structs import replace

from atlas_retry import agents, state_dir
from atlas_retry.agents import review
from atlas_retry.agents.redacted import redacted_agent
from atlas_retry.errors import AgentError
from atlas_retry.events import Emit
from atlas_retry.history import values
from atlas_retry.model import Agent, Gate, GateResult
from atlas_retry.run import ledger
from atlas_retry.run.budget import SharedBudget
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.settings import AgentSettings, for_attempt
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


def paid_reviewer(
    opened: OpenWorkspace, gates: Iterable[Gate], scratch: Path
) -> Callable[[Gate], GateResult]:
    """A function that makes reviews outside of a run, within `retry.max_cost_usd` and the budgets.

    Raises AgentError if the agent of one of the gates is not available, UsageError if a budget is
    spent.
    """
    opened = ledger.limited(opened, ledger.standing(opened, values.Order(), but=""))
    hidden = secret_values(opened.environ)
    available = set[str]()
    for gate in gates:
        settings = _settings_of(gate, opened.settings.agent)
        if settings.backend in available:
            continue
        if unavailable := agents.check(settings, opened.environ):
            raise AgentError(f"{gate.name}: {unavailable.error}", remedy=unavailable.remedy)
        available.add(settings.backend)

    def agent(gate: Gate) -> Agent:
        return redacted_agent(agent_of(opened, gate, lambda _: None), hidden)

    ask = reviewer(opened, agent, SharedBudget(), scratch=scratch)

    def paid(gate: Gate) -> GateResult:
        result = ask(gate)
        if result.cost_usd:
            ledger.record_review(opened, result.cost_usd)
        return result

    return paid


def agent_of(opened: OpenWorkspace, gate: Gate, emit: Emit) -> Agent:
    """The agent of a review gate. Raises AgentError."""
    settings = _settings_of(gate, opened.settings.agent)
    agent = agents.resolve(settings.backend)(settings, emit, opened.environ)
    if settings is opened.settings.agent:
        return agent
    return lambda request: agent(replace(request, model=None))  # models are another agent's


def _settings_of(gate: Gate, settings: AgentSettings) -> AgentSettings:
    """The settings of a review gate's agent: its own, else the configured one."""
    if gate.agent in (None, settings.backend):
        return settings
    return replace(settings, backend=gate.agent, path=None, command=None, extra_args=())
