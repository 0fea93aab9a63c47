"""Whether an assertion of a JavaScript test fails unheard, in a promise. Runs nothing."""

import re
from typing import TYPE_CHECKING

from atlas_retry.guard.treechecks import text_of

if TYPE_CHECKING:
    from tree_sitter import Node

_LATER = re.compile(r"(^|\.)(setTimeout|setImmediate|queueMicrotask|nextTick)$")
_TOLD = re.compile(r"\b(throw|fail\w*|done|reject|resolve|expect|assert\w*|next|cb|exit\w*)\b")
_RESCUED = re.compile(r"\bexpect\.(has)?[aA]ssertions\(|\b\w+\.plan\(")
_FUNCTIONS = frozenset({"arrow_function", "function_expression", "function"})


def is_lost(check: "Node") -> bool:
    """Whether nothing waits for the promise that an assertion stands in, or its error is caught."""
    here = check
    while here.parent is not None:
        here = here.parent
        if here.type in _FUNCTIONS:
            call = _call_around(here)
            if call is None:
                continue
            if _is_test(call):
                return False
            if _drops(call, here):
                return True
    return False


def _call_around(function: "Node") -> "Node | None":
    """The call that a function is handed to, or that calls it on the spot."""
    here = function.parent
    while here is not None and here.type in ("arguments", "parenthesized_expression"):
        here = here.parent
    return here if here is not None and here.type == "call_expression" else None


def _is_test(call: "Node") -> bool:
    function = call.child_by_field_name("function")
    said = text_of(function) if function is not None else ""
    return bool(re.match(r"(?:[xf]?(?:test|it|specify)|t\.test)\b", said))


def _drops(call: "Node", function: "Node") -> bool:
    called = call.child_by_field_name("function")
    if called is None:
        return False
    word = text_of(called).rpartition(".")[2]
    if called.type == "member_expression" and word in ("then", "catch", "finally"):
        top, quiet = _chain(call)
        return quiet or (_is_left(top) and not _is_rescued(top))
    is_async = text_of(function).startswith("async")
    spot = called.type == "parenthesized_expression" or word == "forEach"
    later = bool(_LATER.search(text_of(called)))
    return (later or (spot and is_async)) and _is_left(call) and not _is_rescued(call)


def _chain(call: "Node") -> tuple["Node", bool]:
    """The end of `p.then(f).catch(g)`, and whether a `catch` on the way says nothing."""
    quiet, top = False, call
    while top.parent is not None and top.parent.type == "member_expression":
        if top.parent.parent is None or top.parent.parent.type != "call_expression":
            break
        top = top.parent.parent
        quiet = quiet or is_quiet_catch(top)
    return top, quiet


def is_quiet_catch(call: "Node") -> bool:
    """Whether a call is `.catch(() => undefined)`: a failed assertion is no failure then."""
    called, told = (call.child_by_field_name(field) for field in ("function", "arguments"))
    if called is None or told is None or not text_of(called).endswith(".catch"):
        return False
    handler = told.named_children[0] if told.named_children else None
    return handler is not None and handler.type in _FUNCTIONS and not _TOLD.search(text_of(handler))


def _is_left(call: "Node") -> bool:
    """Whether a call is a statement: nobody waits for what it promises."""
    parent = call.parent
    if parent is not None and parent.type == "unary_expression" and text_of(parent)[:4] == "void":
        parent = parent.parent
    return parent is not None and parent.type == "expression_statement"


def _is_rescued(call: "Node") -> bool:
    """Whether the test says how many assertions there are, or is told when it is over."""
    here = call
    while here.parent is not None:
        here = here.parent
        if here.type == "new_expression" and text_of(here).startswith("new Promise"):
            return True
        around = _call_around(here) if here.type in _FUNCTIONS else None
        if around is not None and _is_test(around):
            return _hears(here, call)
    return False


def _hears(test: "Node", call: "Node") -> bool:
    given = test.child_by_field_name("parameters") or test.child_by_field_name("parameter")
    names = re.findall(r"[A-Za-z_$][\w$]*", text_of(given)) if given is not None else []
    told = text_of(call)
    ends = any(
        re.search(rf"(?<![.\w]){re.escape(n)}\s*[(),]|{re.escape(n)}\.end\(", told) for n in names
    )
    return ends or bool(_RESCUED.search(text_of(test)))
