"""`atlas hook stop`: run the gates at the end of a turn, in bounded time, and answer the agent."""

import os
import re
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, TypeVar

import msgspec
import typer
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import config, process, state_dir
from atlas_retry.agents.unavailable import INSIDE_AGENT
from atlas_retry.cli import options
from atlas_retry.cli.app import examples, hook_app
from atlas_retry.cli.hook import memory
from atlas_retry.cli.hook.beginning import project
from atlas_retry.cli.hook.feedback import (
    GUARD,
    BlockLimits,
    TurnOpinion,
    answered,
    before_push,
    begun,
    is_below,
    told,
    without,
)
from atlas_retry.cli.hook.guarding import (
    Left,
    changed_in,
    ended,
    is_still,
    judged,
    left_by,
    with_gates,
)
from atlas_retry.cli.hook.hosts import HOSTS, Host
from atlas_retry.cli.hook.sessions import of_others
from atlas_retry.cli.hook.turns import (
    BLOCK_CAP,
    BlockTally,
    HookAnswer,
    HookTurn,
    Start,
)
from atlas_retry.errors import AtlasError, Interrupted
from atlas_retry.events import Event, GateFinished, now, unseen
from atlas_retry.gates.plan import Reuse
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import GateResult, Validation
from atlas_retry.prompt.untrusted import elided, fenced, harmless_output
from atlas_retry.reports.documents import TurnResult, encode
from atlas_retry.reports.screen.gate_lines import failure_lines
from atlas_retry.run.open import OpenWorkspace, open_configured, plan, validation_logs
from atlas_retry.run.progress import limits
from atlas_retry.run.triage import against_baseline
from atlas_retry.settings import attempts_allowed

MAX_REASON_CHARS = 9_000
"""Claude Code truncates a hook's output at 10,000 characters."""
MARGIN_S = 15.0
HEADING = 2
"""Number of lines that `failure_lines` prints before a gate's output."""
CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
_WORD = r"""(?:"[^"]*"|'[^']*'|[^\s"'])+"""
_PUSHES = re.compile(
    rf"\bgit(?:\s+-{_WORD}(?:\s+(?!-|commit\b|push\b){_WORD})?)*\s+(?:commit|push)\b"
)
"""A commit or push in a line of shell, after options of git and their values."""

T = TypeVar("T")
Timeout = Annotated[float, typer.Option(help="Time limit of the hook itself, in seconds.", min=1)]


@hook_app.command("stop", epilog=examples("atlas hook stop < turn.json"), hidden=True)
def hook_stop(*, host: options.Host = "claude", timeout: Timeout = 600.0) -> None:
    """Run the gates at the end of a turn, given as JSON on stdin, and answer the agent.

    Always exits with 0: exit code 2 would block the turn, and any other hides the answer.
    """
    _answer_to(HOSTS[host], timeout, is_push=False)


@hook_app.command("push", epilog=examples("atlas hook push < tool.json"), hidden=True)
def hook_push(*, host: options.Host = "claude", timeout: Timeout = 600.0) -> None:
    """Run the gates before the agent's shell commits or pushes, if hook.when is push.

    The command is given as JSON on stdin. Always exits with 0, as at the end of a turn.
    """
    _answer_to(HOSTS[host], timeout, is_push=True)


def _answer_to(host: Host, timeout_s: float, *, is_push: bool) -> None:
    worded = host.at_push if is_push else host.at_stop
    try:
        turn = host.read(sys.stdin.buffer.read())
        answer = HookAnswer()
        if not is_push or _PUSHES.search(turn.command):
            answer = stop(turn, os.environ, timeout_s=timeout_s, host=host)
        print(encode(worded(answer)), end="")
    except msgspec.MsgspecError as error:
        answer = not_judged(f"the hook's input cannot be read: {error}")
        print(encode(answer), end="")
    if answer.system_message:
        print(answer.system_message, file=sys.stderr)


def stop(
    turn: HookTurn, environ: Mapping[str, str], *, timeout_s: float, host: Host = HOSTS["claude"]
) -> HookAnswer:
    """Answer the end of a turn, or a command of the agent's shell if the turn has one.

    `timeout_s` is the agent's time limit for the hook. Errors are reported to the user and block
    nothing. Raises Interrupted.
    """
    if environ.get(INSIDE_AGENT) or turn.is_cut_off:
        return HookAnswer()  # a run of atlas watches this agent, or nobody reads the answer
    try:
        return _answer(turn, environ, host, max(timeout_s - MARGIN_S, timeout_s / 2))
    except AtlasError as error:
        return _unjudged(turn, environ, " ".join(str(error).split()), error.remedy)
    except OSError as error:
        return _unjudged(turn, environ, str(error))


def _unjudged(
    turn: HookTurn, environ: Mapping[str, str], why: str, remedy: str | None = None
) -> HookAnswer:
    """The answer to a turn that could not be judged, which no earlier result may stand for."""
    with suppress(AtlasError, OSError):
        root = config.root_of(project(turn, environ))
        result = TurnResult(gates="unjudged", line=f"gates: unjudged, {why}")
        _keep(state_dir.locate(environ), root, turn, result)
    return not_judged(why, remedy)


def not_judged(why: str, remedy: str | None = None) -> HookAnswer:
    """The message to the user why a turn ends unjudged."""
    tail = f". next: {remedy}" if remedy else ""
    return HookAnswer(system_message=f"⚠️ atlas has not judged this turn: {why}{tail}")


class _Ended(Struct, frozen=True, kw_only=True):
    """A turn at its end, or before a commit or push."""

    opened: OpenWorkspace
    turn: HookTurn
    start: Start | None
    left: Left | None
    """None without git."""
    opinion: TurnOpinion
    tally: BlockTally
    is_left_to_push: bool
    """Whether its gates run before a push only, and this is none."""


def _answer(turn: HookTurn, environ: Mapping[str, str], host: Host, limit_s: float) -> HookAnswer:
    until_s = time.monotonic() + limit_s
    home = state_dir.locate(environ)
    start = memory.start(home, turn.session_id)
    if start and turn.prompt_id is None:
        turn = replace(turn, prompt_id=start.prompt_id)
    tally = begun(memory.load(home, turn.session_id), turn)
    if start and start.settings is None:
        return _unjudged(turn, environ, f"when it began: {start.problem}")
    opened = _site(start, memory.allowed(home, turn.session_id), turn, environ)
    by_push = opened.settings.hook.when == "push" and host.tells_pushes
    if turn.command and not by_push:
        return HookAnswer()
    left = left_by(opened, start) if start and start.snapshot else None
    case = _Ended(
        opened=opened,
        turn=turn,
        start=start,
        left=left,
        opinion=_opinion(opened, turn, start, left, tally.failing),
        tally=tally,
        is_left_to_push=by_push and not turn.command,
    )
    answer = _without_gates(case)
    return answer or _with_gates(case, until_s)


def _without_gates(case: _Ended) -> HookAnswer | None:
    """The answer if no gate need run; else None."""
    opinion, turn, tally, left = case.opinion, case.turn, case.tally, case.left
    is_idle = case.is_left_to_push or not (opinion.has_changes or turn.command)
    is_green = left is not None and is_still(case.opened, tally.green, left)
    if opinion.blocking or not (is_idle or is_green):
        return None
    home = case.opened.state
    memory.save(home, turn.session_id, replace(tally, scheduled=_scheduled(turn)))
    _keep_end(case.opened, turn, case.start, left)
    return told(opinion, None if is_idle or opinion.shown else tally.line)


def _with_gates(case: _Ended, until_s: float) -> HookAnswer:
    opened, turn, left, opinion = case.opened, case.turn, case.left, case.opinion
    limit_s = until_s - time.monotonic()
    validation, is_whole = Validation(results=()), True
    if not case.is_left_to_push:
        validation, is_whole = _validated(opened, limit_s)
    if is_whole and validation.results:
        judged_again = _after_gates(case, validation, until_s - time.monotonic())
        is_whole, opinion = judged_again is not None, judged_again or opinion
    if not is_whole and not validation.failures and not opinion.blocking:
        return _unjudged(turn, opened.environ, f"the gates took longer than {limit_s:.0f} s")
    detail = _wording(opened, len(validation.failures) + bool(opinion.blocking))
    if turn.command:
        answer, after = before_push(validation, opinion, case.tally, detail)
    else:
        most = _limits(opened, opened.environ)
        answer, after = answered(validation, opinion, case.tally, most, detail)
    end = _keep_end(opened, turn, case.start, left)
    after = replace(
        after,
        reason=answer.reason or "",
        failing=validation.failures,
        scheduled=_scheduled(turn),
        refused_tree=left.tree if left and opinion.blocking else None,
        green=end.snapshot if end and after.gates == "green" else "",
    )
    memory.save(opened.state, turn.session_id, after)
    result = TurnResult(
        gates=after.gates,
        line=after.line,
        failed=(*(r.name for r in validation.failures), *((GUARD,) if opinion.blocking else ())),
        tree=end.tree if end else None,
        sent_back=answer.decision == "block",
    )
    _keep(opened.state, opened.root, turn, result)
    return answer


def _scheduled(turn: HookTurn) -> tuple[str, ...]:
    return tuple(cron.prompt for cron in turn.session_crons)


def _keep_end(
    opened: OpenWorkspace, turn: HookTurn, start: Start | None, left: Left | None
) -> Left | None:
    """Record the end of a turn for `atlas undo`, and return what the gates left."""
    if start is None or left is None:
        return None
    ended_turn, after = ended(opened, start, left, alone=not turn.background_tasks)
    memory.keep_start(opened.state, turn.session_id, ended_turn)
    return after


def _keep(home: Path, root: Path, turn: HookTurn, result: TurnResult) -> None:
    ids = {"session_id": turn.session_id, "root": str(root), "ended_at": now()}
    memory.keep_result(home, replace(result, **ids))


def _site(
    start: Start | None, allowed: Collection[str], turn: HookTurn, environ: Mapping[str, str]
) -> OpenWorkspace:
    """The workspace with the configuration from the start of the turn.

    The present one counts if none was recorded, or if a person has allowed it to change.
    """
    if start is None or start.settings is None:
        return open_configured(project(turn, environ), environ)
    root, settings = Path(start.root), start.settings
    if any(is_below(os.path.relpath(source, root), allowed) for source in settings.sources):
        settings = config.load(project(turn, environ), environ=environ, overrides={})
    return OpenWorkspace(
        root=root, settings=settings, state=state_dir.locate(environ), environ=environ
    )


def _opinion(
    opened: OpenWorkspace,
    turn: HookTurn,
    start: Start | None,
    left: Left | None,
    failing: tuple[GateResult, ...],
) -> TurnOpinion:
    """The guard's opinion of a turn, before any gate writes, and what else is known of it."""
    opinion = TurnOpinion(
        before=start.failed if start else (),
        older=opened.settings.hook.older,
        open_reviews=opened.open_reviews(),
    )
    if start is None:
        why = "no state was recorded when it began (atlas hook install)"
        return replace(opinion, silent=why)
    if start.snapshot is None or left is None:
        return replace(opinion, silent="without git it is unknown what it changed")
    seal = memory.seal(opened.state, turn.session_id, start)
    known = start.failed or failing
    judgement = judged(opened, start.snapshot, left.snapshot, seal=seal, failing=known)
    changed = changed_in(opened, start, left)
    others = frozenset[str]()
    if changed:
        them = memory.other_transcripts(opened.state, opened.root, turn.session_id)
        own = turn.transcript_path or ""
        others = of_others(changed, opened.root, own=own, others=them, since=start.taken_at)
    judgement, _ = without(judgement, left.of_gates | others)
    judgement, lifted = without(judgement, memory.allowed(opened.state, turn.session_id))
    return replace(
        opinion,
        judgement=judgement,
        allowed=lifted,
        hook=opened.settings.guard.hook,
        turn_id=start.id,
        tree=left.tree,
        others=tuple(sorted(others)),
        has_changes=bool(changed - others),
    )


def _after_gates(case: _Ended, seen: Validation, limit_s: float) -> TurnOpinion | None:
    """The opinion with what happened to environments while gates ran; None if the time is up."""
    opened, start, opinion = case.opened, case.start, case.opinion
    if opened.settings.guard.mode != "block" or start is None or start.snapshot is None:
        return opinion
    seal = memory.seal(opened.state, case.turn.session_id, start)
    how = replace(plan(opened, validation_logs(opened)), previous=seen)
    began_s = time.monotonic()
    judgement = _in_time(limit_s, lambda: with_gates(opened, start, seal, how, opinion))
    if judgement is None:
        return None
    again_ms = round((time.monotonic() - began_s) * 1000)
    return replace(opinion, judgement=judgement, again_ms=again_ms)


def _limits(opened: OpenWorkspace, environ: Mapping[str, str]) -> BlockLimits:
    configured = opened.settings.attempts_configured
    cap = environ.get(CAP_VARIABLE, "")
    return BlockLimits(
        run=limits(opened.settings, with_agent=True, attempts_flag=None).budget.attempts or 0,
        gates={g.name: attempts_allowed(g, configured=configured) for g in opened.settings.gates},
        cap=int(cap) if cap.isdecimal() else BLOCK_CAP,
    )


def _validated(opened: OpenWorkspace, limit_s: float) -> tuple[Validation, bool]:
    """The validation, or the results so far and False if the time is up."""
    ended: dict[tuple[str, str], GateResult] = {}

    def note(event: Event) -> None:
        if isinstance(event, GateFinished):
            ended[event.result.name, event.result.command] = event.result

    chosen = tuple(gate for gate in opened.settings.gates if gate.prompt is None)  # costs nothing
    how = replace(
        plan(opened, validation_logs(opened)),
        flake_reruns=opened.settings.retry.flake_reruns,
        reuse=Reuse.PASSED,
    )

    def validated() -> Validation:
        validation = run_gates(chosen, how, note)
        return against_baseline(opened, chosen, validation, how, unseen)

    validation = _in_time(limit_s, validated)
    is_whole = validation is not None
    return validation or Validation(results=tuple(ended.values())), is_whole


def _in_time(limit_s: float, work: Callable[[], T]) -> T | None:
    """The result of work that runs gates; None if they were ended, as the time is up."""
    timer = threading.Timer(limit_s, process.request_stop, (signal.SIGALRM,))
    timer.daemon = True
    timer.start()
    try:
        return work()
    except Interrupted as end:
        if end.signum != signal.SIGALRM:
            raise
        return None
    finally:
        timer.cancel()


def _wording(opened: OpenWorkspace, count: int) -> Callable[[GateResult], str]:
    """Words one of `count` failures: its error, then the tool's output, cut to size."""
    room = min(opened.settings.context.max_chars, MAX_REASON_CHARS)
    limit = min(opened.settings.context.max_chars_per_error, room // max(count, 1))
    marker = secrets.token_hex(4)

    def detail(result: GateResult) -> str:
        lines = [text for text, _ in failure_lines(Validation(results=(result,)))]
        output = elided(harmless_output("\n".join(lines[HEADING:])), limit)
        return f"{result.error or result.status}\n{fenced(output, marker)}"

    return detail
