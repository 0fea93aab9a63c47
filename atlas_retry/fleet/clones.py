"""Work trees for runs: a mirror of the remote on this machine, and shallow clones of it."""

import shutil
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from msgspec import Struct

from atlas_retry import state_dir
from atlas_retry.errors import WorkspaceError
from atlas_retry.fleet.manifest import PROTOCOLS, PriorChange, Repository
from atlas_retry.process import Command, Completed
from atlas_retry.workspace.git import GitError, git, user_environment

Run = Callable[[Command], Completed]
_NOBODY = ("-c", "user.name=atlas", "-c", "user.email=atlas@users.noreply.github.com")
BRANCH = "fleet"


class Clones(Struct, frozen=True, kw_only=True):
    """The mirrors and work trees of one machine; `run` starts long commands."""

    home: Path
    environ: Mapping[str, str]
    run: Run

    def place(self, run_id: str) -> Path:
        """Path of a run's work tree, which may not exist yet."""
        return self.home / "work" / run_id

    def ready(self, run_id: str, repository: Repository, change: PriorChange) -> Path:
        """A clone at the revision with the change committed; an existing one stays as it is.

        Raises WorkspaceError with the message of git or of the change.
        """
        place = self.place(run_id)
        if place.is_dir():
            return place
        fresh = place.with_name(f"{run_id}.fresh")  # an interrupted one is not complete
        shutil.rmtree(fresh, ignore_errors=True)
        state_dir.folder(fresh)
        source = self._fetched(repository)
        self._git(fresh, "init", "-q", "--template=", "-b", BRANCH)
        self._git(fresh, "remote", "add", "origin", repository.url)
        self._git(fresh, "fetch", "-q", "--depth=1", "--no-tags", *source)
        self._git(fresh, "checkout", "-q", "-B", BRANCH, "FETCH_HEAD")
        self._change(fresh, repository, change)
        fresh.rename(place)
        return place

    def adapted(self, place: Path, patch: bytes) -> bytes | None:
        """Another clone's patch as it applies here, merged if needed; None if it conflicts."""
        env = user_environment(self.environ)
        try:
            git("apply", "--3way", "--whitespace=nowarn", "-", cwd=place, env=env, stdin=patch)
            return git("diff", "--cached", "--binary", "--full-index", cwd=place, env=env)
        except GitError:
            return None
        finally:
            git("reset", "-q", "--hard", cwd=place, env=env)

    def remove(self, run_id: str) -> None:
        """Remove the clone of an ended run, whose results are in the store."""
        shutil.rmtree(self.place(run_id), ignore_errors=True)

    def _fetched(self, repository: Repository) -> tuple[str, str]:
        """Fetch the revision into the mirror; returns the mirror's URL and the ref there."""
        key = sha256(repository.url.encode()).hexdigest()[:24]
        mirror = state_dir.folder(self.home, "mirrors", f"{key}.git")
        name = f"refs/fleet/{sha256(repository.revision.encode()).hexdigest()[:24]}"
        with state_dir.alone(mirror.with_suffix(".lock")):
            if not (mirror / "HEAD").exists():
                self._git(mirror, "init", "-q", "--bare", "--template=")
            wanted = f"+{repository.revision}:{name}"
            self._git(mirror, "fetch", "-q", "--depth=1", "--no-tags", repository.url, wanted)
        return mirror.as_uri(), name

    def _change(self, root: Path, repository: Repository, change: PriorChange) -> None:
        """Make the prior change and commit it, so that the run's own changes are separate."""
        env = user_environment(self.environ)
        if change.patch:
            patch = change.patch.encode()
            git("apply", "--3way", "--whitespace=nowarn", "-", cwd=root, env=env, stdin=patch)
        if change.run:
            self._succeed(root / repository.cwd, ("/bin/sh", "-c", change.run))
        git("add", "-A", cwd=root, env=env)
        if git("status", "--porcelain", cwd=root, env=env):
            git(*_NOBODY, "commit", "-q", "-m", change.message, cwd=root, env=env)

    def _git(self, cwd: Path, *arguments: str) -> None:
        """Run git like the user does, because it may need credentials and filters."""
        self._succeed(cwd, ("git", "-c", "gc.auto=0", *arguments))

    def _succeed(self, cwd: Path, argv: tuple[str, ...]) -> None:
        allowed = ":".join(sorted(filter(None, PROTOCOLS)))
        env = {**self.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": allowed}
        done = self.run(Command(argv=argv, cwd=cwd, env=env))
        if done.exit_code != 0:
            printed = (done.stderr.text + done.stdout.text).strip() or done.error
            shown = " ".join(argument for argument in argv if argument != "gc.auto=0")
            raise WorkspaceError(f"`{shown}` failed: {printed or done.exit_code}")
