"""Which changes to deciding files are kept: growth, layout, renames that follow the sources.

A file has grown if everything in it is still there, and all additions are new tests, new rows of
tables, or definitions under names that nothing in the file used. Other modules hold other
changes. Whether a kept change proves as much as before is checked by running, not here.
"""

import re
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cached_property, lru_cache
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from msgspec import Struct, field

from atlas_retry.guard import places, ratchet
from atlas_retry.guard.case import Delta, Ruling, Scene, unpaired
from atlas_retry.model import Answer, Kind
from atlas_retry.patterns import regex, words
from atlas_retry.source import Import, definitions, imports, text_of, tokens
from atlas_retry.text.documents import parse

if TYPE_CHECKING:
    from tree_sitter import Node


_CONTAINERS = words("""
    module program source_file translation_unit compilation_unit class_body declaration_list
    interface_body enum_body
    """)
"""Nodes whose members are always definitions."""
_BODIES = words("""
    block statement_block body_statement block_body do_block compound_statement statement_list
    """)
"""Nodes whose members are definitions in a class or test group, but steps in a function."""
_CLASSES = words(
    "class_definition class_declaration class module namespace_definition internal_module"
)
_GROUPS = regex(r"^(RSpec\.)?(describe|context|suite|shared_examples\w*)\b")
_TABLES = words("""
    list array tuple set dictionary object literal_value array_expression initializer_list
    array_initializer array_creation_expression hash element_value_array_initializer
    argument_list arguments
    """)
_ROWS = _TABLES - {"argument_list", "arguments"} | words("""
    call call_expression keyed_element literal_element pair tuple_expression annotation
    element_value_pair struct_expression object_creation_expression composite_literal
    array_element_initializer new_expression
    """)
_DEFINITIONS = words("""
    function_definition class_definition decorated_definition function_declaration
    method_declaration class_declaration method_definition function_item mod_item struct_item
    enum_item impl_item type_declaration const_declaration method singleton_method class module
    lexical_declaration variable_declaration interface_declaration type_alias_declaration
    record_declaration enum_declaration const_item static_item attribute_item use_declaration
    struct_specifier field_declaration public_field_definition
    """)
_TEST_CALLS = regex(r"^(it|test|describe|context|suite|specify|scenario|TEST|TEST_F|TEST_P)\b")
_FOCUS = regex(r"\.(only|skip|todo|failing|fails)\b|^(fit|fdescribe|xit|xdescribe|xtest)\b")
_ASSERTION = regex(r"""(?x)
    ^( assert\b | (self|this|\$this)(\.|->)assert\w+\( | (await\s+)?expect\([^=]*\)\.
     | (debug_)?assert(_\w+)?!\( | (Assert\w*\.|Assertions\.)?assert[A-Z]\w*\(
     | (assert|require)(\.\w+)?\( | [A-Z_]*(ASSERT|CHECK|EXPECT|REQUIRE)[A-Z_\d]*\(
     | (if\b[^{]*\{\s*)? t\.(Error|Fatal)f?\( )
    """)
"""A statement that can only make a test stricter."""
_CALLED = regex(r"^([A-Za-z_]\w*)\(")
_BETWEEN_STEPS = regex(r"[;{\n]\s*")
_SETS_UP = regex(r"""(?ix)
    ^(set_?up|tear_?down|setup\w*|teardown\w*|init|main|TestMain|load_tests|before\w*|after\w*
      |around|let!|subject!|pytest\w*|collect_ignore\w*|__\w+__|inherit_doc)$
    """)
"""Names of definitions that affect other tests without being called."""
_REACHES_OUT = regex(r"""(?x)
    \bautouse\b | @(Before|After|Rule|ClassRule|Disabled|Ignore)\w* | \bcfg\s*\( | \bctor\b
    | \bskip | \bxfail\b | \bexpectedFailure\b | \[ignore | \bcfg_attr\b
    """)


class Renames:
    """Names and path parts that the sources dropped, and those that they have now."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene
        sources = (delta for delta in scene.deltas if places.is_source(delta.path))
        self._sources = [delta for delta in sources if delta.is_text]
        self._changed = frozenset(delta.path for delta in self._sources)
        self._users: dict[str, bool] = {}

    @cached_property
    def _now(self) -> frozenset[str]:
        """Names in the sources and in their paths."""
        words = (tokens.words_of(delta.path, delta.after) for delta in self._sources)
        there = (delta.path for delta in self._sources if delta.after is not None)
        names = (str(PurePosixPath(path).with_suffix("")) for path in there)
        return frozenset(chain(*words, *map(tokens.WORD.findall, names)))

    def has_replaced(self, old: str, new: str) -> bool:
        """Whether a name replaced one that no source has any more."""
        return old == new or (self.is_there(new) and not self.is_there(old))

    def is_there(self, name: str) -> bool:
        """Whether any source has the name now."""
        if name in self._now:
            return True
        if name not in self._users:
            files = self._scene.case.mentions([name]).get(name, frozenset())
            others = (path for path in files if path not in self._changed)
            word = re.compile(rf"\b{re.escape(name)}\b")
            self._users[name] = any(
                places.is_source(path)
                and (word.search(path) or word.search(self._scene.old_text(path)))
                for path in others
            )
        return self._users[name]


renames = lru_cache(maxsize=1)(Renames)


def growth(delta: Delta, reason: Answer, scene: Scene) -> Ruling | None:
    """The ruling on a change of a deciding file that is kept; None if it must be held."""
    of_tests = reason.rule == "test-changed" and not _only_runs(delta, scene)
    if delta.is_added:
        return _proved(delta, "grown", None) if of_tests and _may_be_added(delta, scene) else None
    if not delta.is_text or delta.old_mode != delta.new_mode:
        return None
    if _is_same(delta):
        return Ruling(path=delta.path, mechanism=_THE_SAME)
    if of_tests and (kept := _grown(delta, scene)):
        return kept
    if confined(delta, _complained(delta.path, scene)):
        return _proved(delta, "grown: what a gate reported", delta.before)
    return None


def _only_runs(delta: Delta, scene: Scene) -> bool:
    """Whether coverage fails and the new lines of a test assert nothing."""
    is_idle = not any(_ASSERTING.search(line) for _, line in delta.added_lines)
    return is_idle and places.is_code(delta.path) and "coverage" in ratchet.kinds_failing(scene)


_ASSERTING = regex(r"(?i)assert|expect|should|verify|raises|require[.(]|\.(Error|Fatal|Fail)|check")
_THE_SAME = "grown: the same, reformatted or renamed"


def _proved(delta: Delta, mechanism: str, was: bytes | None) -> Ruling:
    """A change that is kept if the gates pass with the earlier file too (None: absent)."""
    before = (delta.old_mode, was) if delta.old_mode and was else None
    return Ruling(path=delta.path, mechanism=mechanism, as_before={delta.path: before})


def _is_same(delta: Delta) -> bool:
    """Whether only the layout differs: tokens, or keys and values, are the same."""
    if tokens.same_tokens(delta.path, delta.before, delta.after):
        return True
    from pprint import pformat  # start-up

    old = None if places.is_code(delta.path) else _others(delta.path, delta.before)
    # as text: `true` is not `1` there, although they are equal
    return old is not None and pformat(old) == pformat(_others(delta.path, delta.after))


def _others(path: str, content: bytes | None) -> object:
    """A document; of a lock file, without what it says of the project's own packages."""
    document = parse(path, content or b"")
    if places.name(path) not in ("Cargo.lock", "uv.lock") or not isinstance(document, dict):
        return document
    packages = document.get("package")
    tables = [p for p in packages if isinstance(p, dict)] if isinstance(packages, list) else []
    others = [table for table in tables if not _OF_PROJECT.match(str(table.get("source", "")))]
    return {**document, "package": others}


_OF_PROJECT = regex(r"^$|\{'(editable|virtual|directory)'")
"""The source of a package of the project itself; Cargo names none for it."""


def _grown(delta: Delta, scene: Scene) -> Ruling | None:
    """The ruling on a test that only grew or follows names; snapshot files are keyed by test."""
    if delta.path.endswith((".snap", ".ambr")):
        rest = iter(delta.new_text.splitlines())
        is_kept = all(line in rest for line in delta.old_text.splitlines())
        return _proved(delta, "grown", delta.before) if is_kept else None
    old, new = delta.both(tokens.root)
    if old is None or new is None:
        return None
    file = SourceChange(delta=delta, led=renames(scene))
    if not file.imports_follow or not file.grows(old, new):
        return None
    # the file as it was, under the names that the sources have now
    grew = _proved(delta, "grown", file.renamed_before())
    return grew if file.added else Ruling(path=delta.path, mechanism=_THE_SAME)


def _may_be_added(delta: Delta, scene: Scene) -> bool:
    """Whether a new file is a test or data that cannot affect existing tests."""
    name = places.name(delta.path)
    if delta.new_mode not in ("100644", "100755") or _STEERING.search(name):
        return False
    if not places.is_code(delta.path):
        return not scene.case.mentions([name]).get(name)
    # nor may it hide a source next to it, or in the same package
    stem = PurePosixPath(delta.path).with_suffix("")
    package = stem.parts[-3:] if len(stem.parts) > 2 else ()  # noqa: PLR2004
    code = filter(places.is_code, scene.old_paths)
    others = {PurePosixPath(path).with_suffix("") for path in code}
    hides = stem in others or package in (other.parts[-3:] for other in others)
    return not hides and not _FOR_ALL.search(delta.new_text)


_STEERING = regex(r"""(?ix)
    ^(conftest\.py|__init__\.py|sitecustomize\.py|usercustomize\.py|\..*|rails_helper\.rb
      |(jest|vitest|test|mocha)[-.]?set-?up\..*|set-?up\w*\.[cm]?[jt]sx?|spec_helper\.rb
      |test_helper\.rb|.*\.config\.[cm]?[jt]s|.*\.(ini|cfg|toml)|phpunit.*|bootstrap\.php
      |package\.json|tsconfig.*|pytest_.*|.*_plugin\.py|go\.mod|junit-platform\.properties)$
    """)
"""Names of files that affect tests next to them."""


_FOR_ALL = regex(r"^func (TestMain|init)\(|\bRSpec\.configure\b", re.MULTILINE)
"""Code in a test file that affects tests in other files."""


class SourceChange(Struct, kw_only=True, dict=True):
    """One source before and after; `grows` compares their trees and counts additions."""

    delta: Delta
    led: Renames
    added: int = 0
    followed: dict[str, str] = field(default_factory=dict)
    """Names in the file that were replaced by the sources' present ones."""

    @cached_property
    def known(self) -> frozenset[str]:
        return tokens.words_of(self.delta.path, self.delta.before or b"")

    @cached_property
    def imports_follow(self) -> bool:
        """Whether all imports are kept, and new ones bind new names."""
        old, new = self.delta.both(imports)
        # first those that only moved: another order is no rename
        renamed = unpaired(old, new, lambda was, now: was.names == now.names)
        lost, came = unpaired(*renamed, self._same_import)
        self.added += len(came)
        return not lost and not any(one.name == "*" or one.local in self.known for one in came)

    def _same_import(self, old: Import, new: Import) -> bool:
        return self.same_names(old.name or "", new.name or "") and (
            self.same_names(old.local, new.local) and self._same_module(old.module, new.module)
        )

    def _same_module(self, old: str, new: str) -> bool:
        before, after = tokens.WORD.findall(old), tokens.WORD.findall(new)
        gone, came = Counter(before) - Counter(after), Counter(after) - Counter(before)
        return not any(map(self.led.is_there, gone)) and all(
            name in self.known or self.led.is_there(name) for name in came
        )

    def same_names(self, old: str, new: str) -> bool:
        """Whether two tokens differ at most in names that the sources dropped."""
        if old == new:
            return True
        if tokens.WORD.sub("", old) != tokens.WORD.sub("", new):
            return False
        before, after = tokens.WORD.findall(old), tokens.WORD.findall(new)
        pairs = tuple(zip(before, after, strict=False))
        if len(before) != len(after) or not all(
            self.led.has_replaced(was, now) for was, now in pairs
        ):
            return False
        self.followed.update((was, now) for was, now in pairs if was != now)
        return True

    def renamed_before(self) -> bytes:
        """The earlier file with names that the sources dropped replaced."""
        text = (self.delta.before or b"").decode("utf-8", "surrogateescape")
        renamed = tokens.WORD.sub(lambda match: self.followed.get(match[0], match[0]), text)
        return renamed.encode("utf-8", "surrogateescape")

    def grows(self, old: "Node", new: "Node") -> bool:
        """Whether a node kept everything, and all additions are harmless."""
        was, now = tokens.leaves(old), tokens.leaves(new)
        if len(was) == len(now) and all(map(self.same_names, was, now)):
            return True
        if old.type != new.type or not old.children or not new.children:
            return False
        is_table = old.type in _TABLES and not _is_plain_call(old)
        if is_table or old.type in _BODIES or old.type in _CONTAINERS:
            return self._grows_within(old, new)
        before, after = _parts_of(old), _parts_of(new)
        return len(before) == len(after) and all(map(self.grows, before, after))

    def _grows_within(self, old: "Node", new: "Node") -> bool:
        """Whether all old children are kept in order, and all others are new."""
        before, after = self._members(old), self._members(new)
        extra: list[Node] = []
        position = 0
        for child in after:
            if position < len(before) and self.has_grown(before[position], child):
                position += 1
            else:
                extra.append(child)
        if position < len(before):
            return False
        self.added += len(extra)
        if old.type in _TABLES:
            # new rows must be composite like the others
            kinds = {member.type for member in before if member.is_named} & _ROWS
            return bool(before) and all(child.type in kinds for child in extra)
        if not _is_container(old):
            return all(map(self._asks_more, extra))
        return all(self._is_new(child) for child in extra)

    def _asks_more(self, step: "Node") -> bool:
        """Whether a step only asserts, directly or by an asserting function of the file."""
        text = text_of(step)
        called = _CALLED.match(text)
        return bool(_ASSERTION.match(text) or (called and called[1] in self._asserting))

    @cached_property
    def _asserting(self) -> frozenset[str]:
        """Functions of the new file with assertions."""
        lines = self.delta.new_text.splitlines()
        _, scopes = self.delta.both(definitions)
        texts = {one.name: "\n".join(lines[one.def_line - 1 : one.end_line]) for one in scopes}
        steps = {name: _BETWEEN_STEPS.split(text) for name, text in texts.items()}
        return frozenset(name for name in steps if any(map(_ASSERTION.match, steps[name])))

    def has_grown(self, old: "Node", new: "Node") -> bool:
        """Whether an item and its attributes only grew."""
        counted = self.added
        if self.grows(old, new) and _attributes(old) == _attributes(new):
            return True
        self.added = counted
        return False

    def _members(self, node: "Node") -> "list[Node]":
        members = (part for part in _parts_of(node) if part.type != "attribute_item")
        return [member for member in members if not _is_import(member)]

    def _is_new(self, node: "Node") -> bool:
        """Whether a statement only adds a test or a definition with a new name."""
        text = _attributes(node) + text_of(node)
        if _REACHES_OUT.search(text.partition("{")[0] if "{" in text else text[:200]):
            return False
        if node.type in ("expression_statement", "call", "call_expression") and not _assigned(node):
            return bool(_TEST_CALLS.match(text)) and not _FOCUS.search(text.partition("(")[0])
        name = _name_of(node)
        if name is None or name in self.known or _SETS_UP.match(name):
            return False
        return node.type in _DEFINITIONS or _assigned(node) is not None


def _parts_of(node: "Node") -> "list[Node]":
    """Children without remarks and separators."""
    children = (child for child in node.children if child.type not in (",", ";", "\n"))
    return [child for child in children if not tokens.is_remark(child)]


def with_attributes(item: "Node") -> "list[Node]":
    """The attributes and comments before an item of Rust, and the item."""
    nodes, here = [item], item.prev_named_sibling
    while here is not None and (here.type == "attribute_item" or tokens.is_remark(here)):
        nodes, here = [here, *nodes], here.prev_named_sibling
    return nodes


def _attributes(item: "Node") -> str:
    return "".join(chain.from_iterable(map(tokens.leaves, with_attributes(item)[:-1])))


def _is_container(node: "Node") -> bool:
    """Whether the members of a node are definitions, not steps of a test."""
    if node.type in _CONTAINERS or node.type not in _BODIES or node.parent is None:
        return node.type in _CONTAINERS
    outer: Node | None = node.parent
    for _ in range(3):
        # of a test group, the body is in the block or callback of a call
        if outer is None or outer.type in ("call", "call_expression"):
            break
        outer = outer.parent
    is_group = outer is not None and "call" in outer.type and _GROUPS.match(text_of(outer)[:60])
    return node.parent.type in _CLASSES or bool(is_group)


def _is_plain_call(node: "Node") -> bool:
    """Whether these are arguments of a call that is not a table: `f(1)` grew to `f(1, 2)`."""
    if node.type not in ("argument_list", "arguments"):
        return False
    call = node.parent
    callee = text_of(call).partition("(")[0] if call is not None else ""
    return not re.search(r"\.each$|parametrize$|Source$|Values?$|Cases?$", callee)


_IMPORT = regex(r"^(future_)?import_(from_)?|^(namespace_)?use_declaration$|^preproc_include$")
_REQUIRED = regex(r"^require(_relative)? |^(const|let|var)\b[^=]*=\s*require\(")


def _is_import(node: "Node") -> bool:
    return bool(_IMPORT.match(node.type) or _REQUIRED.match(text_of(node)))


def _assigned(node: "Node") -> str | None:
    """The one name that a statement assigns to."""
    inner = node.children[0] if node.type == "expression_statement" and node.children else node
    left = inner.child_by_field_name("left") if "assignment" in inner.type else None
    if left is None or not left.type.endswith(("identifier", "constant", "variable_name")):
        return None
    return text_of(left)


def _name_of(node: "Node") -> str | None:
    """The name that a statement defines."""
    if (assigned := _assigned(node)) is not None:
        return assigned
    for inner in (node, *node.named_children):
        if (declarator := inner.child_by_field_name("declarator")) is not None:
            is_name = declarator.type == "identifier"
            return text_of(declarator) if is_name else _name_of(declarator)
        name = inner.child_by_field_name("name") or inner.child_by_field_name("type")
        if name is not None:
            return text_of(name)
    return None


def _complained(path: str, scene: Scene) -> frozenset[int]:
    """Lines of a file that lint, format and type gates reported."""
    of_behaviour = (Kind.TEST, Kind.BUILD, Kind.REVIEW)
    checkers = (result for result in scene.case.failing if result.kind not in of_behaviour)
    problems = chain.from_iterable(result.diagnostics for result in checkers)
    regions = (one.region for one in problems if one.path == path)
    spans = (range(r.start_line, (r.end_line or r.start_line) + 1) for r in regions if r)
    return frozenset(chain.from_iterable(spans))


def confined(delta: Delta, wanted: frozenset[int]) -> bool:
    """Whether a change affects reported lines alone and keeps assertions, and literals in use."""
    old, new = delta.both(tokens.root)
    if not wanted or old is None or new is None:
        return False
    before, after = [*_statements(old)], [*_statements(new)]
    reported = [one for one in before if _touches(one, wanted)]
    others = (tuple(tokens.leaves(one)) for one in before if not _touches(one, wanted))
    elsewhere = Counter(others) - Counter(tuple(tokens.leaves(one)) for one in after)
    names = tokens.words_of(delta.path, delta.after)
    unused = (one for one in reported if _is_unused(one, names))
    lost = Counter(_proofs(old)) - Counter(_proofs(new))
    lost -= Counter(chain.from_iterable(map(_proofs, unused)))
    steps, earlier = (sum(map(_is_step, some)) for some in (after, before))
    is_kept = not elsewhere and not lost
    return bool(reported) and is_kept and steps <= earlier


def _is_step(node: "Node") -> bool:
    """Whether a part of a test does more than to import, to define or to assert."""
    asserts = any(map(tokens.WORD.match, _proofs(node)))
    steps = ("statement", "assignment", "decorator", "modifiers", "attribute_item")
    return node.type.endswith(steps) and not (asserts or _is_import(node))


def _is_unused(statement: "Node", names: Collection[str]) -> bool:
    """Whether a statement asserts nothing, and defines a name that is not among these."""
    name = "" if any(map(tokens.WORD.match, _proofs(statement))) else _name_of(statement)
    return _is_import(statement) or (bool(name) and name not in names)


def _statements(root: "Node") -> "Iterator[Node]":
    """The innermost statements of a tree, and the heads of definitions."""
    for node in filter(_is_statement, tokens.walk(root)):
        plain = [part for part in node.children if not any(map(_is_statement, tokens.walk(part)))]
        if len(plain) == len(node.children):
            yield node
        elif node.type.endswith(("definition", "declaration", "item")):
            yield from (part for part in plain if part.is_named)


def _is_statement(node: "Node") -> bool:
    ends = ("statement", "declaration", "definition", "assignment", "item")
    return node.is_named and node.type.endswith(ends)


def _touches(node: "Node", lines: frozenset[int]) -> bool:
    return not lines.isdisjoint(range(node.start_point[0] + 1, node.end_point[0] + 2))


_PROOF = regex(
    r"^(assert\w*|expect\w*|should\w*|verify|require|raises|fail|t|Errorf|Fatalf)$|^[\"'\d]"
)


def _proofs(root: "Node") -> list[str]:
    """Literals, without the verbs of formats, and words of assertions, which a fix must keep."""
    return [re.sub(r"%[-+# .\d]*[a-zA-Z]", "%", t) for t in tokens.leaves(root) if _PROOF.match(t)]
