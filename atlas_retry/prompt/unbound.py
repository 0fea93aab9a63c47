"""Whether a Python function may read a local variable before it is bound. Reads one function."""

import ast
from collections.abc import Iterable, Iterator

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINING = (*_FUNCTION, ast.ClassDef)
_COMPREHENSION = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def may_be_unbound(source: str, name: str) -> bool:
    """Whether some way through a function in `source` reads `name` before it is assigned."""
    try:
        # what is indented stays so: texts and comments in it need not be
        tree = ast.parse(f"if True:\n{source}" if source[:1].isspace() else source)
        return any(
            _Walk(name).finds(node)
            for node in ast.walk(tree)
            if isinstance(node, _FUNCTION) and name not in _parameters(node.args)
        )
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _parameters(told: ast.arguments) -> set[str]:
    every = (*told.posonlyargs, *told.args, *told.kwonlyargs, told.vararg, told.kwarg)
    return {parameter.arg for parameter in every if parameter}


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """A node and what of it runs with the variables of the function that it stands in."""
    yield node
    if isinstance(node, (*_DEFINING, ast.Lambda)):
        return
    parts = [node.generators[0].iter] if isinstance(node, _COMPREHENSION) else None
    for part in parts or ast.iter_child_nodes(node):
        yield from _own(part)


def _bound(node: ast.AST) -> Iterator[str]:
    """The names that a node binds by itself."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.FunctionDef(name=name):
            yield name
        case ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.alias(name=name, asname=other):
            yield other or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchMapping(rest=str(name)):
            yield name
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            yield name


def _is_declared(node: ast.AST, name: str) -> bool:
    """Whether a statement says that a name is none of the function's own."""
    return isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names


class _Walk:
    """Follows the statements of one function; a state is whether the name is bound, None: left."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_early = False
        self._broken: list[bool] = []

    def finds(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        own = tuple(part for statement in function.body for part in _own(statement))
        is_local = any(self._name in _bound(part) for part in own)
        if is_local and not any(_is_declared(part, self._name) for part in own):
            self._block(function.body, bound=False)
        return self._is_early

    def _is_named(self, node: ast.AST, use: type[ast.expr_context]) -> bool:
        return isinstance(node, ast.Name) and node.id == self._name and isinstance(node.ctx, use)

    def _block(self, statements: Iterable[ast.stmt], *, bound: bool) -> bool | None:
        state: bool | None = bound
        for statement in statements:
            state = self._statement(statement, bound=bool(state))
            if state is None:
                return None
        return state

    def _read(self, node: ast.AST | None, *, bound: bool) -> bool:
        parts = tuple(_own(node)) if node else ()
        self._is_early |= not bound and any(self._is_named(part, ast.Load) for part in parts)
        return bound or any(self._name in _bound(part) for part in parts)

    def _statement(self, node: ast.stmt, *, bound: bool) -> bool | None:
        match node:
            case ast.If():
                return self._chosen(node, bound=self._read(node.test, bound=bound))
            case ast.For() | ast.AsyncFor() | ast.While():
                return self._repeated(node, bound=bound)
            case ast.With() | ast.AsyncWith():
                for item in node.items:
                    bound = self._read(item, bound=bound)
                return self._block(node.body, bound=bound)
            case ast.Try() | ast.TryStar():
                return self._tried(node, bound=bound)
            case ast.Match():
                return self._matched(node, bound=self._read(node.subject, bound=bound))
            case _:
                return self._plain(node, bound=bound)

    def _repeated(self, node: ast.For | ast.AsyncFor | ast.While, *, bound: bool) -> bool | None:
        """A loop may run no round at all, unless it has no condition; a break passes the else."""
        around, self._broken = self._broken, []
        if isinstance(node, ast.While):
            ended = inside = self._read(node.test, bound=bound)
        else:
            ended = self._read(node.iter, bound=bound)
            inside = self._read(node.target, bound=ended)
        self._block(node.body, bound=inside)
        broken, self._broken = self._broken, around
        test = node.test if isinstance(node, ast.While) else None
        is_endless = isinstance(test, ast.Constant) and bool(test.value)
        return _met(*broken) if is_endless else _met(*broken, self._block(node.orelse, bound=ended))

    def _chosen(self, node: ast.If, *, bound: bool) -> bool | None:
        return _met(self._block(node.body, bound=bound), self._block(node.orelse, bound=bound))

    def _tried(self, node: ast.Try | ast.TryStar, *, bound: bool) -> bool | None:
        ends = self._block(node.body, bound=bound)
        ways = [None if ends is None else self._block(node.orelse, bound=ends)]
        ways += [self._handled(handler, bound=bound) for handler in node.handlers]
        last = self._block(node.finalbody, bound=bound)
        met = _met(*ways)
        return None if met is None or last is None else met or last

    def _handled(self, node: ast.ExceptHandler, *, bound: bool) -> bool | None:
        """A handler deletes the name of its exception when it ends."""
        is_caught = node.name == self._name
        state = self._block(node.body, bound=bound or is_caught)
        return None if state is None else state and not is_caught

    def _matched(self, node: ast.Match, *, bound: bool) -> bool | None:
        ways = [
            self._block(case.body, bound=self._read(case.pattern, bound=bound))
            for case in node.cases
        ]
        last = node.cases[-1]
        is_complete = last.guard is None and getattr(last.pattern, "pattern", last) is None
        return _met(*ways) if is_complete else _met(*ways, bound)

    def _plain(self, node: ast.stmt, *, bound: bool) -> bool | None:
        if isinstance(node, _DEFINING):
            return bound or node.name == self._name
        if isinstance(node, ast.AugAssign) and not bound:
            self._is_early |= self._is_named(node.target, ast.Store)
        after = self._read(node, bound=bound)
        if isinstance(node, ast.Delete):
            return after and not any(self._is_named(one, ast.Del) for one in node.targets)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return bound
        if isinstance(node, ast.Break):
            self._broken.append(bound)
        return None if isinstance(node, _LEAVING) else after


def _met(*ways: bool | None) -> bool | None:
    """The state where several ways meet; those that left do not count."""
    arriving = [way for way in ways if way is not None]
    return all(arriving) if arriving else None
