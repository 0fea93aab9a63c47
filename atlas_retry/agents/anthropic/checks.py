"""Whether what the model says of a file can be written as it is. Pure; writes nothing."""

import ast
import json
import re
import tomllib
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from atlas_retry.agents.anthropic.texts import NEW, Text, read_text, written
from atlas_retry.agents.anthropic.wire import Edit, FixedFile
from atlas_retry.source import definitions, language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_BYTES: Final = 1 << 20
FRAGMENT_SHARE: Final = 0.5
MIN_FRAGMENT_LINES: Final = 20
"""A shorter file may well lose half of its lines."""

_MAY_BE_EMPTY: Final = frozenset({"__init__.py", "py.typed", ".gitkeep", ".keep"})
_DIFFS: Final = frozenset({".diff", ".patch"})
_PROSE: Final = frozenset({".md", ".markdown", ".rst", ".txt", ".adoc", ""})
_FENCED: Final = re.compile(r"\A\s*(```|~~~)")
_DIFF: Final = re.compile(
    r"""
    \A\s*(?:
        diff\ --git[ ]
        | ---\ \S.*\n\+\+\+[ ]
        | @@\ -\d
        | \*\*\*\ Begin\ Patch
        | <{7}[ ]
    )
    | ^<{7}\ (?:SEARCH|HEAD)
    """,
    re.MULTILINE | re.VERBOSE,
)
_COMMENT: Final = r"^\s*(?:\#|//|/\*|--|<!--|;|%)"
_LEFT_OUT: Final = re.compile(
    rf"""
    # "... rest of the file", in a comment or not
    {_COMMENT}?\s*(?:\.\.\.|…|\[)\s*\(?(?:the\ )?
        (?:rest|remaining|remainder|existing|other|previous|unchanged|same)\b[^\n]{{0,80}}$
    # a comment as "the rest stays as before"
    | {_COMMENT}\s*[(\[]?(?:the\ )?(?:rest|remainder)\b[^\n]{{0,60}}
        \b(?:unchanged|the\ same|as\ before)\b[^\n]{{0,20}}$
    """,
    re.MULTILINE | re.IGNORECASE | re.VERBOSE,
)
_REDACTED: Final = "[redacted"
_MACROS: Final = frozenset({"c", "cpp"})
"""Languages whose macros no parser understands: a new file with errors may be right."""


class CheckError(Exception):
    """Why a file is not written; the message is for the model and the log."""


class Write(Struct, frozen=True, kw_only=True):
    """What is to be done to one path: new content, or None for its end."""

    path: str
    content: bytes | None


def checked(file: FixedFile, source: bytes | None) -> Write:
    """What to write for a file whose present content is `source` (None: it is not there).

    Raises CheckError saying what is wrong with it.
    """
    match file.action:
        case "delete":
            _must_be(source is not None, "does not exist, so it cannot be deleted")
            return Write(path=file.path, content=None)
        case "create":
            _must_be(source is None, "exists: the action is modify")
            old = NEW
        case "modify":
            _must_be(source is not None, "does not exist: the action is create")
            old = _old_text(file.path, source or b"")
        case _:
            raise CheckError(f"has the action {file.action!r}: modify, create or delete")
    text = _new_text(file, old)
    try:
        content = written(text, old)
    except UnicodeEncodeError as error:
        raise CheckError(f"cannot be written as {old.encoding}: {error.reason}") from error
    _must_be(len(content) <= MAX_BYTES, "is larger than 1 MiB")
    if content != source:
        for check in _CHECKS:
            check(file, text, old)
        _parses(file.path, content, source)
    return Write(path=file.path, content=content)


def _must_be(condition: bool, otherwise: str) -> None:  # noqa: FBT001 - an assertion reads so
    if not condition:
        raise CheckError(otherwise)


def _old_text(path: str, source: bytes) -> Text:
    old = read_text(source, is_python=path.endswith(".py"))
    if old is None:
        raise CheckError("is binary and cannot be changed")
    return old


def _new_text(file: FixedFile, old: Text) -> str:
    if file.edits:
        _must_be(file.action == "modify", "has edits, which only modify takes")
        _must_be(file.content is None, "has both content and edits: one of them")
        return _edited(old.text, file.edits)
    if file.content is None:
        raise CheckError("has neither content nor edits")
    return file.content.replace("\r\n", "\n").replace("\r", "\n")


def _edited(text: str, edits: tuple[Edit, ...]) -> str:
    for number, edit in enumerate(edits, 1):
        old, new = (part.replace("\r\n", "\n") for part in (edit.old, edit.new))
        times = text.count(old) if old else 0
        if times != 1:
            raise CheckError(
                f"edit {number}: its old text stands {times} times in the file, not once; "
                "take the lines as the file has them, white space included, and enough of them"
            )
        text = text.replace(old, new)
    return text


def _not_empty(file: FixedFile, text: str, _: Text) -> None:
    may = file.action == "create" and PurePosixPath(file.path).name in _MAY_BE_EMPTY
    _must_be(bool(text.strip()) or may, "is empty; the action to remove a file is delete")


def _no_markup(file: FixedFile, text: str, old: Text) -> None:
    suffix = PurePosixPath(file.path).suffix
    if suffix not in _PROSE:
        fenced = _FENCED.match(text) and not _FENCED.match(old.text)
        _must_be(not fenced, "stands in a Markdown fence: the file itself is wanted")
    if suffix not in _DIFFS:
        is_diff = _DIFF.search(text) and not _DIFF.search(old.text)
        _must_be(not is_diff, "is a diff: the whole new content is wanted, or edits")


def _nothing_left_out(_: FixedFile, text: str, old: Text) -> None:
    marks = set(_LEFT_OUT.findall(text)) - set(_LEFT_OUT.findall(old.text))
    if marks:
        shown = min(marks).strip()
        raise CheckError(f"leaves something out ({shown!r}): the whole content is wanted, or edits")
    more = text.count(_REDACTED) > old.text.count(_REDACTED)
    _must_be(not more, f"holds {_REDACTED}...], which stands for a secret: use edits around it")


def _not_a_fragment(file: FixedFile, text: str, old: Text) -> None:
    """A file given whole that lost half of itself was cut, or only its changed part was given."""
    if file.edits or len(old.lines) < MIN_FRAGMENT_LINES:
        return
    lines = text.split("\n")
    share = len(lines) / len(old.lines)
    had, has = _names(file.path, old.text), _names(file.path, text)
    gone = len(had - has)
    if share < FRAGMENT_SHARE and (gone > len(had) / 2 or not had):
        what = f"{gone} of {len(had)} definitions are gone" if had else "most of it is gone"
        raise CheckError(
            f"is a fragment: {len(lines)} of {len(old.lines)} lines, {what}; "
            "the whole content is wanted, or edits"
        )


def _names(path: str, text: str) -> set[str]:
    return {scope.name for scope in definitions(path, text.encode("utf-8", "replace"))}


_CHECKS: Final[tuple[Callable[[FixedFile, str, Text], None], ...]] = (
    _not_empty,
    _no_markup,
    _nothing_left_out,
    _not_a_fragment,
)


def _parses(path: str, content: bytes, source: bytes | None) -> None:
    """It must parse, unless what was there did not either for a reason that is not the file's."""
    reader = _READERS.get(PurePosixPath(path).suffix.lower())
    if reader and (fault := reader(content)):
        was_fine = source is None or reader(source) is None
        if was_fine:
            raise CheckError(fault)
    language = language_of(path, content)
    if language == "python":
        _parses_as_python(content, source)
    elif language:
        _parses_as(language, content, source)


def _python_fault(content: bytes) -> str | None:
    try:
        ast.parse(content)
    except SyntaxError as error:
        return f"syntax error in line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"cannot be parsed: {error}"
    return None


def _parses_as_python(content: bytes, source: bytes | None) -> None:
    """Python newer than our own: the tolerant parser decides, where the old file needs it too."""
    fault = _python_fault(content)
    if fault is None:
        return
    is_newer = source is not None and _python_fault(source) and _errors("python", source) == 0
    if not is_newer or _errors("python", content):
        raise CheckError(fault)


def _parses_as(language: str, content: bytes, source: bytes | None) -> None:
    if source is None and language in _MACROS:
        return
    errors = _errors(language, content)
    if errors > (_errors(language, source) if source is not None else 0):
        tree = parse(language, content)
        line = next(_error_lines(tree.root_node), 1) if tree else 1
        raise CheckError(f"syntax error in line {line} ({language})")


def _errors(language: str, content: bytes) -> int:
    tree = parse(language, content)
    return sum(1 for _ in _error_lines(tree.root_node)) if tree else 0


def _error_lines(root: "Node") -> Iterator[int]:
    """Lines of the nodes that are errors or missing, from 1."""
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.is_error or node.is_missing:
            yield node.start_point[0] + 1
        elif node.has_error:
            waiting.extend(reversed(node.children))


def _json_fault(content: bytes) -> str | None:
    try:
        json.loads(content.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return f"is no JSON: {error}"
    return None


def _toml_fault(content: bytes) -> str | None:
    try:
        tomllib.loads(content.decode().replace("\r\n", "\n"))
    except (ValueError, RecursionError) as error:
        return f"is no TOML: {error}"
    return None


def _yaml_fault(content: bytes) -> str | None:
    import yaml

    try:
        for _ in yaml.parse(content, Loader=yaml.SafeLoader):
            pass
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return f"is no YAML: {' '.join(str(error).split())}"
    return None


_READERS: Final = {
    ".json": _json_fault,
    ".toml": _toml_fault,
    ".yaml": _yaml_fault,
    ".yml": _yaml_fault,
}
