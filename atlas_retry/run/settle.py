"""Settle an agent's turn: revert what the guard refuses or holds, and validate the rest."""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.events import Notice, ViolationsFound
from atlas_retry.guard import Judgement
from atlas_retry.guard.places import is_build_output
from atlas_retry.guard.settings import is_manifest
from atlas_retry.history import rescue
from atlas_retry.model import (
    Answer,
    Attempt,
    Contents,
    Held,
    Level,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.run.confirm import (
    UNSEEN,
    confirmed,
    marked,
    once_staged,
    run_wholly,
    with_held,
    with_skipped,
    without_kept,
)
from atlas_retry.run.effects import Effects
from atlas_retry.run.progress import Progress
from atlas_retry.text.units import first_few
from atlas_retry.workspace.snapshot.snapshots import Snapshot

WRITTEN = "was written while the gates ran, by code that the attempt changed"
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
    attempt, end, validation = settled
    if not attempt.rolled_back:
        attempt = with_held(attempt, validation or progress.latest, turn.after.id, do)
    return attempt, end, validation


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
    number = attempt.number
    left = do.tree.snapshot(f"{number}-left")
    attempt, validation = once_staged(attempt, do.gates.validate(progress.latest), do)
    validation = run_wholly(validation, progress.settled, do)
    attempt, validation, wrote = _without_written(attempt, validation, judgement, progress, do)
    end = do.tree.snapshot(f"{number}-end")
    has_moved = left.tree != end.tree
    if has_moved and not wrote:
        wrote = do.guard.rewritten(left.id, end.id, validation)
    if wrote:
        return _reverted_whole(attempt, wrote, turn, end, do)
    if validation.success:
        if has_moved:
            data = do.guard.rewritten_data(left.id, end.id, progress)
            attempt = replace(attempt, held=(*attempt.held, *data))
        attempts = (*progress.attempts, attempt)
        files = _unseen_files(attempts, (progress.start, left.id, end.id), validation, do)
        attempt, validation = confirmed(attempt, validation, files, UNSEEN, do)
    if validation.success:
        attempt = marked(with_skipped(attempt, progress.settled, validation, do), needed=False)
        attempt, validation = without_kept(attempt, validation, judgement, do)
    if not validation.success and attempt.held:
        # without what the confirmation hid: `pick` compares with the current tree
        end = do.tree.snapshot(f"{number}-end")
    return attempt, end, validation


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


def _reverted_whole(
    attempt: Attempt, rewritten: tuple[Violation, ...], turn: Turn, end: Snapshot, do: Effects
) -> Settled:
    """Revert the whole attempt: its code changes files that decide when a gate runs it."""
    do.emit(ViolationsFound(level=Level.WARNING, violations=rewritten, rolled_back=True))
    do.tree.restore(turn.before.id, end.id, None)
    agents = {change.path for change in attempt.changes}
    agents |= {violation.path for violation in rewritten}
    changed = do.tree.moved(turn.before.id, end.id)
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


def _unseen_files(
    attempts: Sequence[Attempt], taken: tuple[str, str, str], green: Validation, do: Effects
) -> Contents:
    """What a clean checkout lacks of what the green may need, as it was before the run.

    Caches, ignored modules, build outputs; of reverted attempts, those that still differ. `taken`
    are snapshots of the start of the run, before the gates of the green ran, and after.
    """
    start, left, end = taken
    wrote = _unseen(attempt for attempt in attempts if not attempt.rolled_back)
    back = _unseen(attempt for attempt in attempts if attempt.rolled_back) - wrote
    was, now = do.tree.read(start, back), do.tree.read(end, back)
    undone = {path for path in back if now[path] == was[path] is not None}
    files = do.tree.unseen(start, left, end, wrote | (back - undone), green)
    if not all(map(is_build_output, files)):  # builds may hold what a file said
        do.tree.outdate_builds()
    return files


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
