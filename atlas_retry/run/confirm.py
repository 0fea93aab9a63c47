"""Second runs of gates: whether a green holds elsewhere, and a red would pass with more.

Each runs some gates of a validation again, with other files in place, and restores everything.
"""

import shlex
from collections.abc import Iterator, Sequence
from itertools import islice

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.runners import RUNNERS
from atlas_retry.diagnostics.selecting import reproducing_each
from atlas_retry.diagnostics.tests_ran import tests_counted
from atlas_retry.events import Notice, ValidationFinished
from atlas_retry.guard import Judgement
from atlas_retry.guard.places import is_product
from atlas_retry.model import (
    Attempt,
    Contents,
    Diagnostic,
    Gate,
    GateResult,
    Held,
    Kind,
    Validation,
)
from atlas_retry.patterns import regex
from atlas_retry.run.effects import Effects
from atlas_retry.run.held import restored
from atlas_retry.text.units import first_few
from atlas_retry.workspace.place import parents


class Proof(Struct, frozen=True, kw_only=True):
    """A second run of a green without certain files, and how they are held if gates need them."""

    rule: str
    detail: str
    announced: str
    """Message at the start of the second run."""
    reason: str
    """Why it runs, for the report."""
    proving: frozenset[Kind]
    excused: frozenset[str] = frozenset()
    """Kinds of failures (`GateResult.triage`) that prove nothing."""
    most: int | None = None


NEEDED = Proof(
    rule="needed-by-tests",
    detail="The tests pass only with this change.",
    announced="running again with the original tests, because some were changed",
    reason="confirmation with the original tests",
    proving=frozenset({Kind.TEST, Kind.CUSTOM}),
    excused=frozenset({"threshold"}),  # fewer tests may cover too little
)
"""Proof of kept changes. These gates may read files that decide; others judge the tree as left."""
SETTINGS_NEEDED = Proof(
    rule="settings-needed",
    detail="The gates pass only with this change.",
    announced="running again with the original settings, because some were changed",
    reason="confirmation with the original settings",
    proving=frozenset(Kind) - NEEDED.proving - {Kind.REVIEW},
)
"""Proof of kept changes of settings for all other gates."""
UNSEEN = Proof(
    rule="not-under-git",
    detail="The gates pass only with it, but no commit would contain it.",
    announced="all gates pass; checking again without ignored files that this run created",
    reason="confirmation without ignored files that the run created",
    proving=frozenset(Kind) - {Kind.REVIEW},
    most=20,
)
MAX_TESTS = 5
"""Maximum failed tests of a gate that run by themselves."""
_SKIPPED = regex(
    r"(?i)\b[1-9]\d* (?:skipped|pending|ignored|todo)\b|\bskipped(?:[ =]|: )[1-9]|--- SKIP: "
)
"""A report of a test runner that tests were skipped."""


def once_staged(
    attempt: Attempt, validation: Validation, do: Effects
) -> tuple[Attempt, Validation]:
    """Try whether gates fail only because the changed files are staged as they were before.

    `git diff --cached --check`, pre-commit and lint-staged judge what is staged, and the index is
    the user's: the fix counts, and the run names the files to stage.
    """
    changed = () if validation.success else attempt.changes
    paths = do.gates.staged(change.path for change in changed)
    if not paths:
        return attempt, validation
    red = {gate: r for gate, r in _by_gate(validation, do).items() if r.blocks}
    asked = [gate for gate in red if gate.run]
    do.emit(Notice(text=f"  running again as if staged: {first_few(paths)}"))
    before = Validation(results=tuple(red[gate] for gate in asked))
    seen = do.gates.as_if_staged(asked, paths, before)
    note = f"passes once the fix is staged: git add -- {shlex.join(paths)}"
    passed = {
        gate: replace(result, notes=(*result.notes, note))
        for gate, result in zip(asked, seen.results, strict=True)
        if result.success
    }
    if not passed:
        return attempt, validation
    return replace(attempt, unstaged=paths), _with(validation, passed, do)


def run_wholly(validation: Validation, before: Validation, do: Effects) -> Validation:
    """The validation; gates of which only a part ran, as it seems, run once more.

    The results of a part may be from a cache, and of tests only those may have run that had failed.
    """
    was, results = _by_gate(before, do), _by_gate(validation, do)
    again = dict[Gate, Gate]()
    for gate in results if validation.success else ():
        whole = do.gates.uncached(gate, results[gate])
        if whole or _ran_fewer_tests(was[gate], results[gate]):
            again[gate] = whole or gate
    if not again:
        return validation
    text = "  all gates pass; running in full, because a result may be cached: "
    do.emit(Notice(text=text + first_few([gate.name for gate in again])))
    green = Validation(results=tuple(results[gate] for gate in again))
    seen = do.gates.aside([*again.values()], {}, green, "not everything may have run")
    if seen.success:
        return validation
    return _with(validation, dict(zip(again, seen.results, strict=True)), do)


def _ran_fewer_tests(before: GateResult, after: GateResult) -> bool:
    """Whether a runner counts fewer tests than in the validation before."""
    if after.kind is not Kind.TEST:
        return False
    was, now = (tests_counted(f"{one.stdout}\n{one.stderr}") for one in (before, after))
    return was is not None and now is not None and now < was


def with_skipped(attempt: Attempt, before: Validation, after: Validation, do: Effects) -> Attempt:
    """Hold a green for review if a test that failed before the run is skipped now.

    Unless a runner counts skipped tests and there are none, those that failed run again alone.
    """
    asked = [*_perhaps_skipped(before, after, do.run.limits.gates)]
    if asked:
        names = first_few([f"{test.test_id}" for test, _, _ in asked])
        text = f"  all gates pass; running alone to see that it was not skipped: {names}"
        do.emit(Notice(text=text))
    held = []
    for test, gate, passed in asked:
        seen = do.gates.alone(gate, passed)
        if not seen.success and _shows_skipped(seen):
            detail = f"{test.test_id} failed before the run, and is skipped now."
            path = test.path or gate.name
            held.append(Held(rule="skipped-test", path=path, detail=detail, in_place=True))
    return replace(attempt, held=(*attempt.held, *held))


def _perhaps_skipped(
    before: Validation, after: Validation, gates: Sequence[Gate]
) -> Iterator[tuple[Diagnostic, Gate, GateResult]]:
    """Tests that failed and may be skipped now, each with a gate that runs it alone."""
    for gate, failed, passed in zip(gates, before.results, after.results, strict=True):
        if gate.kind is not Kind.TEST or failed.success:
            continue
        tests = failed.diagnostics[:MAX_TESTS]
        for test, command in zip(tests, reproducing_each(failed, tests), strict=True):
            if command and (_shows_skipped(passed) or RUNNERS[test.tool].hides_skipped):
                yield test, replace(gate, run=command), passed


def _shows_skipped(result: GateResult) -> bool:
    return bool(_SKIPPED.search(result.stdout) or _SKIPPED.search(result.stderr))


def confirmed(
    attempt: Attempt, validation: Validation, files: Contents, proof: Proof, do: Effects
) -> tuple[Attempt, Validation]:
    """Run a green again with other files in place; if gates fail with them, they stay in place."""
    every = _by_gate(validation, do)
    proving = {gate: result for gate, result in every.items() if gate.kind in proof.proving}
    if not (files and proving and validation.success):
        return attempt, validation
    do.emit(Notice(text=f"  {proof.announced}: {first_few(files)}"))
    seen = _aside(proving, files, proof.reason, do)
    red = (result for result in seen.values() if result.blocks)
    if all(result.triage in proof.excused for result in red):
        return attempt, validation
    do.tree.write(files)
    validation = _with(validation, seen, do)
    held = _held_by(proof, files, do.tree.read(f"{attempt.snapshot}", files))
    return replace(attempt, held=(*attempt.held, *held)), validation


def without_kept(
    attempt: Attempt, green: Validation, judgement: Judgement, do: Effects
) -> tuple[Attempt, Validation]:
    """Run a green again without kept changes: the tests without any, other gates with settings."""
    kept = judgement.as_before if judgement.blocks else {}
    noted = {answer.path for answer in judgement.noted}
    settings = {path: old for path, old in kept.items() if path in noted}
    attempt, validation = confirmed(attempt, green, kept, NEEDED, do)
    return confirmed(attempt, validation, settings, SETTINGS_NEEDED, do)


def _held_by(proof: Proof, files: Contents, made: Contents) -> Iterator[Held]:
    """The changes to hold; of ignored files in a folder that a tool makes again, the folder."""
    named = dict[str, bool]()
    for path in (path for path in files if files.keys().isdisjoint(parents(path))):
        # of what a build or a tool makes again, the outermost folder, or the file itself
        every = [*(f"{folder}/" for folder in [*parents(path)][::-1]), path]
        folder = next(filter(is_product, every), None) if proof is UNSEEN else None
        by_hand = proof is UNSEEN and (folder is not None or made[path] is None)
        named[folder or path] = by_hand
    for path, by_hand in islice(named.items(), proof.most):
        yield Held(rule=proof.rule, path=path, needed=True, detail=proof.detail, by_hand=by_hand)


def with_held(attempt: Attempt, red: Validation, after: str, do: Effects) -> Attempt:
    """If gates fail, try whether they pass with the held changes; reviews cost, so not those.

    The snapshot `after` has the held changes.
    """
    paths = [held.path for held in restored(attempt) if held.needed is None]
    refused = any(result.kind is Kind.REVIEW for result in red.failures)
    if red.success or refused or not paths:
        return attempt
    every = _by_gate(red, do)
    trying = {gate: result for gate, result in every.items() if gate.kind is not Kind.REVIEW}
    do.emit(Notice(text=f"  running again with the held changes: {first_few(paths)}"))
    seen = _aside(trying, do.tree.read(after, paths), "with the held changes", do)
    return marked(attempt, needed=not any(result.blocks for result in seen.values()))


def marked(attempt: Attempt, *, needed: bool) -> Attempt:
    """Mark held changes as needed or not; those left in place have not been tried."""
    return replace(attempt, held=tuple(held.tried(needed=needed) for held in attempt.held))


Results = dict[Gate, GateResult]


def _by_gate(validation: Validation, do: Effects) -> dict[Gate, GateResult]:
    return dict(zip(do.run.limits.gates, validation.results, strict=True))


def _aside(asked: Results, files: Contents, reason: str, do: Effects) -> Results:
    """The results of these gates with these files in place."""
    before = Validation(results=tuple(asked.values()))
    seen = do.gates.aside([*asked], files, before, reason)
    return dict(zip(asked, seen.results, strict=True))


def _with(validation: Validation, later: Results, do: Effects) -> Validation:
    """The validation with the later results of some gates, which observers get as well."""
    results = _by_gate(validation, do) | later
    validation = replace(validation, results=tuple(results.values()))
    do.emit(ValidationFinished(validation=validation))
    return validation
