"""Whether a script that is itself the check asks as much as before. Reads syntax, runs nothing."""

import ast
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.executed import executed
from atlas_retry.guard.treechecks import text_of
from atlas_retry.model import Kind
from atlas_retry.syntax import language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_LEAVES_OUT = re.compile(r"allow|exclu|ignor|skip|exempt|known|white|except|legacy|permit|safe|ok$",
                         re.IGNORECASE)  # fmt: skip
_TELLS = re.compile(r"^(console\.\w+|print|puts|logger\.\w+|logging\.\w+)$")


def asks_as_much(path: str, before: bytes, after: bytes) -> bool:
    """Whether nothing changed but form, words to people, and checks that were added."""
    if places.suffix(path) == ".py":
        try:
            old, new = ast.parse(before), ast.parse(after)
        except (SyntaxError, ValueError):
            return False
        names = {n.id for n in ast.walk(old) if isinstance(n, ast.Name)}
        return _covers(_plain(old), _plain(new), frozenset(names))
    return _tokens(path, before) == _tokens(path, after)


def _plain(tree: ast.Module) -> list[ast.stmt]:
    """Statements without annotations, docstrings, words to people and imports nobody uses."""
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [a for a in node.names if (a.asname or a.name).split(".")[0] in used]
    for node in ast.walk(tree):
        if isinstance(node, ast.arg):
            node.annotation = None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.returns = None
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(node, field, None)
            if isinstance(inner, list):
                setattr(node, field, [_bare(s) for s in inner if not _says_nothing(s)])
    return tree.body


def _bare(statement: ast.stmt) -> ast.stmt:
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return ast.Assign(targets=[statement.target], value=statement.value)
    return statement


def _says_nothing(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return not statement.names
    if not isinstance(statement, ast.Expr):
        return isinstance(statement, ast.Pass)
    value = statement.value
    called = isinstance(value, ast.Call) and _TELLS.match(ast.unparse(value.func))
    return isinstance(value, ast.Constant) or bool(called)


def _covers(old: Sequence[ast.stmt], new: Sequence[ast.stmt], names: frozenset[str]) -> bool:
    """Whether the old statements all stand there in order, and the rest only asks for more."""
    rest = list(old)
    for statement in new:
        if rest and _is_as_strict(rest[0], statement, names):
            rest.pop(0)
        elif not _only_asks_more(statement, names):
            return False
    return not rest


def _is_as_strict(old: ast.stmt, new: ast.stmt, names: frozenset[str]) -> bool:
    if ast.dump(old) == ast.dump(new):
        return True
    if type(old) is not type(new):
        return False
    if isinstance(old, ast.Assign) and isinstance(new, ast.Assign):
        target = ast.unparse(old.targets[0])
        had, has = _members(old.value), _members(new.value)
        same = target == ast.unparse(new.targets[0])
        return same and bool(had) and had <= has and not _LEAVES_OUT.search(target)
    if not isinstance(old, ast.If | ast.For | ast.While | ast.With | ast.FunctionDef | ast.Try):
        return False
    parts = [(getattr(old, f, []), getattr(new, f, [])) for f in ("body", "orelse", "finalbody")]
    return _head(old) == _head(new) and all(_covers(a, b, names) for a, b in parts)


def _members(value: ast.expr) -> frozenset[str]:
    if isinstance(value, ast.List | ast.Tuple | ast.Set):
        return frozenset(map(ast.dump, value.elts))
    return frozenset()


def _head(statement: ast.stmt) -> list[str]:
    """All of a compound statement but its bodies."""
    return [
        f"{field}={ast.dump(part) if isinstance(part, ast.AST) else _dumped(part)}"
        for field, part in ast.iter_fields(statement)
        if field not in ("body", "orelse", "finalbody", "type_comment")
    ]


def _dumped(part: object) -> str:
    if isinstance(part, list):
        return ", ".join(ast.dump(p) if isinstance(p, ast.AST) else str(p) for p in part)
    return str(part)


def _only_asks_more(statement: ast.stmt, names: frozenset[str]) -> bool:
    """Whether a statement that came defines something new, or finds another fault."""
    if isinstance(statement, ast.If | ast.For):
        return all(_only_asks_more(s, names) for s in (*statement.body, *statement.orelse))
    return isinstance(statement, ast.Raise) or _defines(statement, names) or _counts(statement)


def _defines(statement: ast.stmt, names: frozenset[str]) -> bool:
    """Whether a statement brings names that nothing used, and no others."""
    match statement:
        case ast.Import() | ast.ImportFrom():
            return not {(a.asname or a.name).split(".")[0] for a in statement.names} & names
        case ast.FunctionDef(name=name) | ast.Assign(targets=[ast.Name(id=name)]):
            return name not in names
    return False


def _counts(statement: ast.stmt) -> bool:
    """Whether a statement adds to what was found."""
    match statement:
        case ast.AugAssign(op=ast.Add(), target=ast.Name(id=name)):
            return not _LEAVES_OUT.search(name)
        case ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=attr))):
            return attr in ("append", "extend", "add") and not _LEAVES_OUT.search(name)
    return False


def _tokens(path: str, source: bytes) -> list[str]:
    """Words of the code: no comments, no layout, no quotes, no words to people."""
    tree = parse(language_of(path, source), source)
    if tree is None:
        return [line for line in source.decode("utf-8", "replace").split() if line != ";"]
    return [
        re.sub(r"^(let|var)$", "const", text_of(node).replace("'", '"'))
        for node in _said(tree.root_node)
        if not node.children and "comment" not in node.type and node.type not in (";", ",")
    ]


def _said(node: "Node") -> Iterator["Node"]:
    """All nodes but those of statements that only talk."""
    if node.type == "expression_statement" and _TELLS.match(text_of(node).partition("(")[0]):
        return
    yield node
    for child in node.children:
        yield from _said(child)


def own_checks(scene: Scene, checks: Collection[str]) -> Iterator[Finding]:
    """Scripts of the project that a gate executes as the check, made to look at something else."""
    for delta in scene.files:
        if delta.path not in checks or delta.before is None or delta.after is None:
            continue
        if asks_as_much(delta.path, delta.before, delta.after) or _is_subject(delta, scene):
            continue
        old = set(map(str.strip, delta.old_text.splitlines()))
        lines = enumerate(delta.new_text.splitlines(), 1)
        line = next((n for n, text in lines if text.strip() not in old), 1)
        detail = "a gate executes it as the check, and it no longer asks the same"
        yield Finding(path=delta.path, line=line, detail=detail)


def _is_subject(delta: Delta, scene: Scene) -> bool:
    """Whether a linter's or formatter's complaint may be about the script, its values as before."""
    failing = [r.command for r in scene.case.failing]
    about_form = bool(scene.failing & {Kind.LINT.value, Kind.FORMAT.value, "type"})
    if not about_form or delta.path in executed(scene, failing):
        return False
    old, new = (_values(delta.path, side or b"") for side in (delta.before, delta.after))
    return old == new


_EXITS = (ast.Continue, ast.Break, ast.Return, ast.Raise)


def _values(path: str, source: bytes) -> Counter[str] | None:
    """How often a script names each value and leaves by each way."""
    if places.suffix(path) != ".py":
        plain = (t for t in _tokens(path, source) if re.match(r"[\"/`\d]|continue|break|return", t))
        return Counter(plain)
    try:
        body = _plain(ast.parse(source))
    except (SyntaxError, ValueError):
        return None
    nodes = [node for statement in body for node in ast.walk(statement)]
    found = Counter(repr(n.value) for n in nodes if isinstance(n, ast.Constant))
    return found + Counter(type(n).__name__ for n in nodes if isinstance(n, _EXITS))
