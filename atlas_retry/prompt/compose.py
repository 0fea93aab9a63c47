"""Composes the prompt: stable text first, volatile text last, never over the budget. Pure."""

from collections.abc import Iterator

from atlas_retry.model import GateResult
from atlas_retry.prompt import wording
from atlas_retry.prompt.brief import Brief, Prompt
from atlas_retry.prompt.candidates import Candidate, candidates
from atlas_retry.prompt.code import Block, Cutting, code, elsewhere, shown
from atlas_retry.prompt.entries import Quoted, Quoting, named_logs, quoted
from atlas_retry.prompt.ledger import ledger
from atlas_retry.prompt.project import Project
from atlas_retry.prompt.untrusted import elided, fenced, harmless_output

ERROR_SHARE = 0.25
LATER_ERROR_SHARE = 0.35
"""Later attempts are told more of what remains."""
HISTORY_SHARE = 0.15
OWN_WORDS_SHARE = 0.15
MIN_ERROR_CHARS = 600
MAX_RANKING = 100
ELSEWHERE_SHARE, MAX_ELSEWHERE_CHARS = 0.07, 500


def compose(brief: Brief) -> Prompt:
    """The prompt for one attempt; at most `budget_chars` characters, valid Unicode."""
    results = _failed(brief)
    project = Project(brief.read, brief.paths)
    found = candidates(results, project, brief.trace)
    budget = max(brief.budget_chars, 0)
    fixed = _fixed(brief, results, budget)
    taken = sum(len(part) + 1 for part in fixed.values())
    overhead = len(fenced("", brief.marker)) * 2 + 80
    room = max(0, budget - taken - overhead)
    share = LATER_ERROR_SHARE if brief.history else ERROR_SHARE
    errors = quoted(results, _quoting(brief, min(room, max(int(budget * share), MIN_ERROR_CHARS))))
    aside = min(int(budget * ELSEWHERE_SHARE), MAX_ELSEWHERE_CHARS)
    left = Cutting(
        project=project,
        room=room - len(errors.text) - aside,
        redact=brief.redact,
        quoted=errors.text,
    )
    blocks = code(found, left)
    pointers = elsewhere(found, blocks, aside)
    text = _valid(_joined(brief, fixed, errors, (shown(blocks), pointers)), budget)
    return Prompt(
        text=text,
        stable_chars=text.rfind("\n", 0, max(text.find(brief.marker), 0)) + 1,
        left_out=_left_out(errors, found, blocks),
        ranking=tuple(_ranked(found)),
    )


def _failed(brief: Brief) -> tuple[GateResult, ...]:
    """The gates that block; when none does, those that failed and may."""
    failures = brief.validation.failures
    return failures or tuple(r for r in brief.validation.results if not r.success)


def _quoting(brief: Brief, room: int) -> Quoting:
    last = brief.history[-1] if brief.history else None
    return Quoting(room=room, per_error=brief.error_chars, redact=brief.redact, last=last)


def _fixed(brief: Brief, results: tuple[GateResult, ...], budget: int) -> dict[str, str]:
    """Everything but errors and code, by name; each within its share."""
    return {
        "opening": wording.opening(brief.gates, brief.protected, brief.marker, budget),
        "own": elided("\n".join(_own_words(brief, results)), int(budget * OWN_WORDS_SHARE)),
        "learnings": elided("\n".join(_learnings(brief)), int(budget * OWN_WORDS_SHARE)),
        "history": _history(brief, budget),
        "previous": f"\n{wording.PREVIOUS}",
        "closing": _closing(brief, results),
    }


def _own_words(brief: Brief, results: tuple[GateResult, ...]) -> Iterator[str]:
    """What the user's configuration adds, for every prompt and for the gates that failed."""
    if brief.settings.preamble:
        yield brief.settings.preamble.strip()
    failed = {name for result in results for name in (result.name, result.kind.value)}
    for name, words in brief.settings.gates:
        if name in failed:
            yield f"{name}: {words.strip()}"


def _learnings(brief: Brief) -> Iterator[str]:
    if brief.learnings:
        yield "## Learned from earlier runs"
        for learning in brief.learnings:
            yield f"- {harmless_output(brief.redact(' '.join(learning.split())))}"


def _history(brief: Brief, budget: int) -> str:
    if not brief.history:
        return ""
    of = wording.attempt_of(brief.attempt, brief.max_attempts)
    told = brief.redact(ledger(brief.history, int(budget * HISTORY_SHARE)))
    return f"\n## Previous Attempt Errors ({of})\n\n{wording.RETRY_INTRO}\n{told}"


def _closing(brief: Brief, results: tuple[GateResult, ...]) -> str:
    logs = [f"Full output: {path}" for path in named_logs(results)][:4]
    of = f"{wording.attempt_of(brief.attempt, brief.max_attempts)}."
    return "\n".join((*logs, of, *((wording.CLOSING,) if brief.history else ())))


def _joined(
    brief: Brief, fixed: dict[str, str], errors: Quoted, shown_code: tuple[str, str]
) -> str:
    parts = [fixed[name] for name in ("opening", "own", "learnings", "history", "previous")]
    parts.append(fenced(errors.text, brief.marker))
    parts.append(wording.PLEASE)
    if shown_code[0]:
        parts += [wording.CODE, fenced(shown_code[0], brief.marker)]
    parts.append(shown_code[1])
    if errors.left_out:
        parts.append(f"Left out: {', '.join(errors.left_out)}.")
    parts.append(fixed["closing"])
    return "\n".join(part for part in parts if part)


def _valid(text: str, budget: int) -> str:
    """Encodable as UTF-8 and within the budget, whatever came in."""
    return elided(text.encode("utf-8", "replace").decode("utf-8"), budget)


def _left_out(
    errors: Quoted, found: tuple[Candidate, ...], blocks: tuple[Block, ...]
) -> tuple[str, ...]:
    hidden = len(found) - len(blocks)
    return (*errors.left_out, f"{hidden} passages of code") if hidden > 0 else errors.left_out


def _ranked(found: tuple[Candidate, ...]) -> Iterator[str]:
    for candidate in found[:MAX_RANKING]:
        passage = candidate.passage
        yield f"{passage.path}:{passage.start_line} {passage.symbol or ''} ({candidate.why})"
