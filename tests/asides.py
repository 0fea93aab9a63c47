"""What the tests of `aside` share: one table of cases for every way and user, and a small disk.

A case is checked in a process of its own that gives up root after its imports, so that an ordinary
user needs no Python of their own; it is a fork, see `tests.commands`.
"""

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct, field

from atlas_retry.model import Contents
from atlas_retry.process import Command, Completed, Ended, run
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.gitfacts import git_facts
from atlas_retry.workspace.isolation import overlay
from atlas_retry.workspace.isolation.isolated import beside
from tests.processes import shell
from tests.repositories import commit, entries, git, opened, repository, write

NOBODY = 65534
NO_CHANGES: Contents = {}


class Case(Struct, frozen=True, kw_only=True):
    """A line that runs aside; `sees` is all that it prints."""

    line: str
    sees: str = ""
    changes: Contents = field(default_factory=dict)
    overwrote: tuple[str, ...] = ()
    exit_code: int | None = 0
    make: Callable[[Path], object] = lambda _: None
    """Adds to the repository before."""
    timeout_s: float | None = None


class Aside(Struct, frozen=True, kw_only=True):
    """A command that ran beside the workspace."""

    completed: Completed
    overwritten: tuple[str, ...]
    reason: str


def aside(ws: Workspace, command: Command, changes: Contents, *, in_place: bool = False) -> Aside:
    """Run one command with the changes in the workspace."""
    with beside(ws, changes, in_place=in_place) as there:
        completed = run(there.wrap(command))
        overwritten = there.overwritten()
        return Aside(completed=completed, overwritten=overwritten, reason=there.reason)


def _dependencies(root: Path) -> None:
    write(root, ".gitignore", "/deps/\n*.log\n")
    write(root, "deps/tool", "#!/bin/sh\necho tool\n", 0o755)
    write(root, "old.log", "old\n")


def _deep(root: Path) -> None:
    for name in "xyz":
        write(root, f"deep/er/{name}", "d\n")


def _links(root: Path) -> None:
    (root / "to-a").symlink_to("src/a.py")
    (root / "to-src").symlink_to("src")


def _closed(root: Path) -> None:
    write(root, "closed/x", "x\n")
    (root / "closed").chmod(0o500)


def _nested(root: Path) -> None:
    inner = repository(root / "inner")
    write(inner, "untracked", "u\n")


def _many(root: Path) -> None:
    for number in range(20_000):
        if number % 200 == 0:
            (root / f"many/{number // 200}").mkdir(parents=True)
        (root / f"many/{number // 200}/{number}.txt").write_text(f"{number}\n")
    git(root, "config", "gc.auto", "0")  # it would go on beside the test
    commit(root)


LARGE = "20,000 files"
CASES: dict[str, Case] = {
    "nothing": Case(line="cat src/a.py; pwd -P | sed 's#.*/##'", sees="a = 1\nrepo\n"),
    "an edit": Case(
        changes={"src/a.py": ("100644", b"a = 3\n")},
        line="cat src/a.py; echo 4 >src/a.py; echo 5 >src/b.py",
        sees="a = 3\n",
        overwrote=("src/b.py",),
    ),
    "an edit that is the same in the end": Case(
        changes={"src/a.py": ("100644", b"a = 3\n")},
        line="echo x >src/a.py; echo 'a = 3' >src/a.py; touch src/b.py",
    ),
    "a deletion": Case(
        make=_deep,
        changes=dict.fromkeys(("src/a.py", "run.sh", "not/there", "deep/er/x", "deep/er/y")),
        line="ls . src deep/er; rm src/b.py",
        sees=".:\ndeep\nsrc\n\ndeep/er:\nz\n\nsrc:\nb.py\n",
        overwrote=("src/b.py",),
    ),
    "a folder's last file": Case(
        changes={"src/a.py": None, "src/b.py": None}, line="ls", sees="run.sh\n"
    ),
    "what was deleted is written again": Case(
        changes={"src/a.py": None}, line="echo new >src/a.py"
    ),
    "a new file": Case(
        changes={"deep/er/new.py": ("100644", b"n\n"), "go": ("100755", b"#!/bin/sh\necho go\n")},
        line="cat deep/er/new.py; ./go; mkdir -p x/y; echo z >x/y/z; rm go",
        sees="n\ngo\n",
    ),
    "a file for a folder and a folder for a file": Case(
        changes={
            "src": ("100644", b"file\n"),
            "src/a.py": None,
            "src/b.py": None,
            "run.sh/inside": ("100644", b"i\n"),
            "run.sh": None,
        },
        line="cat src run.sh/inside",
        sees="file\ni\n",
    ),
    "a folder that is made anew": Case(
        line="rm -r src; mkdir src; echo n >src/n; rm run.sh; mkdir run.sh; echo m >run.sh/m",
        overwrote=("run.sh", "src/a.py", "src/b.py"),
    ),
    "modes": Case(
        changes={"run.sh": ("100644", b"#!/bin/sh\n")},
        line="test -x run.sh || echo plain; chmod +x src/a.py",
        sees="plain\n",
        overwrote=("src/a.py",),
    ),
    "links": Case(
        make=_links,
        changes={"to-a": ("120000", b"src/b.py"), "to-src/a.py": ("100644", b"beside\n")},
        line="cat to-a to-src/a.py src/a.py; ln -s nowhere hanging; ln -sf x to-a",
        sees="b = 2\nbeside\na = 1\n",
    ),
    "ignored files": Case(
        make=_dependencies,
        changes={"old.log": None, "more.log": ("100644", b"more\n")},
        line="deps/tool; ls *.log; echo n >new.log",
        sees="tool\nmore.log\n",
    ),
    "a closed folder": Case(
        make=_closed,
        line="stat -c %a closed; cat closed/x",
        sees="500\nx\n",
    ),
    "a nested repository": Case(
        make=_nested,
        changes={"inner/src/a.py": ("100644", b"changed\n"), "inner/untracked": None},
        line="cd inner; cat src/a.py; git status --porcelain; echo x >src/b.py",
        sees="changed\n M src/a.py\n",
        overwrote=("inner/src/b.py",),
    ),
    "git": Case(
        line="git add -A && git -c user.name=n -c user.email=e commit -qm x --allow-empty; "
        "git log --oneline | wc -l | tr -d ' '",
        sees="2\n",
    ),
    "odd names": Case(
        changes={"a b\n\udcff": ("100644", b"odd\n"), "-rf": ("100644", b"rf\n")},
        line="cat ./a*; rm ./-rf",
        sees="odd\n",
    ),
    "a failing command": Case(
        line="echo half >src/a.py; exit 3", overwrote=("src/a.py",), exit_code=3
    ),
    "a killed command": Case(
        line="echo half >src/a.py; kill -9 $$", overwrote=("src/a.py",), exit_code=137
    ),
    "a command out of time": Case(
        line="echo half >src/a.py; sleep 100",
        overwrote=("src/a.py",),
        exit_code=None,
        timeout_s=1.0,
    ),
    LARGE: Case(
        make=_many,
        changes={f"many/{n // 200}/{n}.txt": ("100644", b"changed\n") for n in range(0, 20_000, 2)},
        line="grep -rl changed many | wc -l | tr -d ' '; rm -r many/99",
        sees="10000\n",
        overwrote=tuple(f"many/99/{n}.txt" for n in range(19_801, 20_000, 2)),
    ),
}


def check(uid: str, name: str, way: str, folder: str) -> None:
    """Assert that a case comes out as its row says and leaves the workspace as it was."""
    become(int(uid))
    case = CASES[name]
    root = repository(Path(folder) / "repo")
    case.make(root)
    ws = opened(root)
    before, before_git = entries(root), git_facts(root, environ=ws.environ)
    command = shell(case.line, cwd=root, env=ws.environ, timeout_s=case.timeout_s)
    done = aside(ws, command, case.changes, in_place=way == "in place")
    assert bool(done.reason) == (way == "in place"), done.reason
    assert done.completed.stdout.text.encode("utf-8", "surrogateescape") == case.sees.encode()
    assert _exit_code(done.completed) == case.exit_code, done.completed
    assert done.overwritten == case.overwrote
    assert entries(root) == before
    assert git_facts(root, environ=ws.environ) == before_git
    assert not [*ws.home.glob("atlas-aside-*"), *ws.home.glob("aside.note")]


def _exit_code(completed: Completed) -> int | None:
    """As a shell would say it: bubblewrap tells of a signal in the same way."""
    code = completed.exit_code
    return 128 - code if completed.ended is Ended.SIGNALLED and code else code


def become(uid: int) -> None:
    """Be an ordinary user from now on."""
    if uid != os.geteuid():
        import resource  # noqa: F401 - `os.wait4` does; root's Python may be closed to them
        import shutil  # noqa: F401 - same
        import tempfile  # noqa: F401 - same

        os.setgroups([])
        os.setgid(uid)
        os.setuid(uid)


def print_why_not(uid: str, folder: str) -> None:
    """Print why this user can mount no overlay over a workspace; nothing if they can."""
    become(int(uid))
    layers = overlay.prepare(opened(repository(Path(folder) / "repo")), {})
    if isinstance(layers, str):
        print(layers)  # noqa: T201 - the answer
    else:
        overlay.remove_layers(layers.folder)


_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWUSER, _PRIVATE_REC = 0x00020000, 0x10000000, 0x44000


def small_disk(folder: Path, size_bytes: int) -> None:
    """Mount a disk of this size, for this process and its children only."""
    uid, gid = os.geteuid(), os.getegid()
    _must(_LIBC.unshare(_NEWNS if uid == 0 else _NEWNS | _NEWUSER))
    if uid:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    _must(_LIBC.mount(b"none", b"/", None, _PRIVATE_REC, None))
    _must(_LIBC.mount(b"tmpfs", os.fsencode(folder), b"tmpfs", 0, f"size={size_bytes}".encode()))
    folder.chmod(0o777)


def _must(result: int) -> None:
    if result:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def check_full(uid: str, folder: str) -> None:
    """Assert that a command whose upper layer is full fails, and that nothing else happens."""
    state = Path(folder) / "state"
    state.mkdir()
    small_disk(state, 1 << 20)
    become(int(uid))
    root = repository(Path(folder) / "repo")
    ws = opened(root, state)
    before = entries(root)
    command = shell("head -c 5000000 /dev/zero >big", cwd=root, env=ws.environ)
    done = aside(ws, command, {"src/a.py": ("100644", b"a = 3\n")})
    assert not done.reason
    assert done.completed.exit_code == 1
    assert "No space left on device" in done.completed.stderr.text
    assert entries(root) == before
    assert not [*ws.home.glob("atlas-aside-*")]
