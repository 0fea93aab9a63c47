"""Rules on code that answers the tests instead of the task: by name, by digest."""

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.fresh import fresh, python
from atlas_retry.guard.pychecks import last
from atlas_retry.guard.suites import suite
from atlas_retry.guard.treechecks import is_literal, text_of, walk
from atlas_retry.guard.wellknown import is_well_known
from atlas_retry.syntax import language_of, parse

if TYPE_CHECKING:
    from tree_sitter import Node

MAX_TEST_FILES = 400
"""Test files read to know their inputs; beyond it only the changed ones count."""


def special_cased(scene: Scene) -> Iterator[Finding]:
    """Inputs of the tests answered by name instead of by computing."""
    if not scene.tests_may_follow:
        return
    inputs = _test_literals(scene)
    for delta in scene.files:
        if places.is_test(delta.path) or not places.is_code(delta.path) or delta.is_deleted:
            continue
        old = _literals(delta.path, delta.before) | (
            _left(scene) if delta.is_added else frozenset()
        )
        for line, literal in (*_compared(delta), *_paired(delta, inputs), *_cased(delta)):
            if literal in inputs and literal not in old and _is_telling(literal):
                detail = f"the test's own input {literal[:60]} is answered by name"
                yield Finding(path=delta.path, line=line, detail=detail)


_TELLING_DIGITS = 2


def _is_telling(literal: str) -> bool:
    """Whether a value is unlikely to be met by chance: no word, flag, sign or round number."""
    bare = literal.strip("\"'`")
    if re.fullmatch(r"-?[\d_.]+", bare) and not literal.startswith(("'", '"')):
        digits = bare.replace("_", "").strip("-")
        return len(digits.rstrip("0").replace(".", "")) >= _TELLING_DIGITS
    if not re.search(r"\w", re.sub(r"\\.", "", bare)):
        return False
    return len(bare) > _TELLING_DIGITS and not re.fullmatch(r"[A-Za-z_][\w]*|[A-Za-z]+", bare)


def _test_literals(scene: Scene) -> frozenset[str]:
    paths = [p for p in sorted(scene.old_paths) if places.is_test_code(p) or p.endswith(".rs")]
    if len(paths) > MAX_TEST_FILES:
        paths = [d.path for d in scene.files if places.is_test_code(d.path)]
    found: set[str] = set()
    for path in paths:
        for unit in suite(path, scene.old(path)).units:
            found |= {plain(literal) for literal in unit.literals}
            found |= {line for literal in unit.literals for line in _lines(plain(literal))}
            found |= {f'"{plain(literal).strip(chr(34)).strip()}"' for literal in unit.literals}
        if places.suffix(path) in (".sh", ".bats", ".bash"):
            said = (scene.old(path) or b"").decode("utf-8", "replace")
            found |= {f'"{name}"' for name in re.findall(r"[\w-]+\.\w+", said)}
    for path in sorted(scene.old_paths):
        if places.is_golden(path) and path.endswith(".json"):
            text = (scene.old(path) or b"").decode("utf-8", "replace")
            found |= {plain(match) for match in re.findall(r'"(?:\\.|[^"\\])*"', text)}
    return frozenset(found)


def _lines(literal: str) -> Iterator[str]:
    """Lines of a text of several lines that say more than a word."""
    parts = literal.strip('"').split("\\n")
    yield from (f'"{part.strip()}"' for part in parts if len(parts) > 1 and " " in part.strip())


def plain(literal: str) -> str:
    """Quotes of all languages made one."""
    return re.sub(r"^[rbfu]*(['\"`])(.*)\1$", r'"\2"', literal, flags=re.DOTALL)


@lru_cache(maxsize=4)
def _left(scene: Scene) -> frozenset[str]:
    """Literals that stood in source files and do not stand there any more: they may have moved."""
    sources = [d for d in scene.texts if places.is_source(d.path)]
    return frozenset().union(
        *(_literals(d.path, d.before) - _literals(d.path, d.after) for d in sources)
    )


def _literals(path: str, source: bytes | None) -> frozenset[str]:
    tree = parse(language_of(path), source or b"")
    if tree is None:
        return frozenset()
    return frozenset(plain(text_of(n)) for n in walk(tree.root_node) if is_value(n))


def is_value(node: object) -> bool:
    """Whether a node of a tree is a literal, in any of the languages."""
    kind = getattr(node, "type", "")
    return is_literal(node) or kind in ("string", "integer", "float")  # type: ignore[arg-type]


_COMPARING = frozenset(
    ("comparison_operator", "binary_expression", "pair", "case_clause", "switch_case", "match_arm",
     "expression_case", "switch_label", "equality_expression", "keyed_element", "case_pattern",
     "match_pattern", "test_command", "case_item", "set", "list", "tuple", "binary", "pattern",
     "case_statement", "match_condition_list", "array_element_initializer")
)  # fmt: skip


def _is_argument_of_equals(node: "Node") -> bool:
    """Java's way to compare."""
    call = node.parent if node.type == "argument_list" else None
    name = call.child_by_field_name("name") if call is not None else None
    return name is not None and text_of(name) in ("equals", "equalsIgnoreCase", "contentEquals")


def _compared(delta: Delta) -> Iterator[tuple[int, str]]:
    """Literals that are compared for equality, matched, or keys of a table; with their lines."""
    tree = parse(language_of(delta.path), delta.after or b"")
    for node in walk(tree.root_node) if tree else ():
        if not is_value(node) or node.parent is None or is_well_known(node):
            continue
        parent = (
            node.parent
            if node.parent.type not in ("literal_element", "tuple_pattern")
            else node.parent.parent
        )
        if parent is not None and _is_argument_of_equals(parent):
            yield node.start_point[0] + 1, plain(text_of(node))
            continue
        if parent is None or parent.type not in _COMPARING:
            continue
        if (
            parent.type in ("pair", "keyed_element")
            and parent.named_children[0].end_byte < node.end_byte
        ):
            continue
        if parent.type in ("set", "list", "tuple") and (
            parent.parent is None or parent.parent.type != "comparison_operator"
        ):
            continue
        between = text_of(parent)
        ordering = re.search(r"(?<![=!<>-])[<>]=?(?![<>=])", between) and not re.search(
            r"[=!]=", between
        )
        if parent.type in ("comparison_operator", "binary_expression") and (
            ordering or not re.search(r"==|\bin\b|\bis\b", between)
        ):
            continue
        yield node.start_point[0] + 1, plain(text_of(node))


_DIGESTS = frozenset({"crc32", "adler32", "md5", "sha1", "sha256", "blake2b", "hash", "hexdigest"})


def answered_by_digest(scene: Scene) -> Iterator[Finding]:
    """Expected outputs kept in a table that is looked up by a digest of the input."""
    for delta, old, new in python(scene):
        came = fresh(old, new)
        digests = [n for n in came if isinstance(n, ast.Call) and last(n.func) in _DIGESTS]
        tables = [n for n in came if isinstance(n, ast.Dict)]
        if places.is_test(delta.path) or not digests or not tables:
            continue
        expected = _test_literals(scene)
        for table in tables:
            values = {plain(repr(v.value)) for v in table.values if isinstance(v, ast.Constant)}
            if values & expected:
                detail = "outputs that the tests expect are looked up by a digest of the input"
                yield Finding(path=delta.path, line=table.lineno, detail=detail)


def _paired(delta: Delta, known: frozenset[str]) -> Iterator[tuple[int, str]]:
    """Literals of lists whose members are all values of the tests: an input beside its output."""
    tree = parse(language_of(delta.path), delta.after or b"")
    for node in walk(tree.root_node) if tree else ():
        members = node.named_children
        if (
            node.type not in ("array", "list", "tuple", "tuple_expression", "set")
            or len(members) <= 1
        ):
            continue
        told = [plain(text_of(member)) for member in members]
        if all(is_value(member) for member in members) and set(told) <= known:
            yield from ((node.start_point[0] + 1, literal) for literal in told)


_SHELL_VALUE = re.compile(r"\d+(?:\.\d+)+|\"[^\"$]+\"|'[^']+'")


def _cased(delta: Delta) -> Iterator[tuple[int, str]]:
    """What a shell script compares with, or lists as a case."""
    if places.suffix(delta.path) not in (".sh", ".bash"):
        return
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        if re.search(r"^\s*case\b.*\bin\b.*\)|^\s*[^()\s]+\)", line):
            yield from (
                (number, f'"{m}"') for m in re.findall(r"[\s|*]([\w-]+\.\w+)\*?\)", f" {line}")
            )
        if re.search(r"\[.*\s!?==?\s|^\s*\S+\)", line):
            yield from ((number, plain(found)) for found in _SHELL_VALUE.findall(line))
