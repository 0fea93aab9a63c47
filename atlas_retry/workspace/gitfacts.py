"""State of git apart from the work tree: its small files, and facts as one flat mapping.

Runs nothing and changes nothing.
"""

import os
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from atlas_retry.digests import sha256_of
from atlas_retry.model import GitFacts
from atlas_retry.reading import read_file, read_start
from atlas_retry.workspace.discovery import MAX_HELD_BYTES, STATES, git_file, refs_in
from atlas_retry.workspace.files import GitFile
from atlas_retry.workspace.git import (
    GitError,
    common_dir_of,
    git,
    git_dir_of,
    split,
    staged,
    user_environment,
)

MAX_HASHED_BYTES = 16 << 20
"""Hashed part of a file; no hook is longer."""


def git_facts(root: Path, *, environ: Mapping[str, str]) -> GitFacts:
    """The facts of the repository whose work tree has its top at `root`.

    `HEAD`; `refs/...`, replace refs too; `stash` (its list); `config:KEY` of the repository and the
    work tree, includes resolved; `hooks/NAME` and, with core.hooksPath, `hooksPath/NAME`;
    `info/NAME`; `index` (what is staged) and `index-flags:PATH`; `worktrees/NAME`; `alternates`;
    `shallow`; `state:MERGE_HEAD` ...; the same of submodules under `submodules/PATH:`.
    Values are ids, digests or text. If git cannot read the repository, only `unreadable`.
    """
    env = user_environment(environ)
    try:
        return dict(_facts(root, env))
    except GitError as error:
        return {"unreadable": error.message}


def _facts(root: Path, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    own = git_dir_of(root)
    common = common_dir_of(own)
    for name, fact in PLAIN.items():
        owner, _, path = name.partition("/")
        yield from _text(fact, (own if owner == "own" else common) / path)
    yield from refs_in(dict(ref_files(own, common))).items()
    yield from _text("refs", common / "reftable" / "tables.list")
    config = dict(settings(root, env, of=("local", "worktree")))
    yield from ((f"config:{key}", value) for key, value in config.items())
    yield from _folder("hooks", common / "hooks")
    if hooks := config.get("core.hookspath"):
        # git runs only files directly in it; below may be anything, such as a whole home
        yield from _folder("hooksPath", root / Path(hooks).expanduser(), is_deep=False)
    for base in dict.fromkeys((common, own)):
        yield from _folder("info", base / "info")
    for folder in sorted((common / "worktrees").glob("*")):
        files = (folder / "gitdir", folder / "HEAD", folder / "locked")
        text = [os.fsdecode(read_file(path)).strip() for path in files if path.is_file()]
        yield f"worktrees/{folder.name}", "\n".join(text)
    for name in STATES:
        yield from _state(own / name)
    yield from _index(root, env)


PLAIN = {
    "own/HEAD": "HEAD",
    "common/logs/refs/stash": "stash",
    "common/objects/info/alternates": "alternates",
    "common/shallow": "shallow",
}
"""Files, as `git_files` names them, and the names of the facts that are their text."""
_OWN = (
    *("HEAD", "ORIG_HEAD", "MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD"),
    *("REVERT_HEAD", "BISECT_LOG", "config.worktree"),
)
_COMMON = ("config", "packed-refs", "shallow", "logs/refs/stash", "objects/info/alternates")


def git_files(own: Path, common: Path) -> Iterator[tuple[str, GitFile]]:
    """Git's own small files: `own/...` of a work tree, `common/...` of the repository.

    Source: gitrepository-layout(5).
    """
    for name in (*_OWN, *(shared.name for shared in sorted(own.glob("sharedindex.*")))):
        yield from _file("own", own, name)
    for name in _COMMON:
        yield from _file("common", common, name)
    folders = [("common", common, name) for name in ("refs", "hooks", "info")]
    if own != common:
        folders += [("own", own, name) for name in ("refs", "info")]
    for label, base, name in folders:
        for path in sorted(_below(base / name)):
            if not path.endswith((".sample", ".lock")):
                yield from _file(label, base, f"{name}/{path}")


def _below(folder: Path, *, is_deep: bool = True) -> Iterator[str]:
    """Everything in a folder, relative to it; links are not followed."""
    start = len(f"{folder}/")
    for above, folders, names in os.walk(folder):
        yield from (f"{above}/{name}"[start:] for name in (*names, *folders))
        if not is_deep:
            return


def _file(label: str, base: Path, name: str) -> Iterator[tuple[str, GitFile]]:
    if file := git_file(base / name, None if name == "packed-refs" else MAX_HELD_BYTES):
        yield f"{label}/{name}", file


def ref_files(own: Path, common: Path) -> Iterator[tuple[str, bytes]]:
    """Contents of the files that hold refs, by their names in a git directory."""
    for base in dict.fromkeys((common, own)):
        for name in ("packed-refs", *(f"refs/{path}" for path in _below(base / "refs"))):
            with suppress(OSError):
                if not name.endswith(".lock"):
                    yield name, read_file(base / name)


def settings(root: Path, env: Mapping[str, str], of: Collection[str] = ()) -> dict[str, str]:
    """Settings of these scopes or of all; several values of a key are joined by newlines.

    Source: git-config(1), `--show-scope` with `-z`: scope NUL key LF value NUL. Raises GitError.
    """
    items = split(git("config", "--list", "-z", "--show-scope", "--includes", cwd=root, env=env))
    by_key: dict[str, list[str]] = {}
    for scope, said in zip(items[::2], items[1::2], strict=True):
        if not of or scope in of:
            key, _, value = said.partition("\n")
            by_key.setdefault(key, []).append(value)
    return {key: "\n".join(values) for key, values in by_key.items()}


def _folder(label: str, folder: Path, *, is_deep: bool = True) -> Iterator[tuple[str, str]]:
    for name in sorted(_below(folder, is_deep=is_deep)):
        path = folder / name
        if not name.endswith(".sample") and (path.is_symlink() or path.is_file()):
            yield f"{label}/{name}", _print_of(path)


def _print_of(path: Path) -> str:
    """Mode and digest of a file; for a link also its target."""
    mode = stat.S_IMODE(path.lstat().st_mode)
    link = f"{path.readlink()} " if path.is_symlink() else ""
    if not path.is_file():
        return f"{link}{mode:04o}"
    try:
        # not more than there is: reading makes room for as much as it is asked for
        digest = sha256_of(read_start(path, min(MAX_HASHED_BYTES, path.stat().st_size)))
    except PermissionError:  # not readable, so git could not run it for us
        digest = "unreadable"
    return f"{link}{mode:04o} {digest}"


def _text(name: str, path: Path) -> Iterator[tuple[str, str]]:
    if path.is_file():
        yield name, os.fsdecode(read_file(path)).strip()


def _state(path: Path) -> Iterator[tuple[str, str]]:
    if path.is_dir():
        for name, value in _folder(path.name, path):
            yield f"state:{name}", value
    else:
        yield from _text(f"state:{path.name}", path)


def _index(root: Path, env: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    index = staged(root, env)
    yield "index", index.digest
    yield from ((f"index-flags:{path}", names) for path, names in index.flags.items())
    for path in index.submodules:
        if (root / path / ".git").exists() and not (root / path).is_symlink():
            facts = _facts(root / path, env)
            yield from ((f"submodules/{path}:{name}", value) for name, value in facts)
