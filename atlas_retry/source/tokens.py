"""Source as tokens in any language, to ignore layout, quotes and remarks.

Reads trees of tree-sitter.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

from atlas_retry.patterns import regex
from atlas_retry.source.languages import language_of, parse, text_of

if TYPE_CHECKING:
    from tree_sitter import Node

DIRECTIVE = regex(r"""(?ix)
    \b(noqa|nosec|pragma|nolint|istanbul|shellcheck|rubocop|eslint|biome|prettier|standard|tslint)\b
    | \b(type|mypy|pyright|pylint|ruff|flake8|fmt|isort|yapf|c8|v8|phpcs|phpstan|psalm)\s*:
    | @ts- | @jest- | @vitest- | go:\w | ^//\s*\+build | NOLINT | NOSONAR | @phpstan | -\*-
    """)
"""Comments for tools, not for people."""
_OUTPUT = regex(r"//\s*(unordered )?output:", re.IGNORECASE)
"""Start of the expected output of an example. Source: the documentation of Go's `testing`."""
_SNAPSHOT = regex(rb"// \w+ Snapshot v\d")
"""How the recorded values of Jest, Vitest and Bun begin: others use the suffix for other forms."""
_STRINGS = frozenset({"string", "template_string", "interpreted_string_literal", "string_literal"})
_CLOSING = frozenset(")]}")
_QUOTES = regex(r"^([rRbBuUfF]*)(\"\"\"|'''|\"|'|`)(.*)\2$", re.DOTALL)


def walk(node: "Node") -> Iterator["Node"]:
    """The node and all its descendants, in order of the text."""
    stack = [node]
    while stack:
        here = stack.pop()
        yield here
        stack.extend(reversed(here.children))


def root(path: str, source: bytes | None) -> "Node | None":
    """The tree of a file; None without a grammar, or if the source has errors."""
    is_script = _SNAPSHOT.match(source or b"") and path.endswith(".snap")
    language = "javascript" if is_script else language_of(path, source or b"")
    tree = parse(language, source or b"")
    if tree is None or tree.root_node.has_error:
        return None
    return tree.root_node


def is_comment(node: "Node") -> bool:
    """Whether a node is a comment, in any language."""
    return "comment" in node.type


def is_meaningful(comment: "Node") -> bool:
    """Whether a comment decides: it is for a tool, or is the expected output of an example."""
    if DIRECTIVE.search(text_of(comment)):
        return True
    here: Node | None = comment
    while here is not None and is_comment(here):
        if _OUTPUT.match(text_of(here)):
            return True
        here = here.prev_sibling
    return False


def is_remark(node: "Node") -> bool:
    """Whether a node is a comment without effect."""
    return is_comment(node) and not is_meaningful(node)


def leaves(node: "Node") -> list[str]:
    """The tokens of a node in order, with whole strings, without remarks and trailing commas."""
    texts: list[str] = []
    stack = [node]
    while stack:
        here = stack.pop()
        if here.children and not _is_token(here):
            stack.extend(reversed(here.children))
            continue
        token = _token(here)
        if token in _CLOSING and texts[-1:] == [","]:
            texts.pop()
        if token:
            texts.append(token)
    return texts


def _is_token(node: "Node") -> bool:
    """Whether a node counts as one token even if it has parts."""
    if node.type not in _STRINGS:
        return is_comment(node)
    parts = " ".join(child.type for child in node.children)
    return "interpolation" not in parts and "substitution" not in parts


def _token(node: "Node") -> str:
    """Normalised text of a node that is one token; empty for layout."""
    text = text_of(node)
    if is_comment(node):
        return text.strip() if is_meaningful(node) else ""
    if node.type in _STRINGS:
        match = _QUOTES.match(text)
        # with normalised quotes
        return f'{match[1].lower()}"{match[3]}"' if match and "\\" not in text else text
    return "" if text == ";" or text.isspace() else text


def same_tokens(path: str, before: bytes | None, after: bytes | None) -> bool:
    """Whether two contents differ only in layout and remarks. In prose every character counts."""
    if before is None or after is None:
        return before is after
    if path.endswith((".py", ".pyi")):
        old_tree, new_tree = _python(before), _python(after)
        same = old_tree is not None and old_tree == new_tree
        return same and _directives(path, before) == _directives(path, after)
    old, new = root(path, before), root(path, after)
    if old is None or new is None:
        return False
    return leaves(old) == leaves(new)


def _python(source: bytes) -> str | None:
    import ast  # start-up

    try:
        return ast.dump(ast.parse(source))
    except (SyntaxError, ValueError, RecursionError):
        return None


def _directives(path: str, source: bytes) -> list[str]:
    """The comments for tools, sorted."""
    tree = root(path, source)
    comments = filter(is_comment, walk(tree)) if tree is not None else ()
    return sorted(text_of(comment).strip() for comment in comments if is_meaningful(comment))


WORD = regex(r"[A-Za-z_]\w*")


def words_of(path: str, source: bytes | None) -> frozenset[str]:
    """Every name in a source outside comments and texts; every word if it cannot be parsed."""
    tree = root(path, source)
    if tree is None:
        return frozenset(WORD.findall((source or b"").decode("utf-8", "replace")))
    names = (token for token in leaves(tree) if token[-1] not in "\"'`")
    return frozenset(chain.from_iterable(map(WORD.findall, names)))
