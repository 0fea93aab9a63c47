"""Reads the files that the model may see, and writes checked files, all or none."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final

import msgspec
from msgspec import Struct
from pathspec import GitIgnoreSpec

from atlas_retry.agents.anthropic.checks import CheckError, Write, read_text
from atlas_retry.agents.anthropic.wire import LOOKS, Call, ReadFile, Search
from atlas_retry.model import Tree
from atlas_retry.workspace import place
from atlas_retry.workspace.files import TEMPORARY, StoredFile

MAX_PATHS: Final = 500
MAX_LINES: Final = 400
MAX_HITS: Final = 100
MAX_CHARS: Final = 40_000
MAX_LINE_CHARS: Final = 1_000
MAX_FILE_BYTES: Final = 1 << 20
_FILES: Final = frozenset({"100644", "100755"})


class LookError(Exception):
    """A refused tool call; the message is for the model."""


class Looker(Struct, frozen=True, kw_only=True):
    """Reads files of one work tree for the model."""

    tree: Tree
    redact: Callable[[str], str]

    def look(self, call: Call) -> str:
        """The result of a tool call. Raises LookError."""
        if call.name not in LOOKS:
            raise LookError(f"unknown tool {call.name!r}: {', '.join(LOOKS)}")
        try:
            asked = msgspec.json.decode(call.arguments, type=LOOKS[call.name])
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise LookError(f"invalid arguments for {call.name}: {error}") from error
        match asked:
            case ReadFile():
                return self._read(asked)
            case Search() if not asked.text.strip():
                raise LookError("the text to search for is empty")
            case Search():
                return _listed(self._hits(asked), MAX_HITS, "lines")
            case _:
                return _listed(self._paths(getattr(asked, "glob", None)), MAX_PATHS, "files")

    def text_of(self, path: str) -> str:
        """A file's text with plain newlines, not redacted. Raises LookError."""
        if fault := fault_of_name(path):
            raise LookError(f"{path!r} {fault}")
        if is_secret(path):
            raise LookError(f"{path} is not shown: it may have secrets")
        if self.tree.mode(path) not in _FILES:
            raise LookError(f"{path} is not a file of the project, or git ignores it")
        source = self.tree.read(path) or b""
        text = read_text(source, is_python=path.endswith(".py"))
        if text is None or len(source) > MAX_FILE_BYTES:
            raise LookError(f"{path} is not shown: it is binary or larger than 1 MiB")
        return text.plain

    def _paths(self, glob: str | None) -> Iterator[str]:
        try:
            spec = GitIgnoreSpec.from_lines([glob]) if glob else None
        except ValueError as error:
            raise LookError(f"{glob!r} is not a .gitignore pattern: {error}") from error
        for path in self.tree.paths():
            wanted = spec is None or spec.match_file(path)
            if wanted and self.tree.mode(path) in _FILES and not is_secret(path):
                yield path

    def _read(self, asked: ReadFile) -> str:
        lines = self.redact(self.text_of(asked.path)).split("\n")
        first = max(asked.first_line, 1)
        last = min(asked.last_line or len(lines), first + MAX_LINES - 1, len(lines))
        shown = [line[:MAX_LINE_CHARS] for line in lines[first - 1 : last]]
        while sum(map(len, shown)) > MAX_CHARS:
            shown.pop()
        end = first + len(shown) - 1
        head = f"{asked.path}, lines {first} to {end} of {len(lines)}:\n"
        return head + "\n".join(shown)

    def _hits(self, asked: Search) -> Iterator[str]:
        for path in self._paths(asked.glob):
            try:
                text = self.text_of(path)
            except LookError:
                continue
            if asked.text in text:
                for number, line in enumerate(self.redact(text).split("\n"), 1):
                    if asked.text in line:
                        yield f"{path}:{number}: {line.strip()[:MAX_LINE_CHARS]}"


def _listed(items: Iterable[str], limit: int, word: str) -> str:
    shown: list[str] = []
    for item in items:
        if len(shown) == limit or sum(map(len, shown)) > MAX_CHARS:
            return "\n".join((*shown, f"... and more {word}: ask for less of them"))
        shown.append(item)
    return "\n".join(shown) or f"no {word}"


_SECRETS: Final = """
.env .env.* !.env.example !.env.sample !.env.template .envrc .netrc .npmrc .pypirc .htpasswd
*.pem *.key *.p12 *.pfx *.jks *.keystore *.kdbx *.tfstate *.tfstate.* .git-credentials
id_rsa* id_dsa* id_ecdsa* id_ed25519* .aws/ .ssh/ .gnupg/ .docker/config.json .kube/config
credentials.json service-account*.json secrets.y*ml
"""
_SECRET: Final = GitIgnoreSpec.from_lines(_SECRETS.split())
"""Files that hold secrets by their very name."""


def fault_of_name(path: str) -> str | None:
    """Why a path is not valid in the project; None if it is."""
    names = path.split("/")
    if not path or not path.isprintable():
        return "is not a file path"
    if path.startswith(("/", "~")) or "\\" in path or path[1:2] == ":":
        return "must be relative to the root of the project, with forward slashes"
    if ".." in names:
        return "leads out of the project: `..` is not allowed"
    if "." in names or "" in names:
        return "must have no `.`, doubled or trailing slashes"
    # some file systems fold case and trim names
    if any(name.casefold().rstrip(". ") in (".git", "git~1") for name in names):
        return "belongs to git"
    return None


def is_secret(path: str) -> bool:
    """Whether a file's name suggests that it has secrets."""
    return _SECRET.match_file(path)


def source_of(root: Path, path: str) -> bytes | None:
    """Present content of a file; None if it does not exist.

    Raises CheckError for a link, a folder, and a path inside a link or a file.
    """
    for folder in PurePosixPath(path).parents[:-1]:
        above = root / folder
        if os.path.lexists(above) and (above.is_symlink() or not above.is_dir()):
            raise CheckError("is inside a link or a file, not in a folder of the project")
    target = root / path
    if not os.path.lexists(target):
        return None
    if target.is_symlink() or not target.is_file():
        raise CheckError("is a link or a folder, not a file")
    return place.read(root, path)


def write_all(root: Path, writes: Sequence[Write]) -> tuple[str, ...]:
    """Write the files and return the changed paths.

    Each is written by a rename. Before raising OSError it restores the files already written.
    """
    mask = os.umask(0)  # for new files
    os.umask(mask)
    written: list[tuple[str, bytes | None, StoredFile]] = []
    for write in writes:
        old = place.read(root, write.path)
        if write.content == old:
            continue
        entry = place.look(root, write.path) or StoredFile("100644", "", 0o666 & ~mask)
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
