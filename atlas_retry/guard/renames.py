"""Names that the sources gave up for others: old Python tests, read in the new ones.

A name has followed when the tests put one for the other throughout, and the sources do not know
the old one any more. Compares no tests.
"""

import ast
import builtins
import difflib
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

from msgspec import Struct

from atlas_retry.guard import places, pychecks
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.guard.fresh import imports, own_modules, tree_of

MAX_SOURCES = 400
"""Sources read to know what they define; in a larger project no name is taken for another."""
_ALIKE = 0.3
"""The part of its lines that a test file keeps when it moves."""
_OPTION = re.compile(r"--[a-z][\w-]+")
_RUNNERS = pychecks.OF_UNITTEST | pychecks.RAISES | {"approx", "mark", "parametrize", "fixture"}
_KNOWN = frozenset({*dir(builtins), *_RUNNERS})

Read = Callable[[str], bytes | None]
Tokens = list[tuple[int, str]]


def spelled(path: str, source: bytes | None, scene: Scene) -> bytes | None:
    """A test file of before, in the names that the sources have now."""
    if source is None or places.suffix(path) != ".py" or not (names := renamed(scene)):
        return source
    return _put(source, names)


@lru_cache(maxsize=4)
def renamed(scene: Scene) -> Mapping[str, str]:
    """What names and options of the sources became, as far as the tests say."""
    pairs = [*_pairs(scene)]
    found = {pair for old, new in pairs for pair in _put_for(old, new)}
    if not found:
        return {}
    before, after = (
        frozenset(t for lines in side for t in _spoken(lines)) for side in _sides(pairs)
    )
    told = {(a, b) for a, b in found if a not in after and b not in before and a not in _KNOWN}
    if not told:
        return {}
    words = frozenset(word for pair in told for word in pair)
    known = Known.of(scene, words)
    sound = {pair for pair in told if known.allows(*pair)}
    return {a: b for a, b in sound if sum(a == x or b == y for x, y in sound) == 1}


class Known(Struct, frozen=True, kw_only=True):
    """Which words the sources define, before and after, and which the tests import of them."""

    before: frozenset[str]
    after: frozenset[str]
    imported: frozenset[str]

    @classmethod
    def of(cls, scene: Scene, words: frozenset[str]) -> "Known":
        """Read from the trees of a change."""
        own = own_modules(scene)
        origins: dict[str, str] = {}
        for delta in scene.files:
            tree = tree_of(delta.before) if places.is_test(delta.path) else None
            origins |= imports(tree) if tree is not None else {}
        return cls(
            before=_defined(scene.old_paths, scene.old, words),
            after=_defined(scene.new_paths, scene.new, words),
            imported=frozenset(n for n, o in origins.items() if own & {*o.split(".")}),
        )

    def allows(self, old: str, new: str) -> bool:
        """Whether the sources gave a name up for another, in this change or before it."""
        if old in self.after or new not in self.after:
            return False
        return (new not in self.before) if old in self.before else old in self.imported


def _defined(paths: frozenset[str], read: Read, words: frozenset[str]) -> frozenset[str]:
    sources = [p for p in sorted(paths) if places.suffix(p) == ".py" and not places.is_test(p)]
    if len(sources) > MAX_SOURCES:
        return words
    found = {step for path in sources for step in path.removesuffix(".py").split("/")}
    for path in sources:
        source = read(path) or b""
        if any(word.encode() in source for word in words) and (tree := tree_of(source)):
            found |= {name for node in ast.walk(tree) for name in _names_of(node)}
    return words & found


def _names_of(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.alias):
        yield node.asname or node.name
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
        yield node.id
    elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
        yield node.attr
    elif isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield from _OPTION.findall(node.value)


def _pairs(scene: Scene) -> Iterator[tuple[list[Tokens], list[Tokens]]]:
    """The lines of each changed test file, as they were and as they are."""
    tests = [d for d in scene.files if places.is_test(d.path) and places.suffix(d.path) == ".py"]
    fresh = [d for d in tests if d.is_added]
    for delta in tests:
        now = _moved_to(delta, fresh) if delta.is_deleted else delta
        if now is not None and not delta.is_added:
            yield _lines(delta.before), _lines(now.after)


def _moved_to(old: Delta, fresh: Sequence[Delta]) -> Delta | None:
    found = max(fresh, key=lambda delta: _alike(old, delta), default=None)
    return found if found is not None and _alike(old, found) > _ALIKE else None


def _alike(old: Delta, new: Delta) -> float:
    was, is_ = ({*text.splitlines()} for text in (old.old_text, new.new_text))
    return len(was & is_) / (len(was) or 1)


def _sides(
    pairs: list[tuple[list[Tokens], list[Tokens]]],
) -> tuple[list[list[Tokens]], list[list[Tokens]]]:
    return [old for old, _ in pairs], [new for _, new in pairs]


def _tokens(source: bytes) -> list[tokenize.TokenInfo]:
    try:
        return [*tokenize.tokenize(io.BytesIO(source).readline)]
    except (tokenize.TokenError, SyntaxError, UnicodeDecodeError):
        return []


def _lines(source: bytes | None) -> list[Tokens]:
    found: dict[int, Tokens] = {}
    for token in _tokens(source or b""):
        if token.string.strip():
            found.setdefault(token.start[0], []).append((token.type, token.string))
    return [found[number] for number in sorted(found)]


def _spoken(lines: list[Tokens]) -> Iterator[str]:
    for line in lines:
        for kind, text in line:
            yield from [text] if kind == tokenize.NAME else _OPTION.findall(text)


def _put_for(old: list[Tokens], new: list[Tokens]) -> Iterator[tuple[str, str]]:
    """Names that stand where others stood, in lines that are the same but for them."""
    keys = [["".join(text for _, text in line) for line in lines] for lines in (old, new)]
    match = difflib.SequenceMatcher(a=keys[0], b=keys[1], autojunk=False)
    for kind, i, i_end, j, j_end in match.get_opcodes():
        if kind != "replace" or i_end - i != j_end - j:
            continue
        for was, is_ in zip(old[i:i_end], new[j:j_end], strict=True):
            if [k for k, _ in was] == [k for k, _ in is_]:
                yield from _differing(was, is_)


def _differing(was: Tokens, is_: Tokens) -> Iterator[tuple[str, str]]:
    for (kind, one), (_, other) in zip(was, is_, strict=True):
        if one == other:
            continue
        if kind == tokenize.NAME:
            yield one, other
        elif kind == tokenize.STRING:
            options = _OPTION.findall(one), _OPTION.findall(other)
            if len(options[0]) == len(options[1]) == 1:
                yield options[0][0], options[1][0]


def _put(source: bytes, names: Mapping[str, str]) -> bytes:
    """A file with its names and options put as others; lines stay where they are."""
    lines = source.decode("utf-8", "surrogateescape").splitlines(keepends=True)
    for token in reversed(_tokens(source)):
        (row, begin), (last, end) = token.start, token.end
        said = token.string
        if token.type == tokenize.NAME:
            said = names.get(said) or _as_test(said, names)
        elif token.type == tokenize.STRING and row == last:
            said = _OPTION.sub(lambda found: names.get(found[0], found[0]), said)
        if said != token.string:
            lines[row - 1] = lines[row - 1][:begin] + said + lines[row - 1][end:]
    return "".join(lines).encode("utf-8", "surrogateescape")


def _as_test(name: str, names: Mapping[str, str]) -> str:
    """A test's own name, which says what it tests."""
    if not name.startswith(("test_", "Test")):
        return name
    for old, new in names.items():
        if name.startswith("test_"):
            name = re.sub(rf"(?<=_){re.escape(old.lower())}(?=_|$)", new.lower(), name)
        elif old[:1].isupper():
            name = name.replace(old, new)
    return name
