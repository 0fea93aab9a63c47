"""Finds the functions of a project that look unfinished. Ranks nothing."""

import ast
from collections import Counter
from collections.abc import Iterable

from atlas_retry.prompt.bindings import Function
from atlas_retry.prompt.graph import Graph, Spot
from atlas_retry.prompt.inference import Inference
from atlas_retry.prompt.project import is_test_path
from atlas_retry.prompt.slips import Slip, slips, used_results


def oddities(spots: Iterable[Spot], known: Inference) -> dict[Spot, tuple[Slip, ...]]:
    """The slips of each Python function outside the tests that has any."""
    used, shared = _used(known.graph), _shared(known.graph)
    found: dict[Spot, tuple[Slip, ...]] = {}
    for spot in spots:
        node = None if is_test_path(spot.path) else known.node(spot)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            found[spot] = _slips(node, used, shared)
    return {spot: told for spot, told in found.items() if told}


def _slips(function: Function, used: frozenset[str], shared: frozenset[str]) -> tuple[Slip, ...]:
    """None of a function that is too deep to be walked: every `elif` lies in the one before."""
    try:
        return tuple(slips(function, used, shared))
    except RecursionError:
        return ()


def _used(graph: Graph) -> frozenset[str]:
    """Names that one function alone has and that are called for a result."""
    called = {
        name
        for path in graph.files
        if path.endswith(".py")
        for name in used_results((graph.project.source(path) or b"").decode("utf-8", "replace"))
    }
    return frozenset(name for name in called if len(graph.by_name.get(name, ())) == 1)


def _shared(graph: Graph) -> frozenset[str]:
    owners = Counter(spot.scope.name for spot in graph.spots if spot.scope.owner)
    return frozenset(name for name, count in owners.items() if count > 1)
