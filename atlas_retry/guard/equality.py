"""Rules on comparisons of the code itself that are made to agree, in whole or in part."""

import ast
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import Function, functions, python, tree_of
from atlas_retry.guard.pychecks import last, names_in

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
        for node in ast.walk(new):
            if not isinstance(node, ast.ClassDef):
                continue
            derived = {last(base) for base in node.bases} & _VALUES
            for part in node.body:
                if not isinstance(part, Function) or part.name not in _COMPARERS:
                    continue
                if ast.dump(part) not in before and (derived or _agrees(part)):
                    detail = f"`{node.name}.{part.name}` is made to agree"
                    yield Finding(path=delta.path, line=part.lineno, detail=detail)


def narrowed(scene: Scene) -> Iterator[Finding]:
    """Equality that looks at fewer fields than it did, though no test says that it may."""
    for delta, old, new in python(scene):
        if places.is_test(delta.path):
            continue
        there = {n.name: n for n in ast.walk(old) if isinstance(n, ast.ClassDef)}
        for node in ast.walk(new):
            if not isinstance(node, ast.ClassDef) or node.name not in there:
                continue
            gone = compared(there[node.name]) & attributes(node) - compared(node)
            if gone and compared(node) and not _is_stated(node.name, scene):
                detail = f"`{node.name}` is equal whatever its {', '.join(sorted(gone))}"
                yield Finding(path=delta.path, line=node.lineno, detail=detail)


_RECORDS = re.compile(r"dataclass|\b(attrs?|frozen|define|mutable)\b")
_RECORD_BASES = frozenset({"NamedTuple", "BaseModel", "Struct", "RootModel"})


def compared(node: ast.ClassDef) -> frozenset[str]:
    """Fields that an equality of a class looks at: its own one, or a record's over all (PEP 557).

    None for a class that is equal to nothing but itself.
    """
    own = [part for part in node.body if isinstance(part, Function) and part.name == "__eq__"]
    if own:
        return _looked_at(own[-1], node)
    said = " ".join(ast.unparse(decorator) for decorator in node.decorator_list)
    keywords = " ".join(ast.unparse(word) for word in node.keywords)
    derived = {last(base) for base in node.bases} & _RECORD_BASES
    if not (derived or _RECORDS.search(said)) or "eq=False" in said + keywords:
        return frozenset()
    return frozenset(name for name, value in _fields(node) if not _NOT_COMPARED.search(value))


_NOT_COMPARED = re.compile(r"\b(compare|eq)=False")


def _looked_at(function: Function, node: ast.ClassDef) -> frozenset[str]:
    """The attributes that an equality reads; what asks for all of them reads all of them."""
    nodes = [n for part in function.body for n in ast.walk(part)]
    found = frozenset(n.attr for n in nodes if isinstance(n, ast.Attribute))
    calls = {last(n.func) for n in nodes if isinstance(n, ast.Call)}
    everything = calls & _WHOLE or "__dict__" in found or _compares_itself(function)
    return attributes(node) if everything else _through_methods(found, node)


_WHOLE = frozenset({"astuple", "asdict", "vars", "super", "tuple", "model_dump", "_asdict"})


def _compares_itself(function: Function) -> bool:
    """Whether the object is handed on whole: `list(self) == list(other)`, `key(self)`."""
    me = function.args.args[0].arg if function.args.args else "self"
    nodes = [n for part in function.body for n in ast.walk(part)]
    reached = {id(n.value) for n in nodes if isinstance(n, ast.Attribute)}
    asked = {
        id(part)
        for n in nodes
        if isinstance(n, ast.Call) and last(n.func) in ("isinstance", "type")
        for part in ast.walk(n)
    }
    bare = [n for n in nodes if isinstance(n, ast.Name) and n.id == me]
    return any(id(n) not in reached | asked | _by_identity(nodes) for n in bare)


def _by_identity(nodes: list[ast.AST]) -> set[int]:
    """Ids of what stands beside `is`."""
    return {
        id(part)
        for n in nodes
        if isinstance(n, ast.Compare) and any(isinstance(op, ast.Is | ast.IsNot) for op in n.ops)
        for part in (n.left, *n.comparators)
    }


def _through_methods(found: frozenset[str], node: ast.ClassDef) -> frozenset[str]:
    """With what the class's own methods and properties among them read."""
    for part in node.body:
        if isinstance(part, Function) and part.name in found and part.name != "__eq__":
            found |= {n.attr for n in ast.walk(part) if isinstance(n, ast.Attribute)}
    return found


def attributes(node: ast.ClassDef) -> frozenset[str]:
    """Fields of a class: those annotated, and those that its methods assign."""
    assigned = {
        n.attr
        for n in ast.walk(node)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Store)
        and isinstance(n.value, ast.Name)
        and n.value.id == "self"
    }
    return frozenset({name for name, _ in _fields(node)} | assigned)


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """Names of annotated fields, and what is said of each."""
    for part in node.body:
        if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            said = ast.unparse(part.value) if part.value else ""
            if "ClassVar" not in ast.unparse(part.annotation):
                yield part.target.id, said


def _is_stated(name: str, scene: Scene) -> bool:
    """Whether a test that was there sets two such values side by side, and so says what counts."""
    for path in sorted(scene.old_paths):
        if places.is_test_code(path) and places.suffix(path) == ".py":
            tree = tree_of(scene.old(path))
            tests = functions(tree).items() if tree else ()
            if any(_sets_beside(test, called, name) for called, test in tests):
                return True
    return False


_ABOUT_EQUALITY = re.compile(r"(?i)(^|_)(eq|equal\w*|hash\w*|identity|unequal)(_|$)")


def _sets_beside(test: Function, called: str, name: str) -> bool:
    """Two values made on the spot and compared, or a name that speaks of equality."""
    nodes = list(ast.walk(test))
    if _ABOUT_EQUALITY.search(called.rpartition(".")[2]) and name in names_in(*test.body):
        return True
    made = {
        target.id
        for n in nodes
        if isinstance(n, ast.Assign) and _makes(n.value, name)
        for target in n.targets
        if isinstance(target, ast.Name)
    }
    return any(
        sum(_makes(part, name) or getattr(part, "id", "") in made for part in pair) > 1
        for pair in map(_set_beside, nodes)
    )


def _makes(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and last(node.func) == name


def _set_beside(node: ast.AST) -> list[ast.expr]:
    """What an expression compares, or puts where equal values become one."""
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators]
    if isinstance(node, ast.Call) and last(node.func).lower().startswith("assert"):
        return node.args[:2]
    return node.elts if isinstance(node, ast.Set) else []


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
