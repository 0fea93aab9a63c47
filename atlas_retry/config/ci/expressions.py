"""Evaluates the conditions and expressions of GitHub Actions and of GitLab's rules. Pure.

A value that only CI knows is `UNKNOWN`, and so is what depends on it. Source: "Evaluate
expressions in workflows and actions" (GitHub), "rules:if" (GitLab).
"""

import json
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec import Struct

from atlas_retry.patterns import regex


class _Unknown:
    """The type of `UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = _Unknown()
EXPRESSION = regex(r"\$\{\{\s*((?:'[^']*'|[^'}]|\}(?!\}))*?)\s*\}\}")
"""An expression in a text; quoted text may hold braces."""
_TOKEN = regex(r"""(?x)\s*(?:
      (?P<text>'(?:[^']|'')*'|"[^"]*")
    | (?P<number>-?(?:0x[\da-fA-F]+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?)(?![\w.]))
    | (?P<pattern>/(?:\\.|[^/\n])+/[a-z]*)
    | (?P<variable>\$\w+)
    | (?P<name>[A-Za-z_][\w-]*)
    | (?P<sign>&&|\|\||==|!=|<=|>=|=~|!~|[<>!().,\[\]*])
    )""")
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip
LITERALS: Mapping[str, object] = {"true": True, "false": False, "null": None}


def value_of(expression: str, contexts: Mapping[str, object]) -> object:
    """The value of an expression without its braces; `UNKNOWN` if it cannot be read."""
    tokens: list[_Token] = []
    position = 0
    while expression[position:].strip():
        match = _TOKEN.match(expression, position)
        if not match or not match.lastgroup:
            return UNKNOWN
        tokens.append(_Token(match.lastgroup, match[match.lastgroup]))
        position = match.end()
    reader = _Reader(tokens=tokens, contexts=contexts)
    try:
        value = reader.alternatives()
    except (IndexError, ValueError, RecursionError, re.error):
        return UNKNOWN
    return UNKNOWN if reader.tokens else value


def holds(condition: object, contexts: Mapping[str, object]) -> bool | None:
    """Whether an `if:` is true; None if only CI knows."""
    text = text_of(condition).strip()
    braces = EXPRESSION.fullmatch(text)
    if not braces and EXPRESSION.search(text):
        return None
    value = value_of(braces[1] if braces else text, contexts)
    return None if value is UNKNOWN else truth(value)


def truth(value: object) -> bool:
    """GitHub's truth: null, false, 0 and the empty text are false."""
    return value not in (None, False, 0, "")


def text_of(value: object) -> str:
    """A value as commands see it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict | list):
        return json.dumps(value)
    is_whole = isinstance(value, float) and value.is_integer()
    return "" if value is None else str(int(value) if is_whole else value)  # type: ignore[call-overload]


class _Token(NamedTuple):
    kind: str
    text: str


class _Reader(Struct, kw_only=True):
    """Recursive descent over the tokens that are left."""

    tokens: list[_Token]
    contexts: Mapping[str, object]

    def alternatives(self) -> object:
        value = self.conjunction()
        while self._take("||"):
            other = self.conjunction()
            if value is not UNKNOWN:
                value = value if truth(value) else other
        return value

    def conjunction(self) -> object:
        value = self.comparison()
        while self._take("&&"):
            other = self.comparison()
            if value is not UNKNOWN:
                value = other if truth(value) else value
            elif other is not UNKNOWN and not truth(other):
                value = False
        return value

    def comparison(self) -> object:
        left = self.negation()
        while sign := self._take("==", "!=", "=~", "!~", *_COMPARISONS):
            left = _compared(sign, left, self.negation())
        return left

    def negation(self) -> object:
        if not self._take("!"):
            return self.access()
        value = self.negation()
        return UNKNOWN if value is UNKNOWN else not truth(value)

    def access(self) -> object:
        """A value and what is asked of it: `.name`, `.*`, `[...]`."""
        value = self.operand()
        while sign := self._take(".", "["):
            if sign == "[":
                value = _member(value, self.alternatives())
                self._expect("]")
            else:
                name = self.tokens.pop(0).text
                value = UNKNOWN if name == "*" else _member(value, name)
        return value

    def operand(self) -> object:
        kind, text = self.tokens.pop(0)
        if kind == "text":
            return text[1:-1].replace("''", "'") if text[0] == "'" else text[1:-1]
        if kind == "number":
            return float(int(text, 16)) if "0x" in text else float(text)
        if kind == "pattern":
            return re.compile(text[1:].rpartition("/")[0])
        if text == "(":
            value = self.alternatives()
            self._expect(")")
            return value
        if kind == "sign":
            raise ValueError(text)
        if self._take("("):
            return _called(text.lower(), self._arguments())
        # a variable of GitLab that nobody sets is null
        other = None if kind == "variable" else UNKNOWN
        return LITERALS.get(text, self.contexts.get(text, other))

    def _arguments(self) -> list[object]:
        arguments: list[object] = []
        while not self._take(")"):
            arguments.append(self.alternatives())
            self._take(",")
        return arguments

    def _take(self, *signs: str) -> str | None:
        if self.tokens and self.tokens[0].kind == "sign" and self.tokens[0].text in signs:
            return self.tokens.pop(0).text
        return None

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise ValueError(sign)


def _member(value: object, name: object) -> object:
    if isinstance(value, Mapping):
        return value.get(name, value.get("*"))  # `*`: what a context answers for all other names
    if isinstance(value, Sequence) and isinstance(name, float) and not isinstance(value, str):
        return value[int(name)] if 0 <= name < len(value) else None
    return UNKNOWN if value is UNKNOWN or name is UNKNOWN else None


def _compared(sign: str, left: object, right: object) -> object:
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if sign in ("=~", "!~"):
        found = bool(re.search(right, text_of(left))) if isinstance(right, re.Pattern) else False
        return found is (sign == "=~")
    if sign in ("==", "!="):
        plain = _plain if type(left) is type(right) else _number
        return (plain(left) == plain(right)) is (sign == "==")
    return _COMPARISONS[sign](_number(left), _number(right))


def _plain(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


def _number(value: object) -> float:
    """GitHub's conversion; nan equals nothing."""
    if value in (None, ""):
        return 0.0
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return float("nan")


def _called(name: str, arguments: list[object]) -> object:
    """The value of a function; of the status functions as in a run in which nothing failed."""
    status = {"always": True, "success": True, "failure": False, "cancelled": False}
    if name in status:
        return status[name]
    function = _FUNCTIONS.get(name)
    is_known = function and not any(argument is UNKNOWN for argument in arguments)
    return function(*arguments) if function and is_known else UNKNOWN


def _contains(whole: object, part: object) -> bool:
    if isinstance(whole, list):
        return any(_plain(item) == _plain(part) for item in whole)
    return text_of(part).lower() in text_of(whole).lower()


_FUNCTIONS: Mapping[str, Callable[..., object]] = {
    "contains": _contains,
    "startswith": lambda text, start: text_of(text).lower().startswith(text_of(start).lower()),
    "endswith": lambda text, end: text_of(text).lower().endswith(text_of(end).lower()),
    "format": lambda text, *values: re.sub(
        r"\{(\d+)\}", lambda place: text_of(values[int(place[1])]), text_of(text)
    ),
    "join": lambda values, between=",": text_of(between).join(
        map(text_of, values if isinstance(values, list) else [values])
    ),
    "tojson": json.dumps,
    "fromjson": lambda text: json.loads(text_of(text)),
}
