"""What gates use that only this machine has: untracked and ignored files, other checkouts."""

import re
from collections.abc import Mapping
from itertools import chain, filterfalse
from pathlib import Path

from msgspec import Struct

from atlas_retry.guard.places import is_code, is_product, is_prose
from atlas_retry.text.units import first_few
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import git, ignored, split, untracked
from atlas_retry.workspace.outside import ENVIRONMENT_MARK, led_to

MAX_IGNORED = 40
"""Ignored files that are looked for in the code; beyond it, they are somebody's data."""
_IMPORTS = r"(import|from|require|include|source|use|mod|load)\b.*\b"


class OnlyHere(Struct, frozen=True, kw_only=True):
    """What a fresh clone lacks."""

    untracked: tuple[str, ...] = ()
    """Files that git neither tracks nor ignores."""
    needed: tuple[str, ...] = ()
    """Files that git ignores and tracked code names or imports."""
    checkouts: tuple[str, ...] = ()
    """Folders of other checkouts that an environment of Python imports from."""

    def sentence(self) -> str:
        """All of it in one line; empty if there is nothing."""
        parts = (
            ("git does not track ", self.untracked),
            ("git ignores, and code names ", self.needed),
            ("imported from another checkout: ", self.checkouts),
        )
        named = [f"{words}{first_few(paths)}" for words, paths in parts if paths]
        return f"only here, so a fresh clone lacks it: {'; '.join(named)}" if named else ""


def only_here(ws: Workspace, environ: Mapping[str, str]) -> OnlyHere:
    """What of a workspace a fresh clone would lack. Raises WorkspaceError."""
    active = Path(environ.get("VIRTUAL_ENV") or ws.root)
    folders = dict.fromkeys((*sorted(ws.root.iterdir()), active))
    environments = (folder for folder in folders if (folder / ENVIRONMENT_MARK).is_file())
    linked = chain.from_iterable(led_to(ws.root, str(one)) for one in environments)
    return OnlyHere(
        untracked=tuple(untracked(ws.root, ws.environ)),
        needed=_needed(ws),
        checkouts=tuple(dict.fromkeys(filter(_is_in_checkout, linked))),
    )


def _needed(ws: Workspace) -> tuple[str, ...]:
    listed = ignored(ws.root, ws.environ)
    files = [path for path in filterfalse(is_product, listed) if not path.endswith("/")]
    if len(files) > MAX_IGNORED:
        return ()
    return tuple(path for path in files if _is_named(ws, path))


def _is_named(ws: Workspace, path: str) -> bool:
    """Whether a tracked source names the file, or imports it as a module."""
    name, stem = Path(path).name, Path(path).stem
    ask: tuple[str, ...] = ("--word-regexp", "--fixed-strings", "-e", name)
    if is_code(path):
        ask = ("--extended-regexp", "-e", rf"{_IMPORTS}{re.escape(stem)}\b", "-e", re.escape(name))
    found = ("grep", "--files-with-matches", "-I", "-z", *ask)
    naming = split(git(*found, cwd=ws.root, env=ws.environ, accept=(0, 1)))
    return any(not is_prose(one) and not Path(one).name.startswith(".git") for one in naming)


def _is_in_checkout(folder: str) -> bool:
    return any((above / ".git").exists() for above in (Path(folder), *Path(folder).parents))
