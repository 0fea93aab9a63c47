"""Guesses the classes of Python expressions, so that `x.save()` leads to one method, not to ten.

Flow is ignored: a name has the classes of all that is assigned to it. Unknown stays empty.
"""

import ast
from collections import defaultdict
from functools import lru_cache

from atlas_retry.prompt.bindings import (
    NOTHING,
    Assigned,
    Form,
    Function,
    Value,
    Values,
    binding,
    last_of,
    limited,
    parsed,
    parts,
    root_of,
)
from atlas_retry.prompt.failing import fixture
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.project import is_test_path
from atlas_retry.prompt.special import implied
from atlas_retry.source import ScopeKind

_READ_AS_VALUE = frozenset({"property", "cached_property", "lazy"})
MAX_DEPTH = 7
SURE_DEPTH = 3
"""What was inferred deeper may have been cut short and is not remembered."""


class Inference:
    """Answers from memory; reads through the graph's project only."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.module = lru_cache(maxsize=None)(self._module)
        self._nodes = lru_cache(maxsize=None)(self._index)
        self.names = lru_cache(maxsize=None)(self._assignments)
        self._attributes = lru_cache(maxsize=None)(self._attribute_assignments)
        self._returned: dict[Spot, Values] = {}
        self._known: dict[tuple[int, Spot], Values] = {}

    def _module(self, path: str) -> ast.Module | None:
        source = self.graph.project.source(path) if path.endswith(".py") else None
        try:
            return ast.parse(source) if source is not None else None
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None

    def _index(self, path: str) -> dict[tuple[int, str], ast.AST]:
        module = self.module(path)
        return {
            (node.lineno, node.name): node
            for node in (ast.walk(module) if module else ())
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        }

    def node(self, spot: Spot) -> ast.AST | None:
        return self._nodes(spot.path).get((spot.scope.def_line, spot.scope.name))

    def method(self, owner: Spot, name: str) -> list[Spot]:
        return self.graph.method(owner.path, owner.scope.qualified_name, name)

    def member(self, values: Values, name: str) -> list[Spot]:
        return [
            member
            for value in values
            if value.spot.scope.kind is ScopeKind.CLASS
            for member in self.method(value.spot, name)
            if member.scope.kind is not ScopeKind.VARIABLE
        ]

    def infer(self, expr: ast.expr, spot: Spot, depth: int = 0) -> Values:
        """The classes that an expression in a definition may have."""
        if depth > MAX_DEPTH:
            return NOTHING
        place = (id(expr), spot)
        if place not in self._known:
            self._known[place] = NOTHING
            found = self._inferred(expr, spot, depth + 1)
            self._known[place] = found
            if depth > SURE_DEPTH:
                del self._known[place]
                return found
        return self._known[place]

    def _inferred(self, expr: ast.expr, spot: Spot, deeper: int) -> Values:
        match expr:
            case ast.Name(id=name):
                found = self._named(name, spot, deeper)
            case ast.Call(func=func):
                found = self._result(func, spot, deeper)
            case ast.Attribute(value=value, attr=name):
                found = self._attribute(value, name, spot, deeper)
            case ast.Await(value=value) | ast.NamedExpr(value=value) | ast.Starred(value=value):
                found = self.infer(value, spot, deeper)
            case ast.BoolOp(values=values):
                found = limited(v for value in values for v in self.infer(value, spot, deeper))
            case ast.IfExp(body=body, orelse=other):
                found = self.infer(body, spot, deeper) | self.infer(other, spot, deeper)
            case ast.BinOp() | ast.UnaryOp() | ast.Subscript():
                found = self._operation(expr, spot, deeper)
            case _:
                found = NOTHING
        return found

    def _operation(self, expr: ast.expr, spot: Spot, depth: int) -> Values:
        found: list[Value] = []
        for operand, names in implied(expr):
            for value in self.infer(operand, spot, depth):
                for name in names[:1]:
                    for method in self.method(value.spot, name):
                        found += self.returned(method, depth)
        return limited(found)

    def _result(self, func: ast.expr, spot: Spot, depth: int) -> Values:
        if isinstance(func, ast.Name) and func.id == "super":
            return self._bases_of_owner(spot)
        found: list[Value] = []
        for value in self.infer(func, spot, depth):
            if value.form is Form.INSTANCE:
                for call in self.method(value.spot, "__call__"):
                    found += self.returned(call, depth)
            elif value.spot.scope.kind is ScopeKind.CLASS:
                found.append(Value(value.spot, Form.INSTANCE))
            else:
                found += self.returned(value.spot, depth)
        return limited(found)

    def _bases_of_owner(self, spot: Spot) -> Values:
        owner = self._owner(spot)
        bases = self.graph.bases(owner) if owner else ()
        return limited(Value(base, Form.INSTANCE) for base in bases)

    def _owner(self, spot: Spot) -> Spot | None:
        found = self.graph.named(spot.path, spot.scope.owner) if spot.scope.owner else None
        return found if found and found.scope.kind is ScopeKind.CLASS else None

    def _attribute(self, value: ast.expr, name: str, spot: Spot, depth: int) -> Values:
        found: list[Value] = []
        owners = self.infer(value, spot, depth)
        for owner in owners:
            if owner.spot.scope.kind is not ScopeKind.CLASS:
                continue
            for member in self.method(owner.spot, name):
                found += self._as_value(member, owner, depth)
            found += self._attribute_of(owner.spot, name, depth)
        if not owners:
            named = self._through(spot.path, value, name)
            found += (Value(one, Form.ITSELF) for one in named)
        return limited(found)

    def _as_value(self, member: Spot, owner: Value, depth: int) -> Values:
        if member.scope.kind is ScopeKind.VARIABLE:
            return NOTHING
        node = self.node(member)
        named = node.decorator_list if isinstance(node, Function) else ()
        if owner.form is Form.INSTANCE and any(last_of(one) in _READ_AS_VALUE for one in named):
            return self.returned(member, depth)
        return frozenset({Value(member, Form.ITSELF)})

    def _named(self, name: str, spot: Spot, depth: int) -> Values:
        node = self.node(spot)
        if isinstance(node, Function):
            if node.args.args and name == node.args.args[0].arg and name in ("self", "cls"):
                owner = self._owner(spot)
                form = Form.ITSELF if name == "cls" else Form.INSTANCE
                return frozenset({Value(owner, form)}) if owner else NOTHING
            given = self.names(spot).get(name)
            if given:
                return self._assigned(given, spot, depth)
            if is_test_path(spot.path) and name in {one.arg for one in node.args.args}:
                prepared = fixture(spot.path, name, self.graph)
                return self.returned(prepared, depth) if prepared else NOTHING
            outer = self.graph.named(spot.path, spot.scope.owner) if spot.scope.owner else None
            if outer and outer.scope.kind is ScopeKind.FUNCTION:
                return self._named(name, outer, depth)
        return self._global(name, spot.path, depth)

    def _global(self, name: str, path: str, depth: int) -> Values:
        found: list[Value] = []
        for spot in self.graph.bare(path, name):
            if spot.scope.kind is ScopeKind.VARIABLE:
                found += self._module_variable(spot, depth)
            else:
                found.append(Value(spot, Form.ITSELF))
        return limited(found)

    def _module_variable(self, spot: Spot, depth: int) -> Values:
        module = self.module(spot.path)
        if depth > MAX_DEPTH or module is None:
            return NOTHING
        found: list[Value] = []
        for statement in module.body:
            given = binding(statement).get(spot.scope.name)
            if given:
                found += self._assigned([given], spot, depth + 1)
        return limited(found)

    def _assigned(self, given: list[Assigned], spot: Spot, depth: int) -> Values:
        found: list[Value] = []
        for one in given:
            if one.is_annotation:
                found += self._annotated(one.expr, spot.path, depth)
            elif one.is_entered:
                found += self._entered(one.expr, spot, depth)
            else:
                found += self.infer(one.expr, spot, depth)
        return limited(found)

    def _entered(self, expr: ast.expr, spot: Spot, depth: int) -> Values:
        found: list[Value] = []
        for value in self.infer(expr, spot, depth):
            enters = self.method(value.spot, "__enter__")
            returned = [v for enter in enters for v in self.returned(enter, depth)]
            found += returned or [value]
        return limited(found)

    def _annotated(self, expr: ast.expr, path: str, depth: int) -> Values:
        """Instances of every class that an annotation names; containers are seen through."""
        found: list[Value] = []
        for node in ast.walk(expr):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                inner = parsed(node.value)
                found += self._annotated(inner, path, depth + 1) if inner and depth < 9 else ()  # noqa: PLR2004 - strings in strings
            elif isinstance(node, (ast.Name, ast.Attribute)):
                found += (Value(one, Form.INSTANCE) for one in self._classes_named(node, path))
        return limited(found)

    def _classes_named(self, expr: ast.Name | ast.Attribute, path: str) -> list[Spot]:
        if isinstance(expr, ast.Name):
            spots = self.graph.bare(path, expr.id)
        else:
            spots = self._through(path, expr.value, expr.attr)
        return [spot for spot in spots if spot.scope.kind is ScopeKind.CLASS]

    def _through(self, path: str, receiver: ast.expr, name: str) -> list[Spot]:
        first = root_of(receiver)
        return self.graph.through(path, first, name) if first else []

    def returned(self, spot: Spot, depth: int = 0) -> Values:
        """The classes of what a function returns or yields."""
        if spot in self._returned:
            return self._returned[spot]
        node = self.node(spot)
        if depth > MAX_DEPTH or not isinstance(node, Function):
            return NOTHING
        self._returned[spot] = NOTHING
        found: list[Value] = []
        if node.returns is not None:
            found += self._annotated(node.returns, spot.path, depth)
            if last_of(node.returns) == "Self":
                owner = self._owner(spot)
                found += [Value(owner, Form.INSTANCE)] if owner else []
        for part in parts(node) if not found else ():
            if isinstance(part, (ast.Return, ast.Yield)) and part.value is not None:
                found += self.infer(part.value, spot, depth + 1)
        self._returned[spot] = limited(found)
        return self._returned[spot]

    def _assignments(self, spot: Spot) -> dict[str, list[Assigned]]:
        node = self.node(spot)
        found: dict[str, list[Assigned]] = defaultdict(list)
        if not isinstance(node, Function):
            return found
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            if argument.annotation is not None:
                found[argument.arg].append(Assigned(argument.annotation, is_annotation=True))
        for part in ast.walk(node):
            for name, given in binding(part).items():
                found[name].append(given)
        return found

    def _attribute_of(self, owner: Spot, name: str, depth: int) -> Values:
        found: list[Value] = []
        for spot, given in self._attributes(owner).get(name, ()):
            found += self._assigned([given], spot, depth)
        if not found and depth < MAX_DEPTH:
            for base in self.graph.bases(owner):
                found += self._attribute_of(base, name, depth + 1)
        return limited(found)

    def _attribute_assignments(self, owner: Spot) -> dict[str, list[tuple[Spot, Assigned]]]:
        """`self.name = ...` in the methods of a class, and what its body assigns."""
        found: dict[str, list[tuple[Spot, Assigned]]] = defaultdict(list)
        node = self.node(owner)
        for statement in node.body if isinstance(node, ast.ClassDef) else ():
            for name, given in binding(statement).items():
                found[name].append((owner, given))
        for member in self.graph.members(owner):
            method = self.node(member)
            for part in ast.walk(method) if method else ():
                for name, given in binding(part, prefix="self.").items():
                    found[name].append((member, given))
        return found
