"""Which git commands an agent's processes ran, and which refs they moved: evidence of who did it.

Only reads what git itself wrote. A git that was started without these variables, such as the
user's own, leaves nothing here.
"""

import json
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from atlas_retry.patterns import regex
from atlas_retry.reading import read_start

_EVENTS, _REFS = "git-events", "git-refs"
MAX_TRACE_BYTES = 64 << 20
"""Read of each trace; a longer one says nothing about what came later."""
ZERO = "0" * 40
_HAS_OLD = 0x8
"""A flag of a ref's update: the old value is known (git's refs/refs-internal.h, REF_HAVE_OLD)."""
_UPDATE = regex(
    r" \d+: (?P<name>\S+) (?P<old>[0-9a-f]{40,64}) -> (?P<new>[0-9a-f]{40,64}) "
    r'\(F=0x(?P<flags>[0-9a-f]+), T=0x[0-9a-f]+\) "(?P<why>.*)'
)
_SYMBOLIC = regex(r' create_symref: (\S+) -> (\S+) "')
_RENAMED = regex(r' (?:rename|copy)_ref: (\S+) -> (\S+) "')
_DROPPED = " reflog_expire: refs/stash: 0"
_DELETED = regex(r"refs/debug\.c:\d+\s+(refs/\S+)\Z")
_FETCHED = ("fetch", "pull", "storing tag", "clone")
_TO_REMOTE = "refs/remotes/"


class RefUpdate(Struct, frozen=True, kw_only=True):
    """One ref as one git process moved it."""

    name: str
    old: str | None
    """None if git did not look at it."""
    new: str | None
    """Id, or `ref: ` and the target; `ZERO` if it was deleted, None if it has the value of
    another one."""
    why: str = ""
    """As in the reflog."""

    @property
    def is_derived(self) -> bool:
        """Whether it only repeats what another repository has."""
        if self.name.startswith((_TO_REMOTE, "refs/prefetch/")):
            return not self.why or self.why.startswith(_FETCHED)  # pruning says no reason
        return self.name.startswith("refs/tags/") and self.why.startswith(_FETCHED)


class GitCommand(Struct, frozen=True, kw_only=True):
    """One git process that found a repository."""

    verb: str
    """The command, aliases resolved."""
    arguments: tuple[str, ...]
    worktree: str
    """Absolute path; empty if git did not say."""


class AgentsGit(Struct, frozen=True, kw_only=True):
    """What the git processes below an agent did."""

    commands: tuple[GitCommand, ...] = ()
    updates: tuple[RefUpdate, ...] = ()

    def ran(self, verbs: Iterable[str], root: Path) -> Iterator[GitCommand]:
        """The commands with one of these verbs in a work tree."""
        wanted = {*verbs}
        for one in self.commands:
            if one.verb in wanted and one.worktree in ("", str(root)):
                yield one


def variables(folder: Path) -> dict[str, str]:
    """Variables with which git writes its trace into this folder.

    Sources: git(1), GIT_TRACE2_EVENT and GIT_TRACE_REFS; the latter came with git 2.30.
    """
    return {"GIT_TRACE2_EVENT": str(folder / _EVENTS), "GIT_TRACE_REFS": str(folder / _REFS)}


def read_trace(folder: Path) -> AgentsGit:
    """What was traced into this folder so far; empty if nothing was."""
    return AgentsGit(
        commands=tuple(_commands(_lines(folder / _EVENTS))),
        updates=tuple(_updates(_lines(folder / _REFS))),
    )


def clear(folder: Path) -> None:
    """Remove the trace, which lists every ref that a command such as `git log` has read."""
    for name in (_EVENTS, _REFS):
        (folder / name).unlink(missing_ok=True)


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        if not path.is_symlink():
            lines = read_start(path, MAX_TRACE_BYTES)
            return lines.decode("utf-8", "surrogateescape").splitlines()
    return []


def _commands(lines: Iterable[str]) -> Iterator[GitCommand]:
    """Source: git's api-trace2, events `start`, `def_repo` and `cmd_name`, by `sid`."""
    arguments: dict[str, tuple[str, ...]] = {}
    worktrees: dict[str, str] = {}
    for text in lines:
        if '"event":"start"' in text or '"event":"def_repo"' in text or "cmd_name" in text:
            try:
                event = json.loads(text)
                sid = str(event["sid"])
            except (ValueError, KeyError, TypeError):
                continue
            match event:
                case {"event": "start", "argv": list(argv)}:
                    arguments[sid] = tuple(map(str, argv))
                case {"event": "def_repo", "worktree": str(worktree)}:
                    worktrees[sid] = worktree
                case {"event": "cmd_name", "name": str(verb)}:
                    where, line = worktrees.get(sid, ""), arguments.get(sid, ())
                    yield GitCommand(verb=verb, arguments=line, worktree=where)


def _updates(lines: Iterable[str]) -> Iterator[RefUpdate]:
    """Source: git's refs/debug.c."""
    for line in lines:
        if update := _UPDATE.search(line):
            is_known = int(update["flags"], 16) & _HAS_OLD or update["old"].strip("0")
            yield RefUpdate(
                name=update["name"],
                old=_id(update["old"]) if is_known else None,
                new=_id(update["new"]),
                why=update["why"].removesuffix('"'),
            )
        elif symbolic := _SYMBOLIC.search(line):
            yield RefUpdate(name=symbolic[1], old=None, new=f"ref: {symbolic[2]}")
        elif renamed := _RENAMED.search(line):
            yield RefUpdate(name=renamed[1], old=None, new=ZERO)
            yield RefUpdate(name=renamed[2], old=None, new=None)
        elif _DROPPED in line:
            yield RefUpdate(name="refs/stash", old=None, new=None)
        elif deleted := _DELETED.search(line):
            yield RefUpdate(name=deleted[1], old=None, new=ZERO)


def _id(text: str) -> str:
    return text if text.strip("0") else ZERO
