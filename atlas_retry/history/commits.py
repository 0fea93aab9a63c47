"""Make a commit of a run's changes from its snapshots, without the work tree; moves no branch.

Other changes in the work tree, the user's index and HEAD do not matter.
"""

import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.events import now
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import differing
from atlas_retry.workspace.git import GitError, commit_id, git, split
from atlas_retry.workspace.snapshot.store import list_tree, read_blobs, read_state
from atlas_retry.workspace.snapshot.trees import changes

_SUBMODULE = "160000"
_NOBODY = {"NAME": "atlas", "EMAIL": "atlas@users.noreply.github.com"}
# File modes and types come from the snapshot, even if this machine's file system lacks them.
_AS_IS = (
    *("-c", "core.safecrlf=false"),
    *("-c", "core.fileMode=true"),
    *("-c", "core.symlinks=true"),
    *("-c", "core.sparseCheckout=false"),
)
TRAILER = "Atlas-Run"


class CommitMessage(Struct, frozen=True, kw_only=True):
    """Text and time of a commit; they are fixed per run, so that its commit is always the same."""

    text: str
    at: str
    """UTC, ISO 8601."""


class Made(Struct, frozen=True, kw_only=True):
    """A commit and an equivalent patch."""

    commit: str
    base: str
    patch: bytes
    """A mail for `git am` and `git apply`."""
    also: tuple[str, ...] = ()
    """Other paths in which the validated tree differs from the commit, since before the run."""


def commit_run(
    ws: Workspace,
    span: tuple[str, str],
    bases: Sequence[str],
    message: CommitMessage,
    *,
    store: bool,
) -> Made:
    """Make a commit of the changes between two snapshots, on the first base that fits.

    A base fits if it has the changed files as in the first snapshot. With `store` the commit is in
    the user's repository, otherwise it is not stored. Raises WorkspaceError if no base fits.
    """
    before, after = span
    paths = [change.path for change in changes(ws, before, after)]
    if not paths:
        raise WorkspaceError("the run changed no file, so there is nothing to deliver")
    with _desk(ws, message.at, store=store) as desk:
        for base in dict.fromkeys(commit_id(ws.root, ws.environ, base) for base in bases):
            own = desk.git("rev-parse", f"{base}^{{tree}}").decode().strip()
            if desk.tree(base, before, paths) == own:
                tree = desk.tree(base, after, paths)
                commit = desk.commit(base, tree, message.text)
                patch = desk.mail(commit, base, message.text)
                also = desk.also(base, tree, after)
                return Made(commit=commit, base=base, patch=patch, also=also)
    raise WorkspaceError(
        "no commit has the state that the run started from: some files that it changed had "
        f"uncommitted changes: {', '.join(paths[:5])}",
        remedy="commit those first and run again; or use its patch: atlas diff",
    )


def commit_patch(ws: Workspace, mail: bytes) -> tuple[Made, str]:
    """Make a commit on HEAD from a patch of `commit_run`; returns it and its message.

    It is stored in the user's repository. Raises UsageError if it is not such a patch,
    WorkspaceError if it does not fit.
    """
    base = commit_id(ws.root, ws.environ, "HEAD")
    with _desk(ws, now(), store=True) as desk:
        try:
            head = desk.git("mailinfo", "--encoding=UTF-8", "../body", "../diff", stdin=mail)
            body = (desk.folder / "body").read_text(encoding="utf-8").strip()
            desk.git("read-tree", base)
            desk.git("apply", "--cached", "--whitespace=nowarn", "-", stdin=mail)
        except GitError as error:
            raise WorkspaceError(
                f"the patch does not fit {base[:12]}: {error}",
                remedy="check out the commit that the run started from",
            ) from error
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines() if ": " in line)
        text = f"{headers.get('Subject', '')}\n\n{body}\n"
        if not body.rpartition("\n")[2].startswith(f"{TRAILER}: "):
            raise UsageError(f"not a patch from `atlas deliver --patch`: no {TRAILER} in it")
        tree = desk.git("write-tree").decode().strip()
        commit = desk.commit(base, tree, text)
    return Made(commit=commit, base=base, patch=mail), text


def tree_id(ws: Workspace, *, but: Collection[str] = ()) -> str:
    """The tree that `git add -A` and a commit would make of the work tree, without the paths `but`.

    In a clean checkout it is `HEAD^{tree}`. Raises WorkspaceError.
    """
    with _desk(ws, now(), store=False) as desk:
        with suppress(FileNotFoundError):  # the copy knows which files are unchanged
            shutil.copy2(ws.git_dir / "index", desk.folder / "index")
        env = {**desk.env, "GIT_WORK_TREE": str(ws.root)}
        git("add", "-A", cwd=ws.root, env=env)
        if but:
            git("update-index", "--force-remove", "--", *but, cwd=ws.root, env=env)
        return git("write-tree", cwd=ws.root, env=env).decode().strip()


def delivered_in_a_row(ws: Workspace, commit: str) -> int:
    """Number of successive commits up to this one that come from runs."""
    form = f"%(trailers:key={TRAILER},valueonly,separator=%x2c)%x00"
    out = git("log", "-n", "100", "-z", f"--format={form}", commit, cwd=ws.root, env=ws.environ)
    trailers = [item.strip() for item in os.fsdecode(out).split("\0")[::2]]
    return next((at for at, runs in enumerate(trailers) if not runs), len(trailers))


class _Desk(Struct, frozen=True, kw_only=True):
    """A separate index and work tree with the objects of the user's repository."""

    ws: Workspace
    folder: Path
    env: Mapping[str, str]

    def git(self, *arguments: str, stdin: bytes = b"") -> bytes:
        return git(*arguments, cwd=self.folder / "tree", env=self.env, stdin=stdin)

    def tree(self, base: str, snapshot_id: str, paths: Collection[str]) -> str:
        """The tree of a commit with these paths as in a snapshot, made like by `git add`."""
        self.git("read-tree", base)
        self._lay_out(snapshot_id, paths)
        listed = self.git("ls-files", "-z", "--cached", "--others").split(b"\0")
        known = [path for path in map(os.fsencode, paths) if path in set(listed)]
        asked = ("add", "-A", "-f", "--pathspec-from-file=-", "--pathspec-file-nul")
        self.git(*_AS_IS, *asked, stdin=b"\0".join(known))
        return self.git("write-tree").decode().strip()

    def _lay_out(self, snapshot_id: str, paths: Collection[str]) -> None:
        """Write these files and all attributes files into the separate work tree."""
        root = self.folder / "tree"
        shutil.rmtree(root)
        root.mkdir()
        work = read_state(self.ws, snapshot_id).work
        rules = [path for path in work if path.rpartition("/")[2] == ".gitattributes"]
        wanted = {path: work[path] for path in (*paths, *rules) if path in work}
        if links := [path for path, entry in wanted.items() if entry.mode == _SUBMODULE]:
            raise WorkspaceError(f"the run changed a submodule, commit it yourself: {links[0]}")
        content = read_blobs(self.ws, {entry.oid for entry in wanted.values()})
        for path, entry in wanted.items():
            place.put(root, path, entry, content[entry.oid])

    def commit(self, base: str, tree: str, message: str) -> str:
        asked = ("commit-tree", tree, "-p", base, "-F", "-")
        return self.git(*asked, stdin=message.encode()).decode().strip()

    def mail(self, commit: str, base: str, message: str) -> bytes:
        """A patch like from `git format-patch`, independent of the user's configuration."""
        who = self.git("log", "-1", "--format=From: %an <%ae>%nDate: %aD", commit)
        subject, _, body = message.strip().partition("\n")
        form = ("-p", "--binary", "--full-index", "--no-renames", "--no-color")
        sides = ("--src-prefix=a/", "--dst-prefix=b/", base, commit)
        head = f"From {commit} Mon Sep 17 00:00:00 2001\n".encode() + who
        mime = "MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n"
        rest = f"Subject: [PATCH] {subject}\n{mime}Content-Transfer-Encoding: 8bit\n\n"
        text = f"{rest}{body.strip()}\n---\n\n".encode()
        return head + text + self.git("diff-tree", "-r", *form, *sides)

    def also(self, base: str, tree: str, after: str) -> tuple[str, ...]:
        """Other paths in which the validated tree differs: files that were not committed."""
        held = {path: entry.oid for path, entry in read_state(self.ws, after).work.items()}
        lines = self.git("ls-tree", "-r", "-z", tree)
        ours = {path: entry.oid for path, entry in list_tree(lines)}
        whole = self.tree(base, after, [*differing(held, ours), *self._paths_of(base, tree)])
        return self._paths_of(tree, whole)

    def _paths_of(self, one: str, other: str) -> tuple[str, ...]:
        return tuple(split(self.git("diff-tree", "-r", "-z", "--name-only", one, other)))


@contextmanager
def _desk(ws: Workspace, at: str, *, store: bool) -> Iterator[_Desk]:
    import tempfile  # start-up

    objects = ws.common_dir / "objects"
    with tempfile.TemporaryDirectory(dir=ws.home, prefix="commit-") as name:
        folder = Path(name)
        (folder / "tree").mkdir()
        (folder / "objects").mkdir()
        apart = {
            "GIT_OBJECT_DIRECTORY": str(folder / "objects"),
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": str(objects),
        }
        env = {
            **ws.environ,
            "GIT_DIR": str(ws.git_dir),
            "GIT_WORK_TREE": str(folder / "tree"),
            "GIT_INDEX_FILE": str(folder / "index"),
            "GIT_AUTHOR_DATE": at,
            "GIT_COMMITTER_DATE": at,
            **({} if store else apart),
        }
        known = git("config", "user.email", cwd=ws.root, env=ws.environ, accept=(0, 1))
        if not known.strip():  # as on a CI runner
            for role in ("AUTHOR", "COMMITTER"):
                env |= {f"GIT_{role}_{key}": value for key, value in _NOBODY.items()}
        yield _Desk(ws=ws, folder=folder, env=env)


def set_branch(ws: Workspace, branch: str, made: Made, *, is_pushed: bool) -> None:
    """Set a branch to the commit, if it is new or at the commit's base.

    If it is checked out and the commit `is_pushed`, the branch stays. Raises UsageError for an
    invalid name, WorkspaceError for a branch that is elsewhere or checked out.
    """
    ref = f"refs/heads/{branch}"
    try:
        git("check-ref-format", ref, cwd=ws.root, env=ws.environ)
    except GitError as error:
        raise UsageError(f"{branch!r} cannot be the name of a branch") from error
    form = "--format=%(objectname) %(worktreepath)"
    line = os.fsdecode(git("for-each-ref", form, ref, cwd=ws.root, env=ws.environ)).rstrip("\n")
    tip, _, checked_out = line.partition(" ")
    if tip and tip not in (made.base, made.commit):
        raise WorkspaceError(
            f"the branch {branch} is at {tip[:12]}, and the run began at {made.base[:12]}",
            remedy="atlas deliver --branch ANOTHER-NAME",
        )
    if checked_out and not is_pushed:
        raise WorkspaceError(
            f"the branch {branch} is checked out in {checked_out}",
            remedy="the changes are there already: git commit; or: atlas deliver --branch OTHER",
        )
    if not checked_out:
        git("update-ref", ref, made.commit, tip, cwd=ws.root, env=ws.environ)
