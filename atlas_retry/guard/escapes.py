"""Rule on casts and `Any` where a type checker failed."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import TypeGuard

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.fresh import Function, functions, tree_of
from atlas_retry.guard.pychecks import last
from atlas_retry.guard.words import words


def type_escapes(scene: Scene) -> Iterator[Finding]:
    """Casts and `Any` where a type checker failed: they silence it without an answer."""
    if "type" not in scene.failing:
        return
    for delta in scene.files:
        old = _escapes(delta.path, delta.before, Counter())
        new = _escapes(delta.path, delta.after, _annotated(tree_of(delta.before)))
        yield from _bared(delta)
        extra = Counter(word for word, _ in new) - Counter(word for word, _ in old)
        for word in extra:
            line = next(line for found, line in reversed(new) if found == word)
            detail = f"the type checker is silenced with `{word}` instead of an answer"
            yield Finding(path=delta.path, line=line, detail=detail)


def _bared(delta: Delta) -> Iterator[Finding]:
    """Functions whose annotations went: what is not annotated is not checked (PEP 484)."""
    old, new = tree_of(delta.before), tree_of(delta.after)
    if places.suffix(delta.path) != ".py" or old is None or new is None:
        return
    before = functions(old)
    for name, function in functions(new).items():
        if name in before and _is_annotated(before[name]) and not _is_annotated(function):
            detail = f"`{name}` lost its annotations, so nothing in it is checked"
            yield Finding(path=delta.path, line=function.lineno, detail=detail)


def _is_annotated(function: Function) -> bool:
    parts = [part.annotation for part in ast.walk(function.args) if isinstance(part, ast.arg)]
    return any(part is not None for part in (*parts, function.returns))


_TS_ESCAPE = re.compile(
    r"\bas\s+(any|unknown\s+as|never)\b|[:<,|]\s*(any)\b(?!\w)|[\w)\]](!)[.;,)\[]"
)


def _escapes(path: str, source: bytes | None, besides: Counter[str]) -> list[tuple[str, int]]:
    if source is None:
        return []
    if places.suffix(path) in (".ts", ".tsx", ".mts", ".cts"):
        text = source.decode("utf-8", "replace")
        return [
            (" ".join(m[0].strip(" :<,|.;)[").split()), text.count("\n", 0, m.start()) + 1)
            for m in _TS_ESCAPE.finditer(text)
        ]
    if places.suffix(path) not in (".py", ".pyi"):
        return []
    tree = tree_of(source)
    if tree is None:
        return []
    return sorted(_python_escapes(tree, besides), key=lambda found: found[1])


def _python_escapes(tree: ast.Module, besides: Counter[str]) -> Iterator[tuple[str, int]]:
    lost = besides - _annotated(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in _CASTS:
            if not _comes_untyped(node):
                yield "cast", node.lineno
        elif isinstance(node, ast.If) and _hides_code(node):
            yield "if TYPE_CHECKING", node.lineno
        for annotation in _annotations(node):
            if not _is_open(annotation) or _replaces(annotation, lost):
                yield from _any_in(annotation)


def _comes_untyped(cast: ast.Call) -> bool:
    """Whether a cast says what a reader of data cannot: `json.loads` gives Any (typeshed)."""
    said, value = (cast.args[0], cast.args[1]) if len(cast.args) > 1 else (cast, cast)
    return isinstance(value, ast.Call) and last(value.func) in _READERS and last(said) != "Any"


_READERS = words("load loads safe_load json getattr import_module")


def _annotations(node: ast.AST) -> Iterator[ast.expr]:
    found = None
    if isinstance(node, ast.arg | ast.AnnAssign):
        found = node.annotation
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        found = node.returns
    if found is not None:
        yield found


def _annotated(tree: ast.Module | None) -> Counter[str]:
    nodes = ast.walk(tree) if tree else ()
    return Counter(ast.unparse(found) for node in nodes for found in _annotations(node))


def _is_open(annotation: ast.expr) -> bool:
    """Whether Any stands only for what a mapping holds or a callable takes: data from outside."""
    inside = {
        id(part)
        for node in ast.walk(annotation)
        if isinstance(node, ast.Subscript) and last(node.value) in _OPEN
        for part in ast.walk(node.slice)
    }
    return all(id(part) in inside for part in ast.walk(annotation) if _is_any(part))


_OPEN = words(
    "dict Dict Mapping MutableMapping defaultdict OrderedDict Callable Coroutine Generator"
)


def _replaces(annotation: ast.expr, lost: Counter[str]) -> bool:
    """Whether something definite stood where Any stands now."""
    shape = re.escape(ast.unparse(annotation)).replace("Any", ".+")
    return any(re.fullmatch(shape, text) and "Any" not in text for text in lost)


_CASTS = ("cast", "typing.cast", "t.cast")


def _hides_code(node: ast.If) -> bool:
    """Whether the checker is shown something else than what runs; imports alone are usual."""
    only_imports = all(isinstance(part, ast.Import | ast.ImportFrom) for part in node.body)
    return "TYPE_CHECKING" in ast.unparse(node.test) and (bool(node.orelse) or not only_imports)


def _any_in(annotation: ast.expr) -> Iterator[tuple[str, int]]:
    yield from (("Any", part.lineno) for part in ast.walk(annotation) if _is_any(part))


def _is_any(node: ast.AST) -> TypeGuard[ast.Name | ast.Attribute]:
    return isinstance(node, ast.Name | ast.Attribute) and last(node) == "Any"
