"""The processes of a command: its group, its session and all descendants, detached ones included.

On Linux they are found by a marker in their environment, by their session, by their parents, and
by becoming our children, as we are their subreaper. Without /proc (macOS) only the group is known.
Children that the caller starts in our own session are never touched; one that is started elsewhere
in its own session, while a command runs and without this package, would be taken for an orphan.
"""

import os
import signal
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TypeVar

from atlas_retry.process import proc
from atlas_retry.process.proc import Member
from atlas_retry.process.watchdog import Watchdog

MARK_PREFIX = "ATLAS_MARK_"
_LOOKS = 30
"""Maximum looks at processes until none has come meanwhile."""
_SET_CHILD_SUBREAPER = 36
"""Option PR_SET_CHILD_SUBREAPER of prctl(2)."""


class _OurProcesses:
    """All commands of this process that have not ended. Guarded by `_lock`."""

    def __init__(self) -> None:
        for number in range(3):  # open closed standard files: no pipe or log gets their numbers
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)
        self.active: dict[int, ProcessTree] = {}
        self.count = 0
        self.outer = {k: v for k, v in os.environ.items() if k.startswith(MARK_PREFIX)}
        self.mark = MARK_PREFIX + os.urandom(8).hex()
        self.foreign: set[tuple[int, str]] = set()
        """Children that we must neither end nor reap: the caller's own."""
        self.kept: set[tuple[int, str]] = set()
        """Daemons of commands that keep them: never ended, but reaped once they are dead."""
        self.zombies: set[tuple[int, str]] = set()
        """Dead children of unknown origin, as of the last look."""
        self.watchdog = Watchdog(self.mark)
        self.is_subreaper = False
        """Whether orphans get us as their parent instead of init."""
        if proc.is_there():
            from _ctypes import call_function, dlopen, dlsym  # start-up: ctypes is fifty classes

            with suppress(OSError):
                ours = dlopen(None, 0)  # type: ignore[arg-type]  # None: this program, as dlopen(3)
                asked = _SET_CHILD_SUBREAPER, 1, 0, 0, 0
                self.is_subreaper = call_function(dlsym(ours, "prctl"), asked) == 0

    def adopted(self) -> list[Member]:
        """Living children that we did not start; reaps the dead ones.

        A dead one of unknown origin is reaped only when seen twice, so that the code that started
        it has time to reap it; and not while a command is being started, which may end before we
        know its pid.
        """
        children = _until_steady(lambda: [*filter(None, map(proc.member, proc.children()))])
        orphans = self.orphans(children)
        self._reap([member for member in orphans if member.is_zombie])
        living = [member for member in orphans if not member.is_zombie]
        return [member for member in living if member.key not in self.kept]

    def orphans(self, children: Iterable[Member]) -> list[Member]:
        """Those of our children that no command of ours is, in a session other than ours."""
        ours = self._leaders | {self.watchdog.pid}
        here = os.getsid(0)
        others = [child for child in children if child.pid not in ours]
        elsewhere = [child for child in others if child.session != here]
        return [child for child in elsewhere if child.key not in self.foreign]

    def unmarked(self, members: Iterable[Member]) -> set[int]:
        """Pids of adopted orphans without our marker: any command may have left them."""
        us, start = os.getpid(), f"{self.mark}=".encode()
        orphans = self.orphans(member for member in members if member.parent == us)
        left = [orphan.pid for orphan in orphans if orphan.key not in self.kept]
        return {pid for pid in left if not proc.carries(pid, start)}

    @property
    def _leaders(self) -> set[int | None]:
        return {tree.leader for tree in self.active.values()}

    def _reap(self, dead: list[Member]) -> None:
        ours = self._leaders
        seen, self.zombies = self.zombies, {member.key for member in dead}
        old = set() if None in ours else seen
        for member in dead:
            if member.session in ours or member.key in old | self.kept:
                self.kept.discard(member.key)
                with suppress(ChildProcessError):
                    os.waitpid(member.pid, os.WNOHANG)

    def disown(self) -> None:
        """Mark new children as the caller's own, dead or alive; called while nothing runs."""
        seen = self.zombies
        living = {child.key for child in self.adopted()}
        self.foreign |= living | (self.zombies - seen)


Seen = TypeVar("Seen")


def _until_steady(look: Callable[[], Seen]) -> Seen:
    """What is seen in a look during which no child has come to us.

    A process that ends during a look leaves us its own children, which the look may have missed.
    """
    before, seen = proc.children(), look()
    for _ in range(_LOOKS):
        now = proc.children()
        if now <= before:
            break
        before, seen = now, look()
    return seen


_lock = threading.RLock()
_ours: list[_OurProcesses] = []


def _our_processes() -> _OurProcesses:
    with _lock:
        if not _ours:
            _ours.append(_OurProcesses())
        return _ours[0]


def prepare() -> None:
    """Prepare to start commands; call it before opening any files for them."""
    _our_processes()


def mark() -> str:
    """Name of the environment variable that marks everything this process starts."""
    return _our_processes().mark


def note_end(file: str) -> None:
    """If this process is killed, make this file as soon as all that it started has ended."""
    if proc.is_there():
        _our_processes().watchdog.note_end(file)


def running() -> "tuple[ProcessTree, ...]":
    """The running commands. Safe in a signal handler."""
    if not _ours:
        return ()
    return tuple(tree for tree in tuple(_ours[0].active.values()) if tree.leader)


class ProcessTree:
    """A command and its descendants, from before it starts until the last one is gone."""

    def __init__(self, halt_signal: signal.Signals) -> None:
        self.halt_signal = halt_signal
        self.leader: int | None = None
        """Pid of the command, which leads its group and session."""
        self.is_over = False
        """Whether the leader has been reaped; its descendants may still live."""
        self.cpu_s = 0.0
        """CPU seconds of the leader and of the children it waited for, once it is reaped."""
        self._known: set[tuple[int, str]] = set()
        self._asked: set[tuple[int, str]] = set()
        self._killed: set[tuple[int, str]] = set()
        self._ours = ours = _our_processes()
        with _lock:
            if not ours.active and ours.is_subreaper:
                ours.disown()
            ours.count += 1
            self._number = ours.count
            ours.active[self._number] = self

    @property
    def markers(self) -> dict[str, str]:
        """Environment variables: our marker, and those of every atlas that we run under."""
        return self._ours.outer | {self._ours.mark: f"{self._number}."}

    def begin(self, leader: int) -> None:
        """The command has been started with this pid."""
        self.leader = leader
        self._ours.watchdog.guard(leader)

    def signal_group(self, signum: int) -> None:
        """Send a signal to all processes in the command's group."""
        if self.leader:
            _send(-self.leader, signum)

    def reap(self) -> tuple[bool, int | None]:
        """Whether the leader has ended, and its wait status (None: another process took it)."""
        if self.leader is None:
            return True, None
        with _lock:
            try:
                pid, status, usage = os.wait4(self.leader, os.WNOHANG)
            except ChildProcessError:
                self.is_over = True
                return True, None
            self.is_over, self.cpu_s = bool(pid), usage.ru_utime + usage.ru_stime
            return self.is_over, status

    def remaining(self) -> tuple[Member, ...]:
        """The processes still alive. If none, and the leader is reaped, the tree is forgotten."""
        with _lock:
            members = self._members()
            if not members and self.is_over:
                self._forget()
            return members

    def leave(self, *, keep: bool) -> None:
        """Stop tracking these processes; with `keep`, no other tree ends them either."""
        with _lock:
            if keep:
                self._ours.kept |= {m.key for m in self._members()}
            self._forget()

    def _forget(self) -> None:
        if self._ours.active.pop(self._number, None) and self.leader:
            self._ours.watchdog.forget(self.leader)

    def terminate(self) -> None:
        """Send TERM to the group while the leader lives, then to the others; once to each."""
        with _lock:
            members = {member.key: member for member in self._members()}
            self._known |= members.keys()
            if self.is_over:
                for pid, _ in (key for key in members if key not in self._asked):
                    _send(pid, signal.SIGTERM)
                self._asked |= members.keys()
            elif self.leader and not self._asked:
                self._asked = {k for k, m in members.items() if m.group == self.leader}
                self._asked.add((self.leader, ""))
                self.signal_group(signal.SIGTERM)
                self.signal_group(signal.SIGCONT)

    def kill(self) -> bool:
        """Send KILL to all; returns whether there was a process not killed before."""
        with _lock:
            members = self._members()
            if self.leader and not self.is_over:
                _send(-self.leader, signal.SIGKILL)
            for member in members:
                _send(member.pid, signal.SIGKILL)
            keys = {member.key for member in members}
            has_new = not keys <= self._killed
            self._killed |= keys
            return has_new

    def _members(self) -> tuple[Member, ...]:
        ours = self._ours
        if self.leader is None:
            return ()
        if not proc.is_there():
            return _group(self.leader) if self.is_over else ()
        if self.is_over and ours.is_subreaper and not ours.adopted():
            return ()
        everyone = _until_steady(proc.everyone)
        pids = self._pids(everyone)
        return proc.parents_first(everyone[pid] for pid in pids if pid in everyone)

    def _pids(self, everyone: dict[int, Member]) -> set[int]:
        ours = self._ours
        near = set(everyone)
        if ours.is_subreaper:
            near &= proc.with_descendants({os.getpid()}, everyone)
        mine = {pid for pid in near if self._owns(everyone[pid])}
        if ours.is_subreaper and len(ours.active) == 1:
            mine |= ours.unmarked(everyone.values())
        kin = proc.with_descendants(mine, everyone)
        return {pid for pid in kin if pid not in (os.getpid(), ours.watchdog.pid)}

    def _owns(self, member: Member) -> bool:
        if member.session == self.leader or member.key in self._known:
            return True
        # the dot, as number 10 starts like number 1
        return proc.carries(member.pid, f"{self._ours.mark}={self._number}.".encode())


def _send(pid: int, signum: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signum)


def _group(leader: int) -> tuple[Member, ...]:
    try:
        os.killpg(leader, 0)
    except (ProcessLookupError, PermissionError):  # macOS: EPERM when only zombies are left
        return ()
    return (Member(-leader, 0, leader, leader, is_zombie=False, born=""),)


def reap_adopted() -> None:
    """Reap dead orphans that became our children, so that no zombies stay."""
    if _ours and _ours[0].is_subreaper and _lock.acquire(blocking=False):
        try:
            _ours[0].adopted()
        finally:
            _lock.release()


def end_marked(name: str) -> tuple[str, ...]:
    """Kill all processes with the marker `name`, a result of `mark`; returns their names.

    For survivors of an atlas that was killed together with its watchdog.
    """
    if not (name.startswith(MARK_PREFIX) and proc.is_there()):
        return ()
    ended: dict[int, str | None] = {}
    while marked := _marked(name, {*ended, os.getpid()}):
        ended |= {member.pid: proc.name(member) for member in marked}
        for member in marked:
            _send(member.pid, signal.SIGKILL)
    return tuple(filter(None, ended.values()))


def _marked(name: str, but: set[int]) -> list[Member]:
    everyone = proc.parents_first(proc.everyone().values())
    others = [member for member in everyone if member.pid not in but]
    return [member for member in others if proc.carries(member.pid, f"{name}=".encode())]
