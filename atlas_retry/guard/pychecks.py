"""Assertions of Python tests, made canonical. Reads `ast`, runs nothing."""

import ast
import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard.projections import whole
from atlas_retry.guard.units import FIRM, PARTIAL, STRONG, VOID, WEAK, Check
from atlas_retry.guard.words import words

_UNITTEST = {
    "assertEqual": "==", "assertEquals": "==", "assertListEqual": "==", "assertDictEqual": "==",
    "assertTupleEqual": "==", "assertSetEqual": "==", "assertSequenceEqual": "==",
    "assertMultiLineEqual": "==", "assertNotEqual": "!=", "assertNotEquals": "!=",
    "assertIs": "is", "assertIsNot": "is not", "assertIn": "in", "assertNotIn": "not in",
    "assertLess": "<", "assertLessEqual": "<=", "assertGreater": ">", "assertGreaterEqual": ">=",
    "assertAlmostEqual": "~", "assertAlmostEquals": "~", "assertCountEqual": "elements",
    "assertIsInstance": "isinstance", "assertRegex": "matches", "assertRegexpMatches": "matches",
}  # fmt: skip
_UNARY = {"assertTrue": "true", "assert_": "true", "assertFalse": "false",
          "assertIsNone": "none", "assertIsNotNone": "not none"}  # fmt: skip
_MOCK = {
    "assert_called_once_with": STRONG, "assert_has_calls": FIRM, "assert_called_with": FIRM,
    "assert_awaited_once_with": STRONG, "assert_any_call": PARTIAL, "assert_not_called": FIRM,
    "assert_called_once": PARTIAL, "assert_called": WEAK, "assert_awaited": WEAK,
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Is: "is", ast.IsNot: "is not", ast.In: "in",
    ast.NotIn: "not in", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
OF_UNITTEST = frozenset({*_UNITTEST, *_UNARY, "assertRaises", "assertRaisesRegex"})
"""Assertions that `unittest.TestCase` defines."""
_NEGATED = {"==": "!=", "!=": "==", "is": "is not", "is not": "is", "in": "not in",
            "not in": "in", "<": ">=", ">=": "<", ">": "<=", "<=": ">", "true": "false",
            "false": "true", "none": "not none", "not none": "none"}  # fmt: skip
_STRENGTH = {"==": STRONG, "is": STRONG, "~": FIRM, "elements": FIRM, "in": PARTIAL,
             "matches": PARTIAL, "isinstance": 2, "not in": 2, "<": 2, "<=": 2, ">": 2, ">=": 2,
             "none": STRONG, "true": PARTIAL, "false": PARTIAL}  # fmt: skip
_LOOSE = words(
    "round int len str bool abs set sorted type lower upper casefold strip lstrip rstrip"
    " replace startswith endswith split approx isclose any normalize Counter frozenset"
)
_ASSERTS = re.compile("assert|verify|expect")
_BROAD = frozenset({"Exception", "BaseException", "ArithmeticError", "object"})


def literals_in(*nodes: ast.AST | None) -> frozenset[str]:
    """Every constant but None, booleans and text that is only said (f-string parts, `...`)."""
    return frozenset(
        repr(node.value)
        for root in nodes
        if root
        for node in ast.walk(root)
        if isinstance(node, ast.Constant)
        and node.value is not None
        and not isinstance(node.value, bool)
        and node.value is not ...
    )


def names_in(*nodes: ast.AST | None) -> frozenset[str]:
    """Names and attributes."""
    found = set()
    for root in nodes:
        for node in ast.walk(root) if root else ():
            if isinstance(node, ast.Name):
                found.add(node.id)
            elif isinstance(node, ast.Attribute):
                found.add(node.attr)
    return frozenset(found)


class Scope(Struct, frozen=True, kw_only=True):
    """What the reading of an assertion has to know of its file."""

    truths: frozenset[str] = frozenset()
    """Names bound to something that is always true."""


def of_assert(test: ast.expr, line: int, scope: Scope) -> Iterator[Check]:
    """Checks that `assert test` makes: `and` makes several."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for part in test.values:
            yield from of_assert(part, line, scope)
    elif isinstance(test, ast.Compare) and len(test.ops) > 1:
        lefts = [test.left, *test.comparators]
        for left, op, right in zip(lefts, test.ops, test.comparators, strict=False):
            yield from of_assert(ast.Compare(left=left, ops=[op], comparators=[right]), line, scope)
    else:
        yield _single(test, line, scope, negated=False)


def _single(test: ast.expr, line: int, scope: Scope, *, negated: bool) -> Check:
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return _single(test.operand, line, scope, negated=not negated)
    if _is_void(test, scope):
        return _check("void", (test,), line, strength=VOID)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        op = _COMPARE[type(test.ops[0])]
        return comparison(_NEGATED[op] if negated else op, test.left, test.comparators[0], line)
    if isinstance(test, ast.BoolOp):
        parts = [_single(value, line, scope, negated=negated) for value in test.values]
        return replace(
            _check("or", tuple(test.values), line),
            strength=min(PARTIAL, *(p.strength for p in parts)),
        )
    if isinstance(test, ast.Call) and not negated:
        return _called(test, line)
    return _check("false" if negated else "true", (test,), line)


def _called(test: ast.Call, line: int) -> Check:
    called = last(test.func)
    if called == "isinstance" and len(test.args) == 2:  # noqa: PLR2004 - its two arguments
        return _check("isinstance", tuple(test.args), line)
    if called == "any":
        return _check("any", (test,), line, strength=2)
    if called in ("callable", "hasattr", "bool"):
        return _check("true", (test,), line, strength=WEAK)
    return _check("true", (test,), line)


def _is_void(test: ast.expr, scope: Scope) -> bool:
    """Whether the condition holds whatever the code under test does."""
    if isinstance(test, ast.Constant):
        return bool(test.value)
    if isinstance(test, ast.Name):
        return test.id in scope.truths
    if isinstance(test, ast.Tuple | ast.List):
        return bool(test.elts)
    if isinstance(test, ast.Lambda | ast.GeneratorExp | ast.JoinedStr):
        return True
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
        texts = {ast.dump(value) for value in test.values}
        negations = {
            ast.dump(v.operand)
            for v in test.values
            if isinstance(v, ast.UnaryOp) and isinstance(v.op, ast.Not)
        }
        return any(_is_void(value, scope) for value in test.values) or bool(texts & negations)
    return isinstance(test, ast.Compare) and _compares_nothing(test)


def _compares_nothing(test: ast.Compare) -> bool:
    op, left, right = test.ops[0], test.left, test.comparators[0]
    if isinstance(op, ast.Eq | ast.Is | ast.LtE | ast.GtE) and ast.dump(left) == ast.dump(right):
        return True
    if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
        return True
    zero = isinstance(right, ast.Constant) and right.value == 0
    measured = isinstance(left, ast.Call) and last(left.func) in ("len", "abs")
    return isinstance(op, ast.GtE) and zero and measured


def comparison(op: str, left: ast.expr, right: ast.expr, line: int) -> Check:
    """`left op right`, with the spellings that lint rules rewrite made one."""
    if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
        left, right, op = right, left, {"<": ">", ">": "<", "<=": ">=", ">=": "<="}.get(op, op)
    if op in ("==", "!=", "is", "is not") and isinstance(right, ast.Constant):
        plain = _against_constant(op, left, right, line)
        if plain:
            return plain
    if op == "==" and "approx" in _called_in((left, right)):
        return _approximate(left, right, line)
    if op == "==" and _compares_nothing(
        ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])
    ):
        return _check("void", (left,), line, strength=VOID)
    if op == "==" and isinstance(left, ast.Call) and last(left.func) == "type":
        return _check("isinstance", (*left.args, right), line)
    found = _check(op, (left, right), line, value=ast.dump(right))
    return replace(found, whole=whole(left, right)) if op == "==" else found


def _approximate(left: ast.expr, right: ast.expr, line: int) -> Check:
    """`== approx(x)`: as good as equality with the library's own tolerance, and no wider."""
    call = right if isinstance(right, ast.Call) else left
    tolerant = isinstance(call, ast.Call) and bool(call.keywords or call.args[1:])
    check = _check("~", (left, right), line, strength=FIRM if tolerant else STRONG)
    return replace(check, loosening=check.loosening - {"approx"})


def _against_constant(op: str, left: ast.expr, right: ast.Constant, line: int) -> Check | None:
    positive = op in ("==", "is")
    if right.value is None:
        return _check("none" if positive else "not none", (left,), line)
    if isinstance(right.value, bool):
        return _check("true" if positive == right.value else "false", (left,), line)
    if right.value == 0 and isinstance(left, ast.Call) and last(left.func) == "len" and positive:
        return _check("false", tuple(left.args), line)
    return None


def of_call(call: ast.Call, line: int, scope: Scope) -> Check | None:
    """The check that a call statement makes: unittest, mock, or a helper called assert_*."""
    called = last(call.func)
    if called in _UNITTEST and len(call.args) >= 2:  # noqa: PLR2004 - left and right
        return _compared(_UNITTEST[called], call, line)
    if called in _UNARY and call.args:
        return _unary(called, call.args[0], line, scope)
    if called == "fail":
        return _check("fail", (call.func,), line, strength=PARTIAL)
    if called in _MOCK or _ASSERTS.match(called):
        return _check(called, (call,), line, strength=_MOCK.get(called, FIRM))
    return None


def _compared(op: str, call: ast.Call, line: int) -> Check:
    """`assertEqual(a, b)` and its kin; a tolerance of its own weighs less."""
    check = comparison(op, call.args[0], call.args[1], line)
    extra = [keyword.value for keyword in call.keywords if keyword.arg in ("places", "delta")]
    about = FIRM if extra else STRONG
    strength = about if check.text.startswith("~") else check.strength
    return replace(check, literals=check.literals | literals_in(*extra), strength=strength)


def _unary(called: str, said: ast.expr, line: int, scope: Scope) -> Check:
    if called in ("assertTrue", "assert_"):
        return next(of_assert(said, line, scope))
    if called == "assertFalse":
        return _single(said, line, scope, negated=True)
    return _check(_UNARY[called], (said,), line)


RAISES = {"raises", "assertRaises", "assertRaisesRegex", "warns", "assertWarns",
          "assertWarnsRegex", "deprecated_call", "assertLogs"}  # fmt: skip


RUNNERS = ("pytest", "unittest", "testtools", "asynctest", "django", "twisted", "trio", "nose")
"""Whose `raises` is known to insist."""


def of_raises(call: ast.Call, body: list[ast.stmt], line: int) -> Check:
    """`with raises(...)` or `assertRaises(E, f, x)`."""
    expected = [ast.unparse(arg) for arg in call.args[:1]]
    kinds = names_in(*call.args[:1])
    broad = not expected or bool(kinds & _BROAD)
    several = len(call.args[0].elts) if call.args and isinstance(call.args[0], ast.Tuple) else 1
    told = literals_in(*call.args[1:], *(keyword.value for keyword in call.keywords))
    strength = WEAK if broad else STRONG if told else FIRM
    strength = strength if several == 1 else max(PARTIAL - several + 2, WEAK)
    own = any(isinstance(node, ast.Raise) for stmt in body for node in ast.walk(stmt))
    return Check(
        text=f"raises {expected} {sorted(told)} {[ast.dump(s) for s in body]}",
        strength=VOID if own else strength,
        line=line,
        literals=told | literals_in(*body, *call.args[1:]),
        names=names_in(*body, *call.args),
    )


def _check(
    op: str, nodes: tuple[ast.expr, ...], line: int, *, strength: int | None = None, value: str = ""
) -> Check:
    return Check(
        text=f"{op} " + " ".join(ast.dump(_plain(node)) for node in nodes),
        strength=_STRENGTH.get(op, WEAK) if strength is None else strength,
        line=line,
        literals=literals_in(*nodes),
        names=names_in(*nodes),
        loosening=_laid_over(nodes),
        value=value,
    )


def _laid_over(nodes: tuple[ast.expr, ...]) -> frozenset[str]:
    """What makes values alike; not the `str(path)` that the code under test is handed."""
    calls = [part for root in nodes for part in ast.walk(root) if isinstance(part, ast.Call)]
    plain = (c for c in calls if last(c.func) not in _LOOSE and not _ASSERTS.match(last(c.func)))
    handed = {id(a) for c in plain for arg in c.args for a in (arg, *getattr(arg, "elts", ()))}
    return _LOOSE & {last(c.func) for c in calls if not (last(c.func) == "str" and id(c) in handed)}


def _called_in(nodes: tuple[ast.expr, ...]) -> frozenset[str]:
    return frozenset(
        last(node.func) for root in nodes for node in ast.walk(root) if isinstance(node, ast.Call)
    )


def _plain(node: ast.expr) -> ast.expr:
    """`set([..])` and `dict()` as the literals that lint rules turn them into."""
    if isinstance(node, ast.Call) and last(node.func) == "set" and len(node.args) == 1:
        inner = node.args[0]
        if isinstance(inner, ast.List | ast.Tuple):
            return ast.Set(elts=inner.elts)
    return node


def last(node: ast.expr) -> str:
    """The name at the end of a dotted expression; empty when there is none."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
