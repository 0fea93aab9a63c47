"""Composes the prompt within the budget: stable text first, volatile text last. Pure."""

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.model import GateResult
from atlas_retry.prompt import wording
from atlas_retry.prompt.brief import Brief, Prompt
from atlas_retry.prompt.candidates import Candidate, candidates
from atlas_retry.prompt.code import Block, Cutting, code, elsewhere, shown
from atlas_retry.prompt.entries import Quoted, Quoting, quoted
from atlas_retry.prompt.ledger import held_back, ledger, to_review
from atlas_retry.prompt.project import Project
from atlas_retry.prompt.signals import SAME_WORDS
from atlas_retry.prompt.untrusted import elided, fenced, harmless_output
from atlas_retry.text.units import first_few

ERROR_SHARE = 0.4
"""Share of the budget up to which output is quoted whole; longer output is condensed."""
HISTORY_SHARE, OWN_WORDS_SHARE = 0.15, 0.15
MIN_ERROR_CHARS, MIN_ERROR_SHARE = 600, 0.5
"""Share for errors in a tiny budget, for which the fixed text is shortened."""
MAX_NAMED = 5
ELSEWHERE_SHARE, SMALL_SHARE, MIN_ELSEWHERE_CHARS = 0.03, 0.1, 400
"""Room reserved to name code that is not shown, more of a small budget; more if there is room."""
MAX_ELSEWHERE_CHARS, ESCAPED_CHARS = 2_000, 10
TOLD_LEFT_OUT_CHARS = 60


class _Parts(Struct, frozen=True, kw_only=True):
    """The sections of a prompt in order; empty ones take no line."""

    opening: str
    own: str
    learnings: str
    history: str
    previous: str
    errors: str = ""
    please: str
    code: str = ""
    pointers: str = ""
    left_out: str = ""
    logs: str
    closing: str

    def text(self, marker: str) -> str:
        is_red = self.previous == wording.PREVIOUS
        quoted = (fenced(self.errors, marker), self.please) if is_red else ()
        shown = (wording.CODE, fenced(self.code, marker)) if self.code else ()
        head = (self.opening, self.own, self.learnings, self.history, f"\n{self.previous}")
        tail = (self.pointers, self.left_out, self.logs, self.closing)
        return "\n".join(section for section in (*head, *quoted, *shown, *tail) if section)


def compose(brief: Brief) -> Prompt:
    """The prompt for one attempt: valid Unicode, at most `budget_chars` characters.

    Sections are cut before they are fenced, so that no fence is cut; below about 300 characters
    there is only room for errors without fences.
    """
    results = _failed(brief)
    project = Project(brief.read, brief.paths)
    all_candidates = candidates(results, project, brief.trace, brief.changed)
    budget = max(brief.budget_chars, 0)
    parts = _fixed(brief, results, budget)
    room = max(budget - len(parts.text(brief.marker)) - TOLD_LEFT_OUT_CHARS, 0)
    quotable = min(room, max(int(budget * ERROR_SHARE), MIN_ERROR_CHARS))
    parts, errors = _with_errors(parts, results, _quoting(brief, quotable))
    few = min(int(budget * SMALL_SHARE), MIN_ELSEWHERE_CHARS)
    aside = max(int(budget * ELSEWHERE_SHARE), few)
    heading = len(wording.CODE) + len(fenced("", brief.marker)) + 2

    def blocks_of(likely: tuple[Candidate, ...]) -> tuple[Block, ...]:
        left = budget - len(parts.text(brief.marker)) - aside - heading
        cutting = Cutting(project=project, room=left, redact=brief.redact, quoted=errors.text)
        return code(likely, cutting)

    if errors.left_out:  # the output counts more than code that only has the same words
        linked = tuple(c for c in all_candidates if not c.why.startswith(SAME_WORDS))
        likely = shown(blocks_of(linked))
        spare = budget - len(replace(parts, code=likely).text(brief.marker)) - aside - heading
        quotable = min(room, quotable + max(spare, 0))
        quoting = replace(_quoting(brief, quotable), is_spare=True)
        parts, errors = _with_errors(parts, results, quoting)
    blocks = blocks_of(all_candidates)
    parts = replace(parts, code=shown(blocks))
    spare = min(budget - len(parts.text(brief.marker)), MAX_ELSEWHERE_CHARS) - ESCAPED_CHARS
    others = elsewhere(all_candidates, blocks, spare)
    parts = replace(parts, pointers=harmless_output(others))
    text = parts.text(brief.marker)
    if len(text) > budget:
        room = len(parts.errors) + budget - len(text)
        fewer = replace(parts, errors=elided(parts.errors, max(room, 0)))
        text = fewer.text(brief.marker) if room > 0 else elided(parts.errors, budget)
    text = text.encode("utf-8", "replace").decode("utf-8")
    vars(project).clear()  # its caches refer to it, and it holds every path
    return Prompt(
        text=text,
        stable_chars=text.rfind("\n", 0, max(text.find(brief.marker), 0)) + 1,
    )


def _with_errors(
    parts: _Parts, results: tuple[GateResult, ...], quoting: Quoting
) -> tuple[_Parts, Quoted]:
    errors = quoted(results, quoting)
    note = f"Left out: {', '.join(errors.left_out)}." if errors.left_out else ""
    return replace(parts, errors=errors.text, left_out=elided(note, TOLD_LEFT_OUT_CHARS)), errors


def _failed(brief: Brief) -> tuple[GateResult, ...]:
    """The failed required gates; if there are none, the failed optional ones."""
    failures = brief.validation.failures
    return failures or tuple(r for r in brief.validation.results if not r.success)


def _quoting(brief: Brief, room: int) -> Quoting:
    # the errors are older than an attempt that was reverted
    last = next((one for one in brief.history[-1:] if not one.worse), None)
    found, failing = brief.introduced, {result.name for result in brief.validation.failures}
    return Quoting(
        room=room,
        per_error=brief.error_chars,
        redact=brief.redact,
        last=last,
        changed=brief.changed,
        heading=brief.redact(wording.introduced(found)) if found and found.gate in failing else "",
    )


def _fixed(brief: Brief, results: tuple[GateResult, ...], budget: int) -> _Parts:
    """All sections except errors and code, each within its share."""
    logs = dict.fromkeys(f"Full output: {one.log_path}" for one in results if one.log_path)
    closing = (wording.CLOSING,) if brief.history else ()
    plain = (brief.redact(" ".join(learning.split())) for learning in brief.learnings)
    learned = "\n".join(
        ("## Learned from earlier runs", *(f"- {harmless_output(p)}" for p in plain))
    )
    failed = {result.name for result in results} | {result.kind.value for result in results}
    words = brief.settings.gates.items()
    of_gates = (f"{name}: {text.strip()}" for name, text in words if name in failed)
    own = (brief.settings.preamble.strip(), *of_gates)
    parts = _Parts(
        opening=wording.opening(brief.gates, brief.protected, brief.marker, budget),
        own=elided("\n".join(filter(None, own)), int(budget * OWN_WORDS_SHARE)),
        learnings=elided(learned, int(budget * OWN_WORDS_SHARE)) if brief.learnings else "",
        history=_history(brief, budget),
        previous=wording.PREVIOUS if results else wording.PASSED,
        please="" if budget < wording.SHORT_BELOW_CHARS else wording.PLEASE,
        logs="\n".join([*logs][:4]),
        closing="\n".join((f"{wording.attempt_of(brief.attempt, brief.max_attempts)}.", *closing)),
    )
    for name in ("learnings", "opening", "history", "own", "logs", "closing"):
        taken = len(parts.text(brief.marker)) + TOLD_LEFT_OUT_CHARS
        if taken > budget * (1 - MIN_ERROR_SHARE):
            shorter = wording.FENCE.format(brief.marker) if name == "opening" else ""
            parts = replace(parts, **{name: shorter})
    return parts


def _history(brief: Brief, budget: int) -> str:
    if not brief.history:
        return ""
    of = wording.attempt_of(brief.attempt, brief.max_attempts)
    room = int(budget * HISTORY_SHARE)
    last = elided(brief.redact(_held(brief)), room)
    diagnosis = wording.DIAGNOSE if brief.ask == "diagnose" else ""
    left = room - len(last) - len(diagnosis)
    earlier = brief.redact(ledger(brief.history, left, is_detailed=bool(diagnosis)))
    lines = (wording.RETRY_INTRO, earlier, last, diagnosis)
    return "\n".join((f"\n## Previous Attempt Errors ({of})\n", *filter(None, lines)))


def _held(brief: Brief) -> str:
    """The section on held changes of the last attempt, restored or not; empty if there are none."""
    last, lines = brief.history[-1], []
    if paths := held_back(last):
        failing = first_few((result.name for result in _failed(brief)), MAX_NAMED)
        is_vain = all(h.needed is False for h in last.held if not h.in_place)
        lines.append(wording.held(paths, failing, is_vain=is_vain))
    if (left := to_review(last)) and not last.rolled_back:
        lines.append(wording.for_review(left))
    return harmless_output("\n".join(lines))
