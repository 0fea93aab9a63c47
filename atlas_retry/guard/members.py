"""Members that the sources gave up for others with telling names. Reads syntax, compares no tests.

`cache.size` read as `cache.length` is no measuring of a value where the class calls it so now.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING

from msgspec.structs import replace

from atlas_retry.guard import places
from atlas_retry.guard.case import Scene
from atlas_retry.guard.renames import MAX_SOURCES
from atlas_retry.guard.treechecks import text_of, walk
from atlas_retry.guard.units import Check
from atlas_retry.syntax import language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

_DEFINES = re.compile(r"^(abstract_)?(method|function|property|public_field|field)_\w+$")
_FIELDS = ("name", "property", "declarator")
_MOST = 3
"""Names that one assertion may follow at once."""

Pairs = tuple[tuple[str, str], ...]


def as_followed(old: Check, new: Check, scene: Scene) -> Check:
    """The later of two assertions, without the loosening that is only a member's new name."""
    loose = new.loosening - old.loosening
    put = _put_for(old, new) if loose else ()
    if not loose or not loose <= {name for _, name in put}:
        return new
    known = _defined(scene, frozenset(name for pair in put for name in pair))
    sound = all(now in known and was not in known for was, now in put)
    return replace(new, loosening=new.loosening - loose) if sound else new


def _put_for(old: Check, new: Check) -> Pairs:
    """Names that stand where others stood, in assertions that are the same but for them."""
    gone, came = sorted(old.names - new.names), new.names - old.names
    if len(gone) != len(came) or len(came) > _MOST:
        return ()
    for order in permutations(came):
        pairs = tuple(zip(gone, order, strict=True))
        text = old.text
        for was, now in pairs:
            text = re.sub(rf"(?<![A-Za-z_]){re.escape(was)}(?![A-Za-z_])", now, text)
        if text.replace("()", "") == new.text.replace("()", ""):
            return pairs
    return ()


@lru_cache(maxsize=16)
def _defined(scene: Scene, words: frozenset[str]) -> frozenset[str]:
    """Which of these words the sources define now; all where there are too many to read."""
    sources = [p for p in sorted(scene.new_paths) if places.is_source(p)]
    if len(sources) > MAX_SOURCES:
        return words
    found: set[str] = set()
    for path in sources:
        source = scene.new(path) or b""
        if any(word.encode() in source for word in words):
            tree = parse(language_of(path, source), source)
            found |= {*_names(tree.root_node)} if tree is not None else words
    return words & found


def _names(root: "Node") -> Iterator[str]:
    for node in walk(root):
        if _DEFINES.match(node.type):
            named = (n for field in _FIELDS for n in node.children_by_field_name(field))
            yield from (text_of(n.child_by_field_name("name") or n) for n in named)
        elif node.type == "required_parameter" and len(text_of(node).split(":")[0].split()) > 1:
            yield text_of(node).split(":")[0].split()[-1]
        elif node.type == "assignment_expression" and (left := node.child_by_field_name("left")):
            yield from re.findall(r"^this\.(\w+)$", text_of(left))
