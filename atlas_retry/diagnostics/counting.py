"""Counts the problems of validations, and matches them before and after an attempt. Pure."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics.families import form
from atlas_retry.diagnostics.fingerprints import normalised, steady
from atlas_retry.diagnostics.unread import UNREAD, meaningful
from atlas_retry.diagnostics.values import THRESHOLD_RULE
from atlas_retry.model import (
    CANNOT_EXECUTE,
    NOT_FOUND,
    Attempt,
    Diagnostic,
    GateResult,
    Kind,
    Level,
    Outcome,
    Status,
    Validation,
)
from atlas_retry.patterns import regex

Key = tuple[str, ...]
Compared = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
"""Fingerprints fixed, remaining and introduced, each as often as the problem occurs."""

_CUT_SHORT = frozenset({Status.TIMED_OUT, Status.BROKEN, Status.VACUOUS})
_UNREADABLE = regex(
    r"^(?:E999|invalid-syntax|syntax|syntax-error|SyntaxError|IndentationError|TabError|TS1\d{3})$"
)
"""Rules of linters, type checkers and interpreters for a file that they cannot parse."""
_UNPARSED = regex(
    r"^(?:\w+: )?(?:ParseError|Parsing (?:error|failed)|syntax error|(?:Failed to|Cannot) parse)\b",
    re.IGNORECASE,
)
_FILE = regex(r"\.(?:py|[cm]?[jt]sx?|vue|svelte|rb|php|exs?|lua|dart)$")
_NOT_LOADED = "unittest.loader._FailedTest"
MAX_FIRST_CHARS = 200


def compared(before: Validation, after: Validation) -> Compared:
    """Compare the problems of failed gates in two validations.

    Problems with the same tool, rule, file, symbol or test are the same, even if line or values
    differ. Problems that a gate does not repeat because it ended too early do not count as fixed.
    Output that no parser reads counts by its lines; where these cannot be compared, by nothing.
    """
    old, new = _problems(before.failures, after), _problems(after.failures, before)
    fixed, remaining, introduced = Counter[str](), Counter[str](), Counter[str]()
    for key in {**old, **new}:
        same = old[key] & new[key]
        gone, come = [*(old[key] - same).elements()], [*(new[key] - same).elements()]
        moved = min(len(gone), len(come))
        fixed.update(gone[moved:])
        remaining.update([*same.elements(), *come[:moved]])
        introduced.update(come[moved:])
    blind = {result.name for result in after.failures if is_cut_short(result, before)}
    earlier = [result for result in before.failures if result.name in blind]
    counted = [result for result in earlier if not is_cut_short(result, after)]
    unseen = fixed & sum(_problems(counted, after).values(), Counter[str]())
    ends = (fixed - unseen, remaining + unseen, introduced)
    first, second, third = (tuple(sorted(each.elements())) for each in ends)
    return first, second, third


def _problems(results: Iterable[GateResult], other: Validation) -> defaultdict[Key, Counter[str]]:
    """Fingerprints by identity of the problem; of a failure without, its lines if they compare."""
    problems: defaultdict[Key, Counter[str]] = defaultdict(Counter)
    for result in results:
        unread = (result.name, UNREAD)
        known = [d for d in result.diagnostics if d.fingerprint]
        for d in known:
            problems[unread if d.tool == UNREAD else _key(d)][d.fingerprint] += d.count
        if not known:
            problems[unread].update(_said_unread(result, other))
    return problems


def _said_unread(result: GateResult, other: Validation) -> list[str]:
    """What stands for a failure without problems: its end, its lines, or nothing."""
    if result.status in _CUT_SHORT:
        return [f"{result.name}:{result.status}"]
    if _is_known(result, other) or _is_comparable(result, other):
        return [f"{result.name}: {line}" for line in _lines(result).elements()]
    return []


def _key(d: Diagnostic) -> Key:
    """Identity of a problem; a failing test is the same despite another message or place."""
    if d.test_id:
        return d.tool, d.test_id
    place = (d.path or "", d.symbol or "")
    # without a place only the message identifies it
    return (d.tool, d.rule_id or "", *(place if d.path else (d.fingerprint,)))


def shares_problem(result: GateResult, before: GateResult) -> bool:
    """Whether a result has one of the problems before, or those may be any: none was named."""
    now, earlier = ({_key(d) for d in each.diagnostics} for each in (result, before))
    return not earlier or not now.isdisjoint(earlier)


def changed_counts(attempt: Attempt) -> str:
    """`2 fixed, 1 remaining, 0 introduced`; nothing is claimed of output that was not read."""
    counts = (len(attempt.fixed), len(attempt.remaining), len(attempt.introduced))
    failed = attempt.validation is not None and not attempt.validation.success
    if failed and not any(counts):
        return "problems not counted: no parser reads this output"
    return "{} fixed, {} remaining, {} introduced".format(*counts)


def only_new(result: GateResult, base: GateResult) -> GateResult | None:
    """The result without the problems that the gate also has at the base; passed if none is left.

    None if one of the two did not count all its problems.
    """
    if _is_uncounted(result) or (not base.success and _is_uncounted(base)):
        return None
    known = Counter[Key]()
    for diagnostic in base.diagnostics:
        known[_key(diagnostic)] += diagnostic.count
    left: list[Diagnostic] = []
    for diagnostic in sorted(result.diagnostics, key=lambda d: not d.preexisting):
        taken = min(known[_key(diagnostic)], diagnostic.count)
        known[_key(diagnostic)] -= taken
        if taken < diagnostic.count:
            left.append(replace(diagnostic, count=diagnostic.count - taken))
    accepted = result.problems - sum(d.count for d in left)
    note = f"{accepted} of {result.problems} problems exist at the base too: accepted"
    order = {d.fingerprint: number for number, d in enumerate(result.diagnostics)}
    remaining = tuple(sorted(left, key=lambda d: order[d.fingerprint]))
    kept = replace(result, diagnostics=remaining, notes=(*result.notes, note))
    if not (remaining or _ends_as_well(result, base)):
        note = f"exit code {result.exit_code}, and {base.exit_code} at the base: not accepted"
        return replace(result, notes=(*result.notes, note))
    if remaining:
        return kept
    return replace(kept, status=Status.PASSED, success=True, error=None, triage=None)


def _ends_as_well(result: GateResult, base: GateResult) -> bool:
    """Whether its exit code says no more than at the base: lower only if problems are gone.

    Some tools count their problems in it, others tell a failure of their own by a higher one.
    """
    now, then = result.exit_code or 0, base.exit_code or 0
    return now == then or (0 < now < then and result.problems < base.problems)


def _is_uncounted(result: GateResult) -> bool:
    unread = any(d.tool == UNREAD for d in result.diagnostics)
    is_partial = bool(result.beyond or result.at_least)
    return is_partial or unread or is_cut_short(result, Validation())


def total(validation: Validation, other: Validation | None = None) -> int:
    """Number of problems of failed gates; a failure without problems counts as one.

    If the same gate was not read in the `other` validation either, its lines count.
    """
    count = 0
    for result in validation.failures:
        is_read_by_lines = _is_comparable(result, other or Validation())
        count += result.problems or (_lines(result).total() if is_read_by_lines else 1)
    return count


def cut_short(validation: Validation, other: Validation) -> int:
    """Number of failed gates that ended before they could count their problems."""
    return sum(is_cut_short(result, other) for result in validation.failures)


def is_cut_short(result: GateResult, other: Validation) -> bool:
    """Whether a gate that failed ended before it could count its problems.

    True if it timed out, if something could not be collected, parsed or compiled, or if no
    parser reads its output, unless its lines can be compared with those in the `other` validation.
    """
    if result.status in _CUT_SHORT or result.exit_code in (CANNOT_EXECUTE, NOT_FOUND):
        return True
    if not result.problems:
        return not (_is_known(result, other) or _is_comparable(result, other))
    return any(_stops(d, result.kind) for d in result.diagnostics)


def _is_known(result: GateResult, other: Validation) -> bool:
    """Whether all of a gate's output is in the output of its namesake that could count."""
    lines = _lines(result).keys()
    counted = [one for one in _namesakes(result, other) if one.problems]
    return bool(lines) and any(lines <= _lines(one).keys() for one in counted)


def _is_comparable(result: GateResult, other: Validation) -> bool:
    """Whether no parser read this gate in both validations, and one has no form of lines more.

    Whoever fixes problems takes forms away and whoever makes some adds forms; a tool that ends
    early does both: its own error comes, and the problems go.
    """
    if result.problems or result.status is not Status.FAILED:
        return False
    forms = set(map(form, _lines(result)))
    failed = [one for one in _namesakes(result, other) if one.status is Status.FAILED]
    others = [set(map(form, _lines(one))) for one in failed if not one.problems]
    return any(0 < len(forms & known) == min(len(forms), len(known)) for known in others)


def _namesakes(result: GateResult, other: Validation) -> list[GateResult]:
    return [one for one in other.failures if one.name == result.name]


def _lines(result: GateResult) -> Counter[str]:
    """Its telling lines without numbers and times, all that are not blank if none tells."""
    lines = [*filter(str.strip, f"{result.stdout}\n{result.stderr}".splitlines())]
    return Counter(normalised(steady(line)) for line in [*meaningful(lines)] or lines)


def _stops(d: Diagnostic, kind: Kind) -> bool:
    """Whether it reports that something could not be collected, parsed or compiled."""
    if d.level is not Level.ERROR or d.tool == UNREAD:
        return False
    if d.test_id:  # that of a whole file, which the runner could not load
        files = filter(None, (d.path, *(frame.path for frame in d.frames)))
        modules = (file.removesuffix(".py").replace("/", ".") for file in files)
        is_module = any(f".{module}".endswith(f".{d.test_id}") for module in modules)
        return is_module or bool(_FILE.search(d.test_id)) or _NOT_LOADED in d.text
    if kind is Kind.TEST and d.rule_id != THRESHOLD_RULE:  # below it the tests have run
        return True
    return bool(_UNREADABLE.match(d.rule_id or "") or _UNPARSED.match(d.message))


def problem_trend(outcome: Outcome) -> str:
    """Problem counts before and after each attempt, `279 -> 217 -> 109`; empty without."""
    seen = _validations(outcome)
    return course(seen) if len(seen) > 1 else ""


def counts_of(outcome: Outcome) -> tuple[int | None, ...]:
    """Problem counts before and after each attempt; None if a gate could not count."""
    return _counts(_validations(outcome))


def course(seen: Sequence[Validation]) -> str:
    """Problem counts, one per validation."""
    counts = zip(seen, _counts(seen), strict=True)
    return " -> ".join("unknown" if n is None else f"{_least(one)}{n}" for one, n in counts)


def _validations(outcome: Outcome) -> tuple[Validation, ...]:
    after = (attempt.validation for attempt in outcome.attempts if attempt.validation)
    return (outcome.baseline, *after)


def _counts(seen: Sequence[Validation]) -> tuple[int | None, ...]:
    is_cut = [cut_short(one, seen[0]) > 0 for one in seen]
    if all(is_cut):  # the runner can never count: compare what it reports
        is_cut = [False] * len(seen)
    return tuple(
        None if cut else total(one, seen[0]) for one, cut in zip(seen, is_cut, strict=True)
    )


def _least(validation: Validation) -> str:
    return "at least " if any(result.at_least for result in validation.failures) else ""


def first_problem(validation: Validation) -> str:
    """`3 problems, the first: calc.py:2: F401 ...` on one line; empty if no gate failed."""
    if not validation.failures:
        return ""
    count = total(validation, validation)
    plural = "s" if count > 1 else ""
    is_read = any(r.problems for r in validation.failures)
    what = f"problem{plural}" if is_read else f"line{plural} that no parser knows"
    first = ", the first" if count > 1 else ""
    said = " ".join(_said_first(validation.failures[0]).split())
    text = said if len(said) <= MAX_FIRST_CHARS else f"{said[: MAX_FIRST_CHARS - 4]} ..."
    return f"{_least(validation)}{count} {what}{first}: {text}"


def _said_first(result: GateResult) -> str:
    """The first failing test of a gate, else its first problem, else its last line."""
    if not result.diagnostics:
        last = (result.stderr.strip() or result.stdout.strip()).rpartition("\n")[2]
        return ": ".join(filter(None, (result.name, result.error or result.status.value, last)))
    d = min(result.diagnostics, key=lambda d: (d.test_id is None, d.level is not Level.ERROR))
    line = f":{d.region.start_line}" if d.region else ""
    place = d.test_id or (f"{d.path}{line}" if d.path else d.tool)
    head = d.message.strip().partition("\n")[0]
    rule = f"{d.rule_id} " if d.rule_id and not head.startswith(d.rule_id) else ""
    return f"{place}: {rule}{head}"
