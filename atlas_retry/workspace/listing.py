"""What git says of the files of a work tree: staged, tracked, untracked, ignored."""

from collections.abc import Collection, Mapping
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from atlas_retry.digests import sha256_of
from atlas_retry.workspace.git import MAX_NAMED, git, joined, split, user_environment

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
