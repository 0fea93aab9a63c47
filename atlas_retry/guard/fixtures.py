"""What fixtures hand to the tests of a Python project, and whether a test asks for it."""

import ast
import re
from collections.abc import Iterator, Sequence

from atlas_retry.guard import datafiles, places, pyunits
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import tree_of
from atlas_retry.guard.likeness import listed
from atlas_retry.guard.pymarks import Function, is_fixture
from atlas_retry.guard.suites import Suites
from atlas_retry.guard.units import Suite

_ASKING = frozenset({".py", ".ini", ".toml", ".cfg", ".feature"})
"""Kinds of files in which a fixture can be asked for by name."""


def lost(pairs: Sequence[tuple[Suite, Suite]], suites: Suites, scene: Scene) -> Iterator[Finding]:
    """Values that fixtures handed to the tests and that no test file holds any more."""
    held = suites.beside.union(*(unit.own for unit in suites.new.values()))
    for old, new in pairs:
        gone = old.inputs - held
        if gone and new.parsed:
            gone -= _idle(old.path, scene)
            named = frozenset().union(*(s.literals for _, s in pairs), held)
            gone -= _in_files(named, scene)
        if gone and new.parsed:
            detail = f"fixtures no longer hand over {listed(gone)}"
            yield Finding(path=old.path, line=1, detail=detail, soft=True)


def _in_files(named: frozenset[str], scene: Scene) -> frozenset[str]:
    """What files of data that came with the change hold, where a test file names them."""
    files = datafiles.of_scene(scene)
    return frozenset().union(*(f.literals for f in files if any(f.name in text for text in named)))


def _idle(path: str, scene: Scene) -> frozenset[str]:
    """Literals that only fixtures hand over which nothing asked for."""
    source = scene.old(path)
    tree = tree_of(source)
    if source is None or tree is None:
        return frozenset()
    fixtures = [n for n in tree.body if isinstance(n, Function) and is_fixture(n)]
    others = "\n".join(_texts(path, scene))
    idle: list[Function] = []
    while True:
        text = others + _without(source.decode("utf-8", "replace"), idle)
        more = [f for f in fixtures if f not in idle and not _is_asked_for(f, text)]
        if not more:
            break
        idle += more
    used = [pyunits.handed_by(f) for f in fixtures if f not in idle]
    return frozenset().union(*map(pyunits.handed_by, idle)).difference(*used)


def _texts(path: str, scene: Scene) -> Iterator[str]:
    for other in sorted(scene.old_paths - {path}):
        if places.suffix(other) in _ASKING:
            yield (scene.old(other) or b"").decode("utf-8", "replace")


def _without(text: str, functions: Sequence[Function]) -> str:
    lines = text.splitlines()
    for function in functions:
        for number in range(function.lineno - 1, function.end_lineno or function.lineno):
            lines[number] = ""
    return "\n".join(lines)


def _is_asked_for(fixture: Function, text: str) -> bool:
    """Whether its name stands anywhere but at its definition, or it needs no asking."""
    told = [k.arg for d in fixture.decorator_list if isinstance(d, ast.Call) for k in d.keywords]
    name = re.escape(fixture.name)
    return bool({"autouse", "name"} & {*told}) or bool(re.search(rf"(?<!def )\b{name}\b", text))
