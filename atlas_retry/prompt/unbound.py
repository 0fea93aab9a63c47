"""Whether a Python function may read a local variable before it is bound. Reads one function."""

import ast
import textwrap
from collections.abc import Iterable

_FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
_DEFINING = (*_FUNCTION, ast.ClassDef)
_LEAVING = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def may_be_unbound(source: str, name: str) -> bool:
    """Whether some way through a function in `source` reads `name` before it is assigned."""
    try:
        tree = ast.parse(textwrap.dedent(source))
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(
        _Walk(name).finds(node)
        for node in ast.walk(tree)
        if isinstance(node, _FUNCTION) and name not in _parameters(node.args)
    )


def _parameters(told: ast.arguments) -> set[str]:
    every = (*told.posonlyargs, *told.args, *told.kwonlyargs, told.vararg, told.kwarg)
    return {parameter.arg for parameter in every if parameter}


class _Walk:
    """Follows the statements of one function; a state is whether the name is bound, None: left."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._is_early = False

    def finds(self, function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
        binds = any(self._is_named(node, ast.Store) for node in ast.walk(function))
        if binds:
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
        parts = tuple(ast.walk(node)) if node else ()
        self._is_early |= not bound and any(self._is_named(part, ast.Load) for part in parts)
        return bound or any(self._is_named(part, ast.Store) for part in parts)

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

    def _repeated(self, node: ast.For | ast.AsyncFor | ast.While, *, bound: bool) -> bool:
        """A loop may run no round at all, unless it has no condition."""
        if isinstance(node, ast.While):
            entered = self._read(node.test, bound=bound)
            ends = self._block(node.body, bound=entered)
            is_endless = isinstance(node.test, ast.Constant) and bool(node.test.value)
            return entered or (is_endless and bool(ends))
        entered = self._read(node.iter, bound=bound)
        self._block(node.body, bound=self._read(node.target, bound=entered))
        self._block(node.orelse, bound=entered)
        return entered

    def _chosen(self, node: ast.If, *, bound: bool) -> bool | None:
        return _met(self._block(node.body, bound=bound), self._block(node.orelse, bound=bound))

    def _tried(self, node: ast.Try | ast.TryStar, *, bound: bool) -> bool | None:
        ends = self._block(node.body, bound=bound)
        ways = [None if ends is None else self._block(node.orelse, bound=ends)]
        ways += [self._block(h.body, bound=bound or h.name == self._name) for h in node.handlers]
        last = self._block(node.finalbody, bound=bound)
        met = _met(*ways)
        return None if met is None or last is None else met or last

    def _matched(self, node: ast.Match, *, bound: bool) -> bool | None:
        ways = [self._block(case.body, bound=bound or self._captures(case)) for case in node.cases]
        last = node.cases[-1]
        is_complete = last.guard is None and getattr(last.pattern, "pattern", last) is None
        return _met(*ways) if is_complete else _met(*ways, bound)

    def _captures(self, case: ast.match_case) -> bool:
        return any(
            self._name in (getattr(part, "name", None), getattr(part, "rest", None))
            for part in ast.walk(case.pattern)
        )

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
        return None if isinstance(node, _LEAVING) else after


def _met(*ways: bool | None) -> bool | None:
    """The state where several ways meet; those that left do not count."""
    arriving = [way for way in ways if way is not None]
    return all(arriving) if arriving else None
