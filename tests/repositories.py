"""Repositories of every shape, made with real git and a configuration of nobody's."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from atlas_retry.workspace.discovery import Workspace, open_workspace

ENVIRON = {
    "PATH": os.environ["PATH"],
    "LANG": "C.UTF-8",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}
GIT = shutil.which("git") or "git"
ODD_NAMES = (
    b"-rf",
    b":(glob)*",
    b"a b",
    b"new\nline",
    b'quo"te\\',
    b"\xff\xfe",
    "é".encode(),
    b"git~1",
    b"tab\t",
    b" lead",
    b"trail ",
    b"x" * 255,
    b"*",
    b"[a]",
    b".hidden",
    b'"quoted"',
)


def git(at: Path, *arguments: str, stdin: bytes = b"", **environ: str) -> bytes:
    """Run git as a user who has told it no name would, but with one."""
    who = ("-c", "user.name=Ann", "-c", "user.email=ann@example.org")
    # git 2.55 maintains a repository in the background, in the way of whoever copies it
    local = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")
    quiet = ("-c", "maintenance.auto=false")
    return subprocess.run(
        (GIT, *who, *local, *quiet, *arguments),
        cwd=at,
        env={**ENVIRON, "HOME": str(at), **environ},
        input=stdin,
        capture_output=True,
        check=True,
    ).stdout


def opened(root: Path, state: Path | None = None) -> Workspace:
    """The workspace of `root`, with its state beside it."""
    environ = {**ENVIRON, "HOME": str(root.parent)}
    return open_workspace(root, state or root.parent / "state", environ=environ)


def write(root: Path, path: str | bytes, content: bytes | str = "", mode: int = 0o644) -> Path:
    file = root / os.fsdecode(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    file.chmod(mode)
    return file


def commit(root: Path, message: str = "commit") -> None:
    git(root, "add", "-A")
    git(root, "commit", "-q", "--allow-empty", "-m", message)


def repository(at: Path) -> Path:
    """One commit with two files and an executable."""
    at.mkdir(parents=True)
    git(at, "init", "-q")
    write(at, "src/a.py", "a = 1\n")
    write(at, "src/b.py", "b = 2\n")
    write(at, "run.sh", "#!/bin/sh\n", 0o755)
    commit(at)
    return at


def entries(root: Path, *, skip: str = ".git") -> dict[str, tuple[str, bytes]]:
    """Everything below `root`: mode and content of files, targets of links, folders."""
    return dict(_entries(root, "", skip))


def _entries(root: Path, prefix: str, skip: str) -> Iterator[tuple[str, tuple[str, bytes]]]:
    for entry in os.scandir(root / prefix):
        path = prefix + entry.name
        mode = f"{entry.stat(follow_symlinks=False).st_mode:o}"
        if entry.is_symlink():
            yield path, ("link", os.fsencode(Path(entry.path).readlink()))
        elif entry.is_dir():
            yield path, ("folder", b"")
            if entry.name != skip:
                yield from _entries(root, f"{path}/", skip)
        elif entry.is_file():
            yield path, (mode, Path(entry.path).read_bytes())
        else:
            yield path, (mode, b"")


def git_bytes(git_dir: Path) -> dict[str, bytes]:
    """Every file of a git directory, byte for byte.

    But for the objects, and what only speeds git up and what it throws away by itself.
    """
    return {
        str(path.relative_to(git_dir)): path.read_bytes()
        for path in sorted(git_dir.rglob("*"))
        if path.is_file()
        and "objects" not in path.relative_to(git_dir).parts
        and not path.name.startswith("sharedindex.")
    }


class Shape(Struct, frozen=True):
    """A kind of repository; `make` builds it below a folder and returns the work tree."""

    name: str
    make: Callable[[Path], Path]


def _plain(at: Path) -> Path:
    root = repository(at / "plain")
    write(root, "staged.txt", "staged\n")
    git(root, "add", "staged.txt")
    write(root, "staged.txt", "staged, then edited\n")
    write(root, "src/a.py", "a = 1  # edited\n")
    write(root, "new/untracked.txt", "untracked\n")
    return root


def _unborn(at: Path) -> Path:
    root = at / "unborn"
    root.mkdir()
    git(root, "init", "-q")
    write(root, "first.txt", "first\n")
    return root


def _empty(at: Path) -> Path:
    root = at / "empty"
    root.mkdir()
    git(root, "init", "-q")
    return root


def _detached(at: Path) -> Path:
    root = repository(at / "detached")
    commit(root, "second")
    git(root, "checkout", "-q", "--detach", "HEAD~1")
    return root


def _autocrlf(at: Path) -> Path:
    root = repository(at / "autocrlf")
    git(root, "config", "core.autocrlf", "true")
    git(root, "config", "core.safecrlf", "false")
    write(root, "dos.txt", "one\r\ntwo\r\n")
    write(root, "mixed.txt", "one\r\ntwo\nthree\r")
    write(root, ".gitattributes", "*.py text eol=crlf\n*.utf16 working-tree-encoding=UTF-16\n")
    write(root, "wide.utf16", "wide\n".encode("utf-16"))
    git(root, "add", "dos.txt")
    return root


def _filter(at: Path) -> Path:
    root = repository(at / "filter")
    git(root, "config", "filter.lfs.clean", "touch ../executed; sed s/SECRET/pointer/")
    git(root, "config", "filter.lfs.smudge", "touch ../executed; sed s/pointer/SECRET/")
    git(root, "config", "filter.lfs.required", "true")
    write(root, ".gitattributes", "*.bin filter=lfs diff=lfs merge=lfs -text ident\n")
    write(root, "big.bin", b"SECRET \0\1\2 $Id$\n")
    git(root, "add", "-A")
    (at / "executed").unlink()
    return root


def _ident_and_modes(at: Path) -> Path:
    root = repository(at / "modes")
    write(root, "private", "0600\n", 0o600)
    write(root, "grouped", "0664\n", 0o664)
    write(root, "owner-only", "#!/bin/sh\n", 0o700)
    (root / "link").symlink_to("src/a.py")
    (root / "dangling").symlink_to("nowhere")
    (root / "outside").symlink_to("/etc/hostname")
    (root / "folder-link").symlink_to("src")
    (root / "loop").symlink_to("loop")
    git(root, "add", "link", "dangling")
    return root


def _odd_names(at: Path) -> Path:
    root = repository(at / "odd names 'é\n")
    for name in ODD_NAMES:
        write(root, name, name)
        write(root, b"folder\n\xff/" + name, name[::-1])
    git(root, "add", "--", "-rf")
    return root


def _nested(at: Path) -> Path:
    root = repository(at / "nested")
    inner = repository(root / "inner")
    write(inner, ".gitignore", "secret.env\nnode_modules/\n")
    write(inner, "secret.env", "KEY=1\n")
    write(inner, "untracked.txt", "u\n")
    (root / "unborn").mkdir()
    git(root / "unborn", "init", "-q")
    write(root, "unborn/file.txt", "f\n")
    return root


def _submodule(at: Path) -> Path:
    library = repository(at / "library")
    root = repository(at / "super")
    git(root, "submodule", "--quiet", "add", str(library), "lib")
    commit(root, "add lib")
    write(root, "lib/src/a.py", "a = 'dirty'\n")
    write(root, "lib/extra.txt", "untracked in the submodule\n")
    return root


def _linked(at: Path) -> Path:
    main = repository(at / "main")
    git(main, "worktree", "add", "-q", "-b", "side", str(at / "linked"))
    write(at / "linked", "staged.txt", "s\n")
    git(at / "linked", "add", "staged.txt")
    return at / "linked"


def _stash(at: Path) -> Path:
    root = repository(at / "stash")
    for number in range(2):
        write(root, "src/a.py", f"a = {number + 10}\n")
        git(root, "stash", "push", "-q", "-m", f"stash {number}")
    git(root, "tag", "v1")
    git(root, "pack-refs", "--all")
    git(root, "branch", "loose")
    return root


def _ignored(at: Path) -> Path:
    root = repository(at / "ignored")
    write(root, ".gitignore", "*.log\n/build/\n.env\nnode_modules/\n.venv/\n")
    write(root, ".env", "KEY=value\n", 0o600)
    write(root, "build/out.txt", "built\n")
    write(root, "build/deep/er.txt", "built\n")
    write(root, "forced.log", "tracked although ignored\n")
    git(root, "add", "-f", "forced.log")
    write(root, ".git/info/exclude", "hidden.txt\n")
    write(root, "hidden.txt", "hidden\n")
    return root


def _flags(at: Path) -> Path:
    root = repository(at / "flags")
    write(root, "intended.txt", "i\n")
    git(root, "add", "--intent-to-add", "intended.txt")
    git(root, "update-index", "--assume-unchanged", "src/a.py")
    git(root, "update-index", "--skip-worktree", "src/b.py")
    write(root, "src/a.py", "a = 'unseen'\n")
    write(root, "src/b.py", "b = 'unseen'\n")
    return root


def _sparse(at: Path) -> Path:
    root = repository(at / "sparse")
    write(root, "other/c.py", "c\n")
    commit(root, "other")
    git(root, "sparse-checkout", "set", "src")
    return root


def _split_index(at: Path) -> Path:
    root = repository(at / "split")
    git(root, "update-index", "--split-index")
    write(root, "staged.txt", "s\n")
    git(root, "add", "staged.txt")
    return root


def _folders(at: Path) -> Path:
    root = repository(at / "folders")
    (root / "hollow/inner").mkdir(parents=True)
    write(root, "both/file.txt", "f\n")
    (root / "both/hollow").mkdir()
    return root


SHAPES = tuple(
    Shape(make.__name__.strip("_"), make)
    for make in (
        *(_plain, _unborn, _empty, _detached, _autocrlf, _filter, _ident_and_modes, _odd_names),
        *(_nested, _submodule, _linked, _stash, _ignored, _flags, _sparse, _split_index, _folders),
    )
)
