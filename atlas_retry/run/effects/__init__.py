"""The side effects of one run, as methods that the loop calls. Decides nothing."""

import time
from collections.abc import Sequence
from itertools import chain

from msgspec import Struct
from msgspec.structs import asdict, replace

from atlas_retry.errors import StateError
from atlas_retry.events import Emit, Event, EventScope, noting, within
from atlas_retry.history import reviews
from atlas_retry.model import Attempt, Content, ExtraRun, Held, OpenReview, Outcome
from atlas_retry.run.decide import decide
from atlas_retry.run.effects.agent import AgentEffects
from atlas_retry.run.effects.gates import GateEffects
from atlas_retry.run.effects.git import GitEffects
from atlas_retry.run.effects.guard import GuardEffects
from atlas_retry.run.effects.open_run import OpenRun
from atlas_retry.run.effects.tree import TreeEffects
from atlas_retry.run.held import for_review
from atlas_retry.run.progress import Elsewhere, Progress, Run


class Effects(Struct, kw_only=True):
    """Everything that a run may do, by what it touches."""

    of: OpenRun

    @property
    def run(self) -> Run:
        return self.of.run

    @property
    def tree(self) -> TreeEffects:
        return TreeEffects(of=self.of)

    @property
    def gates(self) -> GateEffects:
        return GateEffects(of=self.of)

    @property
    def agent(self) -> AgentEffects:
        return AgentEffects(of=self.of)

    @property
    def git(self) -> GitEffects:
        return GitEffects(of=self.of)

    @property
    def guard(self) -> GuardEffects:
        return GuardEffects(of=self.of)

    def emit(self, event: Event) -> None:
        self.of.emit(event)

    def within(self, scope: EventScope) -> "Effects":
        """The same effects, with this scope on every event."""
        return self._emitting(within(self.of.emit, scope))

    def counting(self, extra: list[ExtraRun]) -> "Effects":
        """The same effects, which note every run of a gate besides the validations."""
        return self._emitting(noting(self.of.emit, extra))

    def _emitting(self, emit: Emit) -> "Effects":
        # what an attempt notes about its turn ends with the attempt
        last_turn = replace(self.of.last_turn)
        return replace(self, of=replace(self.of, emit=emit, last_turn=last_turn))

    def elapsed_s(self) -> float:
        """Seconds since the run began, without the time while it was interrupted."""
        return time.monotonic() - self.of.started_s

    def account(self, progress: Progress) -> Progress:
        """The progress with its elapsed time and what others have spent of the shared budget.

        A run that ends anyway reserves nothing of the budget.
        """
        elapsed_s = max(self.elapsed_s(), self.of.budget.elapsed_s())
        progress = replace(
            progress,
            elapsed_s=elapsed_s,
            elsewhere=Elsewhere(),
            open_reviews=self.open_reviews(progress),
        )
        if decide(progress, self.of.run.limits):
            return progress
        allowed_usd = self.of.run.limits.budget.cost_usd
        elsewhere = self.of.budget.draw(str(self.of.opened.root), progress, allowed_usd)
        return replace(progress, elsewhere=elsewhere)

    def open_reviews(self, progress: Progress) -> tuple[OpenReview, ...]:
        """Changes in the workspace that a person must review, of this run and earlier ones.

        Those of this run are kept in the state directory, so that later commands ask again. Raises
        StateError if what is kept there cannot be read.
        """
        home, root = self.of.opened.state, self.of.opened.root
        for attempt in progress.attempts:
            if attempt.number in self.of.asked or not (left := for_review(attempt)):
                continue
            self.of.asked[attempt.number] = ()
            asked = self._questions(progress.origin, attempt, left)
            try:
                reviews.keep(home, root, asked)
            except StateError as error:
                self.of.asked[attempt.number] = asked
                self.of.warn(str(error))
        return self.of.opened.open_reviews([*chain.from_iterable(self.of.asked.values())])

    def _questions(
        self, origin: str, attempt: Attempt, left: Sequence[Held]
    ) -> tuple[reviews.Question, ...]:
        """Questions about the changes since the run began: the guard judges these, too."""
        if attempt.result is None:
            return ()
        paths = sorted(self.tree.moved(origin, attempt.result))
        was, now = self.tree.read(origin, paths), self.tree.read(attempt.result, paths)
        hunks = [reviews.hunks(path, _text(was[path]), _text(now[path])) for path in paths]
        asked = (
            OpenReview(**asdict(one.as_note()), run_id=self.of.run.run_id, attempt=attempt.number)
            for one in left
        )
        return reviews.of_attempt(asked, chain.from_iterable(hunks))

    def learn(self, outcome: Outcome) -> str | None:
        return self.of.journal.learn(outcome)

    def accept(self, left: str, outcome: Outcome) -> Outcome:
        """Bring the result of a run in an overlay to the user's tree; returns the outcome there."""
        return self.of.channel.accept(left, outcome) if self.of.channel else outcome


def _text(file: Content | None) -> bytes | None:
    return file[1] if file else None
