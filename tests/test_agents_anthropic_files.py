"""What the Messages API agent writes, and what it refuses to write."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from atlas_retry.agents.anthropic.checks import CheckError, Write, checked
from atlas_retry.agents.anthropic.faults import TurnEndedError, stopped
from atlas_retry.agents.anthropic.looks import fault_of_name, is_secret, source_of, write_all
from atlas_retry.agents.anthropic.talk import Fixing, Talk
from atlas_retry.agents.anthropic.wire import Call, Edit, FixedFile
from atlas_retry.model import ReplyStatus
from tests.messages_server import Answer, Block
from tests.test_agents_anthropic import CALC, FIXED, bench, files_of

LONG = "".join(f"def f{n}():\n    return {n}\n\n\n" for n in range(20))


def modified(content: str, path: str = "calc.py") -> FixedFile:
    return FixedFile(path=path, action="modify", content=content)


@pytest.mark.parametrize(
    ("file", "old", "fault"),
    [
        (modified(""), CALC, "is empty"),
        (modified(" \n"), CALC, "is empty"),
        (modified("def f(:\n"), CALC, "syntax error in line 1"),
        (modified(FIXED[:-2]), CALC, "syntax error in line 2"),
        (modified("```python\n" + FIXED + "```\n"), CALC, "Markdown fence"),
        (modified("--- a/calc.py\n+++ b/calc.py\n@@ -1 +1 @@\n-a\n+b\n"), CALC, "is a diff"),
        (modified("diff --git a/c b/c\n"), CALC, "is a diff"),
        (modified("<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\n"), CALC, "is a diff"),
        (
            modified("def add(a, b):\n    return a + b\n\n# ... rest of the file unchanged\n"),
            LONG,
            "leaves something out",
        ),
        (modified(LONG + "# The rest stays as before.\n"), LONG, "leaves something out"),
        (modified("def f3():\n    return 4\n"), LONG, "is a fragment: 2 of 80 lines, 19 of 20"),
        (modified("a line\n", "notes.txt"), "line\n" * 50, "is a fragment"),
        (modified("key = '[redacted:key]'\n"), "key = 'abc'\n", "a redacted secret"),
        (modified("x = '\ud800'\n"), CALC, "cannot be written as utf-8"),
        (modified("x = '\0'\n"), CALC, "cannot be parsed|null bytes"),
        (modified("x = 1\n" * 200_000), CALC, "larger than 1 MiB"),
        (modified("x = 1\n"), None, "does not exist: the action is create"),
        (FixedFile(path="a.py", action="delete"), None, "cannot be deleted"),
        (FixedFile(path="a.py", action="create", content="x = 1\n"), CALC, "exists"),
        (
            FixedFile(path="a.py", action="rename", content="x = 1\n"),
            CALC,
            "has the action 'rename'",
        ),
        (FixedFile(path="a.py", action="modify"), CALC, "neither content nor edits"),
        (
            FixedFile(path="a.py", action="create", edits=(Edit("a", "b"),)),
            None,
            "only modify takes",
        ),
        (modified('{"a": 1,}\n', "a.json"), '{"a": 1}\n', "cannot be parsed"),
        (modified("a = [\n", "a.toml"), "a = 1\n", "cannot be parsed"),
        (modified("a: [\n", "a.yaml"), "a: 1\n", "cannot be parsed"),
        (modified("function f( {\n", "a.js"), "function f() {}\n", "syntax error in line"),
        (modified("func f() {\n", "a.go"), "package a\nfunc f() {}\n", "syntax error in line"),
        (modified("fn f() {\n", "a.rs"), "fn f() {}\n", "syntax error in line"),
        (modified("class A { void f( }\n", "A.java"), "class A {}\n", "syntax error in line"),
        (modified("int f( {\n", "a.c"), "int f() {}\n", "syntax error in line"),
    ],
)
def test_an_invalid_file_is_refused(file: FixedFile, old: str | None, fault: str) -> None:
    source = None if old is None else old.encode("utf-8", "surrogatepass")
    with pytest.raises(CheckError, match=fault):
        checked(file, source)


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.py", b"x = 1\r\ny = 2\r\n", b"x = 1\r\ny = 3\r\n"),
        ("a.py", b"\xef\xbb\xbfx = 1\ny = 2\n", b"\xef\xbb\xbfx = 1\ny = 3\n"),
        (
            "a.py",
            b"# coding: latin-1\nx = '\xe9'\ny = 2\n",
            b"# coding: latin-1\nx = '\xe9'\ny = 3\n",
        ),
        ("a.txt", b"caf\xe9\ny = 2\n", b"caf\xe9\ny = 3\n"),
        ("a.txt", "é\ny = 2\n".encode("utf-16"), "é\ny = 3\n".encode("utf-16")),
        ("a.py", b"x = 1\ny = 2", b"x = 1\ny = 3"),
        ("a.py", b"x = 1\ry = 2\r", b"x = 1\ry = 3\r"),
    ],
    ids=["crlf", "bom", "cookie", "latin-1", "utf-16", "no last newline", "cr"],
)
@pytest.mark.parametrize("by_edit", [True, False])
def test_encoding_and_line_endings_are_preserved(
    path: str, old: bytes, new: bytes, by_edit: bool
) -> None:
    text = checked(FixedFile(path=path, action="modify", edits=(Edit("y", "y"),)), old)
    assert text.content == old
    if by_edit:
        file = FixedFile(path=path, action="modify", edits=(Edit("y = 2", "y = 3"),))
    else:
        coding = "utf-16" if path == "a.txt" and b"\xff\xfe" in new[:2] else "latin-1"
        coding = "utf-8-sig" if new.startswith(b"\xef") else coding
        whole = new.decode(coding).replace("\r\n", "\n").replace("\r", "\n")
        file = modified(whole, path)
    assert checked(file, old).content == new


def test_an_edit_preserves_mixed_line_endings() -> None:
    file = FixedFile(path="a.py", action="modify", edits=(Edit("y = 2", "y = 3"),))
    written = checked(file, b"x = 1\r\nz = 1\ny = 2\n")
    assert written.content == b"x = 1\r\nz = 1\ny = 3\n"


def test_text_outside_the_files_encoding_is_refused() -> None:
    file = FixedFile(path="a.txt", action="modify", edits=(Edit("old", "…"),))
    with pytest.raises(CheckError, match="cannot be written as latin-1"):
        checked(file, b"caf\xe9 old\n")


@pytest.mark.parametrize(
    ("path", "old", "new"),
    [
        ("a.py", "match x:\n    case [*]: pass\n", "match x:\n    case [*]: pass  # worse\n"),
        ("a.c", "FOO(int, {)\nint a;\n", "FOO(int, {)\nint b;\n"),
        ("a.json", "// a comment\n{}\n", '// a comment\n{"a": 1}\n'),
    ],
)
def test_a_file_that_was_broken_before_may_stay_broken_unless_python(
    path: str, old: str, new: str
) -> None:
    if path == "a.py":
        with pytest.raises(CheckError, match="syntax error"):
            checked(modified(new, path), old.encode())
    else:
        assert checked(modified(new, path), old.encode()).content == new.encode()


@pytest.mark.parametrize("edits", [(("x", "y"),), (("nothing", "y"),), (("", "y"),)])
def test_the_old_text_of_an_edit_must_be_unique(edits: tuple[tuple[str, str], ...]) -> None:
    file = FixedFile(path="a.txt", action="modify", edits=tuple(Edit(*pair) for pair in edits))
    with pytest.raises(CheckError, match="edit 1: its old text occurs"):
        checked(file, b"x and x\n")


@pytest.mark.parametrize(
    "path",
    ["", "/etc/passwd", "../a", "a/../../b", "a//b", "./a", "a/", "~/a", "C:\\a", "a\\b", "a\0b",
     ".git/config", "sub/.GIT/hooks/x", ".git. /x", "git~1/x", "a\nb"],
)  # fmt: skip
def test_a_path_outside_the_project_is_refused(path: str) -> None:
    assert fault_of_name(path)


@pytest.mark.parametrize("path", ["a.py", "src/é.py", ".github/workflows/ci.yml", ".gitignore"])
def test_a_path_inside_the_project_is_accepted(path: str) -> None:
    assert fault_of_name(path) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [(".env", True), ("a/.env.local", True), (".env.example", False), ("id_rsa", True),
     ("deploy/key.pem", True), ("src/tokens.py", False), (".aws/credentials", True)],
)  # fmt: skip
def test_secret_files_are_recognised_by_name(path: str, expected: bool) -> None:
    assert is_secret(path) is expected


def test_files_behind_links_are_refused(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "a.py").write_text("x = 1\n")
    (root / "folder").symlink_to(outside)
    (root / "a.py").symlink_to(outside / "a.py")
    (root / "file").write_text("")
    for path in ("folder/a.py", "a.py", "file/a.py"):
        with pytest.raises(CheckError, match="link"):
            source_of(root, path)


def test_modes_are_preserved_and_new_files_follow_the_umask(tmp_path: Path) -> None:
    script = tmp_path / "run.sh"
    script.write_text("a\n")
    script.chmod(0o750)
    write_all(tmp_path, [Write(path="run.sh", content=b"b\n"), Write(path="n.py", content=b"")])
    mask = os.umask(0)
    os.umask(mask)
    assert script.stat().st_mode & 0o777 == 0o750
    assert (tmp_path / "n.py").stat().st_mode & 0o777 == 0o666 & ~mask


# --- answers that nobody would give -------------------------------------------------------------

PATHS = st.sampled_from(
    ["calc.py", "new.py", "pkg/new.py", "../out.py", "/abs/out.py", "link/out.py", ".git/config",
     "calc.py/x", "a/../../out.py", "", "\0", "x" * 5_000, "calc.py ", "./calc.py", ".env", "pkg"]
)  # fmt: skip
CONTENTS = st.one_of(
    st.sampled_from([CALC, FIXED, "", "def f(:\n", "```\nx\n```", "\ud800", "x" * 100_000, "\0"]),
    st.text(max_size=200),
)
ODD = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=10,
)
EDITS = st.lists(
    st.fixed_dictionaries({"old": st.sampled_from(["a - b", "", "zz"]), "new": CONTENTS}),
    max_size=3,
)
FILES = st.fixed_dictionaries(
    {"path": PATHS | ODD, "action": st.sampled_from(["modify", "create", "delete", "chmod"]) | ODD},
    optional={"content": CONTENTS | ODD, "edits": EDITS | ODD, "mode": ODD},
)
ANSWERS = st.fixed_dictionaries(
    {"success": st.just(value=True) | ODD, "diagnosis": st.text(max_size=30) | ODD},
    optional={"files": st.lists(FILES, max_size=5) | ODD},
)


@st.composite
def arguments(draw: st.DrawFn) -> bytes:
    """What a call of the answer may hold: mostly JSON, often cut, wrong, deep or no JSON at all."""
    whole = json.dumps(draw(ANSWERS | ODD)).encode()
    match draw(st.sampled_from(["whole", "whole", "cut", "deep", "bytes", "twice"])):
        case "cut":
            return whole[: draw(st.integers(0, len(whole)))]
        case "deep":
            return b'{"success":' + b"[" * draw(st.integers(1, 100_000))
        case "bytes":
            return draw(st.binary(max_size=100))
        case "twice":
            return whole + whole
        case _:
            return whole


class Script:
    """Stands where the conversation is, and answers from a list."""

    def __init__(self, calls: list[bytes]) -> None:
        self._calls: Iterator[bytes] = iter(calls)

    def answered(self, tool: str, _in_text: object = None) -> Call:
        answer = next(self._calls, None)
        if answer is None:
            raise stopped("no more")
        return Call(id="1", name=tool, arguments=answer)

    def refuse(self, why: str) -> None:
        assert why


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=st.lists(arguments(), min_size=1, max_size=4))
def test_no_answer_crashes_or_writes_an_unchecked_file(tmp_path: Path, calls: list[bytes]) -> None:
    root = tmp_path / f"r{len(list(tmp_path.iterdir()))}"
    (root / "pkg").mkdir(parents=True)
    (root / "calc.py").write_text(CALC)
    (root / "link").symlink_to(tmp_path)

    def check(file: FixedFile) -> Write:
        if fault := fault_of_name(file.path):
            raise CheckError(fault)
        return checked(file, source_of(root, file.path))

    fixing = Fixing(talk=cast("Talk", Script(calls)), check=check, emit=lambda _: None)
    try:
        fix = fixing.fix()
    except TurnEndedError:
        assert files_of(root) == {"calc.py": CALC.encode()}
    else:
        try:
            write_all(root, fix.writes)
        except OSError:  # a name that no file system takes
            assert files_of(root) == {"calc.py": CALC.encode()}
        else:
            for write in fix.writes:
                left = root / write.path
                assert (left.read_bytes() if left.is_file() else None) == write.content
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == set()
    assert (root / "link").is_symlink()


@pytest.mark.parametrize(
    "raw",
    [
        '{"success": true, "diagnosis": "x", "files": [{"path": "calc.py", "action": "delete"}',
        '{"success": true, "diagnosis": "x", "files": ' + "[" * 50_000,
        "",
        "null",
        '"text"',
        "{}" * 3,
        "\ud800",
    ],
)
def test_a_malformed_answer_fails_only_the_attempt(tmp_path: Path, raw: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "calc.py").write_text(CALC)
    bad = Answer(blocks=(Block(tool="submit_fix", raw=raw),))
    with bench(root, bad, bad, bad) as b:
        reply = b.ask()
        assert reply.status is ReplyStatus.FAILED
        assert [line[:20] for line in b.log] == [f"[RETRY {n}] Validation" for n in (1, 2, 3)]
        sent = b.server.requests[1].messages[1]["content"]
        assert isinstance(sent, list)
        assert isinstance(sent[0]["input"], dict)
    assert files_of(root) == {"calc.py": CALC.encode()}
