"""Which outcome an assertion insists on: true, nothing, an error, a variant. Reads text only."""

import re

from atlas_retry.guard.words import words

Outcome = tuple[str, frozenset[str]]
"""What an assertion is about, and the kinds of outcome that satisfy it."""
_ALL = words("true false null undefined thrown Ok Err Some None zero other")
_VALUES = _ALL - {"thrown"}
_NOTHING = frozenset({"null", "undefined"})
_TRUTHY = _VALUES - _NOTHING - {"false", "zero"}
_EXPECT = re.compile(r"(expect\(.*\))\.((?:not\.|resolves\.|rejects\.)*)(\w+)\((.*)\)$", re.DOTALL)
_OF_MATCHERS = {
    "toBeTruthy": _TRUTHY, "toBeFalsy": _VALUES - _TRUTHY,
    "toBeNull": {"null"}, "toBeUndefined": {"undefined"}, "toBeDefined": _VALUES - {"undefined"},
    "toThrow": {"thrown"}, "toThrowError": {"thrown"},
}  # fmt: skip
_EQUAL = words(
    "toBe toEqual toStrictEqual equal strictEqual deepEqual deepStrictEqual same is"
    " assertEquals assertSame Equal EqualValues Exactly assert_eq"
)
_UNEQUAL = words("notEqual notStrictEqual assertNotEquals NotEqual assert_ne")
_OF_ONE = {
    "ok": _TRUTHY, "isTrue": {"true"}, "isFalse": {"false"},
    "isNull": {"null"}, "isOk": _TRUTHY, "throws": {"thrown"},
    "doesNotThrow": _VALUES, "rejects": {"thrown"}, "doesNotReject": _VALUES,
    "assertTrue": {"true"}, "assertFalse": {"false"}, "assertNull": {"null"},
    "assertNotNull": _VALUES - {"null"}, "assertDoesNotThrow": _VALUES,
    "True": {"true"}, "False": {"false"}, "Nil": {"null"}, "NotNil": _VALUES - {"null"},
    "NoError": {"null"}, "Error": _VALUES - {"null"}, "assert": {"true"},
}  # fmt: skip
_CALL = re.compile(r"((?:\w+\.|\w+::)*)(\w+)!?\((.*)\)$", re.DOTALL)
_VARIANT = re.compile(r"(Ok|Err|Some)\(|(None|true|false|null|undefined)$")
_ENDS = (
    (re.compile(r"(.*)\.is_(ok|err|some|none)\(\)$", re.DOTALL), None),
    (re.compile(r"(.*)\.unwrap_err\(\)$", re.DOTALL), frozenset({"Err"})),
    (re.compile(r"(.*)\.unwrap\(\)$", re.DOTALL), frozenset({"Ok", "Some"})),
)


def turned(old: Outcome | None, new: Outcome | None) -> bool:
    """Whether two assertions on the same thing cannot both hold."""
    if not (old and new and old[0] == new[0]) or old[1] & new[1]:
        return False
    return {_AS_RESULT.get(kind, kind) for kind in old[1]} != new[1]


_AS_RESULT = {"Some": "Ok", "None": "Err"}
"""What a function that returned an `Option` says as a `Result`: the compiler lets no other pass."""


def is_error_now(old: Outcome | None, new: Outcome | None) -> bool:
    """Of Go: whether what was told by `ok` is told by an error, of the same call."""
    if not (old and new):
        return False
    (was, _, first), (is_, _, second) = old[0].partition(" "), new[0].partition(" ")
    same = re.sub(rf"\b{re.escape(was)}\b", is_, first) == second
    failing, passing = _VALUES - {"null"}, frozenset({"null"})
    return same and (old[1], new[1]) in (
        (frozenset({"false"}), failing),
        (frozenset({"true"}), passing),
    )


def outcome(said: str) -> Outcome | None:
    """Of an assertion of JavaScript, Java, Go or Rust as it is spelled; None for any other."""
    text = re.sub(r"\s+", "", said)
    matched = _EXPECT.match(text)
    if matched:
        return _expected(*matched.groups())
    called = _CALL.match(text)
    if called is None:
        return None
    word, told = called[2].removesuffix("f") if called[1] else called[2], parts(called[3])
    if called[1].startswith(("require.", "assert.")) and told[:1] == ["t"]:
        told = told[1:]
    if word == "assertThrows" and len(told) > 1:
        return _bare(told[1]), frozenset({"thrown"})
    if word in _OF_ONE and told:
        return _true_or_false(told[0], frozenset(_OF_ONE[word]))
    pair = told[:2]
    if word.startswith("assert") and called[1] == "" and not word.startswith("assert_"):
        pair.reverse()
    if word in _EQUAL | _UNEQUAL and len(pair) > 1:
        return _compared(pair[0], pair[1], equal=word in _EQUAL)
    return None


def outcome_of_failing(condition: str, first: str) -> Outcome | None:
    """Of `if condition { t.Error() }` in Go: what is insisted on is its opposite."""
    text = re.sub(r"\s+", "", condition)
    found = re.fullmatch(r"([\w.]+)(==|!=)(nil|true|false)", text)
    if found:
        kind = frozenset({"null" if found[3] == "nil" else found[3]})
        subject, wanted = found[1], kind if found[2] == "!=" else _VALUES - kind
    elif plain := re.fullmatch(r"(!?)([\w.]+(?:\(.*\))?)", text, re.DOTALL):
        subject, wanted = plain[2], frozenset({"true"} if plain[1] else {"false"})
    else:
        return None
    return f"{subject} {''.join(first.split())}", wanted


def _expected(subject: str, chain: str, matcher: str, told: str) -> Outcome | None:
    bare = _bare(subject[len("expect(") : -1])
    if "rejects." in chain:
        return bare, frozenset({"thrown"})
    if matcher in _EQUAL:
        return _compared(bare, told, equal="not." not in chain)
    if matcher not in _OF_MATCHERS:
        return None
    kinds = frozenset(_OF_MATCHERS[matcher])
    return bare, _VALUES - kinds if "not." in chain else kinds


def _compared(subject: str, value: str, *, equal: bool) -> Outcome | None:
    kinds = _kinds(value)
    if kinds is None:
        return None
    return _true_or_false(subject, kinds if equal else _VALUES - kinds)


def _kinds(value: str) -> frozenset[str] | None:
    """What a literal is; None where it is no literal."""
    found = _VARIANT.match(value)
    if found:
        return frozenset({found[1] or found[2]})
    if re.fullmatch(r"""-?0|""|''|``|NaN""", value):
        return frozenset({"zero"})
    is_literal = re.match(r"""-?\d|["'`\[{]""", value)
    return frozenset({"other"}) if is_literal else None


def _true_or_false(subject: str, kinds: frozenset[str]) -> Outcome:
    """With `!x` and `x.is_err()` as what they say of x."""
    bare = _bare(subject)
    if bare.startswith("!") and kinds & {"true", "false"}:
        flipped = {"true": "false", "false": "true"}
        sides = kinds & {"true", "false"}
        return _true_or_false(bare[1:], frozenset(flipped[side] for side in sides))
    within = re.fullmatch(r"matches!\((.*),(Ok|Err|Some|None)\b.*\)", bare, re.DOTALL)
    if within and kinds == {"true"}:
        return within[1], frozenset({within[2]})
    for pattern, variants in _ENDS:
        if found := pattern.match(bare):
            told = variants or frozenset({found[2].capitalize()})
            return found[1], told if "false" not in kinds else _opposite(told)
    return bare, kinds


def _opposite(variants: frozenset[str]) -> frozenset[str]:
    pairs = {"Ok": "Err", "Err": "Ok", "Some": "None", "None": "Some"}
    return frozenset(pairs[variant] for variant in variants)


def _bare(subject: str) -> str:
    """Without the function around it that lets it be called later."""
    return re.sub(r"^(async)?\(\)(=>|->)", "", subject)


_QUOTED = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])*'|`[^`]*`|=>|->|.", re.DOTALL)


def parts(told: str) -> list[str]:
    """The arguments between the brackets of a call."""
    found, depth = [""], 0
    for piece in _QUOTED.findall(told):
        depth += (piece in "([{") - (piece in ")]}")
        if piece == "," and depth == 0:
            found.append("")
        else:
            found[-1] += piece
    return [part for part in found if part]
