"""Rules on functions that no longer do their work: stubs, empty bodies, refusals of everything."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.fresh import Function, functions, python, targets_of
from atlas_retry.guard.pychecks import last, names_in
from atlas_retry.syntax import Scope, definitions


def stubbed(scene: Scene) -> Iterator[Finding]:
    """Functions that computed something and now only hand back a constant."""
    for delta, old, new in python(scene):
        if places.is_test(delta.path):
            continue
        before = functions(old)
        for name, function in functions(new).items():
            if name not in before:
                continue
            if _is_constant(function) and not _is_constant(before[name]):
                detail = f"`{name}` no longer computes anything"
                yield Finding(path=delta.path, line=function.lineno, detail=detail)
            elif _refuses_all(function, before[name]):
                detail = f"`{name}` now refuses whatever it is given"
                yield Finding(path=delta.path, line=function.lineno, detail=detail)


def _refuses_all(new: Function, old: Function) -> bool:
    """Whether a function that did something does nothing but raise; operators may be barred."""
    given = frozenset(part.arg for part in ast.walk(new.args) if isinstance(part, ast.arg))
    if not _refuses(new.body, given) or _refuses(old.body, given):
        return False
    barred = new.name.startswith("__") and new.name not in ("__init__", "__call__")
    abstract = any("abstract" in ast.unparse(d) for d in new.decorator_list)
    ended = names_in(*old.body) & {"exit", "_exit", "abort", "NoReturn"}
    gave = any(isinstance(n, _GIVES) for n in ast.walk(old))
    cut_off = any(isinstance(part, ast.Raise) for part in new.body[:-1])
    return not (barred or abstract or ended) and (gave or cut_off or not _acts(new))


def _refuses(body: list[ast.stmt], given: frozenset[str]) -> bool:
    """Whether a body comes to raise on no condition other than that it was given something."""
    for part in body:
        if isinstance(part, ast.Raise):
            return True
        if isinstance(part, ast.With | ast.AsyncWith) and _refuses(part.body, given):
            return True
        over_all = isinstance(part, ast.For | ast.AsyncFor) and _goes_over(part.iter, given)
        if over_all and _refuses(getattr(part, "body", []), given):
            return True
        if isinstance(part, ast.If) and all(_refuses(b, given) for b in (part.body, part.orelse)):
            return True
        if any(isinstance(n, _GIVES) for n in ast.walk(part)):
            return False
    return False


_GIVES = (ast.Return, ast.Yield, ast.YieldFrom)
_ALL_OF = frozenset({"items", "values", "keys", "enumerate", "sorted", "list", "reversed", "zip"})


def _goes_over(node: ast.expr, given: frozenset[str]) -> bool:
    """Whether a loop goes over all that a function was given; what is picked out is a condition."""
    calls = {last(n.func) for n in ast.walk(node) if isinstance(n, ast.Call)}
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} - calls
    plain = isinstance(node, ast.Name | ast.Attribute | ast.Call)
    return plain and calls <= _ALL_OF and bool(names) and names <= given


def _acts(function: Function) -> bool:
    """Whether anything is called for its effect, or anything but a variable assigned."""
    statements = [n for n in ast.walk(function) if isinstance(n, ast.stmt)]
    return any(
        (isinstance(n, ast.Expr) and isinstance(n.value, ast.Call | ast.Await))
        or (
            isinstance(n, ast.Assign | ast.AugAssign | ast.AnnAssign)
            and not all(isinstance(target, ast.Name) for target in targets_of(n))
        )
        for n in statements
    )


_EMPTY_BODY = re.compile(
    r"^(return( [\w\"'.\[\]{}-]{0,40})?;?|(todo|unimplemented)!\(.*\);?|panic\(.*\)|pass"
    r"|throw new \w*(Unsupported|NotImplemented)\w*\(.*\);?|Ok\(\(\)\)|None|true|false|\d+)?$"
)
_REFUSAL = re.compile(
    r"^(throw\b.*|raise\b.*|(return )?Err\(.*\)|panic!?\(.*\)|bail!\(.*\)"
    r"|return ([\w\"{}.]+, )?(errors\.New|fmt\.Errorf)\(.*\)|return ([\w\"{}.]+, )?Err[A-Z]\w*"
    r"|return Promise\.reject\(.*\));?$"
)
_LOOP = re.compile(
    r"^(for|foreach)\b(?!.*(filter|grep|select|reject|where|invalid|error)).*\{$"
    r"|^\w+(\.\w+)*\.each\b.*(do|\{)( \|.*\|)?$|^(\}|end)$"
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
            elif _did_something(old) and _refuses_at_once(new) and not _refuses_at_once(old):
                detail = f"`{scope.name}` now refuses whatever it is given"
                yield Finding(path=delta.path, line=scope.start_line, detail=detail)


def _did_something(body: list[str]) -> bool:
    """Whether a body was more than a stub, or than a function that only tells an error."""
    if not body or (len(body) == 1 and _EMPTY_BODY.match(body[0])):
        return False
    told = [line for line in body if _REFUSAL.match(line)]
    gave = [line for line in body if "return" in line and line not in told]
    return bool(gave) or body[-1] not in told


def _refuses_at_once(body: list[str]) -> bool:
    """Whether the first thing that is done, loops aside, is a refusal on no condition."""
    does = next((line for line in body if not _LOOP.match(line)), "")
    return bool(_REFUSAL.match(does))


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
