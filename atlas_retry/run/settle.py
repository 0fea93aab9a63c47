"""Settle an agent's turn: revert what the guard refuses or holds, and validate the rest."""

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.runners import RUNNERS
from atlas_retry.diagnostics.selecting import reproducing_each
from atlas_retry.diagnostics.tests_ran import tests_counted
from atlas_retry.events import Notice, ValidationFinished, ViolationsFound
from atlas_retry.guard.judgement import Judgement
from atlas_retry.guard.places import is_build_output, is_product
from atlas_retry.guard.settings import is_manifest
from atlas_retry.history import rescue
from atlas_retry.model import (
    Answer,
    Attempt,
    Contents,
    Diagnostic,
    Gate,
    GateResult,
    Held,
    Kind,
    Level,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.patterns import regex
from atlas_retry.run.effects import Effects
from atlas_retry.run.held import restored
from atlas_retry.run.progress import Progress
from atlas_retry.text.units import first_few
from atlas_retry.workspace.place import parents
from atlas_retry.workspace.snapshot.snapshots import Snapshot


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
WRITTEN = "was written while the gates ran, by code that the attempt changed"
_SKIPPED = regex(
    r"(?i)\b[1-9]\d* (?:skipped|pending|ignored|todo)\b|\bskipped(?:[ =]|: )[1-9]|--- SKIP: "
)
"""A report of a test runner that tests were skipped."""

Settled = tuple[Attempt, Snapshot, Validation | None]
"""An attempt, the tree after it, and the validation of that; None if no gate ran."""


class Turn(Struct, frozen=True, kw_only=True):
    """The trees before and after an agent's turn."""

    before: Snapshot
    after: Snapshot


def settle(attempt: Attempt, turn: Turn, progress: Progress, do: Effects) -> Settled:
    """Judge the turn, revert what is refused or held, and run the gates on what is left.

    It is judged once, before any gate runs, because what gates write is not the agent's.
    """
    judgement = do.guard.judge(turn.before.id, turn.after.id, progress)
    attempt, left = _reverted(_answered(attempt, judgement), judgement, turn, do)
    if not attempt.changes or attempt.rolled_back or attempt.ends is Verdict.REJECTED:
        return attempt, left, None
    settled: Settled = attempt, left, None
    if left.tree != turn.before.tree:
        settled = _validated(attempt, judgement, turn, progress, do)
    if judgement.reinstate:
        settled = _without_syncs(settled, judgement, do)
    return settled if settled[0].rolled_back else _retried(settled, turn, progress.latest, do)


def _answered(attempt: Attempt, judgement: Judgement) -> Attempt:
    """The attempt with the guard's judgement; a guard that only warns holds nothing."""
    if judgement.blocks:
        return replace(
            attempt,
            violations=judgement.refused,
            held=judgement.held,
            noted=judgement.noted,
            unseen=judgement.unseen,
            ends=judgement.ends,
            remedy=judgement.remedy,
            left=judgement.left,
        )
    would = map(Answer.as_note, judgement.held)
    return replace(attempt, violations=judgement.refused, noted=(*judgement.noted, *would))


def _reverted(
    attempt: Attempt, judgement: Judgement, turn: Turn, do: Effects
) -> tuple[Attempt, Snapshot]:
    """The attempt and the tree after reverting; `turn.after` itself if nothing was reverted."""
    left = turn.after
    if judgement.blocks and (judgement.restore != () or judgement.rewrite):
        if judgement.restore != ():
            do.tree.restore(turn.before.id, turn.after.id, judgement.restore)
        if judgement.restore is not None:
            do.tree.write(judgement.rewrite)
        left = do.tree.snapshot(f"{attempt.number}-guarded")
    whole = judgement.restore is None or (left.tree == turn.before.tree and attempt.violations)
    rolled_back = bool((left is not turn.after or judgement.reinstate) and whole)
    attempt = replace(attempt, rolled_back=rolled_back)
    _report(attempt, () if rolled_back else judgement.reinstate, do)
    return attempt, left


def _report(attempt: Attempt, waiting: Collection[str], do: Effects) -> None:
    """Report what was refused and held, without paths that may yet be a gate's."""
    now = tuple(v for v in attempt.violations if v.path not in waiting)
    if now or attempt.held:
        do.emit(
            ViolationsFound(
                level=Level.WARNING,
                violations=now,
                held=attempt.held,
                left=tuple(one.path for one in attempt.left),
                rolled_back=attempt.rolled_back,
            )
        )


def _without_syncs(settled: Settled, judgement: Judgement, do: Effects) -> Settled:
    """The attempt without the changes of environments that the gates have made again.

    They were put back before, so a gate's own command made them: who started it first matters not.
    That is seen on the judged tree, not on the first one: there, a gate installs what the first
    manifest names, and an honest change of the manifest would be refused.
    A red attempt that changed a manifest as well is for review: it may need what it installed.
    """
    attempt, end, validation = settled
    again = do.guard.made_again().intersection(judgement.reinstate) if validation else ()
    left = tuple(v for v in attempt.violations if v.path not in again)
    attempt = replace(attempt, violations=left)
    there = tuple(v for v in left if v.path in judgement.reinstate)
    if there:
        do.emit(ViolationsFound(level=Level.WARNING, violations=there, rolled_back=False))
    red = validation is None or not validation.success
    if there and judgement.adds_dependencies and red:
        remedy = f"atlas pick {do.run.run_id} {attempt.number}"
        attempt = replace(attempt, ends=Verdict.NEEDS_REVIEW, remedy=remedy)
    return attempt, end, validation


def _validated(
    attempt: Attempt, judgement: Judgement, turn: Turn, progress: Progress, do: Effects
) -> Settled:
    """Validate what is left; a green must also hold without the kept changes."""
    left = do.tree.snapshot(f"{attempt.number}-left")
    attempt, validation = _once_staged(attempt, do.gates.validate(progress.latest), do)
    validation = _run_wholly(validation, progress.settled, do)
    attempt, validation, wrote = _without_written(attempt, validation, judgement, progress, do)
    end = do.tree.snapshot(f"{attempt.number}-end")
    if wrote:
        return _reverted_whole(attempt, wrote, turn, end, do)
    if left.tree != end.tree and (rewritten := do.guard.rewritten(left.id, end.id, validation)):
        return _reverted_whole(attempt, rewritten, turn, end, do)
    if validation.success and left.tree != end.tree:
        data = do.guard.rewritten_data(left.id, end.id, progress)
        attempt = replace(attempt, held=(*attempt.held, *data))
    if validation.success:
        # a clean checkout lacks what git does not hold: caches, ignored modules, build outputs
        paths = _ignored_writes((*progress.attempts, attempt), progress.start, end.id, do)
        files = do.tree.unseen(progress.start, left.id, end.id, paths, validation)
        _outdate_builds(files, do)
        attempt, validation = _confirmed(attempt, validation, files, UNSEEN, do)
        attempt = _skipped(attempt, progress.settled, validation, do)
    if not validation.success:
        # a new snapshot, without the ignored files: `pick` compares with the current tree
        return (
            attempt,
            do.tree.snapshot(f"{attempt.number}-end") if attempt.held else end,
            validation,
        )
    attempt = _marked(attempt, needed=False)
    if not judgement.blocks or not judgement.as_before:
        return attempt, end, validation
    attempt, proved = _without_kept(attempt, validation, judgement, do)
    if proved is validation:
        return attempt, end, validation
    return attempt, do.tree.snapshot(f"{attempt.number}-end"), proved


def _without_kept(
    attempt: Attempt, validation: Validation, judgement: Judgement, do: Effects
) -> tuple[Attempt, Validation]:
    """Run a green again without kept changes: the tests without any, other gates with settings."""
    attempt, proved = _confirmed(attempt, validation, judgement.as_before, NEEDED, do)
    if proved is not validation:
        return attempt, proved
    noted = {violation.path for violation in judgement.noted}
    settings = {path: old for path, old in judgement.as_before.items() if path in noted}
    return _confirmed(attempt, validation, settings, SETTINGS_NEEDED, do)


def _without_written(
    attempt: Attempt, validation: Validation, judgement: Judgement, progress: Progress, do: Effects
) -> tuple[Attempt, Validation, tuple[Violation, ...]]:
    """Judge what gates wrote in environments and only code of the turn explains; it is put back.

    A green must hold without it, and without its being written again. Otherwise the third value
    are violations, or, where the turn changed a manifest, that is for review.
    """
    refused = {violation.path for violation in judgement.refused}
    known = refused.difference(judgement.reinstate).union(judgement.unseen)
    found = do.guard.installed_by_gates(progress, validation, known)
    wrote = tuple(replace(violation, detail=WRITTEN) for violation in found.refused)
    if wrote and found.ends:
        ended = replace(attempt, ends=found.ends, remedy=found.remedy, left=found.left)
        return ended, validation, wrote
    if not (wrote and validation.success):
        return attempt, validation, ()
    names = first_few([violation.path for violation in wrote])
    text = "  all gates pass; running again without what they wrote in environments"
    do.emit(Notice(text=f"{text}: {names}"))
    validation = do.gates.validate(validation)
    again = do.guard.installed_by_gates(progress, validation, known)
    if validation.success and not again.refused:
        return attempt, validation, ()
    if not any(is_manifest(change.path) for change in attempt.changes):
        return attempt, validation, wrote
    held = (Held(rule=v.rule, path=v.path, detail=WRITTEN, in_place=True) for v in wrote)
    return replace(attempt, held=(*attempt.held, *held)), validation, ()


def _once_staged(
    attempt: Attempt, validation: Validation, do: Effects
) -> tuple[Attempt, Validation]:
    """Try whether gates fail only because the changed files are staged as they were before.

    `git diff --cached --check`, pre-commit and lint-staged judge what is staged, and the index is
    the user's: the fix counts, and the run names the files to stage.
    """
    gates = do.run.limits.gates
    if validation.success or not (
        paths := do.gates.staged(change.path for change in attempt.changes)
    ):
        return attempt, validation
    red = [gate for gate, result in zip(gates, validation.results, strict=True) if result.blocks]
    asked, before = _chosen(gates, validation, lambda gate: gate in red and bool(gate.run))
    names = first_few(paths)
    do.emit(Notice(text=f"  running again as if staged: {names}"))
    seen = do.gates.as_if_staged(asked, paths, before)
    note = f"passes once the fix is staged: git add -- {shlex.join(paths)}"
    green = [replace(result, notes=(*result.notes, note)) for result in seen.results]
    results = [new if new.success else old for new, old in zip(green, before.results, strict=True)]
    if not any(result.success for result in results):
        return attempt, validation
    seen = replace(seen, results=tuple(results))
    return replace(attempt, unstaged=paths), _with(validation, seen, asked, do)


def _run_wholly(validation: Validation, before: Validation, do: Effects) -> Validation:
    """The validation; gates of which only a part ran, as it seems, run once more.

    The results of a part may be from a cache, and of tests only those may have run that had failed.
    """
    if not validation.success:
        return validation
    gates, again = do.run.limits.gates, dict[Gate, Gate]()
    for gate, was, result in zip(gates, before.results, validation.results, strict=True):
        whole = do.gates.uncached(gate, result)
        if whole or _ran_fewer_tests(was, result):
            again[gate] = whole or gate
    if not again:
        return validation
    asked, green = _chosen(gates, validation, again.__contains__)
    names = first_few([gate.name for gate in asked])
    do.emit(
        Notice(text=f"  all gates pass; running in full, because a result may be cached: {names}")
    )
    seen = do.gates.aside([again[gate] for gate in asked], {}, green, "not everything may have run")
    if seen.success:
        return validation
    return _with(validation, seen, asked, do)


def _ran_fewer_tests(before: GateResult, after: GateResult) -> bool:
    """Whether a runner counts fewer tests than in the validation before."""
    if after.kind is not Kind.TEST:
        return False
    was, now = (tests_counted(f"{one.stdout}\n{one.stderr}") for one in (before, after))
    return was is not None and now is not None and now < was


def _outdate_builds(hidden: Contents, do: Effects) -> None:
    """Have builds made again, as they may hold what a file that is hidden now said."""
    if not all(map(is_build_output, hidden)):
        do.tree.outdate_builds()


def _skipped(attempt: Attempt, before: Validation, after: Validation, do: Effects) -> Attempt:
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


def _reverted_whole(
    attempt: Attempt, rewritten: tuple[Violation, ...], turn: Turn, end: Snapshot, do: Effects
) -> Settled:
    """Revert the whole attempt: its code changes files that decide when a gate runs it."""
    do.emit(ViolationsFound(level=Level.WARNING, violations=rewritten, rolled_back=True))
    do.tree.restore(turn.before.id, end.id, None)
    agents = {change.path for change in attempt.changes}
    agents |= {violation.path for violation in rewritten}
    changed = {change.path for change in do.tree.changes(turn.before.id, end.id)}
    name_restored(changed - agents, f"{attempt.number}-end", do)
    violations = (*attempt.violations, *rewritten)
    attempt = replace(attempt, violations=violations, rolled_back=True)
    return attempt, do.tree.snapshot(f"{attempt.number}-guarded"), None


def name_restored(paths: Collection[str], snapshot: str, do: Effects) -> None:
    """Name files that were restored although a person may have edited them while gates ran."""
    if paths:
        do.emit(restored_notice(paths, snapshot, do.run.run_id))


def restored_notice(paths: Collection[str], snapshot: str, run_id: str) -> Notice:
    """Warns that these files were restored, with the command that takes one again."""
    text = f"restored, as it was changed while gates ran: {first_few(sorted(paths))}"
    return Notice(level=Level.WARNING, text=f"{text}; {rescue.pick_hint(run_id, snapshot)}")


def _confirmed(
    attempt: Attempt,
    validation: Validation,
    files: Contents,
    proof: Proof,
    do: Effects,
) -> tuple[Attempt, Validation]:
    """Run a green again with other files in place; if gates fail with them, they stay in place."""
    gates = do.run.limits.gates
    proving, green = _chosen(gates, validation, lambda gate: gate.kind in proof.proving)
    if not files or not proving:
        return attempt, validation
    do.emit(Notice(text=f"  {proof.announced}: {first_few(files)}"))
    seen = do.gates.aside(proving, files, green, proof.reason)
    if not any(result.blocks and result.triage not in proof.excused for result in seen.results):
        return attempt, validation
    do.tree.write(files)
    validation = _with(validation, seen, proving, do)
    made = do.tree.read(f"{attempt.snapshot}", files)
    named = dict[str, bool]()
    for path in (path for path in files if files.keys().isdisjoint(parents(path))):
        folder = _product_folder(path) if proof is UNSEEN else None
        by_hand = proof is UNSEEN and (folder is not None or made[path] is None)
        named[folder or path] = by_hand
    held = tuple(
        Held(rule=proof.rule, path=path, needed=True, detail=proof.detail, by_hand=by_hand)
        for path, by_hand in islice(named.items(), proof.most)
    )
    return replace(attempt, held=(*attempt.held, *held)), validation


def _product_folder(path: str) -> str | None:
    """The outermost folder that a build or a tool makes again, or the file itself if it is one."""
    every = [f"{folder}/" for folder in parents(path)][::-1]
    return next((one for one in (*every, path) if is_product(one)), None)


def _ignored_writes(
    attempts: Sequence[Attempt], start: str, end: str, do: Effects
) -> frozenset[str]:
    """Ignored files that turns wrote; of reverted attempts, those that still differ."""
    left = _unseen(attempt for attempt in attempts if not attempt.rolled_back)
    back = _unseen(attempt for attempt in attempts if attempt.rolled_back) - left
    was, now = do.tree.read(start, back), do.tree.read(end, back)
    undone = {path for path in back if now[path] == was[path] is not None}
    return left | (back - undone)


def _unseen(attempts: Iterable[Attempt]) -> frozenset[str]:
    return frozenset(chain.from_iterable(attempt.unseen for attempt in attempts))


def forget(progress: Progress, do: Effects) -> None:
    """Restore ignored files that turns wrote and no gate has written since.

    If a run does not end green, the next one would take them for the user's.
    """
    wrote = (attempt for attempt in progress.attempts if attempt.unseen)
    attempts = [attempt for attempt in wrote if attempt.snapshot]
    left = do.tree.snapshot("left").id if attempts else ""
    for attempt in attempts:
        files = _as_before(attempt, progress.origin, left, do)
        do.tree.write(files)
        # what was built from other sources must be built again
        there = (path for path in files if files[path])
        do.tree.outdate(filter(is_build_output, there))


def _as_before(attempt: Attempt, origin: str, left: str, do: Effects) -> Contents:
    """Ignored files that are still as the attempt wrote them, with their content in `origin`."""
    paths = {*attempt.unseen} - {change.path for change in attempt.changes}
    was, wrote, now = (do.tree.read(s, paths) for s in (origin, f"{attempt.snapshot}", left))
    unheld = dict.fromkeys(path for path in paths if now[path] is None)
    there = (path for path in paths if now[path])
    ours = (path for path in there if now[path] == wrote[path] != was[path])
    return unheld | {path: was[path] for path in ours}


def _retried(settled: Settled, turn: Turn, before: Validation, do: Effects) -> Settled:
    """If gates fail, try whether they pass with the held changes; reviews cost, so not those.

    `before` is the validation to use if nothing of the attempt is left.
    """
    attempt, end, validation = settled
    red = validation or before
    paths = [held.path for held in restored(attempt) if held.needed is None]
    refused = any(result.kind is Kind.REVIEW for result in red.failures)
    if red.success or refused or not paths:
        return settled
    trying, before = _chosen(do.run.limits.gates, red, lambda gate: gate.kind is not Kind.REVIEW)
    do.emit(Notice(text=f"  running again with the held changes: {first_few(paths)}"))
    seen = do.gates.aside(
        trying, do.tree.read(turn.after.id, paths), before, "with the held changes"
    )
    return _marked(attempt, needed=not seen.failures), end, validation


def _marked(attempt: Attempt, *, needed: bool) -> Attempt:
    """Mark held changes as needed or not; those left in place have not been tried."""
    return replace(attempt, held=tuple(held.tried(needed=needed) for held in attempt.held))


def _chosen(
    gates: Sequence[Gate], validation: Validation, wanted: Callable[[Gate], bool]
) -> tuple[tuple[Gate, ...], Validation]:
    pairs = [p for p in zip(gates, validation.results, strict=True) if wanted(p[0])]
    results = tuple(result for _, result in pairs)
    return tuple(gate for gate, _ in pairs), replace(validation, results=results)


def _with(
    validation: Validation, later_one: Validation, asked: Sequence[Gate], do: Effects
) -> Validation:
    """The validation with the later results of some gates, which observers get as well."""
    later = iter(later_one.results)
    results = zip(do.run.limits.gates, validation.results, strict=True)
    validation = replace(
        validation,
        results=tuple(next(later) if gate in asked else result for gate, result in results),
    )
    do.emit(ValidationFinished(validation=validation))
    return validation
