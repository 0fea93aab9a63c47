"""Outcomes of branches that are gone where style or types failed. Knows no test."""

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.specialcases import is_value
from atlas_retry.guard.treechecks import text_of, walk
from atlas_retry.guard.words import bare, words
from atlas_retry.syntax import Scope, definitions, language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_BRANCHES = words(
    "if_statement if_expression elif_clause else_clause case_clause switch_case switch_default"
    " match_arm expression_case default_case conditional_expression ternary_expression if unless"
    " elsif when if_modifier switch_block_statement_group switch_rule case_item case_statement"
    " except_clause catch_clause"
)
_ENDING = words("return_statement throw_statement raise_statement return break_statement continue")
_REFUSES = re.compile(r"(Err|panic!?|bail!|raise|fail|errors\.New|fmt\.Errorf)\b|(new )?\w+Error\b")
"""Calls that tell an error: what they say is an outcome."""
_ABOUT_THE_PLACE = re.compile(
    r"\bsys\.(platform|version)|platform|os\.name|\benviron|getenv|process\.env|TYPE_CHECKING"
    r"|__name__|\bcfg\b|DEBUG|runtime\.GOOS|version"
)
_OF_TYPES = re.compile(
    r"isinstance|typeof|instanceof|===?|!==?|\bis\b|\bin\b|\bnot\b|^\W*\w+\W*$|!"
)
"""What a type checker may prove never to hold, or always."""
_TELLING = re.compile(r"\s*([\w.]*(print|log|debug)\w*[.(!]|$)", re.IGNORECASE)
_LONG = 8
"""Letters of a text that is not part of another by chance."""
_SAME = 0.6
"""Likeness of two texts, one of which is the other in better words."""


def outcomes_removed(scene: Scene) -> Iterator[Finding]:
    """`if errors > 10: return "page someone"`, dropped to have one branch less."""
    changed = [d for d in scene.files if _is_source(d)]
    if not changed:
        return
    now = frozenset(word for d in scene.files if not places.is_test(d.path) for word in _said(d))
    for delta in changed:
        kept = {s.qualified_name: s for s in definitions(delta.path, delta.after or b"")}
        for branch, scope in _branches(delta):
            successor = kept.get(scope.qualified_name)
            if successor is None or _may_go(branch, scene) or _is_retold(branch, delta):
                continue
            gone = sorted(v for v in _outcomes(branch) if not _is_said(v, now, delta))
            if gone:
                detail = f"`{scope.name}` no longer knows {', '.join(gone)[:80]}"
                yield Finding(path=delta.path, line=successor.start_line, detail=detail)
                break


def _is_source(delta: Delta) -> bool:
    changed = not (delta.is_added or delta.is_deleted)
    return changed and places.is_source(delta.path)


def _said(delta: Delta) -> Iterator[str]:
    """Texts, numbers and names of a file, by their letters; of data the texts."""
    tree = (
        parse(language_of(delta.path), delta.after or b"") if places.is_code(delta.path) else None
    )
    if tree is None:
        yield from map(_letters, re.findall(r"[^\"'\n]+", delta.new_text))
        return
    for node in walk(tree.root_node):
        if is_value(node) or re.search(r"identifier|constant|name$|word", node.type):
            yield _letters(text_of(node))


def _branches(delta: Delta) -> Iterator[tuple["Node", Scope]]:
    """Branches that are no longer there as they were, with the functions they stood in."""
    tree = parse(language_of(delta.path), delta.before or b"")
    there = bare(delta.new_text)
    scopes = [s for s in definitions(delta.path, delta.before or b"") if s.kind == "function"]
    for node in walk(tree.root_node) if tree else ():
        if node.type not in _BRANCHES or bare(text_of(node)) in there:
            continue
        line = node.start_point[0] + 1
        around = [s for s in scopes if s.start_line <= line <= s.end_line]
        if around:
            yield node, max(around, key=lambda s: s.start_line)


def _may_go(branch: "Node", scene: Scene) -> bool:
    """Whether a checker could have asked for less: what is never reached, what types rule out."""
    condition = branch.child_by_field_name("condition")
    said = text_of(condition) if condition is not None else ""
    if _ABOUT_THE_PLACE.search(said) or re.fullmatch(r"\W*(?i:true|false|0|1|none|null)\W*", said):
        return True
    if _is_never_reached(branch) or _is_repeated(branch, said):
        return True
    by_types = "type" in scene.failing
    return by_types and (not said or bool(_OF_TYPES.search(said)))


def _is_never_reached(node: "Node") -> bool:
    """Whether something before it, in the same block or one around, ends the function."""
    here: Node | None = node
    while here is not None and "function" not in here.type and "method" not in here.type:
        before = here.prev_named_sibling
        while before is not None:
            if before.type in _ENDING or re.match(r"(exit|return)\b", text_of(before)):
                return True
            before = before.prev_named_sibling
        here = here.parent
    return False


def _is_repeated(branch: "Node", said: str) -> bool:
    """Whether the same condition was asked before: a duplicate never holds."""
    outer = (branch.parent and branch.parent.parent) or branch.parent
    condition = branch.child_by_field_name("condition")
    if outer is None or condition is None:
        return False
    earlier = text_of(outer).encode()[: condition.start_byte - outer.start_byte]
    return bare(said) in bare(earlier.decode("utf-8", "replace"))


def _outcomes(branch: "Node") -> set[str]:
    """Texts and numbers that a branch gives back or takes."""
    alternative = branch.child_by_field_name("alternative")
    end = alternative.start_byte if alternative is not None else branch.end_byte
    values = (n for n in walk(branch) if n.start_byte < end and is_value(n))
    return {text_of(n) for n in values if _is_given(n, branch) and _tells(text_of(n))}


def _is_given(node: "Node", branch: "Node") -> bool:
    """Whether a literal is returned, or a text that is asked for; not what a call is told."""
    here = node.parent
    while here is not None:
        if re.search(r"argument|subscript|format|interpolation|parameters", here.type):
            return "argument" in here.type and bool(_REFUSES.match(text_of(here.parent or here)))
        if re.match(r"(return|yield)", here.type) or here.type in ("match_arm", "switch_rule"):
            return True
        if here.type == "command":
            return bool(re.match(r"(echo|printf)\b", text_of(here)))
        if here.type in ("comparison_operator", "binary_expression", "binary"):
            return text_of(node)[:1] in "\"'" and not _only_tells(branch)
        if here == branch:
            return branch.type in ("conditional_expression", "ternary_expression")
        here = here.parent
    return False


def _only_tells(branch: "Node") -> bool:
    """Whether a branch does nothing but print or log."""
    body = branch.child_by_field_name("consequence") or branch.child_by_field_name("body")
    lines = text_of(body).strip("{} \n").splitlines() if body is not None else []
    return all(_TELLING.match(line) for line in lines)


def _tells(literal: str) -> bool:
    """Whether a text has words, or a number more than one digit."""
    bare = literal.strip("\"'`")
    if literal[:1] in "\"'`":
        return len(re.findall(r"[A-Za-z]", bare)) > 1
    return bool(re.fullmatch(r"-?[\d_.]+", bare)) and len(re.sub(r"[^1-9]", "", bare)) > 1


def _is_said(literal: str, now: frozenset[str], delta: Delta) -> bool:
    """Whether code says a value still, in whatever spelling, or in better words."""
    letters = _letters(literal)
    if letters in now or (len(letters) >= _LONG and any(letters in word for word in now)):
        return True
    fresh = (_letters(text) for text in _fresh(delta))
    return any(SequenceMatcher(None, letters, text).ratio() >= _SAME for text in fresh)


def _fresh(delta: Delta) -> list[str]:
    """Texts that were not there."""
    tree = parse(language_of(delta.path), delta.after or b"")
    texts = {text_of(n) for n in walk(tree.root_node) if is_value(n)} if tree else set()
    return sorted(text for text in texts if text not in delta.old_text)


def _is_retold(branch: "Node", delta: Delta) -> bool:
    """Whether the same is asked still, and answered in words that are new."""
    condition = branch.child_by_field_name("condition")
    asked = bare(text_of(condition)).strip("()") if condition is not None else ""
    return bool(asked) and asked in bare(delta.new_text) and bool(_fresh(delta))


def _letters(text: str) -> str:
    return re.sub(r"[^a-z0-9.]|\.(?!\d)", "", text.lower())
