"""Where the documentation texts of a source stand: Python's docstrings. Reads none of them."""

from functools import lru_cache

from atlas_retry.source.languages import query
from atlas_retry.source.parsing import language_of, parse

_DOCSTRING = "(block . (expression_statement (string) @text))"


@lru_cache(maxsize=128)
def documentation(path: str, source: bytes) -> tuple[tuple[int, int], ...]:
    """First and last line (1-based, inclusive) of each; empty for languages without them."""
    language = language_of(path, source)
    tree = parse(language, source)
    if tree is None or language != "python":
        return ()
    from tree_sitter import QueryCursor

    nodes = QueryCursor(query(language, _DOCSTRING)).captures(tree.root_node).get("text", [])
    return tuple(sorted((node.start_point.row + 1, node.end_point.row + 1) for node in nodes))
