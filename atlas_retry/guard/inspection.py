"""Runs the rules over a case, and tells which files to put back."""

from collections.abc import Iterator, Sequence

from atlas_retry.guard.case import Case, Finding, OutOfTimeError, Rule, scene
from atlas_retry.guard.globs import Globs
from atlas_retry.guard.rules import RULES, UNJUDGED
from atlas_retry.guard.words import words
from atlas_retry.model import Change, Violation

ALWAYS = frozenset({"atlas-touched", "git-state", "not-judged", "process-left", "tool-replaced"})
"""Rules that `allow` does not lift: they guard the judge itself."""
_IN_THE_CODE = words(
    "special-cased test-aware errors-swallowed stubbed always-equal feature-removed"
    " early-exit suppression-added type-escape framework-patched git-state outside-workspace"
    " tool-replaced process-left clock-tricked"
    " special-cased-by-digest special-cased-by-name special-cased-together error-discarded"
    " not-judged emptied always-agreeing equality-narrowed test-data-read"
    " example-changed"
)
"""Rules whose findings may lie within the very files that hold the repair."""


def findings(case: Case, rules: Sequence[Rule] = RULES) -> tuple[tuple[Rule, Finding], ...]:
    """What each rule saw, without what the user allows."""
    allowed = Globs(case.allow)
    found = {
        (rule.name, finding.path, finding.line, finding.detail): (rule, finding)
        for rule, finding in _seen(case, rules)
        if not (case.allow and rule.name not in ALWAYS and allowed.match(finding.path))
    }
    return tuple(found.values())


def _seen(case: Case, rules: Sequence[Rule]) -> Iterator[tuple[Rule, Finding]]:
    """What is not judged in time is told: it is never taken for clean."""
    change = scene(case)
    for rule in rules:
        try:
            yield from ((rule, finding) for finding in rule.check(change))
        except OutOfTimeError as late:
            detail = f"judging took too long at the rule {rule.name}: look at the change yourself"
            yield UNJUDGED, Finding(path=str(late), detail=detail)
            return


def inspect(case: Case) -> tuple[Violation, ...]:
    """Everything in a change that may not be done."""
    return tuple(violation(rule, finding) for rule, finding in findings(case))


def violation(rule: Rule, finding: Finding) -> Violation:
    """A finding in the words a person reads, with the way to allow it."""
    way = "" if rule.name in ALWAYS else f" To allow it: --allow '{finding.path}' or guard.allow."
    return Violation(
        rule=rule.name,
        path=finding.path,
        line=finding.line,
        detail=f"{_printable(finding.detail)} ({rule.reason}).{way}",
    )


def _printable(text: str) -> str:
    """Quoted code is data: no control characters, no end of line, no essay."""
    shown = "".join(char if char.isprintable() else " " for char in text)
    return shown if len(shown) <= _MAX_DETAIL_CHARS else f"{shown[:_MAX_DETAIL_CHARS]} ..."


_MAX_DETAIL_CHARS = 300


def separable(violations: Sequence[Violation], changes: Sequence[Change]) -> tuple[str, ...] | None:
    """Files whose return removes the violations; None when all of the change has to go.

    A cheat within a file of the code itself, or beside the tree, cannot be told from the repair.
    """
    changed = {change.path for change in changes}
    paths = {violation.path for violation in violations}
    if any(v.rule in _IN_THE_CODE or v.path not in changed for v in violations):
        return None
    return tuple(sorted(paths))
