"""Tests that stand in sources and texts: Rust's test modules, examples, tests of vitest.

The earlier tests are put into the new source, so that its gates run as before.
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct

from atlas_retry.guard import places, tokens
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.guard.grown import Renames, SourceChange

if TYPE_CHECKING:
    from tree_sitter import Node

_RUST_TEST = re.compile(r"#\[\s*(cfg\s*\(\s*(all\s*\()?\s*test\b|test\b|\w+(::\w+)*::test\b)")
_VITEST = re.compile(r"^if\s*\(\s*import\.meta\.vitest\s*\)")
_DOCTESTS = re.compile(r"doctest|xdoctest")


class Inline(Struct, frozen=True, kw_only=True):
    """What became of the tests in a source."""

    path: str
    restored: bytes | None
    """The new source with its earlier tests; None where they cannot be put into it."""
    line: int | None = None


def moved(delta: Delta, scene: Scene, led: Renames) -> Inline | None:
    """The change of a source's own tests, unless they only grew or there are none."""
    if not delta.is_text or delta.before is None:
        return None
    if delta.after is None:
        return _gone(delta, scene) if places.is_source(delta.path) else None
    if places.is_prose(delta.path):
        return _examples_of_prose(delta) if _runs_doctests(scene) else None
    if not places.is_source(delta.path):
        return None
    if places.suffix(delta.path) == ".py":
        return _doctests(delta) if _runs_doctests(scene) else None
    return _marked(delta, led)


def _gone(delta: Delta, scene: Scene) -> Inline | None:
    """The tests of a source that was deleted, unless other files have them now."""
    left = b"\n".join(other.after or b"" for other in scene.deltas)
    items = _items(delta.path, delta.before or b"")
    is_moved = all((item.text or b"") in left for item in items)
    return None if is_moved else Inline(path=delta.path, restored=None)


def _marked(delta: Delta, led: Renames) -> Inline | None:
    """The change of items that are marked as tests, and of the examples of Rust."""
    documented = _fenced_examples(delta, led) if places.suffix(delta.path) == ".rs" else None
    after = documented.restored if documented else delta.after
    if after is None:
        return documented
    old, new = _items(delta.path, delta.before or b""), _items(delta.path, after)
    if not old or _all_grew(delta, led, old, new):
        return documented
    line = new[0].start_point[0] + 1 if new else None
    return Inline(path=delta.path, restored=_spliced(after, old, new), line=line)


def _items(path: str, source: bytes) -> "list[Node]":
    """Test modules and functions, each with its attributes: outermost ones, in order."""
    tree = tokens.root(path, source)
    if tree is None:
        return []
    if places.suffix(path) == ".rs":
        return list(_rust_items(tree))
    return [child for child in tree.named_children if _VITEST.match(tokens.text_of(child))]


def _rust_items(tree: "Node") -> "Iterator[Node]":
    marked = False
    for child in tree.named_children:
        if child.type == "attribute_item":
            marked = marked or bool(_RUST_TEST.match(tokens.text_of(child)))
        elif not tokens.is_comment(child):
            if marked:
                yield child
            marked = False


def _all_grew(delta: Delta, led: Renames, old: "list[Node]", new: "list[Node]") -> bool:
    file = SourceChange(delta=delta, led=led)
    rest = list(new)
    for item in old:
        kept = next((other for other in rest if file.grows(item, other)), None)
        if kept is None:
            return False
        rest.remove(kept)
    return True


def _spliced(after: bytes, old: "list[Node]", new: "list[Node]") -> bytes | None:
    """The new source with the old items in the places of the new ones."""
    if len(old) != len(new):
        return None
    for was, now in reversed(list(zip(old, new, strict=True))):
        after = after[: now.start_byte] + (was.text or b"") + after[now.end_byte :]
    return after


_FENCE = re.compile(r"^\s*//[/!]\s*```")
_DOC = re.compile(r"^\s*//[/!]")


def _fenced(lines: Sequence[str]) -> list[tuple[int, int]]:
    """First line and end of each example in the comments of Rust, fences included."""
    examples: list[tuple[int, int]] = []
    start = None
    for number, line in enumerate(lines):
        if start is not None and (_FENCE.match(line) or not _DOC.match(line)):
            examples.append((start, number + 1))
            start = None
        elif _FENCE.match(line):
            start = number
    return examples


def _fenced_examples(delta: Delta, led: Renames) -> Inline | None:
    """The change of examples that `cargo test` runs, but for names that the source gave up."""
    file = SourceChange(delta=delta, led=led)
    was = delta.old_text.splitlines(keepends=True)
    lines = delta.new_text.splitlines(keepends=True)
    old, new = _fenced(was), _fenced(lines)
    texts = ["".join(lines[start:end]) for start, end in new]
    if all(any(file.same_names("".join(was[a:b]), text) for text in texts) for a, b in old):
        return None
    if len(old) != len(new):
        return Inline(path=delta.path, restored=None)
    for (start, end), (a, b) in reversed(list(zip(new, old, strict=True))):
        lines[start:end] = was[a:b]
    return Inline(path=delta.path, restored="".join(lines).encode(), line=new[0][0] + 1)


def _examples_of_prose(delta: Delta) -> Inline | None:
    """The change of examples in a text for people; it is restored whole."""
    import doctest  # start-up: it imports unittest and pdb

    parser = doctest.DocTestParser()
    try:
        old, new = (
            Counter((e.source, e.want) for e in parser.get_examples(text))
            for text in (delta.old_text, delta.new_text)
        )
    except ValueError:
        return Inline(path=delta.path, restored=delta.before)
    return Inline(path=delta.path, restored=delta.before) if old - new else None


def _runs_doctests(scene: Scene) -> bool:
    """Whether gates or settings speak of doctests: else examples are for readers."""
    files = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", "conftest.py", "noxfile.py")
    texts = (*scene.commands, *(scene.old_text(path) for path in files if path in scene.old_paths))
    return any(_DOCTESTS.search(text) for text in texts)


def _doctests(delta: Delta) -> Inline | None:
    old, new = _examples(delta.before), _examples(delta.after)
    if old is None or new is None:
        return None
    lost = Counter(chain.from_iterable(old.values())) - Counter(chain.from_iterable(new.values()))
    return Inline(path=delta.path, restored=_with_docstrings(delta, set(lost))) if lost else None


_Example = tuple[str, str]


def _examples(source: bytes | None) -> dict[str, tuple[_Example, ...]] | None:
    """Source and expected output of each example, by the name of what it documents."""
    import doctest

    try:
        tree = ast.parse(source or b"")
        parser = doctest.DocTestParser()
        return {
            name: tuple(
                (e.source, e.want) for e in parser.get_examples(ast.get_docstring(node) or "")
            )
            for name, node in _documented(tree)
        }
    except (SyntaxError, ValueError, RecursionError):
        return None


_Documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def _documented(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, "_Documented"]]:
    if isinstance(tree, ast.Module):
        yield "", tree
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}.{node.name}"
            yield name, node
            yield from _documented(node, name)


def _with_docstrings(delta: Delta, lost: set[_Example]) -> bytes | None:
    """The new source with the docstrings that held the lost examples as they were."""
    old, new = ast.parse(delta.before or b""), dict(_documented(ast.parse(delta.after or b"")))
    lines = delta.new_text.splitlines(keepends=True)
    was = delta.old_text.splitlines(keepends=True)
    examples = _examples(delta.before) or {}
    changes = []
    for name, node in _documented(old):
        if not lost.intersection(examples.get(name, ())):
            continue
        there = new.get(name)
        if there is None or ast.get_docstring(there) is None:
            return None
        changes.append((_lines_of(there), _lines_of(node)))
    for (start, end), (old_start, old_end) in sorted(changes, reverse=True):
        lines[start:end] = was[old_start:old_end]
    return "".join(lines).encode()


def _lines_of(node: "_Documented") -> tuple[int, int]:
    """First and last line of its docstring, as a slice."""
    first = node.body[0]
    return first.lineno - 1, first.end_lineno or first.lineno
