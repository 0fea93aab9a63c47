"""Examples in docstrings, which a runner may check: what they promise, and what skips them."""

import ast
import doctest
from collections.abc import Iterator

from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import python


def examples(scene: Scene) -> Iterator[Finding]:
    """Examples that promise something else than before, or are skipped now."""
    for delta, old, new in python(scene):
        promised = dict(_examples(old))
        for said, promise in _examples(new):
            if promised.get(said, promise) != promise:
                detail = f"the example `{said.strip()[:60]}` promises something else"
                yield Finding(path=delta.path, line=1, detail=detail, soft=True)
        count = sum("+SKIP" in said for said, _ in _examples(new))
        for _ in range(sum("+SKIP" in said for said in promised), count):
            yield Finding(path=delta.path, line=1, detail="an example is skipped")


def _examples(tree: ast.Module) -> Iterator[tuple[str, str]]:
    parser = doctest.DocTestParser()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node) or ""
            if ">>>" in text:
                yield from _parsed(parser, text)


def _parsed(parser: doctest.DocTestParser, text: str) -> Iterator[tuple[str, str]]:
    try:
        found = parser.get_examples(text)
    except ValueError:
        return
    yield from ((example.source, example.want) for example in found)
