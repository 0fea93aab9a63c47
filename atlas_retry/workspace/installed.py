"""The content of installed files, held before a turn and restored after it; judges nothing.

Snapshots leave environments out. What is small is held here once, in one file for all, and again
only where stat data moved. Of what is bigger, only the digest is noted.
"""

import os
import shutil
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from enum import StrEnum
from itertools import chain, filterfalse
from pathlib import Path
from typing import BinaryIO

import msgspec
from msgspec import Struct

from atlas_retry.digests import sha256_of
from atlas_retry.model import Contents
from atlas_retry.patterns import regex
from atlas_retry.state_dir import replace_file
from atlas_retry.text.reinstalling import Distribution
from atlas_retry.workspace import place
from atlas_retry.workspace.files import EXECUTABLE, FILE, LINK, Stat, StoredFile
from atlas_retry.workspace.outside import ENVIRONMENT_MARK
from atlas_retry.workspace.place import folders_above, parents

MAX_FILE_BYTES = 1 << 20
MAX_TOOL_BYTES = 64 << 20
MAX_BYTES = 64 << 20
"""Of all held files together, tools of gates aside."""
MAX_DIGESTED_BYTES = 256 << 20
"""Of all bigger files whose digest is noted: reading them takes half a second, once."""
_STARTS = regex(r"(^|/)(bin|Scripts|\.bin)/[^/]+$|\.pth$|(^|/)(site|user)customize\.py$|\.cfg$")
"""What runs before anything else: held first."""

Stats = Mapping[str, Stat | None]
"""Stat data by path, relative to the workspace or absolute; None if unreadable."""


class _Kept(StrEnum):
    """What is kept of a file."""

    CONTENT = "content"
    DIGEST = "digest"
    STAT = "stat"


class _Held(Struct, frozen=True, array_like=True, gc=False):
    seen: Stat
    kept: _Kept
    digest: str = ""
    offset: int = 0
    size: int = 0
    """Of the held content."""


class Holding(Struct, frozen=True, kw_only=True):
    """The installed files of one workspace, in a folder of the state directory."""

    root: Path
    folder: Path
    files: dict[str, _Held]

    @classmethod
    def opened(cls, root: Path, folder: Path) -> "Holding":
        """What is held; nothing if it cannot be read."""
        files = dict[str, _Held]()
        with suppress(OSError, msgspec.MsgspecError):
            files = msgspec.msgpack.decode((folder / "index").read_bytes(), type=dict[str, _Held])
        return cls(root=root, folder=folder, files=files)

    def holds(self, path: str, was: Stat | None) -> bool:
        """Whether the content that a path had with these stat data is held."""
        held = self.files.get(path)
        return held is not None and held.seen == was and held.kept is _Kept.CONTENT

    def is_same(self, path: str, was: Stat | None) -> bool:
        """Whether a file has the mode and content that it had with these stat data."""
        held = self.files.get(path)
        if held is None or held.seen != was or held.kept is _Kept.STAT:
            return False
        return digest(self.root, path) == f"{held.seen[0]:o} {held.digest}"

    def is_as_held(self, path: str) -> bool:
        """Whether a file has the mode and content that it had when it was looked at last."""
        return path in self.files and self.is_same(path, self.files[path].seen)

    def content(self, path: str) -> bytes | None:
        """The held content of a path; None if it is not held or no longer readable."""
        held = self.files.get(path)
        if held is None or held.kept is not _Kept.CONTENT:
            return None
        with suppress(OSError), (self.folder / "contents").open("rb") as file:
            file.seek(held.offset)
            content = file.read(held.size)
            return content if sha256_of(content) == held.digest else None
        return None

    def file(self, path: str) -> tuple[str, bytes] | None:
        """The held file, with its mode as git has it; None as `content`."""
        content, held = self.content(path), self.files.get(path)
        return (_kind(held.seen[0]), content) if held and content is not None else None

    def put_back(self, path: str) -> bool:
        """Write the held content; returns whether the path now has it."""
        content, held = self.content(path), self.files.get(path)
        if content is None or held is None:
            return False
        return _put(self.root, path, held.seen[0], content)


def _put(root: Path, path: str, mode: int, content: bytes) -> bool:
    with suppress(OSError):
        entry = StoredFile(_kind(mode), "", stat.S_IMODE(mode))
        place.put(*_placed(root, path), entry, content)
        return True
    return False


def _kind(mode: int) -> str:
    return LINK if stat.S_ISLNK(mode) else EXECUTABLE if mode & 0o100 else FILE


def hold(root: Path, folder: Path, seen: Stats, tools: Collection[str]) -> Holding:
    """Hold the small files among these, those that run first in any case, and the `tools`.

    What cannot be written is not held. A new file of contents is begun when half is outdated.
    """
    before = Holding.opened(root, folder)
    wanted = {path: (now, kept) for path, now, kept in _chosen(seen, tools)}
    there = {p: one for p, one in before.files.items() if wanted.get(p) == (one.seen, one.kept)}
    fresh = {path: one for path, one in wanted.items() if path not in there}
    if not fresh:
        return Holding(root=root, folder=folder, files=there)
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        contents = folder / "contents"
        end = contents.stat().st_size if contents.exists() else 0
        if end > 2 * sum(one.size for one in there.values()) + MAX_FILE_BYTES:
            contents.unlink()
            there, fresh, end = {}, wanted, 0
        with contents.open("ab") as file:
            there.update(_written(root, fresh, file, end))
        replace_file((folder / "index"), msgspec.msgpack.encode(there))
    return Holding(root=root, folder=folder, files=there)


def _written(
    root: Path, fresh: Mapping[str, tuple[Stat, _Kept]], file: BinaryIO, end: int
) -> Iterator[tuple[str, _Held]]:
    """Write the contents to be held at the end of a file; yields what is then held and noted."""
    for path, (now, kept) in fresh.items():
        if kept is not _Kept.CONTENT:
            noted = digest(root, path) if kept is _Kept.DIGEST else ""
            yield path, _Held(now, kept, noted.rpartition(" ")[2])
        elif (read := _read(root, path)) is not None:
            file.write(read[1])
            yield path, _Held(now, kept, sha256_of(read[1]), end, len(read[1]))
            end += len(read[1])


def moved_away(root: Path, paths: Iterable[str], known: Collection[str], into: Path) -> list[str]:
    """Move files that were not there before into a folder, with new folders around them.

    `known` are the paths that were there. Returns those that are still in place.
    """
    old, left = folders_above(known), list[str]()
    for path in paths:
        top = next((one for one in reversed([path, *parents(path)]) if one not in old), path)
        source, target = root / top, into / top.lstrip("/")
        with suppress(OSError, shutil.Error):
            if os.path.lexists(source):
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(source, target)
        if os.path.lexists(root / path):
            left.append(path)
    return left


def put_back_between(root: Path, folder: Path, since_s: float, until_s: float) -> tuple[str, ...]:
    """Restore held files that were written or removed in this time; returns their paths.

    What runs first and was added then is removed: whatever was there before is held. What was
    written later stays, though another file of its folder was written in this time.
    """
    holding = Holding.opened(root, folder)

    def is_in_time(path: Path) -> bool:
        with suppress(OSError):
            return since_s <= path.lstat().st_ctime <= until_s
        return False

    came = [path for path in _first_unknown(holding) if is_in_time(root / path)]
    for path in came:
        (root / path).unlink()
    ours = (path for path, held in holding.files.items() if held.kept is _Kept.CONTENT)
    earlier = (path for path in ours if not place.is_later(root / path, until_s))
    # one of the folders around it may have been exchanged
    around = ((path, [root / one for one in (path, *parents(path))]) for path in earlier)
    moved = [path for path, places in around if any(map(is_in_time, places))]
    return (*came, *filter(holding.put_back, filterfalse(holding.is_as_held, moved)))


def note_end(folder: Path) -> None:
    """Note the time at which a turn of the hook has ended; what is written later is the user's."""
    with suppress(OSError):
        (folder / "ended").touch()


def turn_ended_s(folder: Path) -> float | None:
    """When the last turn of the hook ended, in seconds since the epoch; None if unknown."""
    with suppress(OSError):
        return (folder / "ended").stat().st_mtime
    return None


def _first_unknown(holding: Holding) -> Iterator[str]:
    """Files beside held ones that run first and are not held."""
    root = holding.root
    folders = {(root / path).parent for path in holding.files}
    for entry in chain.from_iterable(at.iterdir() for at in sorted(folders) if at.is_dir()):
        path = os.path.relpath(entry, root)
        is_known = not holding.files.keys().isdisjoint({path, str(entry)})
        if _STARTS.search(path) and not is_known and not entry.is_dir():
            yield path


def digest(root: Path, path: str) -> str:
    """Mode and digest of a file, or of the target of a link; empty if there is none."""
    noted = place.digest(*_placed(root, path), MAX_DIGESTED_BYTES)
    return f"{noted[0]:o} {noted[1]}" if noted else ""


def _chosen(seen: Stats, tools: Collection[str]) -> Iterator[tuple[str, Stat, _Kept]]:
    known = ((path, now) for path, now in seen.items() if now)
    first = {path for path in seen if _STARTS.search(path)}
    held = digested = 0
    for path, now in sorted(known, key=lambda one: (one[0] not in first, one[1][1])):
        size = now[1]
        if path in tools and size <= MAX_TOOL_BYTES:
            yield path, now, _Kept.CONTENT
        elif size <= MAX_FILE_BYTES and held + size <= MAX_BYTES:
            held += size
            yield path, now, _Kept.CONTENT
        elif digested + size <= MAX_DIGESTED_BYTES:
            digested += size
            yield path, now, _Kept.DIGEST
        else:
            yield path, now, _Kept.STAT


def _placed(root: Path, path: str) -> tuple[Path, str]:
    return (Path("/"), path[1:]) if path.startswith("/") else (root, path)


def _read(root: Path, path: str) -> tuple[int, bytes] | None:
    """Mode and content of a file or link."""
    at, name = _placed(root, path)
    status = place.status(at, name)
    content = place.read(at, name, MAX_TOOL_BYTES) if status else None
    return (status.st_mode, content) if status and content is not None else None


# --- what gates installed after a turn


class _Written(Struct, frozen=True, array_like=True, gc=False):
    """What a path was before a turn, and what its gates made of it."""

    left: str
    """As `digest` has it."""
    mode: int = 0
    content: bytes | None = None
    """None if there was no file."""


def note_written(holding: Holding, paths: Iterable[str], known: Collection[str], to: Path) -> None:
    """Note in a folder of the run what these files were, so that an undo gives it back.

    `known` are the paths that were there; those of them that are not held stay.
    """
    notes = dict[bytes, _Written]()
    for path in paths:
        left, before = digest(holding.root, path), holding.content(path)
        if before is not None:
            notes[os.fsencode(path)] = _Written(left, holding.files[path].seen[0], before)
        elif path not in known:
            notes[os.fsencode(path)] = _Written(left)
    if notes or (to / _NOTE).exists():
        to.mkdir(parents=True, exist_ok=True)
        replace_file(to / _NOTE, msgspec.msgpack.encode(notes))


def undo_written(root: Path, folder: Path) -> Iterator[str]:
    """Give back what gates wrote after a turn; what they added is moved into the folder.

    Yields the paths. What was written later by others stays.
    """
    notes = dict[bytes, _Written]()
    with suppress(OSError, msgspec.MsgspecError):
        notes = msgspec.msgpack.decode((folder / _NOTE).read_bytes(), type=dict[bytes, _Written])
    for name, was in notes.items():
        path = os.fsdecode(name)
        if digest(root, path) != was.left:
            continue
        if was.content is None:
            moved_away(root, [path], [path], folder / "undone")
            for above in parents(path):
                place.remove_folder(*_placed(root, above))
        else:
            _put(root, path, was.mode, was.content)
        if digest(root, path) != was.left:
            yield path


_NOTE = "installed-by-gates"


# --- what was installed by whom

_IN_PACKAGES = regex(
    r"(?P<packages>(?P<environment>.+?)/lib[^/]*/[^/]+/[^/]+-packages)/(?P<file>.+)"
)


def distributions(root: Path, folder: Path, paths: Iterable[str]) -> dict[str, Distribution]:
    """What installed these files before the turn, as far as its notes are held in the folder.

    Source: PEP 376 and PEP 627, `RECORD`; uv names itself in `pyvenv.cfg`.
    """
    holding, by_path = Holding.opened(root, folder), dict[str, Distribution]()
    for path in paths:
        place = _IN_PACKAGES.fullmatch(path)
        record = place and _record_of(place["packages"], place["file"], holding)
        if place and record:
            name, _, version = record.rpartition("/")[2].removesuffix(".dist-info").rpartition("-")
            settings = _read(root, f"{place['environment']}/{ENVIRONMENT_MARK}")
            by_path[path] = Distribution(
                name=name,
                version=version,
                environment=place["environment"],
                has_pip=(root / place["packages"] / "pip").is_dir(),
                is_of_uv=settings is not None and b"\nuv = " in settings[1],
            )
    return by_path


def _record_of(packages: str, file: str, holding: Holding) -> str | None:
    """The `.dist-info` of a folder of packages whose record names a file."""
    line = os.fsencode(f"\n{file},")
    ours = (path for path in holding.files if path.startswith(f"{packages}/"))
    records = (path for path in ours if path.endswith(".dist-info/RECORD"))
    naming = (path for path in records if line in b"\n" + (holding.content(path) or b""))
    return next((path.removesuffix("/RECORD") for path in naming), None)


# --- the project's own installation

_URL = regex(r'"url":\s*"file://([^"]+)"')


def own_installation(root: Path, moved: Iterable[str], holding: Holding) -> frozenset[str]:
    """Those of the moved files that only say that the project itself is installed from its sources.

    Installers write them anew whenever `pyproject.toml` is newer. Source: PEP 610, PEP 660. A
    `.pth` counts only if it leads and led into the workspace, to where one led before, the root or
    its `src`; entry points only if those of the project are what they were.
    """
    paths = frozenset(moved)
    own = {top for top in folders_above(paths) if _is_of(root, top, holding)}
    beside = {info.rpartition("/")[0] for info in own}
    names = [f"{info}/{_ENTRIES}" for info in own]
    same_entries = {*filter(None, map(holding.content, names))} == {*_present(root, names)}
    led = {os.fsencode(root), os.fsencode(root / "src"), *_held_leads(root, holding)}

    def is_harmless(path: str) -> bool:
        if path.endswith(".pth"):
            lines = b"\n".join((holding.content(path) or b"", *_present(root, [path])))
            return path.rpartition("/")[0] in beside and led.issuperset(lines.split(b"\n"))
        is_entry = path.endswith(f"/{_ENTRIES}")
        return (same_entries or not is_entry) and not own.isdisjoint(parents(path))

    return frozenset(filter(is_harmless, paths))


_ENTRIES = "entry_points.txt"


def _present(root: Path, paths: Iterable[str]) -> Iterator[bytes]:
    """The contents of those of the files that are there."""
    for path in paths:
        if read := _read(root, path):
            yield read[1]


def _held_leads(root: Path, holding: Holding) -> Iterator[bytes]:
    """Empty lines, and those of held `.pth` files that name a folder of the workspace."""
    yield b""
    for path in holding.files:
        text = holding.content(path) if path.endswith(".pth") else None
        for line in (text or b"").split(b"\n"):
            if Path(os.path.normpath(os.fsdecode(line))).is_relative_to(root):
                yield line


def _is_of(root: Path, info: str, holding: Holding) -> bool:
    """Whether a `.dist-info` was of something installed from the workspace, or is and is new.

    That is the project itself, editable or as the archive that tox builds in its own folder.
    """
    if not info.endswith(".dist-info"):
        return False
    name = f"{info}/direct_url.json"
    text = holding.content(name) or b""
    if not text and f"{info}/METADATA" not in holding.files:
        text = b"".join(_present(root, [name]))
    url = _URL.search(text.decode("utf-8", "replace"))
    return url is not None and Path(os.path.normpath(url[1])).is_relative_to(root)


def copied_again(
    holding: Holding, paths: Iterable[str], was: Contents, now: Contents
) -> frozenset[str]:
    """Those of the changed files that are a copy of a changed source, and were its copy before.

    `was` and `now` have the changed sources. A new file counts if a folder around it held another
    copy from the same folder of sources before. What runs first is no copy.
    """
    by_name: dict[str, list[str]] = {}
    for source in now:
        by_name.setdefault(source.rpartition("/")[2], []).append(source)

    def follows(path: str, source: str) -> bool:
        held = holding.content(path)
        if _now(holding.root, path) != _bytes(now[source]) or held != _bytes(was[source]):
            return False
        return held is not None or any(
            _is_copy(holding, was, there, here) for there, here in _beside(holding, path, source)
        )

    ours = (path for path in paths if not _STARTS.search(path))
    sources = {path: by_name.get(path.rpartition("/")[2], []) for path in ours}
    return frozenset(path for path in sources if any(follows(path, s) for s in sources[path]))


def _beside(holding: Holding, path: str, source: str) -> Iterator[tuple[str, str]]:
    """Held files around a path, each with the source it would be copied from if that one is.

    As far up as the folders of both have the same names.
    """
    for there, here in zip(parents(path), (*parents(source), ""), strict=False):
        ours = (one for one in holding.files if one.startswith(f"{there}/"))
        yield from ((one, f"{here}{one.removeprefix(there)}".lstrip("/")) for one in ours)
        if there.rpartition("/")[2] != here.rpartition("/")[2]:
            return


def _is_copy(holding: Holding, was: Contents, path: str, source: str) -> bool:
    """Whether a held file was a copy of a source, which may have changed since."""
    content = _bytes(was[source]) if source in was else _now(holding.root, source)
    return bool(content) and content == holding.content(path)


def _bytes(file: tuple[str, bytes] | None) -> bytes | None:
    return file[1] if file else None


def _now(root: Path, path: str) -> bytes | None:
    return next(_present(root, [path]), None)
