"""Lists earlier attempts with their changes and why they failed, one line each."""

from atlas_retry.diagnostics.counting import changed_counts
from atlas_retry.model import Attempt
from atlas_retry.prompt.untrusted import elided, harmless_output
from atlas_retry.text.units import changed, first_few

MAX_CHANGES = 6
MAX_SUMMARY_CHARS = 200
MAX_NAMED = 4


def ledger(history: tuple[Attempt, ...], room: int, *, is_detailed: bool = False) -> str:
    """Earlier attempts, the latest or all in detail; the oldest are dropped if room is short."""
    lines = []
    for attempt in history:
        did = first_few(map(changed, attempt.changes), MAX_CHANGES) or "nothing"
        facts = [f"changed {did}", changed_counts(attempt), *_faults(attempt)]
        said = " ".join(attempt.summary.split())
        if said and (is_detailed or attempt is history[-1]):
            facts.append(f"it said: {elided(said, MAX_SUMMARY_CHARS)}")
        lines.append(harmless_output(f"- Attempt {attempt.number}: {'; '.join(facts)}"))
    while lines and sum(len(line) + 1 for line in lines) > room:
        if len(lines) == 1:
            return elided(lines[0], room)
        lines.pop(0)
    return "\n".join(lines)


def held_back(attempt: Attempt) -> str:
    """What was held and reverted: of a file the whole change, or the part that the rule names."""
    held = (f"{one.path} ({one.rule})" for one in attempt.held if not one.in_place)
    return first_few(dict.fromkeys(held), MAX_NAMED)


def to_review(attempt: Attempt) -> str:
    """What was left in place for a person to review, each with its reason."""
    held = (
        f"{one.where} ({one.rule}: {one.detail.rstrip('.')})"
        for one in attempt.held
        if one.in_place
    )
    return first_few(dict.fromkeys(held), MAX_NAMED)


def _faults(attempt: Attempt) -> list[str]:
    violations = [
        f"{violation.rule} in {violation.path}"
        + (f" ({elided(violation.detail, MAX_SUMMARY_CHARS)})" if violation.detail else "")
        for violation in attempt.violations[:MAX_NAMED]
    ]
    faults = []
    if violations:
        undone = "all of it was restored" if attempt.rolled_back else "that was restored"
        faults.append(f"rejected for {', '.join(violations)}: {undone}")
    if attempt.worse:
        faults.append("that was worse than before: all of it was restored")
    if back := held_back(attempt):
        faults.append(f"held back and reverted: {back}")
    if attempt.denials:
        denied = ", ".join([*dict.fromkeys(attempt.denials)][:MAX_NAMED])
        faults.append(f"not permitted: {elided(denied, MAX_SUMMARY_CHARS)}")
    if attempt.error:
        faults.append(f"it ended with: {elided(attempt.error, MAX_SUMMARY_CHARS)}")
    if attempt.validation is not None and attempt.validation.failures:
        names = ", ".join(result.name for result in attempt.validation.failures[:5])
        faults.append(f"not enough: {names} still failed")
    return faults
