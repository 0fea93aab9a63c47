"""Detect a common cause of failures in many workspaces; pure."""

from collections import ChainMap, Counter
from collections.abc import Iterator, Sequence
from itertools import chain

from msgspec.structs import replace

from atlas_retry.diagnostics.fingerprints import steady
from atlas_retry.model import Outcome
from atlas_retry.reports.documents import Cascade
from atlas_retry.settings import CascadeSettings
from atlas_retry.text.units import bounded

MAX_CAUSES = 3
MAX_CHARS = 200


def detect(outcomes: Sequence[Outcome], rule: CascadeSettings) -> Cascade:
    """Whether the last `rule.window_size` of `outcomes`, in order of their end, are a cascade."""
    window = outcomes[-rule.window_size :]
    failed = [outcome for outcome in window if not outcome.verdict.is_green]
    known = Cascade(failures_in_window=len(failed), threshold=rule.threshold)
    if not rule.enabled or len(failed) < rule.threshold:
        return known
    steps = dict.fromkeys(outcome.final.failed_step or "workspace" for outcome in failed)
    what = next(iter(steps)) if len(steps) == 1 else f"({', '.join(steps)})"
    cause = f"Multiple {what} failures detected. Possible root cause: {_cause(failed)}"
    return replace(
        known,
        cascade_detected=True,
        action=rule.on_cascade,
        diagnosis=cause,
        recommendation="Review architecture or dependencies before continuing",
    )


def _cause(failed: Sequence[Outcome]) -> str:
    problems = [dict(_problems(outcome)) for outcome in failed]
    facts = [outcome.workspace for outcome in failed]
    named = Counter(fact.name for fact in facts)
    names = [fact.name if named[fact.name] == 1 else fact.root for fact in facts]
    counts = Counter(chain.from_iterable(problems))
    most = max(counts.values(), default=0)
    if most <= 1:
        return f"unknown, because no two of {', '.join(names)} share a problem"
    words = dict(ChainMap(*problems))
    keys = sorted(key for key, count in counts.items() if count == most)
    sharing = [n for n, words_of in zip(names, problems, strict=True) if keys[0] in words_of]
    more = f" and {len(keys) - MAX_CAUSES} more" if len(keys) > MAX_CAUSES else ""
    return f"{'; '.join(words[key] for key in keys[:MAX_CAUSES])}{more} (in {', '.join(sharing)})"


def _problems(outcome: Outcome) -> Iterator[tuple[str, str]]:
    """The problems of a failed run: a key that other runs may share, and a text for people."""
    if not outcome.final.failures and outcome.final_error:
        yield steady(outcome.final_error), _short(outcome.final_error)
    for result in outcome.final.failures:
        problems = [d for d in result.diagnostics if d.fingerprint]
        for diagnostic in problems:
            named = " ".join(filter(None, (diagnostic.tool, diagnostic.rule_id)))
            yield diagnostic.fingerprint, _short(f"{named}: {diagnostic.message}")
        if not problems:
            why = result.error or result.status
            yield f"{result.name}:{result.status}:{steady(why)}", _short(f"{result.name}: {why}")


def _short(text: str) -> str:
    return bounded(" ".join(text.split()), MAX_CHARS)
