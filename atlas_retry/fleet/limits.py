"""What a run may do: of manifest, promise and worker whatever is narrowest. Pure."""

from collections.abc import Iterator, Mapping

from msgspec import Struct

from atlas_retry.errors import UsageError
from atlas_retry.fleet.batch import Assignment, Stage
from atlas_retry.fleet.manifest import Manifest


class Policy(Struct, frozen=True, kw_only=True):
    """What a worker allows; a manifest can only narrow it. None: unlimited."""

    agents: tuple[str, ...] = ()
    max_cost_usd: float | None = None
    """Of one run."""
    max_attempts: int | None = None
    max_minutes: float | None = None


def agent_of(manifest: Manifest, policy: Policy) -> str:
    """Who is asked. Raises UsageError for an agent that this worker does not allow."""
    agent = manifest.agent or next(iter(policy.agents), "")
    if agent not in policy.agents:
        raise UsageError(f"this worker does not allow the agent {agent or 'of the configuration'}")
    return agent


def attempts_of(manifest: Manifest, policy: Policy, done: int = 0) -> int | None:
    """How many attempts a run has; the latest of those `done` elsewhere is its first.

    None: as the repository's configuration says.
    """
    most = _least(manifest.limits.max_attempts, policy.max_attempts)
    return None if most is None else max(int(most) - max(done - 1, 0), 1)


def flags(
    manifest: Manifest, policy: Policy, one: Assignment, agent: str, max_attempts: int | None
) -> tuple[str, ...]:
    """The options of `atlas retry` for a run that asks an agent."""
    options = {
        "--agent": agent,
        "--model": manifest.model or None if one.stage is Stage.FIX else None,
        "--max-attempts": max_attempts,
        "--max-cost-usd": _least(one.promised_usd, policy.max_cost_usd),
        "--max-minutes": _least(manifest.limits.max_minutes, policy.max_minutes),
    }
    return ("--ai-fix", *_written(options))


def _written(options: Mapping[str, object]) -> Iterator[str]:
    for name, value in options.items():
        if value is not None:
            yield f"{name}={value}"


def _least(*limits: float | None) -> float | None:
    return min((limit for limit in limits if limit is not None), default=None)
