"""Changed files that a commit, checked out elsewhere, would not hold as they are in the work tree.

Filters of the configuration do not run, so what they change is not known.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from tempfile import TemporaryDirectory

from atlas_retry.model import Content, Contents
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import EXECUTABLE, FILE
from atlas_retry.workspace.git import GitError, git, staged
from atlas_retry.workspace.gitfacts import settings

_HIDING = frozenset({"assume-unchanged", "skip-worktree"})
_REGULAR = (FILE, EXECUTABLE)
_FALSE = frozenset({"false", "no", "off", "0", ""})
_RESERVED = frozenset({".git", "git~1"})


def as_checked_out(ws: Workspace, was: Contents, now: Contents) -> Contents:
    """The files of `now` that a checkout would not hold like that, as it would hold them.

    `was` has the same paths, before they were changed: git does not record a change of a file that
    is flagged in the index, of the mode with `core.fileMode=false`, or below a name like `.GIT`.
    """
    if not now:
        return {}
    files = dict(_unrecorded(ws, was, now))
    there = {path: file for path, file in now.items() if file}
    regular = {path: file[1] for path, file in there.items() if file[0] in _REGULAR}
    rest = {path: content for path, content in regular.items() if path not in files}
    for path, content in _converted(ws, rest):
        if content != rest[path]:
            files[path] = (there[path][0], content)
    return files


def _unrecorded(
    ws: Workspace, was: Contents, now: Contents
) -> Iterator[tuple[str, Content | None]]:
    flags = staged(ws.root, ws.environ).flags
    values = settings(ws.root, ws.environ).get("core.filemode", "true")
    has_modes = values.rpartition("\n")[2].strip().lower() not in _FALSE
    for path, file in now.items():
        old = was[path]
        if not _HIDING.isdisjoint(flags.get(path, "").split(",")) or _is_never_added(path):
            yield path, old
        elif file and file[0] in _REGULAR and not has_modes:
            mode = _recorded_mode(old)
            if mode != file[0]:
                yield path, (mode, file[1])


def _recorded_mode(was: Content | None) -> str:
    """The mode that a regular file has for git with `core.fileMode=false`."""
    return was[0] if was and was[0] in _REGULAR else FILE


def _is_never_added(path: str) -> bool:
    """Whether git refuses the name, because other systems take it for `.git`."""
    names = (name for name in path.split("/") if name != ".git")
    return any(name.lower().partition(":")[0].rstrip(" .") in _RESERVED for name in names)


def _converted(ws: Workspace, files: Mapping[str, bytes]) -> Iterator[tuple[str, bytes]]:
    """Content of the files after git has added and checked them out again."""
    chosen = [path for path in files if "\n" not in path]
    if not chosen:
        return
    with TemporaryDirectory(prefix="atlas-objects-") as objects, suppress(GitError):
        env = {**ws.environ, "GIT_OBJECT_DIRECTORY": objects}
        names = os.fsencode("".join(f"{path}\n" for path in chosen))
        how = ("-c", "core.safecrlf=false")
        added = git(*how, "hash-object", "-w", "--stdin-paths", cwd=ws.root, env=env, stdin=names)
        ids = added.decode().split()
        # the size in git's own format is that of the content before the conversion
        mark = os.urandom(16).hex()
        pairs = zip(ids, chosen, strict=True)
        asked = os.fsencode("".join(f"{oid} {path}\n" for oid, path in pairs))
        out = ("cat-file", "--filters", f"--batch={mark}")
        shown = git(*how, *out, cwd=ws.root, env=env, stdin=asked)
        contents = shown.split(f"{mark}\n".encode())[1:]
        yield from zip(chosen, (content[:-1] for content in contents), strict=True)
