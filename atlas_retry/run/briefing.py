"""The brief that every prompt of a workspace is made from. Asks no agent."""

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.diagnostics.selecting import reproducing_each, started_runners
from atlas_retry.errors import UsageError
from atlas_retry.events import Emit, GateRanAgain, unseen
from atlas_retry.gates.logs import shown_logs
from atlas_retry.gates.trace import MAX_S, Seen, ranked, requests_of, seen_of
from atlas_retry.gates.validation import run_gates
from atlas_retry.guard.judge import seals
from atlas_retry.history.database import reading
from atlas_retry.history.learning import recalled
from atlas_retry.model import AgentRequest, GateResult, Session, Validation
from atlas_retry.prompt import Brief, Traced, compose
from atlas_retry.prompt.brief import Prompt
from atlas_retry.reports.subject import Recorded
from atlas_retry.run.open import OpenWorkspace, beside, open_configured, plan, validation_logs
from atlas_retry.run.progress import Progress
from atlas_retry.run.triage import aligned, completed
from atlas_retry.settings import STRATEGY, Settings, Step, attempts_of_run, for_attempt
from atlas_retry.text.globs import with_a_match
from atlas_retry.text.redaction import clean, redact, secret_values
from atlas_retry.workspace import changed
from atlas_retry.workspace.snapshot import trees

TRACE = "trace of what failing tests execute"
SHOWN = "logs"
"""Folder with the gate output that an agent may read."""


def first_brief(
    root: Path,
    settings: Settings,
    environ: Mapping[str, str],
    validation: Validation,
    opened: OpenWorkspace | None = None,
) -> Brief:
    """Brief of a first attempt, from the files as they are now; nothing is run.

    With `opened` and git, the files that its tracker already knows are used.
    """
    tracker = opened.tracker if opened and opened.has_git else None
    tree = trees.source_tree(root, scan=tracker.scan() if tracker else None)
    # the user's own globs first, then those that match a file, to save room
    own, wanted = settings.guard.protect, tuple(seals.protected(root, settings))
    worth = {*own, *with_a_match(wanted, tuple(tree.paths()))}
    shown = (glob for glob in wanted if glob in worth)
    hidden = secret_values(environ)
    return Brief(
        validation=validation,
        read=tree.read,
        paths=tree.paths,
        gates=settings.gates,
        max_attempts=attempts_of_run(settings),
        changed=changed.changed_lines(
            root,
            settings.triage_baseline,
            environ=environ,
            changed=tracker.uncommitted().paths if tracker else None,
        ),
        protected=tuple(sorted(shown, key=lambda glob: glob not in own)),
        settings=settings.prompt,
        budget_chars=settings.context.max_chars,
        error_chars=settings.context.max_chars_per_error,
        marker=os.urandom(4).hex(),
        redact=lambda text: redact(clean(text), hidden),
    )


def traced_brief(
    opened: OpenWorkspace, validation: Validation, scratch: Path, emit: Emit = unseen
) -> Brief:
    """A first brief, with what failing tests executed if tracing them is cheap.

    `scratch` is an empty folder outside the workspace; its `SHOWN` gets the logs that the brief
    names. Raises Interrupted.
    """
    hidden = secret_values(opened.environ)
    trace = traced(opened, validation, scratch, emit)
    validation = shown_logs(validation, opened.state, scratch / SHOWN, hidden)
    brief = first_brief(opened.root, opened.settings, opened.environ, validation, opened)
    return replace(brief, trace=trace)


def traced(
    opened: OpenWorkspace, failed: Validation, scratch: Path, emit: Emit = unseen
) -> tuple[Traced, ...]:
    """What failing tests executed, most suspect first; empty without git or time for tracing.

    `scratch` is a folder outside the workspace. A gate that could not be traced is not tried
    again. Raises Interrupted, WorkspaceError and StateError.
    """
    known = opened.learned.traced
    seen = chain.from_iterable(known.get(result, ()) for result in failed.failures)
    others = tuple(result for result in failed.failures if result not in known)
    every = (*seen, *ranked(trace_again(opened, others, scratch, emit)))
    return tuple(sorted(every, key=lambda one: -one.suspicion))


def trace_again(
    opened: OpenWorkspace, failures: Sequence[GateResult], scratch: Path, emit: Emit
) -> list[Seen]:
    """Run the failing tests of these results once more, traced; see `traced`."""
    if opened.settings.context.trace != "auto" or not opened.has_git:
        return []
    untraced = opened.learned.untraced
    able = {gate.name: gate for gate in opened.settings.gates if gate.name not in untraced}
    requests = requests_of(failures, able)
    if not requests:
        return []
    until_s = monotonic() + min(MAX_S, sum(request.timeout_s for request in requests))
    gates = [request.gate for request in requests]
    seen: list[Seen] = []
    with beside(opened, gates, {}, plan(opened, scratch)) as (how, _):
        for request in requests:
            began_s = monotonic()
            left_s = min(request.timeout_s, until_s - began_s)
            own = seen_of(replace(request, timeout_s=left_s), how) if left_s > 0 else []
            took_ms = round((monotonic() - began_s) * 1000)
            emit(GateRanAgain(gate=request.gate.name, reason=TRACE, duration_ms=took_ms))
            seen += own
            if not own:
                opened.learned.untraced.add(request.gate.name)
    return seen


def next_request(
    opened: OpenWorkspace, prompt: Prompt, scratch: Path, progress: Progress, number: int
) -> AgentRequest:
    """The request of the n-th attempt; `scratch` is its folder in the state directory."""
    settings = opened.settings
    session_id, session_cost_usd = _conversation(settings, progress, number)
    timeout_s, wall_s = settings.agent.timeout_s, settings.retry.budget.wall_s
    if wall_s is not None:
        timeout_s = min(timeout_s, max(wall_s - progress.elapsed_s, 0.0))
    latest = progress.latest
    reproducing = list[str | None]()  # what the prompt asks for: a failing test of each message
    for result in latest.failures:
        first = {d.message: d for d in reversed(result.diagnostics) if d.test_id}
        reproducing += reproducing_each(result, first.values())
    step, kinds = step_of(settings, number), {result.kind for result in latest.failures}
    # the model for the kind of the failing gates, if they are of one kind
    of_kind = step.models.get(min(kinds)) if len(kinds) == 1 else None
    return AgentRequest(
        prompt=prompt.text,
        stable_chars=prompt.stable_chars,
        workspace=str(opened.root),
        scratch=str(scratch),
        attempt=number,
        model=of_kind or step.model or for_attempt(settings.agent.models, number),
        session=Session.RESUME if session_id else Session.NEW,
        session_id=session_id,
        session_cost_usd=session_cost_usd,
        cost_usd=progress.elsewhere.promised_usd,
        timeout_s=timeout_s,
        idle_timeout_s=settings.agent.idle_timeout_s,
        commands=(
            *(gate.run for gate in settings.gates if gate.run),
            *filter(None, reproducing),
            *chain.from_iterable(map(started_runners, latest.failures)),
        ),
        protected=seals.protected(opened.root, settings),
        readable=(str(scratch / SHOWN),),
    )


def step_of(settings: Settings, number: int) -> Step:
    """The strategy step of the n-th attempt."""
    return for_attempt(settings.retry.strategy or STRATEGY, number) or Step()


def _conversation(settings: Settings, progress: Progress, number: int) -> tuple[str | None, float]:
    """The session to resume and its cost so far; the session of a reverted attempt is over."""
    wanted = step_of(settings, number).session or for_attempt(settings.agent.session, number)
    last = progress.last
    if wanted is not Session.RESUME or last is None or not last.session_id:
        return None, 0.0
    if last.rolled_back or last.worse:
        return None, 0.0
    same = [a.cost_usd or 0.0 for a in progress.attempts if a.session_id == last.session_id]
    return last.session_id, sum(same)


def preview(
    root: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, object],
    *,
    recorded: Recorded | None,
    max_chars: int | None,
) -> str:
    """The first prompt for what fails, or a sentence that nothing fails.

    With a recorded failure any folder works: its configuration is used if it has one. `overrides`
    are configuration keys, dotted, that flags set. Raises ConfigError, UsageError.
    """
    opened = None
    if recorded is None:
        opened = open_configured(root, environ, overrides)
        root, settings, logs = opened.root, opened.settings, validation_logs(opened)
        how = replace(plan(opened, logs), flake_reruns=settings.retry.flake_reruns)
        validation = run_gates(settings.gates, how)
    else:
        settings = Settings(gates=recorded.gates)
        if config.NAMED in overrides or config.is_configured(root, environ):
            settings = config.load(root, environ=environ, overrides=overrides)
        validation = completed(recorded.validation, root, settings, secret_values(environ))
        with suppress(UsageError):  # a failure of another project is shown as recorded
            validation = aligned(validation, settings.gates)
    if not validation.failures:
        return "no gate fails, so there is no prompt\n"
    if opened is None:
        brief = first_brief(root, settings, environ, validation)
    else:
        brief = traced_brief(opened, validation, logs)
    if opened and opened.has_git:
        with reading(opened.state) as journal:
            learnings = recalled(journal, str(opened.git.common_dir), validation)
        brief = replace(brief, learnings=learnings)
    return compose(replace(brief, budget_chars=max_chars or brief.budget_chars)).text
