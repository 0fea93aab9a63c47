"""Tests inside sources and texts: Rust's test modules, examples of Python, tests of vitest.

The earlier tests are put into the new source, so that the gates run them as before.
"""

import re
from itertools import filterfalse
from typing import TYPE_CHECKING

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Ruling, Scene, answered, unpaired
from atlas_retry.guard.grown import Renames, SourceChange, renames, with_attributes
from atlas_retry.model import AnswerWord
from atlas_retry.patterns import regex
from atlas_retry.source import text_of, tokens

if TYPE_CHECKING:
    from tree_sitter import Node

_RUST_TEST = regex(r"#\[\s*(cfg\s*\(\s*(all\s*\()?\s*test\b|test\b|\w+(::\w+)*::test\b)")
_VITEST = regex(r"^if\s*\(\s*import\.meta\.vitest\s*\)")


def _held(path: str, restored: bytes | None, line: int | None = None) -> Ruling:
    """The ruling on a source's tests; `restored` has the earlier ones, None if they do not fit."""
    answer = answered(
        AnswerWord.HELD if restored is not None else AnswerWord.REVIEW,
        rule="inline-test-changed",
        path=path,
        line=line,
        detail="the tests in the source itself were changed",
    )
    return Ruling(path=path, mechanism="inline", answer=answer, rewrite=restored)


def moved(delta: Delta, scene: Scene) -> Ruling | None:
    """The change of a source's own tests; None if they only grew or there are none."""
    if not delta.is_text or delta.before is None:
        return None
    if delta.after is None:
        return _gone(delta, scene) if places.is_source(delta.path) else None
    if places.is_prose(delta.path) or places.suffix(delta.path) == ".py":
        seen = _examples(delta)
        return seen if seen and _are_run(delta.path, scene) else None
    return _marked(delta, renames(scene)) if places.is_source(delta.path) else None


def _gone(delta: Delta, scene: Scene) -> Ruling | None:
    """The tests of a deleted source; None if other files have them now."""
    left = b"\n".join(other.after or b"" for other in scene.deltas)
    items = _items(delta.path, delta.before or b"")
    is_moved = all((item.text or b"") in left for item in items)
    return None if is_moved else _held(delta.path, None)


def _marked(delta: Delta, led: Renames) -> Ruling | None:
    """The change of items marked as tests."""
    before, after = delta.before or b"", delta.after or b""
    old, new = delta.both(_items)
    lost, _ = unpaired(old, new, SourceChange(delta=delta, led=led).has_grown)
    if not lost:
        return None
    line = new[0].start_point[0] + 1 if new else None
    if len(old) != len(new):
        return _held(delta.path, None, line)
    for was, now in reversed(list(zip(old, new, strict=True))):
        first, start = with_attributes(was)[0].start_byte, with_attributes(now)[0].start_byte
        after = after[:start] + before[first : was.end_byte] + after[now.end_byte :]
    return _held(delta.path, after, line)


def _items(path: str, source: bytes) -> "list[Node]":
    """The outermost test modules and functions with their attributes, in order."""
    tree = tokens.root(path, source)
    children = tree.named_children if tree is not None else []
    if places.suffix(path) != ".rs":
        return [child for child in children if _VITEST.match(text_of(child))]
    items = (child for child in children if child.type != "attribute_item")
    marks = ((item, map(text_of, with_attributes(item)[:-1])) for item in items)
    marked = (item for item, attributes in marks if any(map(_RUST_TEST.match, attributes)))
    return [*filterfalse(tokens.is_comment, marked)]


_PROMPTED = regex(r"""(?mx)
    ^[ \t]*>>>.*\n?
    (?: (?! [ \t]*(?:$|>>>|\"{3}|'{3}|```) ).*\n? )*
    """)
"""An example of Python with its expected output."""


def _examples(delta: Delta) -> Ruling | None:
    """The change of examples that gates run, except their indentation.

    They are themselves text of the source, so no names are replaced in them.
    """

    def same(was: re.Match[str], now: re.Match[str]) -> bool:
        old, new = (list(map(str.strip, one[0].splitlines())) for one in (was, now))
        return old == new

    old, new = _PROMPTED.finditer(delta.old_text), _PROMPTED.finditer(delta.new_text)
    lost, came = unpaired(old, new, same)
    if not lost:
        return None
    if len(lost) != len(came):
        return _held(delta.path, None)
    text = delta.new_text
    for example, there in reversed(list(zip(lost, came, strict=True))):
        text = text[: there.start()] + example[0] + text[there.end() :]
    line = delta.new_text.count("\n", 0, came[0].start()) + 1
    return _held(delta.path, text.encode(), line)


def _are_run(path: str, scene: Scene) -> bool:
    """Whether gates, settings or tests mention doctests; otherwise examples are for readers."""
    files = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", "conftest.py", "noxfile.py")
    found = scene.case.mentions(["doctest"]).get("doctest", frozenset())
    is_set = "doctest" in " ".join(scene.commands) or not found.isdisjoint(files)
    return (is_set or any(map(places.is_test, found))) and not places.is_test(path)
