"""What an agent is asked for an attempt beside the prompt: model, session, time, money. Pure."""

from collections.abc import Iterator
from pathlib import Path

from atlas_retry.diagnostics.selecting import reproducing
from atlas_retry.guard.judge import seals
from atlas_retry.model import AgentRequest, Session, Validation
from atlas_retry.prompt.brief import Prompt
from atlas_retry.run.briefing import SHOWN
from atlas_retry.run.decide import Progress
from atlas_retry.run.open import OpenWorkspace
from atlas_retry.settings import STRATEGY, Settings, Step, nth


def next_request(
    opened: OpenWorkspace, prompt: Prompt, scratch: Path, progress: Progress, number: int
) -> AgentRequest:
    """The request of the n-th attempt; `scratch` is its folder in the state directory."""
    settings = opened.settings
    session_id, session_cost_usd = _conversation(opened, progress, number)
    return AgentRequest(
        prompt=prompt.text,
        stable_chars=prompt.stable_chars,
        workspace=str(opened.root),
        scratch=str(scratch),
        attempt=number,
        model=_model(opened, progress, number),
        session=Session.RESUME if session_id else Session.NEW,
        session_id=session_id,
        session_cost_usd=session_cost_usd,
        cost_usd=progress.elsewhere.promised_usd,
        timeout_s=_sooner(
            settings.agent.timeout_s,
            _left(settings.retry.budget.wall_s, progress.elapsed_s),
        ),
        idle_timeout_s=settings.agent.idle_timeout_s,
        commands=(
            *(gate.run for gate in settings.gates if gate.run),
            *_reproducing(progress.latest),
        ),
        protected=seals.protected(opened.root, settings),
        readable=(str(scratch / SHOWN),),
    )


def step_of(settings: Settings, number: int) -> Step:
    """How the n-th attempt differs from others."""
    return nth(settings.retry.strategy or STRATEGY, number) or Step()


def _model(opened: OpenWorkspace, progress: Progress, number: int) -> str | None:
    """The model for the kind of gate that fails, where all are of one; else the attempt's."""
    step = step_of(opened.settings, number)
    kinds = {result.kind for result in progress.latest.failures}
    of_kind = step.models.get(min(kinds)) if len(kinds) == 1 else None
    return of_kind or step.model or nth(opened.settings.agent.models, number)


def _reproducing(validation: Validation) -> Iterator[str]:
    """What the prompt asks the agent to run: the first failing test of each gate."""
    for result in validation.failures:
        first = next((d for d in result.diagnostics if d.test_id), None)
        command = reproducing(result, first) if first else None
        if command:
            yield command


def _left(allowed_s: float | None, spent_s: float) -> float | None:
    return None if allowed_s is None else max(allowed_s - spent_s, 0.0)


def _sooner(one_s: float, other_s: float | None) -> float:
    return one_s if other_s is None else min(one_s, other_s)


def _conversation(
    opened: OpenWorkspace, progress: Progress, number: int
) -> tuple[str | None, float]:
    """The session to resume and what it has cost; that of a restored attempt is over."""
    settings = opened.settings
    wanted = step_of(settings, number).session or nth(settings.agent.session, number)
    last = progress.attempts[-1] if progress.attempts else None
    if wanted is not Session.RESUME or last is None or not last.session_id:
        return None, 0.0
    if last.rolled_back or last.worse:
        return None, 0.0
    same = [a.cost_usd or 0.0 for a in progress.attempts if a.session_id == last.session_id]
    return last.session_id, sum(same)
