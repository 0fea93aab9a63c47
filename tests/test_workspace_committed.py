"""What a checkout of the changes would hold, and what it costs to know it."""

from pathlib import Path

import pytest

from atlas_retry.model import Contents
from atlas_retry.run.checked_out import as_checked_out
from atlas_retry.workspace.discovery import Workspace, open_workspace
from tests.repositories import git, write

PLAIN, EXECUTABLE, LINK = "100644", "100755", "120000"


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    root = tmp_path / "project"
    write(root, "calc.py", "a = 1\n")
    git(root, "init", "-q")
    git(root, "config", "core.fileMode", "true")
    environ = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    return open_workspace(root, tmp_path / "home", environ=environ)


def checked_out(ws: Workspace, files: dict[str, bytes]) -> Contents:
    for path, content in files.items():
        (ws.root / path).parent.mkdir(parents=True, exist_ok=True)
        (ws.root / path).write_bytes(content)
    there = {path: (PLAIN, content) for path, content in files.items()}
    return as_checked_out(ws, dict.fromkeys(there), there)


@pytest.mark.parametrize("attributes", ["", "* text=auto\n"])
def test_what_git_would_not_convert_is_as_it_is(attributes: str, ws: Workspace) -> None:
    write(ws.root, ".gitattributes", attributes)
    assert checked_out(ws, {"calc.py": b"a = 2\n", "below/a.bin": b"a\r\n\0"}) == {}


@pytest.mark.parametrize(
    ("attributes", "setting", "content", "then"),
    [
        ("* text=auto", "", b"a\r\n", b"a\n"),
        ("* text eol=crlf", "", b"a\n", b"a\r\n"),
        ("* eol=crlf", "", b"a\n", b"a\r\n"),
        ("* text", "core.eol=crlf", b"a\n", b"a\r\n"),
        ("* crlf=input", "", b"a\r\n", b"a\n"),
        ("", "core.autocrlf=true", b"a\n", b"a\r\n"),
        ("", "core.autocrlf=input", b"a\r\n", b"a\n"),
        ("* ident", "", b"$Id: mine$\n", None),
        ("* text working-tree-encoding=UTF-16", "", "a\r\n".encode("utf-16"), None),
        ("", "core.attributesFile=~/mine", b"a\n", b"a\r\n"),
    ],
)
def test_converted_content_is_that_of_a_checkout(
    ws: Workspace, attributes: str, setting: str, content: bytes, then: bytes | None
) -> None:
    write(ws.root.parent, "mine", "* eol=crlf\n")
    if attributes:
        write(ws.root, ".gitattributes", f"{attributes}\n")
    if setting:
        git(ws.root, "config", *setting.split("="))
    names = ["calc.py", "two words.txt", *(f"below/{number}.txt" for number in range(60))]
    files = checked_out(ws, dict.fromkeys(names, content))
    assert files.keys() == {*names}
    assert then is None or {*files.values()} == {(PLAIN, then)}


@pytest.mark.parametrize("attributes", ["* -text", "*.md text eol=crlf"])
def test_other_files_stay_as_they_are(ws: Workspace, attributes: str) -> None:
    write(ws.root, ".gitattributes", f"{attributes}\n")
    assert checked_out(ws, {"calc.py": b"a\r\nb\n"}) == {}


@pytest.mark.parametrize("value", ["false", "no", "OFF", "0"])
@pytest.mark.parametrize(
    ("was", "now", "then"),
    [
        (PLAIN, EXECUTABLE, PLAIN),
        (EXECUTABLE, PLAIN, EXECUTABLE),
        (None, EXECUTABLE, PLAIN),
        (LINK, EXECUTABLE, PLAIN),
    ],
)
def test_modes_that_git_does_not_record(
    ws: Workspace, value: str, was: str | None, now: str, then: str
) -> None:
    git(ws.root, "config", "core.fileMode", value)
    before = {"run": (was, b"#!") if was else None}
    assert as_checked_out(ws, before, {"run": (now, b"#!")}) == {"run": (then, b"#!")}


@pytest.mark.parametrize("name", [".GIT", ".Git", "git~1", "GIT~1", ".git.", ".git ", ".git:x"])
def test_names_that_git_refuses(ws: Workspace, name: str) -> None:
    path = f"a/{name}/flag"
    write(ws.root, path, "yes")
    git(ws.root, "update-index", "--add", path)
    assert git(ws.root, "ls-files", "a") == b""
    now = {path: (PLAIN, b"yes"), "a/git~2/flag": (PLAIN, b"yes"), "a/.gitkeep": (PLAIN, b"")}
    assert as_checked_out(ws, dict.fromkeys(now), now) == {path: None}
