"""Run git, and say what it knows of the files of a work tree; only this module starts it.

Nothing that a configuration names is executed: no hook, filter, file system monitor, external diff,
pager, editor, signature or login program, and no network. The only exception is a checkout with
`checks_out`. Configuration, ignore rules and attributes are still read as usual.
"""

import os
import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache, cached_property
from itertools import chain
from pathlib import Path

from msgspec import Struct

from atlas_retry.digests import sha256_of
from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.patterns import regex
from atlas_retry.process import Command, captured
from atlas_retry.reading import read_file

MINIMUM = (2, 31)
"""GIT_CONFIG_COUNT came with 2.31 (Git release notes)."""

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

_ALWAYS = (
    "--no-pager",
    "--literal-pathspecs",
    *("-c", "core.hooksPath=/dev/null"),
    *("-c", "core.fsmonitor=false"),
    *("-c", "submodule.recurse=false"),
    *("-c", "commit.gpgSign=false"),
    *("-c", "tag.gpgSign=false"),
    *("-c", "log.showSignature=false"),
    *("-c", "gc.auto=0"),
    *("-c", "maintenance.auto=false"),
    # Names that only Windows or macOS treats as `.git` are ordinary names here.
    *("-c", "core.protectNTFS=false"),
    *("-c", "core.protectHFS=false"),
)
_OFF = {
    "GIT_EDITOR": ":",
    "GIT_SEQUENCE_EDITOR": ":",
    "GIT_TERMINAL_PROMPT": "0",
}
# An empty list of protocols and an empty helper mean none, and override the configuration.
_OFFLINE = {"GIT_ALLOW_PROTOCOL": "", "GIT_NO_LAZY_FETCH": "1", "GIT_ASKPASS": ""}
_ONLINE = {"GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh"}
_DIFFS = frozenset({"diff", "diff-files", "diff-index", "diff-tree"})
_FILTERS = frozenset({"add", "apply", "commit", "diff-files", "diff-index", "status", "worktree"})
"""Commands that may compare or write files of the work tree."""
_FILTERING = frozenset({"--filters", "--stdin-paths"})
"""Options with which a command converts files."""
_SUBMODULES = frozenset({"diff-files", "diff-index", "status"})
"""Commands that would start git in each submodule, with the submodule's own configuration."""
_INHERITED = ("PATH", "HOME", "XDG_CONFIG_HOME", "TMPDIR")
_TIMEOUT_S = 600.0
_LONG_S = 1.0
"""After so many seconds it is asked what git may be waiting for."""
GIT_LOCAL = frozenset(
    {
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_COMMON_DIR"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE"),
    }
)
"""Variables that git sets for hooks; with them, gates and agents would use that repository."""


class GitError(WorkspaceError):
    """A git command that failed; `status` is its exit code, None if it did not run."""

    def __init__(self, message: str, *, status: int | None, remedy: str | None = None) -> None:
        super().__init__(message, remedy=remedy)
        self.status = status


def user_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of git in the user's repository: without GIT_*, HOME for safe.directory."""
    return {name: environ[name] for name in _INHERITED if name in environ} | {
        "LC_ALL": "C",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
    }


def shadow_environment(shadow: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """Environment of git in the shadow repository: only its own configuration is read."""
    return user_environment(environ) | {
        "HOME": str(shadow),
        "XDG_CONFIG_HOME": str(shadow),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_DIR": str(shadow),
    }


def git(
    *arguments: str,
    cwd: Path,
    env: Mapping[str, str],
    stdin: bytes = b"",
    accept: Collection[int] = (0,),
    checks_out: bool = False,
) -> bytes:
    """Run git and return its whole standard output.

    With `checks_out` files are written like by the user's own git: filters run, and objects that a
    partial clone lacks are fetched. Raises GitError with git's message if the exit code is not in
    `accept`.
    """
    at, verb = _verb(arguments)
    # what no configuration key can switch off
    plain = ("--no-ext-diff", "--no-textconv") if verb in _DIFFS else ()
    shallow = ("--ignore-submodules=dirty",) if verb in _SUBMODULES else ()
    env = {**env, **_OFF, **(_ONLINE if checks_out else _OFFLINE)}
    may_filter = verb in _FILTERS and "--cached" not in arguments
    may_filter = may_filter or not _FILTERING.isdisjoint(arguments)
    is_ours = "GIT_CONFIG_NOSYSTEM" in env  # without anybody's configuration
    if may_filter and not checks_out and not is_ours:
        env |= _without_filters(cwd, env)
    argv = ("git", *_ALWAYS, *arguments[:at], *plain, *shallow, *arguments[at:])
    command = Command(
        argv=argv, cwd=cwd, env=env, stdin=stdin, timeout_s=_TIMEOUT_S, keep_daemons=True
    )
    done = captured(command, _Patience(command))
    if done.exit_code not in accept:
        own = env.get("GIT_DIR", "") if is_ours else ""
        raise _error(verb, done.exit_code, os.fsdecode(done.stderr), own)
    return done.stdout


class _Patience:
    """Looks once, if git takes long, for what it may be waiting for."""

    def __init__(self, command: Command) -> None:
        self._command: Command | None = command

    def started(self, index: int) -> None: ...

    def progress(self, index: int, last_line: str, elapsed_s: float) -> None:  # noqa: ARG002
        if self._command and elapsed_s > _LONG_S:
            command, self._command = self._command, None
            if special := waited_for(command.cwd, command.env):
                why = f"{special} is no regular file, and git would wait for it"
                raise WorkspaceError(why, remedy=f"rm {shlex.quote(str(special))}")

    def ended(self, index: int, completed: object) -> None: ...


def _without_filters(cwd: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Variables that empty every filter of the configuration, whose keys may hold any character.

    Source: git-config(1), ENVIRONMENT; an empty command means none (convert.c).
    """
    asked = ("config", "-z", "--name-only", "--get-regexp", r"^filter\.")
    names = split(git(*asked, cwd=cwd, env=env, accept=(0, 1)))
    drivers = sorted({name.rpartition(".")[0] for name in names})
    keys: list[str] = []
    for driver in drivers:
        keys += (f"{driver}.{key}" for key in ("clean", "smudge", "process", "required"))
    numbered = {f"GIT_CONFIG_KEY_{at}": key for at, key in enumerate(keys)}
    values = {f"GIT_CONFIG_VALUE_{at}": "" for at in range(len(keys))}
    return {"GIT_CONFIG_COUNT": str(len(keys))} | numbered | values


def _verb(arguments: Sequence[str]) -> tuple[int, str]:
    """The git command, which may follow options, and where its own arguments begin."""
    at = 0
    while arguments[at] in {"-c", "--no-literal-pathspecs"}:
        at += 2 if arguments[at] == "-c" else 1
    return at + 1, arguments[at]


_DAMAGE = regex(
    r"inflate: |unable to unpack|corrupt|not a tree object|bad (object|tree|sha1)|"
    r"unable to read (tree|sha1 file|object)|object file \S+ is empty|does not match index"
)
"""What git says of objects that it cannot read. Source: object-file.c, packfile.c, tree.c."""


def _error(verb: str, status: int | None, stderr: str, shadow: str = "") -> GitError:
    """`shadow` is the repository of the snapshots, if that is the one which git was asked about."""
    lines = [line for line in stderr.splitlines() if line.strip()]
    remedy = next((line.strip() for line in lines if "--add safe.directory" in line), None)
    # a wrapper may print before git does
    own = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    first = (own or lines or [f"exit code {status}"])[0].removeprefix("fatal: ")
    if shadow and _DAMAGE.search(stderr):
        remedy = f"to go on without undo of the runs before: rm -rf {shlex.quote(shadow)}"
        why = f"the snapshots in {shadow} are damaged (git {verb}: {first})"
        return GitError(why, status=status, remedy=remedy)
    return GitError(f"git {verb} failed: {first}", status=status, remedy=remedy)


def commit_id(root: Path, env: Mapping[str, str], revision: str) -> str:
    """The commit that a revision names. Raises UsageError if there is none."""
    asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}")
    try:
        return git(*asked, cwd=root, env=env).decode().strip()
    except GitError as error:
        if error.status is None or "dubious ownership" in error.message:  # git looked at nothing
            raise
        why = f"there is no commit {revision!r} in {root}"
        if "not a git repository" in error.message:
            raise UsageError(f"{why}: it is not under git") from error
        raise UsageError(
            why,
            remedy="name a branch, a tag or a commit: git log --oneline --all",
        ) from error


MAX_NAMED = 200
"""Maximum number of paths that are passed to git; for more it is asked about all."""


def split(output: bytes) -> list[str]:
    """The items of `-z` output."""
    return os.fsdecode(output).split("\0")[:-1] if output else []


def joined(items: Iterable[str]) -> bytes:
    """The items in the format of `split`."""
    return os.fsencode("\0".join((*items, "")))


def lined(ids: Iterable[str]) -> bytes:
    """Ids one a line, for what git reads without `-z`."""
    return "".join(f"{oid}\n" for oid in ids).encode()


@cache
def check_version(path: str | None) -> None:
    """Raise WorkspaceError unless a sufficiently new git is on `path` (the PATH to search).

    A wrapper that prints more than git (a banner) is refused, because output is parsed.
    """
    env = {"LC_ALL": "C"} | ({"PATH": path} if path is not None else {})
    try:
        out = os.fsdecode(git("--version", cwd=Path("/"), env=env))
    except GitError as error:
        remedy = None if _program(path) else "install git"
        raise WorkspaceError(error.message, remedy=remedy) from error
    wanted = ".".join(map(str, MINIMUM))
    version = re.fullmatch(r"git version (\d+)\.(\d+).*\n", out)
    if not version:
        raise WorkspaceError(
            f"{_program(path)} is not plain git: its version output is {out.strip()!r}",
            remedy=f"put git {wanted} or newer itself first on PATH",
        )
    if (int(version[1]), int(version[2])) < MINIMUM:
        raise WorkspaceError(
            f"git {wanted} or newer is needed, and {_program(path)} is {out.strip()!r}",
            remedy="install a newer git",
        )


def _program(path: str | None) -> str | None:
    import shutil

    return shutil.which("git", path=path)


def git_dir_of(root: Path) -> Path:
    """The git directory of the work tree at `root`; a linked worktree names it in a `.git` file.

    Source: gitrepository-layout(5). Raises GitError.
    """
    there = root / ".git"
    if there.is_dir():
        return there.resolve()
    with suppress(OSError):
        key, _, path = os.fsdecode(read_file(there)).rstrip("\n").partition(": ")
        if key == "gitdir":
            return (root / path).resolve()
    raise GitError(f"{root} is not the top of a work tree under git", status=None)


def common_dir_of(git_dir: Path) -> Path:
    """The directory that linked worktrees share. Source: gitrepository-layout(5), `commondir`."""
    pointer = git_dir / "commondir"
    if not pointer.is_file():
        return git_dir
    return (git_dir / os.fsdecode(read_file(pointer).rstrip(b"\n"))).resolve()


RULES = (".gitignore", ".gitattributes", ".gitmodules")
"""The files of a work tree that steer git."""
_OF_USER = (".gitconfig", ".config/git/config", ".config/git/ignore", ".config/git/attributes")


def special_rules(root: Path, skipped: Collection[str] = ()) -> Iterator[Path]:
    """Those of a whole tree that are no files, except in folders with these names and in git's."""
    for folder, folders, files in os.walk(root):
        folders[:] = {*folders}.difference(skipped, (".git",))
        for path in (Path(folder, name) for name in {*RULES}.intersection(files)):
            if path.exists() and not path.is_file():
                yield path


def waited_for(cwd: Path, environ: Mapping[str, str]) -> Path | None:
    """What a git that was started here may be waiting for; None if there is nothing of the kind."""
    git_dirs = [Path(environ["GIT_DIR"])] if "GIT_DIR" in environ else []
    for folder in () if git_dirs else (cwd, *cwd.parents):
        with suppress(GitError):
            own = git_dir_of(folder)
            git_dirs = [own, common_dir_of(own)]
            break
    asked = [Path(environ.get("HOME", "/")) / name for name in _OF_USER]
    for above, folders, files in chain.from_iterable(map(os.walk, git_dirs)):
        if Path(above).name == "objects":
            folders[:] = ("info",)
        asked += (Path(above) / name for name in files)
    return next(chain(filter(Path.is_fifo, asked), special_rules(cwd)), None)


_LISTING = ("ls-files", "-z", "-v", "--stage")
_PLAIN, _MERGE, _SUBMODULE, _SHA1_CHARS = "H", "M", "160000", 40
_HIDDEN = "S"


class Index(Struct, frozen=True, kw_only=True, dict=True):
    """Content of an index."""

    listed: bytes
    """As `git ls-files -v --stage` prints it: tag, mode, id, stage, path."""

    @cached_property
    def _lines(self) -> list[str]:
        return split(self.listed)

    @property
    def digest(self) -> str:
        """Digest of every path with its mode, content and stage, and of the flags."""
        return sha256_of(self.listed)

    @property
    def flags(self) -> Mapping[str, str]:
        """Paths with flags, and these: `assume-unchanged`, `skip-worktree`."""
        flagged = (line for line in self._lines if line[0] not in (_PLAIN, _MERGE))
        return {line.partition("\t")[2]: _flags(line[0]) for line in flagged}

    @property
    def submodules(self) -> tuple[str, ...]:
        """Paths of submodules."""
        return tuple(line.partition("\t")[2] for line in self._lines if line[2:8] == _SUBMODULE)

    @property
    def ids(self) -> dict[str, str]:
        """Content ids of the files without flags."""
        plain = (line.partition("\t") for line in self._lines if line[0] == _PLAIN)
        return {path: facts.split(" ")[2] for facts, _, path in plain}


def _flags(tag: str) -> str:
    """Source: git-ls-files(1), `-t` and `-v`."""
    names = ("assume-unchanged",) if tag.islower() else ()
    return ",".join((*names, "skip-worktree") if tag.upper() == _HIDDEN else names)


def staged(root: Path, env: Mapping[str, str], file: Path | None = None) -> Index:
    """The index of the work tree at `root`, or another index file for it. Raises GitError."""
    other = {"GIT_INDEX_FILE": str(file)} if file else {}
    return Index(listed=git(*_LISTING, cwd=root, env={**env, **other}))


def as_staged(root: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Content ids of the files that are as staged, so that nobody has to read them.

    None in a repository whose ids are not made with SHA-1. Raises GitError.
    """
    ids = staged(root, env).ids
    for path in split(git("diff-files", "--name-only", "-z", cwd=root, env=env)):
        ids.pop(path, None)
    return ids if all(len(oid) == _SHA1_CHARS for oid in ids.values()) else {}


def tracked(root: Path, env: Mapping[str, str], paths: Collection[str]) -> frozenset[str]:
    """Those of these paths that git tracks. Raises GitError."""
    few = paths if len(paths) <= MAX_NAMED else ()
    listed = split(git("ls-files", "-z", "--cached", "--", *few, cwd=root, env=env))
    return frozenset(paths).intersection(listed)


def untracked(root: Path, env: Mapping[str, str]) -> list[str]:
    """Files that git neither tracks nor ignores, relative to `root`. Raises GitError."""
    asked = ("ls-files", "-z", "--others", "--exclude-standard")
    return split(git(*asked, cwd=root, env=env))


def ignored(root: Path, env: Mapping[str, str]) -> list[str]:
    """Paths that git ignores; folders that are ignored as a whole end in `/`."""
    asked = ("ls-files", "-z", "--others", "--ignored", "--directory", "--exclude-standard")
    is_there = (root / ".git").exists()
    return split(git(*asked, cwd=root, env=user_environment(env))) if is_there else []


def ignored_of(root: Path, env: Mapping[str, str], paths: Collection[str]) -> set[str]:
    """The paths among these that git ignores. Raises GitError."""
    # it knows no literal pathspecs; behind `./` nothing but the path is meant
    asked = joined(f"./{path}" for path in paths)
    options = ("--no-literal-pathspecs", "check-ignore", "-z", "--stdin")
    out = git(*options, cwd=root, env=env, stdin=asked, accept=(0, 1))
    return {path.removeprefix("./") for path in split(out)}
