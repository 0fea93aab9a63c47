"""Changed files that a commit, checked out elsewhere, would not hold as they are in the work tree.

Filters of the configuration do not run, so what they change is not known.
"""

import os
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from tempfile import TemporaryDirectory

from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git, joined, split
from atlas_retry.workspace.place import Contents
from atlas_retry.workspace.staged import staged

_HIDING = frozenset({"assume-unchanged", "skip-worktree"})
_CONVERTING = ("text", "eol", "crlf", "ident", "working-tree-encoding")
"""Attributes by which git converts content. Source: gitattributes(5)."""
_PLAIN, _EXECUTABLE = (f"{stat.S_IFREG | mode:o}" for mode in (0o644, 0o755))
_MOST = 50
"""Maximum number of files whose content git converts, as each takes a process."""


def as_checked_out(ws: Workspace, was: Contents, now: Contents) -> Contents:
    """The files of `now` that a checkout would not hold like that, as it would hold them.

    `was` has the same paths, before they were changed: git does not record a change of a file that
    is flagged in the index, of the mode with `core.fileMode=false`, or below a name like `.GIT`.
    """
    files = dict(_unrecorded(ws, was, now))
    rest = {path: file for path, file in now.items() if file}
    for path, content in _converted(ws, rest.keys() - files.keys()):
        mode, there = rest[path]
        if mode in (_PLAIN, _EXECUTABLE) and there != content:
            files[path] = (mode, content)
    return files


def _unrecorded(
    ws: Workspace, was: Contents, now: Contents
) -> Iterator[tuple[str, tuple[str, bytes] | None]]:
    flags = staged(ws.root, ws.environ, ws.git_dir / "index").flags
    has_modes = _setting(ws, "core.fileMode") != "false"
    for path, file in now.items():
        if not _HIDING.isdisjoint(flags.get(path, "").split(",")) or _is_never_added(path):
            yield path, was[path]
        elif file and not has_modes and _became_executable(was[path], file):
            yield path, (_PLAIN, file[1])


def _became_executable(was: tuple[str, bytes] | None, now: tuple[str, bytes]) -> bool:
    return now[0] == _EXECUTABLE and (was is None or was[0] == _PLAIN)


def _is_never_added(path: str) -> bool:
    """Whether git refuses the name, in any case of its letters."""
    return any(name != ".git" and name.lower() == ".git" for name in path.split("/"))


def _setting(ws: Workspace, key: str) -> str:
    asked = ("config", "--get", key)
    return git(*asked, cwd=ws.root, env=ws.environ, accept=(0, 1)).decode().strip().lower()


def _converted(ws: Workspace, paths: Collection[str]) -> Iterator[tuple[str, bytes]]:
    """Content of the files after git has added and checked them out again."""
    chosen = [path for path in _with_conversion(ws, paths) if "\n" not in path][:_MOST]
    if not chosen:
        return
    with TemporaryDirectory(prefix="atlas-objects-") as objects, suppress(GitError):
        env = {**ws.environ, "GIT_OBJECT_DIRECTORY": objects}
        how = ("-c", "core.safecrlf=false")
        names = os.fsencode("".join(f"{path}\n" for path in chosen))
        added = git(*how, "hash-object", "-w", "--stdin-paths", cwd=ws.root, env=env, stdin=names)
        for path, oid in zip(chosen, added.decode().split(), strict=True):
            out = ("cat-file", "--filters", f"--path={path}", oid)
            yield path, git(*how, *out, cwd=ws.root, env=env)


def _with_conversion(ws: Workspace, paths: Collection[str]) -> list[str]:
    """The files among these whose content git may convert."""
    if not paths or _setting(ws, "core.autocrlf") in ("true", "input"):
        return sorted(paths)
    asked = ("check-attr", "-z", "--stdin", *_CONVERTING)
    answers = split(git(*asked, cwd=ws.root, env=ws.environ, stdin=joined(paths)))
    rows = zip(answers[::3], answers[2::3], strict=True)
    marked = {path for path, value in rows if value not in ("unspecified", "unset")}
    return [path for path in sorted(paths) if path in marked]
