"""Checks the model's version of a file before it is written. Pure."""

import ast
import codecs
import io
import json
import tokenize
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.agents.anthropic.wire import FixedFile
from atlas_retry.patterns import regex
from atlas_retry.source import definitions, language_of, parse

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ENDING: Final = regex(r"\r\n|\n|\r")


class Text(Struct, frozen=True, kw_only=True):
    """A text file with its encoding."""

    text: str = ""
    """Content with the original line endings."""
    encoding: str = "utf-8"
    mark: bytes = b""

    @property
    def plain(self) -> str:
        """Content with plain newlines."""
        return _ENDING.sub("\n", self.text)

    @property
    def ending(self) -> str:
        """The most frequent line ending."""
        usual = Counter(_ENDING.findall(self.text)).most_common(1)
        return usual[0][0] if usual else "\n"


def read_text(source: bytes, *, is_python: bool) -> Text | None:
    """The text of a file; None if it is binary."""
    mark, encoding = next(((m, e) for m, e in _MARKS if source.startswith(m)), (b"", "utf-8"))
    body = source[len(mark) :]
    if not mark and b"\0" in source:
        return None
    if not mark and is_python:
        with suppress(SyntaxError):  # declared, as of PEP 263
            encoding, _ = tokenize.detect_encoding(io.BytesIO(source).readline)
    try:
        return Text(text=body.decode(encoding), encoding=encoding, mark=mark)
    except (UnicodeDecodeError, LookupError):
        if encoding != "utf-8":
            return None
        return Text(text=body.decode("latin-1"), encoding="latin-1")  # lossless


MAX_BYTES: Final = 1 << 20
FRAGMENT_SHARE: Final = 0.5
MIN_FRAGMENT_LINES: Final = 20
"""Shorter files may lose half of their lines."""

_MAY_BE_EMPTY: Final = frozenset({"__init__.py", "py.typed", ".gitkeep", ".keep"})
_DIFFS: Final = frozenset({".diff", ".patch"})
_PROSE: Final = frozenset({".md", ".markdown", ".rst", ".txt", ".adoc", ""})
_FENCED: Final = regex(r"\A\s*(```|~~~)")
_DIFF: Final = regex(r"""(?mx)
    \A\s*(?:
        diff\ --git[ ]
        | ---\ \S.*\n\+\+\+[ ]
        | @@\ -\d
        | \*\*\*\ Begin\ Patch
        | <{7}[ ]
    )
    | ^<{7}\ (?:SEARCH|HEAD)
    """)
_COMMENT: Final = r"^\s*(?:\#|//|/\*|--|<!--|;|%)"
_LEFT_OUT: Final = regex(rf"""(?imx)
    # "... rest of the file", in a comment or not
    {_COMMENT}?\s*(?:\.\.\.|…|\[)\s*\(?(?:the\ )?
        (?:rest|remaining|remainder|existing|other|previous|unchanged|same)\b[^\n]{{0,80}}$
    # a comment as "the rest stays as before"
    | {_COMMENT}\s*[(\[]?(?:the\ )?(?:rest|remainder)\b[^\n]{{0,60}}
        \b(?:unchanged|the\ same|as\ before)\b[^\n]{{0,20}}$
    """)
_REDACTED: Final = "[redacted"
_MACROS: Final = frozenset({"c", "cpp"})
"""Languages whose macros the parser does not know: a new file with errors may be valid."""


class CheckError(Exception):
    """A file that is not written; the message is for the model and the log."""


class Write(Struct, frozen=True, kw_only=True):
    """A file to write: its new content, or None to delete it."""

    path: str
    content: bytes | None


def checked(file: FixedFile, source: bytes | None) -> Write:
    """The checked change of a file with the present content `source` (None: it does not exist).

    Raises CheckError with the problem.
    """
    old: Text | None
    match file.action:
        case "delete":
            _must_be(source is not None, "does not exist, so it cannot be deleted")
            return Write(path=file.path, content=None)
        case "create":
            _must_be(source is None, "exists: the action is modify")
            old = Text()
        case "modify":
            _must_be(source is not None, "does not exist: the action is create")
            old = read_text(source or b"", is_python=file.path.endswith(".py"))
            if old is None:
                raise CheckError("is binary and cannot be changed")
        case _:
            raise CheckError(f"has the action {file.action!r}: modify, create or delete")
    new = replace(old, text=_new_text(file, old))
    try:
        content = new.mark + new.text.encode(new.encoding)
    except UnicodeEncodeError as error:
        raise CheckError(f"cannot be written as {old.encoding}: {error.reason}") from error
    _must_be(len(content) <= MAX_BYTES, "is larger than 1 MiB")
    if content != source:
        _must_be_whole(file, new.plain, old.plain)
        _must_parse(file.path, content, source)
    return Write(path=file.path, content=content)


def _must_be(condition: bool, otherwise: str) -> None:  # noqa: FBT001 - an assertion reads so
    if not condition:
        raise CheckError(otherwise)


def _new_text(file: FixedFile, old: Text) -> str:
    if not file.edits:
        if file.content is None:
            raise CheckError("has neither content nor edits")
        plain = _ENDING.sub("\n", file.content)
        if plain and (not old.text or old.plain.endswith("\n")):
            plain = plain.removesuffix("\n") + "\n"
        return plain.replace("\n", old.ending)
    _must_be(file.action == "modify", "has edits, which only modify takes")
    _must_be(file.content is None, "has both content and edits: one of them")
    text = old.text
    for number, edit in enumerate(file.edits, 1):
        before, after = (
            lines.replace("\r\n", "\n").replace("\n", old.ending) for lines in (edit.old, edit.new)
        )
        times = text.count(before) if before else 0
        _must_be(
            times == 1,
            f"edit {number}: its old text occurs {times} times in the file, not once; "
            "take the lines as the file has them, white space included, and enough of them",
        )
        text = text.replace(before, after)
    return text


def _must_be_whole(file: FixedFile, text: str, old: str) -> None:
    """Refuse a text that is no content of a file, or only a part of it."""
    place = PurePosixPath(file.path)
    is_marker = file.action == "create" and place.name in _MAY_BE_EMPTY
    _must_be(bool(text.strip()) or is_marker, "is empty; the action to remove a file is delete")
    is_fenced = _FENCED.match(text) and not _FENCED.match(old) and place.suffix not in _PROSE
    _must_be(not is_fenced, "is wrapped in a Markdown fence: send only the file content")
    is_diff = _DIFF.search(text) and not _DIFF.search(old) and place.suffix not in _DIFFS
    _must_be(not is_diff, "is a diff: the whole new content is wanted, or edits")
    marks = set(_LEFT_OUT.findall(text)) - set(_LEFT_OUT.findall(old))
    left_out = min(marks, default="").strip()
    _must_be(
        not marks, f"leaves something out ({left_out!r}): the whole content is wanted, or edits"
    )
    _must_be(
        text.count(_REDACTED) <= old.count(_REDACTED),
        f"holds {_REDACTED}...], a redacted secret: change the lines around it by edits",
    )
    # a whole file that lost half of its lines: it is cut, or only the changed part
    before, after = old.count("\n"), text.count("\n")
    is_short = before >= MIN_FRAGMENT_LINES and after < before * FRAGMENT_SHARE
    if file.edits or not is_short:
        return
    had, has = _names(file.path, old), _names(file.path, text)
    gone = len(had - has)
    if gone > len(had) / 2 or not had:
        what = f"{gone} of {len(had)} definitions are gone" if had else "most of it is gone"
        raise CheckError(
            f"is a fragment: {after} of {before} lines, {what}; "
            "the whole content is wanted, or edits"
        )


def _names(path: str, text: str) -> set[str]:
    return {scope.name for scope in definitions(path, text.encode("utf-8", "replace"))}


def _must_parse(path: str, content: bytes, source: bytes | None) -> None:
    """Refuse a file with syntax errors, unless it had as many before."""
    language = language_of(path, content)
    fault = _fault(path, content)
    if fault is None or (source is None and language in _MACROS):
        return
    if source is None or _fault(path, source) is None:
        raise CheckError(fault)
    before, after = (len(_error_lines(language, text)) for text in (source, content))
    # newer syntax than this Python's: the tolerant parser reads it
    if after > before or (language == "python" and before):
        raise CheckError(fault)


def _fault(path: str, content: bytes) -> str | None:
    language = language_of(path, content)
    loads = _LOADERS.get(PurePosixPath(path).suffix.lower())
    try:
        if language == "python":
            ast.parse(content)
        elif loads:
            loads(content.decode("utf-8-sig"))
    except SyntaxError as error:
        return f"syntax error in line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"cannot be parsed: {' '.join(str(error).split())}"
    lines = _error_lines(language, content) if language != "python" else []
    return f"syntax error in line {lines[0]} ({language})" if lines else None


def _error_lines(language: str | None, content: bytes) -> list[int]:
    """Lines, from 1, of error nodes and missing nodes."""
    tree = parse(language, content)
    waiting = [tree.root_node] if tree else []
    lines: list[int] = []
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            lines.append(node.start_point[0] + 1)
        elif node.has_error:
            waiting.extend(reversed(node.children))
    return lines


def _yaml(text: str) -> None:
    import yaml

    try:
        for _ in yaml.parse(text, Loader=yaml.SafeLoader):
            pass
    except yaml.YAMLError as error:
        raise ValueError(error) from error


_LOADERS: Final[Mapping[str, Callable[[str], object]]] = {
    ".json": json.loads,
    ".toml": tomllib.loads,
    ".yaml": _yaml,
    ".yml": _yaml,
}
