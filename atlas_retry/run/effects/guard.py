"""What a run asks the guard, before and after a turn, and what it puts back for it."""

import os
import shlex
from collections.abc import Collection
from itertools import chain, filterfalse

from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.guard import Judgement, judge
from atlas_retry.guard.judge import seals
from atlas_retry.guard.places import is_code, is_product, is_test
from atlas_retry.model import (
    CHECKERS,
    ChangeStatus,
    Held,
    Validation,
    Verdict,
    Violation,
)
from atlas_retry.run import environments, irreversible
from atlas_retry.run.effects.gates import GateEffects
from atlas_retry.run.effects.tree import BesideTree
from atlas_retry.run.progress import Progress
from atlas_retry.text import reinstalling
from atlas_retry.text.units import first_few
from atlas_retry.workspace import gitmoves, installed
from atlas_retry.workspace.snapshot import restoring


class GuardEffects(BesideTree, frozen=True):
    """The guard of a run."""

    def seal(self, progress: Progress) -> None:
        """Record what decides apart from the workspace's files, for the next `judge` to compare."""
        wrote = chain.from_iterable(attempt.unseen for attempt in progress.attempts)
        scan = self.opened.tracker.scan()
        self.last_turn.files = scan.files
        self.last_turn.at_home = irreversible.settings_at_home(self.opened.environ)
        settings, held = self.opened.settings, self.opened.git.installed
        taken = seals.seal(self.opened.root, settings, self.opened.environ, scan, held=held)
        self.last_turn.sealed = seals.without_made(taken, wrote)
        number = len(progress.attempts) + 1
        before = self.tree.kept(f"{number}-before") or progress.current
        folder, facts = self.of.attempt_folder(number), self.last_turn.sealed.facts
        gitmoves.note_before(self.opened.git, folder, facts, before)

    def judge(self, before: str, after: str, progress: Progress) -> Judgement:
        """The guard's judgement of the change between two snapshots."""
        guard, sealed = self.opened.settings.guard, self.last_turn.sealed
        if guard.mode == "off" or sealed is None:
            return Judgement()
        in_place = (attempt for attempt in progress.attempts if not attempt.rolled_back)
        left = (attempt.changes for attempt in in_place if not attempt.worse)
        turn = judge.JudgedTurn(
            origin=progress.origin,
            before=before,
            after=after,
            failing=progress.latest.failures,
            earlier=frozenset(change.path for change in chain.from_iterable(left)),
            theirs=progress.theirs,
            outputs=self._written_by_gates(progress),
            git_after=self.last_turn.git.agents if self.last_turn.git else None,
            puts_back=guard.mode == "block",
        )
        beside = self._by_the_agent(seals.compared(sealed, self.opened.tracker.scan()))
        if beside.hiding:
            text = f"the turn made repositories, which stay: {first_few(beside.hiding)}"
            self.warn(text)
        judgement = judge.judge_attempt(self.opened.git, turn, sealed, beside)
        if seals.clean(sealed, look=beside.look):
            self.opened.tracker.moved()
        if guard.mode == "block":
            seals.restore_modes(sealed, beside)
        self.last_turn.installed = {
            p: installed.digest(self.opened.root, p) for p in judgement.reinstate
        }
        judgement = self._reinstated(judgement, sealed, beside, len(progress.attempts) + 1)
        empty = sorted(restoring.empty_folders(self.opened.git, before, after))
        every = (*judgement.unseen, *empty)
        unseen = tuple(path for path in every if path not in judgement.reinstate)
        return replace(judgement, unseen=unseen, blocks=guard.mode == "block")

    def _reinstated(
        self, judgement: Judgement, taken: seals.Seal, moved: seals.Moved, number: int
    ) -> Judgement:
        """The judgement after refused files of environments were put back.

        What cannot be put back ends the run.
        """
        root, paths = self.opened.root, judgement.reinstate
        into, left = self.of.attempt_folder(number) / "removed", tuple[str, ...]()
        if paths:
            with process.uninterruptible(f"what is installed in {root} is being restored"):
                left = seals.put_back(taken, paths, into)
            self.opened.tracker.moved()
        if aside := [path for path in paths if os.path.lexists(into / path.lstrip("/"))]:
            self.warn(f"added to an environment, and moved to {into}: {first_few(aside)}")
        if left:
            stays = tuple(path for path in paths if path not in left)
            ends = judgement.ends or Verdict.REJECTED
            judgement = replace(judgement, reinstate=stays, ends=ends)
        return self._with_what_stays(judgement, taken, moved) if judgement.ends else judgement

    def installed_by_gates(
        self, progress: Progress, validation: Validation, known: Collection[str]
    ) -> Judgement:
        """The judgement of what gates wrote in environments since the turn, after it is put back.

        What the gates' own commands make stays. The turn's own changes that stay are `known`.
        """
        taken, number = self.last_turn.sealed, len(progress.attempts) + 1
        if taken is None or self.opened.settings.guard.mode != "block":
            return Judgement()
        moved = seals.compared(taken, self.opened.tracker.scan())
        if not environments.is_touched(moved):
            return Judgement()
        turn = environments.GatedTurn(
            opened=self.opened,
            taken=taken,
            first=progress.origin,
            now=self.opened.tracker.snapshot().id,
            how=GateEffects(of=self.of).plan_aside(validation),
            known=known,
            folder=self.of.attempt_folder(number),
            emit=self.of.emit,
        )
        judgement = environments.by_gates(turn, moved)
        return self._reinstated(judgement, taken, moved, number)

    def made_again(self) -> frozenset[str]:
        """The files of environments that are again as the last turn left them."""
        root, made = self.opened.root, self.last_turn.installed.items()
        return frozenset(path for path, was in made if was == installed.digest(root, path))

    def _by_the_agent(self, moved: seals.Moved) -> seals.Moved:
        """The changes without repositories inside in which only someone else has worked."""
        last = self.last_turn
        if last.sealed is None or last.git is None:
            return moved
        was, did, environ = last.sealed.nested, last.git.did, self.opened.environ
        inner = {path: (self.opened.root / path).parent for path in moved.nested}
        worked = [p for p in inner if gitmoves.has_worked(inner[p], was[p], did, environ)]
        outside = moved.outside
        if not any(name.startswith("user:") for name in last.git.moves.agents):
            users = gitmoves.users_files(environ)  # what git would run there is restored
            outside = tuple(change for change in outside if str(change) not in users)
        return replace(moved, nested=tuple(worked), outside=outside)

    def _with_what_stays(
        self, judgement: Judgement, taken: seals.Seal, moved: seals.Moved
    ) -> Judgement:
        """The judgement with the changes that stay; atlas's own configuration is restored."""
        channel = self.of.channel
        refused = {one.path for one in judgement.refused}.difference(judgement.reinstate)
        left = irreversible.lasting(taken, moved, refused)
        if channel:  # what is written in an overlay is removed with it
            left = tuple(one for one in left if channel.layers.shows_through(one.states))
        at_home = self.last_turn.at_home
        own = f"{at_home.path}" if at_home else ""
        others = tuple(one for one in left if one.path != own)
        stay = left
        if at_home and others != left and taken.guard.mode == "block":
            path, copy = at_home.path, self.of.folder / "refused-config.yaml"
            if irreversible.put_back_settings(at_home, copy):
                stay = others
                kept = f"; cp {shlex.quote(str(copy))} {shlex.quote(str(path))} takes it again"
                self.warn(f"restored: {path}{kept if copy.exists() else ''}")
        paths = [one.path for one in stay]
        remedy = reinstalling.remedy(
            paths,
            new=moved.added,
            there=self.opened.tracker.scan().visible(),
            by_path=installed.distributions(taken.root, taken.held, paths),
        )
        return replace(judgement, left=stay, remedy=remedy if stay else None)

    def _written_by_gates(self, progress: Progress) -> frozenset[str]:
        """Files that changed during the baseline, except by fixers."""
        moved = self.tree.moved(progress.start, progress.origin)
        return moved.difference(progress.fixers_changed)

    def rewritten(self, before: str, after: str, validation: Validation) -> tuple[Violation, ...]:
        """Violations: files that decide and changed while the gates of a validation ran."""
        if self.opened.settings.guard.mode != "block":
            return ()
        results = (result for result in validation.results if result.kind in CHECKERS)
        changed = set(chain.from_iterable(result.changed for result in results))
        return judge.rewritten(self.opened.git, before, after, changed)

    def rewritten_data(self, before: str, after: str, progress: Progress) -> tuple[Held, ...]:
        """For review: data of tests that gates changed after a turn and not in the baseline."""
        guard, known = self.opened.settings.guard, self._written_by_gates(progress)
        if guard.mode != "block" or guard.review == "note":
            return ()
        there = (c for c in self.tree.changes(before, after) if c.status is not ChangeStatus.ADDED)
        moved = {change.path for change in there} - known
        paths = filterfalse(is_product, filterfalse(is_code, filter(is_test, sorted(moved))))
        detail = "test data changed while the gates ran; it did not in the baseline"
        return tuple(
            Held(rule="rewritten-by-a-gate", path=path, detail=detail, in_place=True)
            for path in paths
        )
