"""Names and calls within an expression of a test, put as what they stand for. Runs nothing."""

import ast
from collections.abc import Mapping
from copy import deepcopy

from atlas_retry.guard import pyconstants, pytimes
from atlas_retry.guard.pychecks import last
from atlas_retry.guard.pyvalues import literal

MAX_NODES = 300
_RUNNERS = frozenset({"asyncio.run", "anyio.run", "loop.run_until_complete", "trio.run"})

Names = dict[str, ast.expr]


class TooMuchError(Exception):
    """A test cannot be spelled out within bounds."""


class Inlined(ast.NodeTransformer):
    """Names as what they stand for, literals worked out."""

    def __init__(self, names: Mapping[str, ast.expr]) -> None:
        self.names = names

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Await):
            return self.visit(node.value)
        if isinstance(
            node, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp
        ):
            return _spelled_out(self._closed(node))
        if isinstance(node, ast.Attribute) and ast.unparse(node) in self.names:
            return deepcopy(self.names[ast.unparse(node)])
        if isinstance(node, ast.Name):
            return deepcopy(self.names.get(node.id, node))
        found = self.generic_visit(node)
        return _reduced(found) if isinstance(found, ast.Call) else found

    def _closed(self, node: ast.AST) -> ast.AST:
        """Within a comprehension its own names hide those around it."""
        own = {
            part.id
            for part in ast.walk(node)
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
        } | {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
        inner = Inlined({name: said for name, said in self.names.items() if name not in own})
        return ast.NodeTransformer.generic_visit(inner, node)


def _reduced(call: ast.Call) -> ast.AST:
    """Event loops left out, plain functions applied, `list` of what is spelled out."""
    if isinstance(call.func, ast.Lambda):
        told = arguments(call.func.args, call)
        return Inlined(told).visit(deepcopy(call.func.body)) if told is not None else call
    word = ast.unparse(call.func)
    if call.args and (word in _RUNNERS or word.endswith("run_until_complete")):
        return call.args[0]
    shown = isinstance(call.args[0], ast.List | ast.Tuple) if len(call.args) == 1 else False
    if shown and word in ("list", "tuple"):
        kind = ast.List if word == "list" else ast.Tuple
        return kind(elts=call.args[0].elts, ctx=ast.Load())  # type: ignore[attr-defined]
    return call


def arguments(wanted: ast.arguments, call: ast.Call) -> Names | None:
    """What a call hands to the parameters of a function; None where that is not plain."""
    if wanted.vararg or wanted.kwarg or any(k.arg is None for k in call.keywords):
        return None
    named = [part.arg for part in wanted.args if part.arg not in ("self", "cls")]
    told = dict(zip(named, call.args, strict=False))
    return {**_defaults(wanted), **told, **{str(k.arg): k.value for k in call.keywords}}


def _spelled_out(node: ast.AST) -> ast.AST:
    """A comprehension over a display as the display of its members."""
    if isinstance(node, ast.Lambda) or len(node.generators) != 1:  # type: ignore[attr-defined]
        return node
    round_ = node.generators[0]  # type: ignore[attr-defined]
    through = letters(_folded(round_.iter))
    if round_.ifs or not isinstance(through, ast.List | ast.Tuple):
        return node
    rounds: list[Names] = []
    for item in through.elts:
        rounds.append({})
        bind(round_.target, item, rounds[-1])
    if isinstance(node, ast.DictComp):
        return ast.Dict(
            keys=[inlined(node.key, names) for names in rounds],
            values=[inlined(node.value, names) for names in rounds],
        )
    members = [inlined(node.elt, names) for names in rounds]  # type: ignore[attr-defined]
    shown = ast.Set if isinstance(node, ast.SetComp) else ast.List
    return shown(elts=members) if shown is ast.Set else ast.List(elts=members, ctx=ast.Load())


def inlined(node: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with its names as what they stand for."""
    found = Inlined(names).visit(deepcopy(node))
    return found if isinstance(found, ast.expr) else node


def resolved(node: ast.expr, names: Mapping[str, ast.expr]) -> ast.expr:
    """An expression with its names inlined and what is literal in it worked out."""
    found = inlined(node, names)
    if sum(1 for _ in ast.walk(found)) > MAX_NODES:
        raise TooMuchError
    return _folded(found)


def _folded(node: ast.expr) -> ast.expr:
    plain = literal(node) or pytimes.spelled(node)
    if plain is not None:
        return plain
    node = pyconstants.plain(node) or node
    for name, part in ast.iter_fields(node):
        if isinstance(part, ast.expr):
            setattr(node, name, _folded(part))
        elif isinstance(part, list) and part and isinstance(part[0], ast.expr):
            setattr(node, name, [_folded(p) if isinstance(p, ast.expr) else p for p in part])
    return node


def _defaults(wanted: ast.arguments) -> Names:
    plain = wanted.args[len(wanted.args) - len(wanted.defaults) :]
    pairs = [*zip(plain, wanted.defaults, strict=True)]
    pairs += [(a, s) for a, s in zip(wanted.kwonlyargs, wanted.kw_defaults, strict=True) if s]
    return {arg.arg: said for arg, said in pairs}


def name_for(text: str) -> ast.Name:
    """A name that nothing else has."""
    return ast.Name(id=text, ctx=ast.Load())


def letters(through: ast.expr) -> ast.expr:
    """A text that is gone through as the display of its letters."""
    if isinstance(through, ast.Constant) and isinstance(through.value, str):
        return ast.List(elts=[ast.Constant(value=c) for c in through.value], ctx=ast.Load())
    return through


def none_of(said: ast.expr) -> list[ast.expr] | None:
    """`[x for x in (1, 2) if bad(x)] == []` as the conditions that must not hold."""
    if not (isinstance(said, ast.Compare) and isinstance(said.ops[0], ast.Eq)):
        return None
    left, right = said.left, said.comparators[0]
    empty = isinstance(right, ast.List) and not right.elts
    if not (empty and isinstance(left, ast.ListComp) and len(left.generators) == 1):
        return None
    round_ = left.generators[0]
    through = letters(_folded(round_.iter))
    if len(round_.ifs) != 1 or not isinstance(through, ast.List | ast.Tuple):
        return None
    found: list[ast.expr] = []
    for item in through.elts:
        names: Names = {}
        bind(round_.target, item, names)
        found.append(ast.UnaryOp(op=ast.Not(), operand=inlined(round_.ifs[0], names)))
    return found


def each(through: ast.expr) -> str:
    """The name for every member of something."""
    return f"each({ast.unparse(through)})"


def is_each(name: str) -> bool:
    """Whether a name stands for every member of something."""
    return name.startswith("each(")


def of_each(name: str) -> str:
    """The text of that whose members a name stands for."""
    return name[len("each(") : -1]


def zipped(through: ast.expr) -> ast.expr:
    """`zip(got, [1, 2])` as the pairs that the display makes."""
    if not isinstance(through, ast.Call) or last(through.func) != "zip":
        return through
    counts = {len(a.elts) for a in through.args if isinstance(a, ast.List | ast.Tuple)}
    if len(counts) != 1:
        return through
    rows = [[_member(part, n) for part in through.args] for n in range(counts.pop())]
    return ast.List(elts=[ast.Tuple(elts=row, ctx=ast.Load()) for row in rows], ctx=ast.Load())


def _member(whole: ast.expr, number: int) -> ast.expr:
    if isinstance(whole, ast.List | ast.Tuple):
        return whole.elts[number]
    return ast.Subscript(value=whole, slice=ast.Constant(value=number), ctx=ast.Load())


def bind(target: ast.expr, said: ast.expr, names: Names) -> None:
    """Bind what an assignment or a loop assigns to."""
    if isinstance(target, ast.Name):
        names[target.id] = said
    elif isinstance(target, ast.Attribute):
        names[ast.unparse(target)] = said
    elif isinstance(target, ast.Tuple | ast.List):
        parts = said.elts if isinstance(said, ast.Tuple | ast.List) else None
        for number, inner in enumerate(target.elts):
            part = ast.Subscript(value=said, slice=ast.Constant(value=number), ctx=ast.Load())
            known = parts is not None and number < len(parts)
            bind(inner, parts[number] if parts and known else part, names)


def imported(node: ast.Import | ast.ImportFrom) -> Names:
    """Imported names as the dotted origin they stand for."""
    found: Names = {}
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            found[alias.asname or alias.name] = name_for(f"{node.module or ''}.{alias.name}")
        elif alias.asname:
            found[alias.asname] = name_for(alias.name)
    return found
