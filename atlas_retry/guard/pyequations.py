"""What a claim comes to with what other claims say put in it. Runs nothing."""

import ast
from collections.abc import Callable
from copy import deepcopy

from atlas_retry.guard.pychecks import last
from atlas_retry.guard.pyclocks import pinned
from atlas_retry.guard.pyfacts import Fact
from atlas_retry.guard.pyinline import TooMuchError, is_each, of_each, resolved
from atlas_retry.guard.pynear import is_near
from atlas_retry.guard.pyspelling import members_of
from atlas_retry.guard.pyvalues import UnknownValueError, value

Facts = frozenset[Fact]
_SAME = (ast.Eq, ast.Is)


class Known(ast.NodeTransformer):
    """Puts for an expression what it is claimed to be equal to, largest expressions first."""

    def __init__(self, facts: Facts, fields: Callable[[str], tuple[str, ...]]) -> None:
        said = [fact.said for fact in facts if fact.said is not None]
        told = (claim for whole in said for claim in members_of(whole))
        self.facts = facts | {Fact(text=ast.unparse(claim), said=claim) for claim in told}
        self.equations = equations(self.facts)
        self.fields = fields

    def proves(self, fact: Fact) -> bool:
        """Whether a fact is there, or comes out true with what the others claim put in it."""
        if fact in self.facts:
            return True
        if fact.said is None:
            narrower = f"{fact.text} "
            open_ = fact.text.endswith(" saying")
            return open_ and any(other.text.startswith(narrower) for other in self.facts)
        if self._is_something(fact.said) or self._is_wrapped(fact.said) or pinned(fact, self.facts):
            return True
        if is_near(fact.said, (other.said for other in self.facts if other.said is not None)):
            return True
        try:
            return all(_is_true(self._with_members(said)) for said in self._rounds(fact.said))
        except TooMuchError:
            return False

    def _is_something(self, said: ast.expr) -> bool:
        """Whether a value that is claimed not to be None has members that are claimed values of."""
        if not (isinstance(said, ast.Compare) and isinstance(said.ops[0], ast.IsNot)):
            return False
        none = isinstance(said.comparators[0], ast.Constant) and said.comparators[0].value is None
        begins = ast.unparse(said.left)
        return none and any(
            text.startswith((f"{begins}.", f"{begins}[")) for text in self.equations
        )

    def _is_wrapped(self, said: ast.expr) -> bool:
        """Whether `("a", 1)` or `{"n": "a"}` is claimed as the members of an object of a class."""
        if not (isinstance(said, ast.Compare) and isinstance(said.ops[0], ast.Eq)):
            return False
        made, plain = self.equations.get(ast.unparse(said.left)), said.comparators[0]
        if not isinstance(made, ast.Call):
            return False
        fields = self.fields(ast.unparse(made.func).rpartition(".")[2])
        told = dict(zip(fields, made.args, strict=False))
        told |= {str(keyword.arg): keyword.value for keyword in made.keywords}
        has = {name: ast.unparse(member) for name, member in told.items()}
        if len(has) != len(fields) or not fields:
            return False
        if isinstance(plain, ast.Tuple):
            return [has.get(name) for name in fields] == [*map(ast.unparse, plain.elts)]
        keys = (
            [k.value for k in plain.keys if isinstance(k, ast.Constant)]
            if isinstance(plain, ast.Dict)
            else []
        )
        return isinstance(plain, ast.Dict) and has == dict(
            zip(keys, map(ast.unparse, plain.values), strict=False)
        )

    def _rounds(self, said: ast.expr) -> list[ast.expr]:
        """A claim about each member of something, for the members that it is claimed to have."""
        names = {n.id for n in ast.walk(said) if isinstance(n, ast.Name) and is_each(n.id)}
        for name in names:
            whole = self.equations.get(of_each(name))
            if isinstance(whole, ast.List | ast.Tuple):
                return [self._put(resolved(said, {name: member})) for member in whole.elts]
        return [self._put(said)]

    def _put(self, said: ast.expr) -> ast.expr:
        found = self.visit(deepcopy(said))
        return resolved(found, {}) if isinstance(found, ast.expr) else said

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Call | ast.Attribute | ast.Subscript | ast.Name | ast.BinOp):
            found = self.equations.get(ast.unparse(node))
            if found is not None:
                return deepcopy(found)
        return self.generic_visit(node)

    def _with_members(self, said: ast.expr) -> ast.expr:
        """`Money(34, "EUR").minor` as 34, where the class says what it is made from."""
        for node in ast.walk(said):
            for name, part in ast.iter_fields(node):
                if isinstance(part, ast.expr):
                    setattr(node, name, self._member(part))
                elif isinstance(part, list):
                    members = [self._member(p) if isinstance(p, ast.expr) else p for p in part]
                    setattr(node, name, members)
        return said

    def _member(self, node: ast.expr) -> ast.expr:
        made = node.value if isinstance(node, ast.Attribute) else None
        if not isinstance(node, ast.Attribute) or not isinstance(made, ast.Call):
            return node
        fields = self.fields(ast.unparse(made.func).rpartition(".")[2])
        told = dict(zip(fields, made.args, strict=False))
        told |= {str(keyword.arg): keyword.value for keyword in made.keywords}
        return told.get(node.attr, node)


def _is_true(said: ast.expr) -> bool:
    try:
        return bool(value(said))
    except UnknownValueError:
        return False


def equations(facts: Facts) -> dict[str, ast.expr]:
    """What expressions are claimed to be equal to, where only one thing is claimed of them."""
    found: dict[str, dict[str, ast.expr]] = {}
    for fact in facts:
        said = fact.said
        if isinstance(said, ast.Compare) and isinstance(said.ops[0], _SAME):
            right = said.comparators[0]
            if _is_made(right):
                found.setdefault(ast.unparse(said.left), {})[ast.unparse(right)] = right
    return {text: next(iter(v.values())) for text, v in found.items() if len(v) == 1}


def _is_made(node: ast.expr) -> bool:
    """Whether a value is spelled out: literals, and objects made of them."""
    if isinstance(node, ast.Call):
        name = last(node.func).rpartition(".")[2]
        parts = [*node.args, *(keyword.value for keyword in node.keywords)]
        return name[:1].isupper() and all(map(_is_made, parts))
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        return all(map(_is_made, node.elts))
    try:
        value(node)
    except UnknownValueError:
        return False
    return True
