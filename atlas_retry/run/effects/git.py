"""What a run does to git's own state: hold it, undo what the agent did, name what others did."""

from msgspec import Struct

from atlas_retry import process, state_dir
from atlas_retry.history import rescue
from atlas_retry.run.effects.open_run import OpenRun
from atlas_retry.run.effects.tree import TreeEffects
from atlas_retry.text.units import first_few
from atlas_retry.workspace import discovery, gitmoves, gitunder
from atlas_retry.workspace.snapshot import pins
from atlas_retry.workspace.snapshot.unheld import note_caches


class GitEffects(Struct, frozen=True):
    """Git's own state in a run."""

    of: OpenRun

    def pin(self, snapshot: str) -> None:
        """Hold what git's state in the first snapshot names; say what cannot be held.

        Of caches, stat data are noted, so that an undo can name what it cannot restore.
        """
        opened = self.of.opened
        note_caches(opened.root, opened.tracker.scan(), state_dir.folder(self.of.folder))
        if self.of.channel is None:  # an overlay protects the repository
            for why in pins.pin(opened.git, snapshot):
                self.of.warn(why)

    def undo_git(self, number: int, *, is_abandoned: bool = False) -> None:
        """Undo what the agent's git did in a turn, and name what others did.

        If the guard does not block, only that of an attempt that is abandoned.
        """
        opened = self.of.opened
        last = self.of.last_turn
        git, folder = opened.git, self.of.attempt_folder(number)
        # before git is asked anything
        is_other = discovery.put_back_gitfile(git.root, git.home)
        start = TreeEffects(of=self.of).kept("start")
        is_rebuilt = start is not None and pins.rebuild(git, start)
        repaired = (
            *(["gitfile"] if is_other else []),
            *(["the repository"] if is_rebuilt else []),
            *gitmoves.repair(git, folder),
        )
        inside = self._give_back_objects(start) if start and self.of.channel is None else ()
        turn = last.git = gitmoves.turned(git, folder)
        if turn is None:
            return
        for name in inside:
            turn = last.git = turn.with_agents(name)
        for name in repaired:
            turn = last.git = turn.with_agents(name)
            self.of.warn(f"restored, as git could not use it: {name}")
        if is_abandoned or opened.settings.guard.mode == "block":
            with process.uninterruptible(f"git's state in {opened.root} is being restored"):
                lines = gitmoves.undo(git, turn, folder)
            for line in lines:
                self.of.warn(line)
        if turn.moves.others:
            names = first_few(map(gitmoves.plain, turn.moves.others))
            text = f"changed in git during the attempt, not by the agent, so it stays: {names}"
            self.of.warn(text)

    def _give_back_objects(self, start: str) -> tuple[str, ...]:
        """Give back objects of the first snapshot that the last turn destroyed.

        Returns the repositories inside that it had deleted.
        """
        given = pins.put_back(self.of.opened.git, start)
        if given.inside:
            text = f"deleted during the turn, and restored: {first_few(given.inside)}"
            self.of.warn(text)
        for names, what in ((given.again, "restored"), (given.lost, "lost")):
            if names:
                text = f"objects of the repository were destroyed, and are {what}: "
                self.of.warn(text + first_few(names))
        return given.inside

    def changed_under(self, before: str, after: str) -> gitunder.Under | None:
        """What someone else's git changed in the files during the last turn; None if nothing."""
        last = self.of.last_turn
        if last.git is None:
            return None
        paths = [change.path for change in TreeEffects(of=self.of).changes(before, after)]
        return gitunder.changed_under(self.of.opened.git, last.git, before, paths)

    def how_to_undo(self) -> tuple[str, ...]:
        """Lines with the command that undoes the run, if there is one."""
        label = "to restore what was there before the run"
        return rescue.how_to_undo(self.of.opened.git, self.of.run.run_id, label)
