"""Which paths the model may name, and the checked files put into the work tree, all or none."""

import os
from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Final

from pathspec import GitIgnoreSpec

from atlas_retry.agents.anthropic.checks import CheckError, Write
from atlas_retry.workspace import place
from atlas_retry.workspace.scan import TEMPORARY
from atlas_retry.workspace.store import StoredFile

_SECRETS: Final = """
.env .env.* !.env.example !.env.sample !.env.template .envrc .netrc .npmrc .pypirc .htpasswd
*.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.tfstate *.tfstate.* .git-credentials
id_rsa* id_dsa* id_ecdsa* id_ed25519* .aws/ .ssh/ .gnupg/ .docker/config.json .kube/config
credentials.json service-account*.json secrets.y*ml
"""
_SECRET: Final = GitIgnoreSpec.from_lines(_SECRETS.split())
"""Files that hold secrets by their very name."""


def fault_of_name(path: str) -> str | None:
    """Why a path cannot be one of the project; None when it can."""
    names = path.split("/")
    if not path or not path.isprintable():
        return "is no path of a file"
    if path.startswith(("/", "~")) or "\\" in path or path[1:2] == ":":
        return "has to be relative to the root of the project, with forward slashes"
    if ".." in names:
        return "leads out of the project: `..` is not allowed"
    if "." in names or "" in names:
        return "has to be written without `.`, doubled or trailing slashes"
    # As case-folding and trimming file systems read it.
    if any(name.casefold().rstrip(". ") in (".git", "git~1") for name in names):
        return "belongs to git"
    return None


def is_secret(path: str) -> bool:
    """Whether a file holds secrets, by its name."""
    return _SECRET.match_file(path)


def source_of(root: Path, path: str) -> bytes | None:
    """What is at a path now; None: nothing.

    Raises CheckError for a link, a folder, and for what lies behind a link or a file.
    """
    for folder in PurePosixPath(path).parents[:-1]:
        above = root / folder
        if os.path.lexists(above) and (above.is_symlink() or not above.is_dir()):
            raise CheckError("lies behind a link or a file, not in a folder of the project")
    target = root / path
    if not os.path.lexists(target):
        return None
    if target.is_symlink() or not target.is_file():
        raise CheckError("is a link or a folder, not a file")
    return place.read(root, path)


def write_all(root: Path, writes: Sequence[Write]) -> tuple[str, ...]:
    """Make the files what they shall be; the paths that changed.

    Each by a rename. Raises OSError after what had been written was restored.
    """
    written: list[tuple[str, bytes | None, StoredFile]] = []
    for write in writes:
        old = place.read(root, write.path)
        if write.content == old:
            continue
        entry = place.look(root, write.path) or _new_file()
        try:
            _put(root, write.path, write.content, entry)
        except OSError:
            place.remove(root, str(PurePosixPath(write.path).with_name(TEMPORARY)))
            for earlier in reversed(written):
                _put(root, *earlier)
            raise
        written.append((write.path, old, entry))
    return tuple(path for path, _, _ in written)


def _put(root: Path, path: str, content: bytes | None, entry: StoredFile) -> None:
    if content is None:
        place.remove(root, path)
    else:
        place.put(root, path, entry, content)


def _new_file() -> StoredFile:
    """A new file gets the permissions that the user's umask says."""
    mask = os.umask(0)
    os.umask(mask)
    return StoredFile("100644", "", 0o666 & ~mask)
