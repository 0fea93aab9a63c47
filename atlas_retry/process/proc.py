"""Read /proc: existing processes, their parents, sessions and environment.

Without /proc (macOS) none is found. Source: proc_pid_stat(5), proc_pid_environ(5).
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress

from msgspec import Struct

_SHOWN_CHARS = 80


class Member(Struct, frozen=True):
    """One process; `born` distinguishes processes with the same pid."""

    pid: int
    """Negative for a whole group, if its members are unknown."""
    parent: int
    group: int
    session: int
    is_zombie: bool
    born: str

    @property
    def key(self) -> tuple[int, str]:
        return self.pid, self.born


def is_there() -> bool:
    """Whether the system has /proc."""
    return os.path.exists("/proc/self/stat")  # noqa: PTH110 - start-up


def member(pid: int) -> Member | None:
    """One process as it is now; None if it is gone."""
    fields = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()
    if not fields:
        return None
    parent, group, session = map(int, fields[1:4])
    is_zombie = fields[0] in (b"Z", b"X")
    return Member(pid, parent, group, session, is_zombie, fields[19].decode())


def everyone() -> dict[int, Member]:
    """Every living process."""
    members = filter(None, map(member, _pids()))
    return {m.pid: m for m in members if not m.is_zombie}


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208


def with_descendants(pids: set[int], among: dict[int, Member]) -> set[int]:
    """These pids, their children, and so on."""
    pids = set(pids)
    while children := {m.pid for m in among.values() if m.parent in pids} - pids:
        pids |= children
    return pids


def parents_first(members: Iterable[Member]) -> tuple[Member, ...]:
    """Parents before children: a shell whose child ends first continues with its next line."""
    by_pid = {member.pid: member for member in members}

    def depth(member: Member) -> int:
        above = by_pid.get(member.parent)
        return 0 if above is None else 1 + depth(above)

    return tuple(sorted(by_pid.values(), key=depth))


def children() -> set[int]:
    """Pids of the children of all our threads, adopted ones included."""
    tasks = "/proc/self/task"
    lists = [_read(f"{tasks}/{thread}/children") for thread in os.listdir(tasks)]  # noqa: PTH208
    if os.path.exists(f"{tasks}/{os.getpid()}/children"):  # noqa: PTH110
        return set(map(int, b" ".join(lists).split()))
    us = os.getpid()  # a kernel without CONFIG_PROC_CHILDREN
    return {m.pid for m in filter(None, map(member, _pids())) if m.parent == us}


def carries(pid: int, entry: bytes) -> bool:
    """Whether an entry of its environment starts with `entry`."""
    return any(one.startswith(entry) for one in _read(f"/proc/{pid}/environ").split(b"\0"))


_RESTORING = frozenset({b"apply", b"stash", b"checkout", b"read-tree", b"reset", b"restore"})


def is_writing(member: Member, folder: str) -> bool:
    """Whether a process has a file in the folder open for writing, or is a git that restores."""
    words = _read(f"/proc/{member.pid}/cmdline").split(b"\0")
    if words[0].endswith(b"git") and not _RESTORING.isdisjoint(words[1:]):
        return True
    process, numbers = f"/proc/{member.pid}", list[str]()
    with suppress(OSError):
        numbers += os.listdir(f"{process}/fd")  # noqa: PTH208 - start-up
    for number in numbers:
        flags = _read(f"{process}/fdinfo/{number}").partition(b"flags:")[2].split()
        is_written = bool(flags and int(flags[0], 8) & os.O_ACCMODE)
        with suppress(OSError):  # it may be closed by now
            if is_written and os.readlink(f"{process}/fd/{number}").startswith(f"{folder}/"):  # noqa: PTH115
                return True
    return False


def names(members: Iterable[Member]) -> tuple[str, ...]:
    """Names for a person: the start of each command line, and the pid; none of those now gone."""
    return tuple(filter(None, map(name, members)))


def name(one: Member) -> str | None:
    """Name of a process for a person; None if it has ended since."""
    if one.pid < 0:
        return f"process group {-one.pid}"
    printed = _read(f"/proc/{one.pid}/cmdline")
    now = member(one.pid)  # after its line: until then the pid may have become another's
    if now is None or now.is_zombie or now.key != one.key:
        return None
    line = printed.replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return f"{line[:_SHOWN_CHARS] or 'process'} (pid {one.pid})"


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - start-up
            return file.read()
    except OSError:  # it has ended, or is another user's
        return b""
