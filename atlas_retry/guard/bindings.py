"""What the variables of a test stand for, by the names in what they are bound to. No rule."""

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard.pychecks import names_in
from atlas_retry.guard.treechecks import names_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

Bound = tuple[str, frozenset[str]]
_BINDING = re.compile(r"declarat|assign|var_spec")
_FIELDS = (("declarator", "value"), ("name", "value"), ("pattern", "value"), ("left", "right"))


def in_tree(body: "Node") -> Iterator[Bound]:
    """Of declarations and assignments in any language that tree-sitter parses."""
    for node in walk(body):
        for to, of in _FIELDS if _BINDING.search(node.type) else ():
            target, said = node.child_by_field_name(to), node.child_by_field_name(of)
            if target is not None and said is not None:
                yield from ((name, names_of(said)) for name in names_of(target))


def in_python(test: ast.AST) -> Iterator[Bound]:
    """Of assignments to names, and of `with ... as`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((name, names_in(node.value)) for t in targets for name in _names(t))
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            told = names_in(node.context_expr)
            yield from ((name, told) for name in _names(node.optional_vars))


def _names(target: ast.expr) -> Iterator[str]:
    return (part.id for part in ast.walk(target) if isinstance(part, ast.Name))
