"""What a run does to git's own state: hold it, undo what the agent did, name what others did."""

from atlas_retry import process, state_dir
from atlas_retry.history import rescue
from atlas_retry.run.effects.tree import BesideTree
from atlas_retry.text.units import first_few
from atlas_retry.workspace import discovery, gitmoves, gitunder
from atlas_retry.workspace.snapshot import pins
from atlas_retry.workspace.snapshot.unheld import note_caches


class GitEffects(BesideTree, frozen=True):
    """Git's own state in a run."""

    def pin(self, snapshot: str) -> None:
        """Hold what git's state in the first snapshot names; say what cannot be held.

        Of caches, stat data are noted, so that an undo can name what it cannot restore.
        """
        note_caches(self.opened.root, self.opened.tracker.scan(), state_dir.folder(self.of.folder))
        if self.of.channel is None:  # an overlay protects the repository
            for why in pins.pin(self.opened.git, snapshot):
                self.warn(why)

    def undo_git(self, number: int, *, is_abandoned: bool = False) -> None:
        """Undo what the agent's git did in a turn, and name what others did.

        If the guard does not block, only that of an attempt that is abandoned.
        """
        git, folder = self.opened.git, self.of.attempt_folder(number)
        # before git is asked anything
        is_other = discovery.put_back_gitfile(git.root, git.home)
        start = self.tree.kept(rescue.START)
        is_rebuilt = start is not None and pins.rebuild(git, start)
        repaired = (
            *(["gitfile"] if is_other else []),
            *(["the repository"] if is_rebuilt else []),
            *gitmoves.repair(git, folder),
        )
        inside = self._give_back_objects(start) if start and self.of.channel is None else ()
        turn = self.last_turn.git = gitmoves.turned(git, folder)
        if turn is None:
            return
        for name in inside:
            turn = self.last_turn.git = turn.with_agents(name)
        for name in repaired:
            turn = self.last_turn.git = turn.with_agents(name)
            self.warn(f"restored, as git could not use it: {name}")
        if is_abandoned or self.opened.settings.guard.mode == "block":
            with process.uninterruptible(f"git's state in {self.opened.root} is being restored"):
                lines = gitmoves.undo(git, turn, folder)
            for line in lines:
                self.warn(line)
        if turn.moves.others:
            names = first_few(map(gitmoves.plain, turn.moves.others))
            text = f"changed in git during the attempt, not by the agent, so it stays: {names}"
            self.warn(text)

    def _give_back_objects(self, start: str) -> tuple[str, ...]:
        """Give back objects of the first snapshot that the last turn destroyed.

        Returns the repositories inside that it had deleted.
        """
        given = pins.put_back(self.opened.git, start)
        if given.inside:
            text = f"deleted during the turn, and restored: {first_few(given.inside)}"
            self.warn(text)
        for names, what in ((given.again, "restored"), (given.lost, "lost")):
            if names:
                text = f"objects of the repository were destroyed, and are {what}: "
                self.warn(text + first_few(names))
        return given.inside

    def changed_under(self, before: str, after: str) -> gitunder.Under | None:
        """What someone else's git changed in the files during the last turn; None if nothing."""
        if self.last_turn.git is None:
            return None
        paths = self.tree.moved(before, after)
        return gitunder.changed_under(self.opened.git, self.last_turn.git, before, paths)

    def how_to_undo(self) -> tuple[str, ...]:
        """Lines with the command that undoes the run, if there is one."""
        label = "to restore what was there before the run"
        return rescue.how_to_undo(self.opened.git, self.of.run.run_id, label)
