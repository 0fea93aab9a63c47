"""What a test claims of an error: its kind, where it is raised and what it says. Runs nothing."""

import ast
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy

from atlas_retry.guard import pychecks
from atlas_retry.guard.pychecks import last
from atlas_retry.guard.pyinline import Inlined, Names, name_for, resolved
from atlas_retry.guard.pyvalues import UnknownValueError, value

_BROAD = frozenset({"Exception", "BaseException", "AssertionError"})
_ANY = re.compile(r"(?<!\\)\.[*+]\??")
_SPECIAL = re.compile(r"(?<!\\)(?:\\\\)*(?:[*+?\[\](){}|^$]|\\[A-Za-z0-9])")
_ERRORS = frozenset({"raises", "assertRaises", "assertRaisesRegex"})


def is_known(call: ast.Call, names: Names) -> bool:
    """Whether it is the runner's own `raises`, and none that somebody made."""
    origin = names.get(call.func.id) if isinstance(call.func, ast.Name) else None
    return origin is None or ast.unparse(origin).startswith(pychecks.RUNNERS)


def raising(call: ast.Call, body: Sequence[ast.stmt], names: Names) -> str:
    """The claim that an error is raised; a plain message is told by `messages`."""
    told = _pattern(call, names)
    pattern = _text_of(told) if told is not None and last(call.func) in _ERRORS else None
    shown = ast.unparse(told) if told is not None and not _is_plain(pattern) else ""
    kinds = [ast.unparse(part) for part in call.args[:1]]
    return f"raises {_place(kinds, body, names)} saying {shown}".strip()


def messages(call: ast.Call, body: Sequence[ast.stmt], names: Names) -> Iterator[ast.expr]:
    """What a pattern that is handed to `raises` claims of the text of the error."""
    told = _pattern(call, names)
    if told is not None and last(call.func) in _ERRORS:
        yield from of_pattern(told, error(call.args[0], body, names))


def of_pattern(told: ast.expr, raised: ast.expr) -> Iterator[ast.expr]:
    """What a pattern without choices claims of an error: the whole of its text, or parts of it."""
    pattern = _text_of(told)
    parts = _parts(pattern) if pattern is not None else None
    text = ast.Call(func=ast.Name(id="str", ctx=ast.Load()), args=[raised], keywords=[])
    if pattern is not None and parts and len(parts) == 1 and _is_closed(pattern):
        yield ast.Compare(left=text, ops=[ast.Eq()], comparators=[ast.Constant(value=parts[0])])
        return
    for part in filter(None, parts or ()):
        yield ast.Compare(left=ast.Constant(value=part), ops=[ast.In()], comparators=[text])


def bound(name: str, raised: ast.expr) -> Names:
    """The error by the names that pytest and unittest give it."""
    return {f"{name}.value": raised, f"{name}.exception": raised}


def caught(call: ast.Call, names: Names) -> ast.expr | None:
    """The error whose text `caught.match("...")` speaks of."""
    of_error = isinstance(call.func, ast.Attribute) and call.func.attr == "match" and call.args
    return names.get(f"{ast.unparse(call.func.value)}.value") if of_error else None  # type: ignore[attr-defined]


def error(kind: ast.expr, body: Sequence[ast.stmt], names: Names) -> ast.expr:
    """A name for the error that is raised in a block."""
    return name_for(f"error({_place([ast.unparse(kind)], body, names)})")


def tried(node: ast.stmt) -> tuple[ast.Call, list[ast.stmt], ast.ExceptHandler] | None:
    """`try: f() / except E: ... / else: fail()` as the `raises(E)` that it is, and its block."""
    if not isinstance(node, ast.Try) or len(node.handlers) != 1 or node.finalbody:
        return None
    handler = node.handlers[0]
    if handler.type is None:
        return None
    called = ast.Call(func=name_for("raises"), args=[handler.type], keywords=[])
    if len(node.orelse) == 1 and _fails(node.orelse[0]):
        return called, node.body, handler
    if _fails(node.body[-1]) and not pychecks.names_in(handler.type) & _BROAD:
        return called, node.body[:-1], handler
    return None


def _fails(node: ast.stmt) -> bool:
    if isinstance(node, ast.Raise):
        return node.exc is not None and "AssertionError" in ast.unparse(node.exc)
    if isinstance(node, ast.Assert):
        return isinstance(node.test, ast.Constant) and not node.test.value
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Call)
        and ast.unparse(node.value.func) in ("self.fail", "pytest.fail")
    )


def _place(kinds: Sequence[str], body: Sequence[ast.stmt], names: Names) -> str:
    inside = "; ".join(ast.unparse(Inlined(names).visit(deepcopy(part))) for part in body)
    return f"{' '.join(kinds)} in {inside}"


def _pattern(call: ast.Call, names: Names) -> ast.expr | None:
    if last(call.func).endswith("Regex") and len(call.args) > 1:
        return _escaped(resolved(call.args[1], names))
    said = (k.value for k in call.keywords if k.arg in ("match", "expected_regex"))
    found = next(said, None)
    return _escaped(resolved(found, names)) if found is not None else None


def _escaped(node: ast.expr) -> ast.expr:
    """`re.escape("a.b")` worked out, where it stands alone or in a text."""
    for part in ast.walk(node):
        for name, inner in ast.iter_fields(part):
            if isinstance(inner, ast.Call) and (text := _escape(inner)) is not None:
                setattr(part, name, text)
    return _escape(node) or node


def _escape(node: ast.expr) -> ast.Constant | None:
    if not isinstance(node, ast.Call) or ast.unparse(node.func) != "re.escape" or not node.args:
        return None
    text = _text_of(node.args[0])
    return ast.Constant(value=re.escape(text)) if text is not None else None


def _text_of(node: ast.expr) -> str | None:
    try:
        found = value(node)
    except UnknownValueError:
        return None
    return found if isinstance(found, str) else None


def _is_closed(pattern: str) -> bool:
    return pattern.startswith(("^", r"\A")) and pattern.endswith(("$", r"\Z"))


def _is_plain(pattern: str | None) -> bool:
    """Whether what a pattern asks for can be said in whole without it."""
    parts = _parts(pattern) if pattern else None
    ends = pattern is not None and (
        _is_closed(pattern) or not re.match(r"\^|\\A|.*(?<!\\)(\$|\\Z)$", pattern, re.DOTALL)
    )
    return bool(parts) and len(parts or ()) == 1 and ends


def _parts(pattern: str) -> list[str] | None:
    """The texts that a pattern asks for, one after the other; None where it leaves a choice."""
    inner = re.sub(r"^(\^|\\A)|((?<!\\)\$|\\Z)$", "", pattern)
    parts = _ANY.split(inner)
    if any(_SPECIAL.search(part) for part in parts):
        return None
    return [re.sub(r"\\(.)", r"\1", part, flags=re.DOTALL) for part in parts]
