"""Run the gates at the end of a turn, in bounded time, and say what that comes to."""

import secrets
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec.structs import replace

from atlas_retry import gates, process, state, wiring
from atlas_retry.agents.environment import nested
from atlas_retry.errors import AtlasError, Interrupted
from atlas_retry.events import Event, GateFinished
from atlas_retry.hook import memory
from atlas_retry.hook.turn import BLOCK_CAP, Answer, Limits, Turn, begun, judged
from atlas_retry.model import Gate, GateResult, Validation
from atlas_retry.prompt.untrusted import elided, fenced, harmless_output
from atlas_retry.settings import attempts_allowed
from atlas_retry.site import Site, open_site, plan, validation_logs
from atlas_retry.wording import failure_lines

MAX_REASON_CHARS = 9_000
"""Claude Code cuts what a hook says at 10,000 characters."""
MARGIN_S = 15.0
HEADING = 2
"""Lines that `failure_lines` puts before what a gate said."""
CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"


def stop(told: bytes, environ: Mapping[str, str], *, timeout_s: float) -> Answer:
    """Answer the end of a turn; `told` is what Claude Code says of it, `timeout_s` its patience.

    Whatever keeps us from judging is told to the user and blocks nothing. Raises Interrupted.
    """
    if nested(environ):
        return Answer()  # a run of ours watches this agent already
    try:
        turn = msgspec.json.decode(told, type=Turn)
        return _answer(turn, environ, max(timeout_s - MARGIN_S, timeout_s / 2))
    except msgspec.MsgspecError as error:
        return _not_judged(f"the hook's input cannot be read: {error}")
    except AtlasError as error:
        return _not_judged(" ".join(str(error).split()), error.remedy)
    except OSError as error:
        return _not_judged(str(error))


def _not_judged(why: str, remedy: str | None = None) -> Answer:
    tail = f". next: {remedy}" if remedy else ""
    return Answer(system_message=f"⚠️ atlas has not judged this turn: {why}{tail}")


def _answer(turn: Turn, environ: Mapping[str, str], limit_s: float) -> Answer:
    site = open_site(Path(environ.get("CLAUDE_PROJECT_DIR") or turn.cwd), environ)
    home = state.home(environ)
    tally = begun(memory.load(home, turn.session_id), turn)
    validation, is_whole = _validated(site, limit_s)
    if not is_whole and validation.success:
        return _not_judged(f"the gates took longer than {limit_s:g} s")
    limits = _limits(site, environ)
    answer, after = judged(validation, tally, limits, _wording(site, len(validation.failures)))
    memory.save(home, turn.session_id, after)
    return answer


def _limits(site: Site, environ: Mapping[str, str]) -> Limits:
    configured = site.settings.retry.attempts_configured
    told = environ.get(CAP_VARIABLE, "")
    return Limits(
        run=wiring.limits(site, with_agent=True, attempts_flag=None).budget.attempts or 0,
        gates={g.name: attempts_allowed(g, configured=configured) for g in site.settings.gates},
        cap=int(told) if told.isdecimal() else BLOCK_CAP,
    )


def _validated(site: Site, limit_s: float) -> tuple[Validation, bool]:
    """The validation, or what of it was there when the time was over."""
    ended: dict[tuple[str, str], GateResult] = {}

    def note(event: Event) -> None:
        if isinstance(event, GateFinished):
            ended[event.result.name, event.result.command] = event.result

    chosen = tuple(gate for gate in site.settings.gates if not _costs(gate))
    how = replace(plan(site, validation_logs(site)), flake_reruns=site.settings.retry.flake_reruns)
    try:
        with _at_most(limit_s):
            return gates.validate(chosen, how, note), True
    except Interrupted as end:
        if end.signum != signal.SIGALRM:
            raise
        return Validation(results=tuple(ended.values())), False


def _costs(gate: Gate) -> bool:
    return gate.prompt is not None


@contextmanager
def _at_most(limit_s: float) -> Iterator[None]:
    """Ends every gate when the time is over: Interrupted with SIGALRM, which nobody has sent."""
    timer = threading.Timer(limit_s, process.request_stop, (signal.SIGALRM,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _wording(site: Site, count: int) -> Callable[[GateResult], str]:
    """How each of so many failures is told: its error, then what the tool said, cut to size."""
    room = min(site.settings.context.max_chars, MAX_REASON_CHARS)
    limit = min(site.settings.context.max_chars_per_error, room // max(count, 1))
    marker = secrets.token_hex(4)

    def detail(result: GateResult) -> str:
        lines = [text for text, _ in failure_lines(Validation(results=(result,)))]
        said = elided(harmless_output("\n".join(lines[HEADING:])), limit)
        return f"{result.error or result.status}\n{fenced(said, marker)}"

    return detail
