"""Who belongs to a command: its group, its session and its descendants, however far they strayed.

Linux: they are found by a marker in their environment, by their session, by their parents, and by
being left to us, who are their subreaper. Without /proc (macOS) the group is all that is known.
Children that the caller starts in our own session are never touched; one started elsewhere in a
session of its own, while a command runs and without going through here, would pass for an orphan.
"""

import os
import secrets
import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import NamedTuple

from atlas_retry.process.watchdog import Watchdog

MARK_PREFIX = "ATLAS_MARK_"
_SET_CHILD_SUBREAPER = 36  # prctl(2)
_SHOWN_CHARS = 80


class Member(NamedTuple):
    """One process, as /proc/PID/stat tells it; `born` tells apart two that had the same pid."""

    pid: int
    """Negative: a whole group, where nothing finer is known."""
    parent: int
    group: int
    session: int
    is_zombie: bool
    born: str

    @property
    def key(self) -> tuple[int, str]:
        return self.pid, self.born


class _Household:
    """All that this process has started and not yet seen the end of. Guarded by `_lock`."""

    __slots__ = ("active", "count", "is_subreaper", "mark", "strangers", "watchdog", "zombies")

    def __init__(self) -> None:
        _fill_standard_files()
        self.active: dict[int, Family] = {}
        self.count = 0
        self.mark = MARK_PREFIX + secrets.token_hex(8)
        self.strangers: set[tuple[int, str]] = set()
        """Children that are not ours to end: the caller's own, and daemons that are kept."""
        self.zombies: set[tuple[int, str]] = set()
        self.watchdog = Watchdog(self.mark)
        self.is_subreaper = _become_subreaper()


_lock = threading.RLock()
_households: list[_Household] = []


def _household() -> _Household:
    with _lock:
        if not _households:
            _households.append(_Household())
        return _households[0]


def _fill_standard_files() -> None:
    """So that no pipe or log of ours becomes standard input, output or error."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _become_subreaper() -> bool:
    """Orphans are then left to us, not to init; False where that cannot be had."""
    import ctypes  # noqa: PLC0415 - start-up

    if not _has_proc():
        return False
    with suppress(OSError, AttributeError):
        return bool(ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0)
    return False


def _has_proc() -> bool:
    return os.path.exists("/proc/self/stat")  # noqa: PTH110 - start-up


def mark() -> str:
    """The name of the variable by which everything that this process starts can be found."""
    return _household().mark


def leaders() -> tuple[int, ...]:
    """The commands that are running; each is the leader of its group. Safe in a signal handler."""
    if not _households:
        return ()
    return tuple(f.leader for f in tuple(_households[0].active.values()) if f.leader)


def signal_groups(signum: int) -> None:
    """Send a signal to the group of every running command."""
    for leader in leaders():
        with suppress(OSError):
            os.killpg(leader, signum)


class Family:
    """A command and its descendants, from before it starts until the last one is gone."""

    __slots__ = ("_household", "_known", "_number", "_told", "is_over", "leader")

    def __init__(self) -> None:
        self.leader: int | None = None
        self.is_over = False
        """Whether the leader has been reaped; its descendants may live on."""
        self._known: set[tuple[int, str]] = set()
        self._told: set[tuple[int, str]] = set()
        self._household = house = _household()
        with _lock:
            if not house.active:
                house.strangers |= {child.key for child in _adopted(house)}
            house.count += 1
            self._number = house.count
            house.active[self._number] = self

    @property
    def markers(self) -> dict[str, str]:
        """For the environment: ours, and those of every atlas that we run under."""
        outer = {k: v for k, v in os.environ.items() if k.startswith(MARK_PREFIX)}
        return outer | {self._household.mark: str(self._number)}

    def begin(self, leader: int) -> None:
        self.leader = leader
        self._household.watchdog.guard(leader)

    def reap(self) -> tuple[bool, int | None]:
        """Whether the leader has ended, and its wait status (None: somebody else took it)."""
        if self.leader is None:
            return True, None
        with _lock:
            try:
                pid, status = os.waitpid(self.leader, os.WNOHANG)
            except ChildProcessError:
                self.is_over = True
                return True, None
            self.is_over = bool(pid)
            return self.is_over, status

    def remaining(self) -> tuple[Member, ...]:
        """Those still alive. When there are none and the leader is reaped, this is the end."""
        with _lock:
            members = self._members()
            if not members and self.is_over:
                self._leave()
            return members

    def part(self, *, keep: bool) -> None:
        """Stop caring, whoever is left; with `keep`, nobody else is to end them either."""
        with _lock:
            if keep:
                self._household.strangers |= {m.key for m in self._members()}
            self._leave()

    def _leave(self) -> None:
        if self._household.active.pop(self._number, None) and self.leader:
            self._household.watchdog.forget(self.leader)

    def terminate(self) -> None:
        """TERM to the group while the leader lives, afterwards to the others; to each one once."""
        with _lock:
            members = {member.key: member for member in self._members()}
            self._known |= members.keys()
            if self.leader and not self.is_over:
                _send(-self.leader, signal.SIGTERM)
                _send(-self.leader, signal.SIGCONT)
                self._told |= {key for key, m in members.items() if m.group == self.leader}
                return
            for key in members.keys() - self._told:
                _send(members[key].pid, signal.SIGTERM)
            self._told |= members.keys()

    def kill(self) -> tuple[Member, ...]:
        """End everyone at once; who there was to end."""
        with _lock:
            members = self._members()
            if self.leader and not self.is_over:
                _send(-self.leader, signal.SIGKILL)
            for member in members:
                _send(member.pid, signal.SIGKILL)
            return members

    def _members(self) -> tuple[Member, ...]:
        if self.leader is None:
            return ()
        if not _has_proc():
            return _group(self.leader) if self.is_over else ()
        house = self._household
        if self.is_over and house.is_subreaper and not _adopted(house):
            return ()
        everyone = _everyone()
        return tuple(everyone[pid] for pid in self._pids(everyone) if pid in everyone)

    def _pids(self, everyone: dict[int, Member]) -> set[int]:
        house = self._household
        own = f"{house.mark}={self._number}".encode()
        mine = {
            member.pid
            for member in everyone.values()
            if member.session == self.leader
            or member.key in self._known
            or own in _environment(member.pid)
        }
        if house.is_subreaper and len(house.active) == 1:
            mine |= {m.pid for m in _adopted(house) if not _marked(m, house.mark)}
        return _with_descendants(mine - {os.getpid(), house.watchdog.pid}, everyone)


def _with_descendants(pids: set[int], everyone: dict[int, Member]) -> set[int]:
    while children := {m.pid for m in everyone.values() if m.parent in pids} - pids:
        pids |= children
    return pids


def _marked(member: Member, name: str) -> bool:
    start = f"{name}=".encode()
    return any(entry.startswith(start) for entry in _environment(member.pid))


def _send(pid: int, signum: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)


def _group(leader: int) -> tuple[Member, ...]:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):  # macOS: EPERM when only zombies are left
        return ()
    return (Member(-leader, 0, leader, leader, is_zombie=False, born=""),)


def _everyone() -> dict[int, Member]:
    """Every living process that /proc shows."""
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
    return {m.pid: m for m in map(_stat, pids) if m and not m.is_zombie}


def _stat(pid: int) -> Member | None:
    fields = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()  # proc_pid_stat(5)
    if not fields:
        return None
    parent, group, session = map(int, fields[1:4])
    is_zombie = fields[0] in (b"Z", b"X")
    return Member(pid, parent, group, session, is_zombie, fields[19].decode())


def _environment(pid: int) -> list[bytes]:
    return _read(f"/proc/{pid}/environ").split(b"\0")


def _read(path: str) -> bytes:
    try:
        with open(path, "rb", buffering=0) as file:  # noqa: PTH123 - start-up
            return file.read()
    except OSError:  # gone meanwhile, or another user's
        return b""


def _children() -> Iterator[int]:
    """Pids of our children, adopted ones included, whichever thread they belong to."""
    task = "/proc/self/task"
    lists = [_read(f"{task}/{thread}/children") for thread in os.listdir(task)]  # noqa: PTH208
    if not any(lists):  # a kernel without CONFIG_PROC_CHILDREN: we have at least the watchdog
        us = os.getpid()
        pids = (int(name) for name in os.listdir("/proc") if name.isdigit())  # noqa: PTH208
        return (m.pid for m in map(_stat, pids) if m and m.parent == us)
    return (int(pid) for children in lists for pid in children.split())


def _adopted(house: _Household) -> list[Member]:
    """Living children that we have not started; those that died are reaped on the way.

    Only at the second sight: whoever did start one has then had the time to reap it. And not while
    a command is being started, which may have ended before we know its pid.
    """
    ours = {family.leader for family in house.active.values()}
    pids = set(_children()) - ours - {house.watchdog.pid}
    session = os.getsid(0)
    found = [m for m in map(_stat, pids) if m and m.session != session]
    zombies = {m.key for m in found if m.is_zombie} - house.strangers
    for pid, _ in zombies & house.zombies if None not in ours else ():
        with suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
    house.zombies = zombies
    return [m for m in found if not m.is_zombie and m.key not in house.strangers]


def reap_adopted() -> None:
    """Reap orphans that were left to us and have died, so that they do not linger as zombies."""
    if _households and _households[0].is_subreaper and _lock.acquire(blocking=False):
        try:
            _adopted(_households[0])
        finally:
            _lock.release()


def names(members: Iterable[Member]) -> tuple[str, ...]:
    """What each is, for a person."""
    return tuple(_name(member.pid) for member in members)


def _name(pid: int) -> str:
    if pid < 0:
        return f"process group {-pid}"
    line = _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace").strip()
    return f"{line[:_SHOWN_CHARS] or 'process'} (pid {pid})"


def end_marked(name: str) -> tuple[str, ...]:
    """Kill whatever still carries the marker `name`, as `mark` gave it; what that was.

    For the survivors of an atlas that was killed together with its watchdog.
    """
    ended: dict[int, str] = {}
    if name.startswith(MARK_PREFIX) and _has_proc():
        while found := [m for m in _everyone().values() if m.pid not in ended and _marked(m, name)]:
            for member in found:
                ended[member.pid] = _name(member.pid)
                _send(member.pid, signal.SIGKILL)
    return tuple(ended.values())
