"""Results of gates, remembered by everything that they depend on. Runs nothing.

A result is used again only if everything known is unchanged: every file outside dependency and
cache folders and the commit (or the files that the gate's `inputs` name), the gate, its
environment, and the programs that it names. If something is unknown (a program that is not found,
a link to a file outside), nothing is reused.
"""

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import chain, filterfalse, islice
from pathlib import Path
from stat import S_ISLNK

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import __version__
from atlas_retry.digests import sha256_of
from atlas_retry.errors import WorkspaceError
from atlas_retry.model import Gate, GateResult, Kind, Status
from atlas_retry.patterns import words
from atlas_retry.reading import read_text
from atlas_retry.state_dir import replace_file
from atlas_retry.text.globs import Globs
from atlas_retry.workspace.files import CACHES, Stat, is_settled, unsettled
from atlas_retry.workspace.git import common_dir_of, git_dir_of
from atlas_retry.workspace.outside import listed, stamp
from atlas_retry.workspace.place import read
from atlas_retry.workspace.snapshot.look import MAX_READ_BYTES, Look

ANSWERS = frozenset({Status.PASSED, Status.FAILED})
MAX_ANSWERS = 100
"""Number of gates to remember, the latest ones."""
MAX_IGNORED_FILES = 50_000
"""With more files nothing is remembered: looking at them all would cost more than it saves."""

_OF_SESSION = words("""
    _ SHLVL PWD OLDPWD COLUMNS LINES TERM COLORTERM WINDOWID TERM_PROGRAM TERM_PROGRAM_VERSION
    TERM_SESSION_ID TTY GPG_TTY TMUX SSH_AUTH_SOCK SSH_CLIENT SSH_CONNECTION SSH_TTY
    XDG_SESSION_ID CLAUDECODE CLAUDE_PROJECT_DIR ATLAS_HOME NO_COLOR CI_JOB_ID
    """)
"""Variables that differ between two terminals; they count only if a gate names them."""

Files = Mapping[str, "Stat"]


class _Answer(Struct, frozen=True, array_like=True):
    tree: str
    """Digest of the stat data of the gate's inputs."""
    unsettled: dict[str, str]
    """Digests of inputs written so recently that stat data may not show a later change."""
    result: GateResult


class Memory:
    """Remembered results of one workspace, in one small file that is replaced as a whole."""

    def __init__(self, file: Path, root: Path, environ: Mapping[str, str]) -> None:
        self._file, self._root, self._environ = file, root, environ

    def recall(
        self, gates: Collection[Gate], look: Callable[[], Files], *, only_red: bool
    ) -> dict[Gate, GateResult]:
        """Results of these gates on the same files, without the gates for which none is known.

        `look` returns the files; with `only_red`, the answer is empty if no required gate failed.
        """
        there = self._remembered(gates)
        is_wanted = any(answer.result.blocks for answer in there.values()) or not only_red
        files = self._all(look()) if there and is_wanted else None
        if files is None:
            return {}
        digest = cache(lambda inputs: _digest(_inputs(files, inputs)))
        known = {}
        for gate, answer in there.items():
            late = answer.unsettled
            if digest(gate.inputs) == answer.tree and late == self._contents(late):
                known[gate] = replace(answer.result, reused=answer.result.completed_at)
        is_wanted = any(result.blocks for result in known.values()) or not only_red
        return known if is_wanted else {}

    def _remembered(self, gates: Collection[Gate]) -> dict[Gate, _Answer]:
        """Remembered results of these gates on any files; failures only if their logs exist."""
        entry = self._read()
        if not entry:
            return {}
        known = {}
        for gate, key in self._keys(gates).items():
            answer = entry.get(key)
            if answer and (answer.result.success or Path(answer.result.log_path or "/").exists()):
                result = replace(answer.result, required=gate.required)
                known[gate] = replace(answer, result=result)
        return known

    def learn(self, results: Mapping[Gate, GateResult], look: "Look", began_s: float) -> None:
        """Remember results of gates that began at `began_s` and ended on the tree of `look`.

        Nothing is remembered if an ignored file that no tool makes changed meanwhile, because it is
        unknown which gates saw the old one.
        """
        ran = self._keys(gate for gate, result in results.items() if result.reused is None)
        there = self._all(look.files) if ran else None
        if there is None or _moved_meanwhile(there, look.files, began_s):
            return
        unsettled = self._unsettled(there, look.taken_ns)
        if unsettled is None:
            return
        states = _states(ran, there, unsettled)
        answers = {}
        for gate, key in ran.items():
            result = results[gate]
            if result.status in ANSWERS and not result.changed:
                answers[key] = _Answer(*states[gate.inputs], result)
        others = {key: one for key, one in self._read().items() if key not in ran.values()}
        self._write(dict([*others.items(), *answers.items()][-MAX_ANSWERS:]))

    def _all(self, files: Files) -> Files | None:
        """The files including ignored ones; None if there are too many, or a link leads outside."""
        ignored = dict(islice(_ignored(self._root, files), MAX_IGNORED_FILES + 1))
        links = (path for path, seen in chain(files.items(), ignored.items()) if S_ISLNK(seen[0]))
        targets = (os.path.realpath(self._root / path) for path in links)
        root = os.path.realpath(self._root) + os.sep
        is_known = len(ignored) <= MAX_IGNORED_FILES and all(t.startswith(root) for t in targets)
        return {**files, **ignored} if is_known else None

    def _unsettled(self, files: Files, taken_ns: int) -> dict[str, str] | None:
        late = unsettled(files, files, taken_ns)
        if sum(files[path][1] for path in late) > MAX_READ_BYTES:
            return None
        contents = self._contents(late)
        return contents if contents.keys() == late else None

    def _contents(self, paths: Iterable[str]) -> dict[str, str]:
        """Digests of files, or of the targets of links; without unreadable ones."""
        contents = {path: read(self._root, path) for path in paths}
        return {
            path: sha256_of(content) for path, content in contents.items() if content is not None
        }

    def _keys(self, gates: Iterable[Gate]) -> dict[Gate, str]:
        """Digest of all that a gate's result depends on apart from files; only where known."""
        path = self._environ.get("PATH", "/usr/bin:/bin").split(":")
        around = cache(lambda cwd: _around(str(self._root), cwd, path))
        commit = _commit(self._root)
        keys = {}
        for gate in gates:
            cwd = str(self._root / gate.cwd)
            tools = programs(gate.run, cwd, path)
            if tools is None or gate.kind is Kind.REVIEW:
                continue
            of_session = _OF_SESSION - {*gate.pass_env, *dict(gate.env)}
            names = sorted(self._environ.keys() - of_session)
            environ = [(name, os.fsencode(self._environ[name])) for name in names]
            spelled = replace(gate, required=True, max_retries=None, fix=None, recheck=None)
            stamps = (*tools, *around(cwd), *(() if gate.inputs else commit))
            parts = (__version__, spelled, environ, stamps)
            keys[gate] = sha256_of(msgspec.msgpack.encode(parts))
        return keys

    def results(self) -> "Iterator[GateResult]":
        """Every remembered result, whether or not it still holds."""
        return (answer.result for answer in self._read().values())

    def _read(self) -> dict[str, _Answer]:
        with suppress(OSError, msgspec.MsgspecError):
            return msgspec.msgpack.decode(self._file.read_bytes(), type=dict[str, _Answer])
        return {}

    def _write(self, answers: Mapping[str, _Answer]) -> None:
        """Write the file; if the state directory is full or read-only, nothing is remembered."""
        with suppress(OSError, UnicodeEncodeError):
            replace_file(self._file, msgspec.msgpack.encode(answers))


def _states(
    gates: Iterable[Gate], there: Files, unsettled: Mapping[str, str]
) -> dict[tuple[str, ...], tuple[str, dict[str, str]]]:
    """Of each `inputs`: the digest of its files, and the digests of the unsettled ones."""
    chosen = {gate.inputs: _inputs(there, gate.inputs) for gate in gates}
    return {
        globs: (_digest(files), {p: digest for p, digest in unsettled.items() if p in files})
        for globs, files in chosen.items()
    }


def _inputs(files: Files, inputs: tuple[str, ...]) -> Files:
    if not inputs:
        return files
    chosen = Globs(inputs)
    return {path: seen for path, seen in files.items() if chosen.match(path)}


def _digest(files: Files) -> str:
    paths = sorted(files)
    stats = msgspec.msgpack.encode([files[path] for path in paths])
    return sha256_of(os.fsencode("\0".join(paths)), stats)


def _ignored(root: Path, files: Files, below: str = "") -> "Iterator[tuple[str, Stat]]":
    """Files not among `files`, and empty folders, outside dependency and cache folders."""
    entries = listed(f"{root}/{below}")
    if not entries:
        yield below, _OF_EMPTY_FOLDER
    for entry in entries:
        path = below + entry.name
        if path in files:
            continue
        if not entry.is_dir(follow_symlinks=False):
            yield path, stamp(entry) or _UNREADABLE
        elif entry.name != ".git" and entry.name not in CACHES:
            yield from _ignored(root, files, f"{path}/")


_OF_EMPTY_FOLDER: "Stat" = (0, 0, 0, 0, 0)
_UNREADABLE: "Stat" = (1, 0, 0, 0, 0)


def _moved_meanwhile(there: Files, seen: Files, began_s: float) -> list[str]:
    ignored, began_ns = there.keys() - seen.keys(), int(began_s * 1e9)
    late = [path for path in ignored if not is_settled(there[path], began_ns)]
    if not late:
        return []

    from atlas_retry.guard import places

    return [
        path for path in filterfalse(places.CACHES.match, late) if not places.is_build_output(path)
    ]


_SHELL = words("""
    true false cd test [ echo printf exit export set : unset read return shift trap umask wait
    pwd kill ulimit done fi esac }
    """)
"""Built-in commands and keywords of /bin/sh."""
_BEFORE_ANOTHER = words("if then else elif while until do ! { time exec command env nohup nice")
"""Words that are followed by another program."""
_INSTALLED = (".venv", "venv", "node_modules", "node_modules/.package-lock.json", "vendor")
"""Places in a project that hold its dependencies."""

Stamp = tuple[str, int, int, int]
"""Path as it was looked up, and of what it leads to: size, mtime in ns, inode."""


def programs(line: str, cwd: str, path: Iterable[str]) -> tuple[Stamp, ...] | None:
    """Stat data of the programs that a line names; None if one is not found on the path."""
    names = [*dict.fromkeys(_commands(line))]
    stamps = [_program(name, cwd, path) for name in names if name not in _SHELL]
    return None if not names or None in stamps else (*filter(None, stamps),)


def _around(root: str, cwd: str, path: Iterable[str]) -> tuple[Stamp, ...]:
    """Stat data of the folders of programs and of dependencies.

    These change when something is installed or removed there.
    """
    places = [os.path.join(cwd, name) for name in path]  # noqa: PTH118 - start-up
    places += [f"{root}/{name}" for name in _INSTALLED]
    places += [f"{cwd}/{name}" for name in _INSTALLED if cwd != root]
    inner = chain.from_iterable(map(_packages, places))
    return (*filter(None, map(_stamp, (*places, *inner))),)


def _commit(root: Path) -> tuple[Stamp, ...]:
    """Stat data of git's files that say which commit HEAD is: a gate may read its message.

    Source: gitrepository-layout(5).
    """
    with suppress(WorkspaceError, OSError):
        git_dir = git_dir_of(root)
        common = common_dir_of(git_dir)
        branch = read_text(git_dir / "HEAD").removeprefix("ref: ").rstrip("\n")
        files = (git_dir / "HEAD", common / branch, common / "packed-refs")
        return (*filter(None, map(_stamp, map(str, files))),)
    return ()


def _commands(line: str) -> Iterator[str]:
    """First words of the simple commands of a line; an empty one if it cannot be parsed."""
    is_first = True
    try:
        words = list(shlex.shlex(line.replace("\n", ";"), posix=True, punctuation_chars=True))
    except ValueError:
        words = [""]
    for word in words:
        if word and set(word) <= set("&|;()"):
            is_first = True
        elif is_first and "=" not in word and word not in _BEFORE_ANOTHER:
            is_first = False
            yield word


def _program(name: str, cwd: str, path: Iterable[str]) -> Stamp | None:
    if "/" in name:
        return _stamp(os.path.join(cwd, name))  # noqa: PTH118 - start-up
    for folder in path:
        place = os.path.join(cwd, folder, name)  # noqa: PTH118 - start-up
        if name and os.access(place, os.X_OK) and os.path.isfile(place):  # noqa: PTH113 - start-up
            return _stamp(place)
    return None


def _packages(place: str) -> Iterator[str]:
    """Package folders of the Python next to a `bin` folder, or in a virtual environment."""
    with suppress(OSError), os.scandir(f"{place.removesuffix('/bin')}/lib") as entries:
        for entry in entries:
            if entry.name.startswith("python3"):
                yield f"{entry.path}/site-packages"
                yield f"{entry.path}/dist-packages"


def _stamp(path: str) -> Stamp | None:
    try:
        seen = os.stat(path)  # noqa: PTH116 - start-up
    except OSError:
        return None
    return path, seen.st_size, seen.st_mtime_ns, seen.st_ino
