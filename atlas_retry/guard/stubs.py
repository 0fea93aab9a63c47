"""Rules on functions that no longer do their work: stubs, empty bodies, refusals of everything."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.fresh import Function, functions, python
from atlas_retry.guard.pychecks import names_in
from atlas_retry.syntax import Scope, definitions


def stubbed(scene: Scene) -> Iterator[Finding]:
    """Functions that computed something and now only hand back a constant."""
    for delta, old, new in python(scene):
        if places.is_test(delta.path):
            continue
        before = functions(old)
        for name, function in functions(new).items():
            if name in before and _is_constant(function) and not _is_constant(before[name]):
                detail = f"`{name}` no longer computes anything"
                yield Finding(path=delta.path, line=function.lineno, detail=detail)


_EMPTY_BODY = re.compile(
    r"^(return( [\w\"'.\[\]{}-]{0,40})?;?|(todo|unimplemented)!\(.*\);?|panic\(.*\)|pass"
    r"|throw new \w*(Unsupported|NotImplemented)\w*\(.*\);?|Ok\(\(\)\)|None|true|false|\d+)?$"
)


def emptied(scene: Scene) -> Iterator[Finding]:
    """The same in other languages, by the lines between the braces; an overload has none."""
    for delta in scene.files:
        language = places.suffix(delta.path)
        if places.is_test(delta.path) or language == ".py" or not places.is_code(delta.path):
            continue
        before = _longest(delta, delta.before, delta.old_text)
        for name, (scope, new) in _longest(delta, delta.after, delta.new_text).items():
            _, old = before.get(name, (scope, []))
            if len(old) > 1 and len(new) <= 1 and _EMPTY_BODY.match("".join(new)):
                detail = f"`{scope.name}` no longer computes anything"
                yield Finding(path=delta.path, line=scope.start_line, detail=detail)


def _longest(delta: Delta, source: bytes | None, text: str) -> dict[str, tuple[Scope, list[str]]]:
    """By name the function with the longest body: a name may be declared several times."""
    found: dict[str, tuple[Scope, list[str]]] = {}
    for scope in _scopes(delta, source):
        body = _body(text, scope)
        if len(body) >= len(found.get(scope.qualified_name, (scope, []))[1]):
            found[scope.qualified_name] = (scope, body)
    return found


def _scopes(delta: Delta, source: bytes | None) -> list[Scope]:
    return [s for s in definitions(delta.path, source or b"") if s.kind == "function"]


def _body(text: str, scope: Scope) -> list[str]:
    """Lines of a function between its first and its last, without braces and comments."""
    whole = text.splitlines()[scope.def_line - 1 : scope.end_line]
    if len(whole) == 1:
        whole = ["", whole[0].partition("{")[2].rpartition("}")[0], ""]
    lines = [line.strip() for line in whole[1:-1]]
    return [line for line in lines if line and not line.startswith(("//", "*", "/*", "#"))]


def _is_constant(function: Function) -> bool:
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    if not body:
        return True
    only = body[0]
    if len(body) > 1:
        return False
    if isinstance(only, ast.Return):
        return only.value is None or not names_in(only.value) - {"Decimal", "str", "int", "float"}
    return isinstance(only, ast.Pass | ast.Raise) or (
        isinstance(only, ast.Expr) and isinstance(only.value, ast.Constant)
    )
