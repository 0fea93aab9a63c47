"""Rules on sources that satisfy a check without doing what it is about."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.fresh import Function, fresh, functions, python
from atlas_retry.guard.pychecks import last, names_in
from atlas_retry.syntax import Scope, definitions


def swallowed(scene: Scene) -> Iterator[Finding]:
    """Every error caught and forgotten in the code itself."""
    for delta, old, new in python(scene):
        if places.is_test(delta.path):
            continue
        for node in fresh(old, new):
            if isinstance(node, ast.ExceptHandler) and _is_broad(node) and not _speaks(node):
                detail = "every error is caught and forgotten"
                yield Finding(path=delta.path, line=node.lineno, detail=detail)
            elif isinstance(node, ast.Call) and _suppresses_all(node):
                detail = "every error is suppressed"
                yield Finding(path=delta.path, line=node.lineno, detail=detail)
    for delta in scene.files:
        if places.suffix(delta.path) in (
            ".js",
            ".ts",
            ".tsx",
            ".jsx",
            ".java",
            ".mjs",
        ) and not places.is_test(delta.path):
            fresh_catches = len(_EMPTY_CATCH.findall(delta.new_text)) - len(
                _EMPTY_CATCH.findall(delta.old_text)
            )
            if fresh_catches > 0:
                yield Finding(path=delta.path, line=1, detail="every error is caught and forgotten")


def _suppresses_all(node: ast.Call) -> bool:
    return last(node.func) == "suppress" and bool(names_in(*node.args) & _EVERYTHING)


_EVERYTHING = frozenset({"Exception", "BaseException"})
_EMPTY_CATCH = re.compile(r"catch\s*(\([^)]*\))?\s*\{\s*(//[^\n]*\s*|return[^;]*;?\s*)?\}")


def _is_broad(handler: ast.ExceptHandler) -> bool:
    return handler.type is None or bool(names_in(handler.type) & {"Exception", "BaseException"})


def _speaks(handler: ast.ExceptHandler) -> bool:
    """Whether the handler raises, or uses what it caught."""
    for part in (part for stmt in handler.body for part in ast.walk(stmt)):
        if isinstance(part, ast.Raise) or (isinstance(part, ast.Name) and part.id == handler.name):
            return True
        if isinstance(part, ast.Call) and "log" in ast.unparse(part.func).lower():
            return True
    return False


_DISCARDED = re.compile(r"^(_\s*=|_,\s*_\s*=|_\s*,\s*err\s*:?=)\s*(?P<call>[\w.]+\(.*\))$")


def discarded(scene: Scene) -> Iterator[Finding]:
    """Go's results assigned to nothing, where a linter asked for the error to be handled."""
    if scene.tests_may_follow and scene.failing:
        return
    for delta in scene.files:
        if places.suffix(delta.path) != ".go":
            continue
        old = {line.strip() for line in delta.old_text.splitlines()}
        for number, line in enumerate(delta.new_text.splitlines(), 1):
            found = _DISCARDED.match(line.strip())
            if found and line.strip() not in old and found["call"] in old:
                detail = f"the error is assigned to nothing: `{line.strip()}`"
                yield Finding(path=delta.path, line=number, detail=detail)


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


_AGREEING = re.compile(
    r"fn (eq|partial_cmp)\([^)]*\)\s*->\s*\w+\s*\{\s*true\s*\}"
    r"|boolean equals\([^)]*\)\s*\{\s*return true;|int compareTo\([^)]*\)\s*\{\s*return 0;"
    r"|\b(equals|isEqual)\([^)]*\)[^{};]*\{\s*return true;?\s*\}|func \([^)]*\) (Equal"
    r"|Is)\([^)]*\) bool \{\s*return true\s*\}"
)


def agreeing(scene: Scene) -> Iterator[Finding]:
    """Equality that always holds, in other languages."""
    for delta in scene.files:
        for found in _AGREEING.finditer(delta.new_text) if places.is_code(delta.path) else ():
            if found[0] not in delta.old_text:
                line = delta.new_text.count("\n", 0, found.start()) + 1
                yield Finding(path=delta.path, line=line, detail="equality is made to agree")


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


_COMPARERS = frozenset({"__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__"})
_VALUES = frozenset(
    {"str", "int", "float", "Decimal", "list", "dict", "tuple", "set", "bytes", "date"}
)


def always_equal(scene: Scene) -> Iterator[Finding]:
    """Comparison operators that agree with everything, so that assertions hold by themselves."""
    for delta, old, new in python(scene):
        before = {ast.dump(node) for node in ast.walk(old) if isinstance(node, Function)}
        there = {n.name for n in ast.walk(old) if isinstance(n, ast.ClassDef) and _is_data(n)}
        for node in ast.walk(new):
            if not isinstance(node, ast.ClassDef):
                continue
            derived = {last(base) for base in node.bases} & _VALUES
            for part in node.body:
                if not isinstance(part, Function) or part.name not in _COMPARERS:
                    continue
                known = frozenset(_fields(node)) if node.name in there else frozenset()
                lax = part.name == "__eq__" and _leaves_out(part, known)
                if ast.dump(part) not in before and (derived or lax or _agrees(part)):
                    detail = f"`{node.name}.{part.name}` is made to agree"
                    yield Finding(path=delta.path, line=part.lineno, detail=detail)


def _is_data(node: ast.ClassDef) -> bool:
    """Whether the class compares by all of its fields of itself (PEP 557)."""
    said = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
    own = any(isinstance(part, Function) and part.name == "__eq__" for part in node.body)
    return "dataclass" in said and "eq=False" not in said and not own


def _fields(node: ast.ClassDef) -> Iterator[str]:
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            yield part.target.id


def _leaves_out(function: Function, fields: frozenset[str]) -> bool:
    """Whether an equality of its own looks at some of the fields that counted, and not at all."""
    looked = frozenset(n.attr for n in ast.walk(function) if isinstance(n, ast.Attribute)) & fields
    return bool(looked) and looked < fields


def _agrees(function: Function) -> bool:
    returns = [n.value for n in ast.walk(function) if isinstance(n, ast.Return)]
    constant = [r for r in returns if isinstance(r, ast.Constant) and r.value is True]
    compares = any(isinstance(n, ast.Compare | ast.Call) for n in ast.walk(function))
    if function.name == "__eq__" and returns and not _looks_at_itself(function):
        return True
    return bool(constant) and (len(constant) == len(returns) or not compares)


def _looks_at_itself(function: Function) -> bool:
    """Whether a comparison uses the object that it is asked about, beyond its type."""
    me = function.args.args[0].arg if function.args.args else "self"
    asked = {
        id(part)
        for node in ast.walk(function)
        if isinstance(node, ast.Call) and last(node.func) in ("isinstance", "type")
        for part in ast.walk(node)
    }
    return any(
        isinstance(node, ast.Name) and node.id in (me, "super") and id(node) not in asked
        for node in ast.walk(ast.Module(body=function.body, type_ignores=[]))
    )


def features_removed(scene: Scene) -> Iterator[Finding]:
    """Public functions and refusals dropped where style, types or coverage failed."""
    if scene.failing & {"test", "build", "custom"} and "coverage" not in scene.failing:
        return
    if not scene.failing:
        return
    there = {
        scope.name
        for delta in scene.files
        if not places.is_test(delta.path)
        for scope in definitions(delta.path, delta.after or b"")
    }
    for delta in scene.files:
        if places.is_test(delta.path) or not places.is_code(delta.path):
            continue
        for scope in definitions(delta.path, delta.before or b""):
            public = not scope.name.startswith("_") and scope.kind in ("function", "class")
            if public and scope.name not in there and not _may_go(scope.name, delta, scene):
                yield Finding(
                    path=delta.path, line=1, detail=f"`{scope.name}` was removed, not mended"
                )
        yield from _refusals_removed(delta, scene)


def _may_go(name: str, delta: Delta, scene: Scene) -> bool:
    """Whether only the name went, or nothing spoke of it and a linter finds unused code."""
    count = sum(1 for _ in definitions(delta.path, delta.after or b""))
    if count >= sum(1 for _ in definitions(delta.path, delta.before or b"")):
        return True
    return "coverage" not in scene.failing and not _is_spoken_of(name, delta, scene)


def _is_spoken_of(name: str, delta: Delta, scene: Scene) -> bool:
    """Whether a function was used, tested or told of anywhere but in its definition."""
    word = re.compile(rf"\b{re.escape(name)}\b".encode())
    others = (path for path in sorted(scene.old_paths) if path != delta.path)
    own = len(word.findall(delta.before or b""))
    return own > 1 or any(word.search(scene.old(path) or b"") for path in others)


def _refusals_removed(delta: Delta, scene: Scene) -> Iterator[Finding]:
    if places.suffix(delta.path) != ".py":
        return
    after = "\n".join(d.new_text for d in scene.files)
    for message in re.findall(r"raise \w+\(\s*f?[\"']([^\"'{]+)", delta.old_text):
        if message not in after:
            yield Finding(path=delta.path, line=1, detail=f"the refusal “{message}” was removed")
