"""Whether an assertion compares a value with a copy of itself, made just before. Pure."""

import re
from itertools import permutations
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tree_sitter import Node

_OPERAND = re.compile(r"[(,]\s*[&*]?(\w+)\s*(?=[,)])|(\w+)\s*[!=]==?\s*(\w+)")
_FUNCTION = re.compile(r"function|method|lambda|closure")
_MOST = 6
"""Operands of an assertion that are looked at."""
_COPY = (
    r"[&*]?{0}"
    r"|append\(\[\][^,]*,\s*{0}\.\.\.\)|(?:slices|maps|bytes|strings)\.Clone\({0}\)"
    r"|\[\.\.\.{0}\]|\{{\s*\.\.\.{0}\s*\}}|structuredClone\({0}\)|Array\.from\({0}\)"
    r"|JSON\.parse\(JSON\.stringify\({0}\)\)|Object\.assign\(\{{\}},\s*{0}\)"
    r"|{0}\.(?:clone|to_vec|to_owned|slice|concat)\(\)|(?:List|Set|Map)\.copyOf\({0}\)"
    r"|new (?:\w*List|\w*Set|\w*Map)(?:<[^>]*>)?\({0}\)"
)
_SAYS = re.compile(r"\b(?:if|for|switch|catch) ?\(|\bt\.\w+\(")
_CALLS = re.compile(r"\w\s*!?\(")


def of_itself(assertion: "Node") -> frozenset[str]:
    """What to call it where one side is a copy of the other; empty where it is not."""
    said = (assertion.text or b"").decode("utf-8", "replace")
    names = {name for found in _OPERAND.findall(said) for name in found if name}
    before = _before(assertion) if 1 < len(names) < _MOST else ""
    for copy, value in permutations(sorted(names), 2):
        bound = rf"\b{copy}\b[^=\n;()]*?:?=(?!=)\s*(?:{_COPY.format(re.escape(value))})\s*(?=[;\n])"
        for found in re.finditer(bound, before):
            if not _is_used(_SAYS.sub("", before[found.end() :]), copy, value):
                return frozenset({"a copy of itself"})
    return frozenset()


def _is_used(between: str, *names: str) -> bool:
    """Whether something may have changed one of the two after the copy was made."""
    spoken = any(re.search(rf"\b{name}\b", between) for name in names)
    return spoken or bool(_CALLS.search(between))


def _before(assertion: "Node") -> str:
    """What its function says up to the assertion."""
    here = assertion.parent
    while here is not None and here.parent is not None and not _FUNCTION.search(here.type):
        here = here.parent
    if here is None:
        return ""
    text = here.text or b""
    return text[: assertion.start_byte - here.start_byte].decode("utf-8", "replace")
