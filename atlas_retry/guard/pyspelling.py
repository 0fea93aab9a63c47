"""One spelling for the assertions of pytest and unittest: expressions that have to be true."""

import ast
from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy

from atlas_retry.guard.pychecks import last

_TWO: Mapping[str, Callable[[], ast.cmpop]] = {
    "assertEqual": ast.Eq, "assertEquals": ast.Eq, "assertListEqual": ast.Eq,
    "assertDictEqual": ast.Eq, "assertTupleEqual": ast.Eq, "assertSetEqual": ast.Eq,
    "assertSequenceEqual": ast.Eq, "assertMultiLineEqual": ast.Eq, "assertNotEqual": ast.NotEq,
    "assertIs": ast.Is, "assertIsNot": ast.IsNot, "assertIn": ast.In, "assertNotIn": ast.NotIn,
    "assertLess": ast.Lt, "assertLessEqual": ast.LtE, "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
}  # fmt: skip
_NOT: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
    ast.NotIn: ast.In, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
}  # fmt: skip
_TURNED: Mapping[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.Eq, ast.NotEq: ast.NotEq, ast.Lt: ast.Gt, ast.Gt: ast.Lt, ast.LtE: ast.GtE,
    ast.GtE: ast.LtE, ast.Is: ast.Is, ast.IsNot: ast.IsNot,
}  # fmt: skip
_PAIR = 2


def of_unittest(call: ast.Call) -> ast.expr | None:
    """What a call of an assertion of unittest's says is true; None for any other call."""
    word, told = last(call.func), call.args
    if word in _TWO and len(told) >= _PAIR:
        return ast.Compare(left=told[0], ops=[_TWO[word]()], comparators=[told[1]])
    if word == "assertAlmostEqual" and len(told) >= _PAIR:
        return _about(call)
    if word == "assertIsInstance" and len(told) >= _PAIR:
        return _call("isinstance", *told[:2])
    if word == "assertCountEqual" and len(told) >= _PAIR:
        both = [_call("sorted", part) for part in told[:2]]
        return ast.Compare(left=both[0], ops=[ast.Eq()], comparators=[both[1]])
    if word in ("assertRegex", "assertNotRegex") and len(told) >= _PAIR:
        search = ast.Attribute(
            value=ast.Name(id="re", ctx=ast.Load()), attr="search", ctx=ast.Load()
        )
        found = ast.Call(func=search, args=[told[1], told[0]], keywords=[])
        return found if word == "assertRegex" else ast.UnaryOp(op=ast.Not(), operand=found)
    return _of_one(word, told[0]) if told else None


def _about(call: ast.Call) -> ast.expr | None:
    """`assertAlmostEqual` as what pytest spells `approx`, with the places as a distance."""
    left, right = call.args[:_PAIR]
    if isinstance(left, ast.Constant) and not isinstance(right, ast.Constant):
        left, right = right, left
    off = [ast.keyword(arg="abs", value=k.value) for k in call.keywords if k.arg == "delta"]
    places = [k.value for k in call.keywords if k.arg == "places"] or call.args[_PAIR : _PAIR + 1]
    if places:
        number = places[0].value if isinstance(places[0], ast.Constant) else None
        if not isinstance(number, int):
            return None
        off = [ast.keyword(arg="abs", value=ast.Constant(value=10.0**-number / 2))]
    about = ast.Call(func=ast.Name(id="pytest.approx", ctx=ast.Load()), args=[right], keywords=off)
    return ast.Compare(left=left, ops=[ast.Eq()], comparators=[about])


def _of_one(word: str, said: ast.expr) -> ast.expr | None:
    nothing = ast.Constant(value=None)
    spelled: dict[str, ast.expr] = {
        "assertTrue": said,
        "assert_": said,
        "assertFalse": ast.UnaryOp(op=ast.Not(), operand=said),
        "assertIsNone": ast.Compare(left=said, ops=[ast.Is()], comparators=[nothing]),
        "assertIsNotNone": ast.Compare(left=said, ops=[ast.IsNot()], comparators=[nothing]),
    }
    return spelled.get(word)


def _call(name: str, *told: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(told), keywords=[])


def claims(said: ast.expr) -> Iterator[ast.expr]:
    """The parts of a condition, each of which has to be true."""
    if isinstance(said, ast.BoolOp) and isinstance(said.op, ast.And):
        for part in said.values:
            yield from claims(part)
    elif isinstance(said, ast.UnaryOp) and isinstance(said.op, ast.Not):
        yield _negated(said)
    elif isinstance(said, ast.Call) and last(said.func) == "all" and _rounds(said) is not None:
        for part in _rounds(said) or ():
            yield from claims(part)
    elif isinstance(said, ast.Compare) and len(said.ops) > 1:
        for left, op, right in zip(
            [said.left, *said.comparators], said.ops, said.comparators, strict=False
        ):
            yield from claims(ast.Compare(left=left, ops=[op], comparators=[right]))
    elif isinstance(said, ast.Compare):
        yield from _compared(said.left, said.ops[0], said.comparators[0])
        yield from _letter_by_letter(said.left, said.ops[0], said.comparators[0])
    else:
        yield said


def _negated(said: ast.UnaryOp) -> ast.expr:
    inner = said.operand
    if isinstance(inner, ast.Compare) and len(inner.ops) == 1:
        op = _NOT[type(inner.ops[0])]()
        return ast.Compare(left=inner.left, ops=[op], comparators=inner.comparators)
    if isinstance(inner, ast.UnaryOp) and isinstance(inner.op, ast.Not):
        return inner.operand
    return said


def _compared(left: ast.expr, op: ast.cmpop, right: ast.expr) -> Iterator[ast.expr]:
    """Members one by one where both sides spell them out; what is known to the right."""
    if type(op) in _TURNED and _is_known(left) and not _is_known(right):
        left, op, right = right, _TURNED[type(op)](), left
    if isinstance(op, ast.Eq) and isinstance(right, ast.Constant) and right.value is None:
        op = ast.Is()
    if isinstance(op, ast.NotEq) and isinstance(right, ast.Constant) and right.value is None:
        op = ast.IsNot()
    pairs = _members(left, right) if isinstance(op, ast.Eq) else None
    if pairs is None:
        yield ast.Compare(left=left, ops=[op], comparators=[right])
        return
    for one, other in pairs:
        yield from _compared(one, op, other)


def _letter_by_letter(left: ast.expr, op: ast.cmpop, right: ast.expr) -> Iterator[ast.expr]:
    """`"".join(x for x in y) == "ab"` says of the members, too, that they are "a" and "b"."""
    text = right.value if isinstance(right, ast.Constant) else None
    joined = isinstance(left, ast.Call) and ast.unparse(left.func) == "''.join"
    if not (isinstance(left, ast.Call) and joined and isinstance(op, ast.Eq) and left.args):
        return
    inner = left.args[0]
    if isinstance(text, str) and isinstance(inner, ast.GeneratorExp | ast.ListComp):
        members = ast.ListComp(elt=inner.elt, generators=inner.generators)
        letters = ast.List(elts=[ast.Constant(value=c) for c in text], ctx=ast.Load())
        yield ast.Compare(left=members, ops=[ast.Eq()], comparators=[letters])


def members_of(said: ast.expr) -> Iterator[ast.expr]:
    """`[x.n for x in y] == [1, 2]` says `len(y) == 2`, `y[0].n == 1` and `y[1].n == 2`, too."""
    if not isinstance(said, ast.Compare):
        return
    left, op, right = said.left, said.ops[0], said.comparators[0]
    if not (isinstance(left, ast.ListComp) and isinstance(right, ast.List)):
        return
    round_ = left.generators[0]
    plain = isinstance(op, ast.Eq) and isinstance(round_.target, ast.Name) and not round_.ifs
    if not plain or len(left.generators) > 1:
        return
    length = _call("len", round_.iter)
    count = ast.Constant(value=len(right.elts))
    yield ast.Compare(left=length, ops=[ast.Eq()], comparators=[count])
    for number, want in enumerate(right.elts):
        member = ast.Subscript(value=round_.iter, slice=ast.Constant(value=number), ctx=ast.Load())
        named = _Named(ast.unparse(round_.target), member)
        yield ast.Compare(left=named.visit(deepcopy(left.elt)), ops=[ast.Eq()], comparators=[want])


class _Named(ast.NodeTransformer):
    """One name as what it stands for."""

    def __init__(self, name: str, said: ast.expr) -> None:
        self.name = name
        self.said = said

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """What the name stands for, or another name as it is."""
        return self.said if node.id == self.name else node


def _is_known(node: ast.expr) -> bool:
    names = (n for n in ast.walk(node) if isinstance(n, ast.Call | ast.Attribute))
    return next(names, None) is None


def _members(left: ast.expr, right: ast.expr) -> list[tuple[ast.expr, ast.expr]] | None:
    """The members of two displays of one length; None where they are none."""
    shown = ast.List | ast.Tuple
    if isinstance(left, shown) and isinstance(right, shown) and len(left.elts) == len(right.elts):
        return list(zip(left.elts, right.elts, strict=True))
    if isinstance(left, ast.Dict) and isinstance(right, ast.Dict):
        first, second = (
            {ast.unparse(k): v for k, v in zip(d.keys, d.values, strict=True) if k}
            for d in (left, right)
        )
        if first.keys() == second.keys():
            return [(said, second[key]) for key, said in first.items()]
    return None


def _rounds(call: ast.Call) -> list[ast.expr] | None:
    inner = call.args[0] if call.args else None
    return inner.elts if isinstance(inner, ast.List | ast.Tuple) else None
