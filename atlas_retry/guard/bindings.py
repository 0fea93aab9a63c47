"""What the variables of a test stand for, by the names in what they are bound to. No rule."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from atlas_retry.guard.pychecks import names_in
from atlas_retry.guard.treechecks import is_literal, literals_of, names_of, text_of, walk

if TYPE_CHECKING:
    from tree_sitter import Node

Bound = tuple[str, frozenset[str]]
_BINDING = re.compile(r"declarat|assign|var_spec")
_NAMED = re.compile(r"\{(\w+)[:}]")
"""What Rust's texts name of the variables around them."""
_CALL = re.compile(r"call|invocation|object_creation|new_expression|macro|await")
_FIELDS = (("declarator", "value"), ("name", "value"), ("pattern", "value"), ("left", "right"))


def in_tree(body: "Node") -> Iterator[Bound]:
    """Of declarations and assignments in any language that tree-sitter parses."""
    for node in walk(body):
        for to, of in _FIELDS if _BINDING.search(node.type) else ():
            target, said = node.child_by_field_name(to), node.child_by_field_name(of)
            if target is not None and said is not None:
                yield from ((name, names_of(said)) for name in names_of(target))


def idle(body: "Node") -> frozenset[str]:
    """Literals that stand only in variables which nothing reads, and that nothing is called for."""
    spoken = Counter(text_of(node) for node in walk(body) if "identifier" in node.type)
    spoken.update(_NAMED.findall(text_of(body)))
    told = Counter(text_of(node) for node in walk(body) if is_literal(node))
    unread: Counter[str] = Counter()
    for node in walk(body):
        for to, of in _FIELDS if _BINDING.search(node.type) else ():
            target, said = node.child_by_field_name(to), node.child_by_field_name(of)
            if target is None or said is None or not _is_idle(target, said, spoken):
                continue
            unread.update(text_of(part) for part in walk(said) if is_literal(part))
            break
    only = {text for text in unread if unread[text] >= told[text]}
    return frozenset(
        text for node in walk(body) if text_of(node) in only for text in literals_of(node)
    )


def _is_idle(target: "Node", said: "Node", spoken: Counter[str]) -> bool:
    name = text_of(target)
    is_called = any(_CALL.search(node.type) for node in walk(said))
    return spoken[name] == 1 and target.type == "identifier" and not is_called


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
