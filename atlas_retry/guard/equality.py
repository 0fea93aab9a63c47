"""Rules on comparisons of the code itself that are made to agree, in whole or in part."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import Function, python
from atlas_retry.guard.pychecks import last

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
