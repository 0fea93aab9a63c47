"""What calls of `patch` and its kin in Python tests replace, and whether that is new. No rule."""

import ast
import re
from collections.abc import Callable, Iterator

from atlas_retry.guard.case import Scene
from atlas_retry.guard.fresh import imports, tree_of
from atlas_retry.guard.pychecks import literals_in, names_in

_PATCHING = re.compile(r"(^|\.)patch(\.object)?$")
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.\w+)*")
_WORDS = frozenset(
    ("monkeypatch", "setattr", "setitem", "mocker", "mock", "unittest", "patch", "object")
)
_STREAMS = frozenset({"sys.stdout", "sys.stderr"})


def naming(call: ast.Call) -> frozenset[str]:
    """Literals that only name what a call replaces: what stands there instead is what is tried."""
    called = _PATCHING.search(ast.unparse(call.func))
    told = call.args[1:2] if called and called[2] else call.args[:1]
    rest = [a for a in call.args if a not in told]
    values = literals_in(*rest, *(keyword.value for keyword in call.keywords))
    name = told[0].value if told and isinstance(told[0], ast.Constant) else None
    named = called is not None and isinstance(name, str) and _DOTTED.fullmatch(name)
    return literals_in(*told) if named and (values or name in _STREAMS) else frozenset()


def was_replaced(
    call: ast.Call, target: str, before: ast.AST, known: Iterator[str | None], scene: Scene
) -> bool:
    """Whether the same was replaced by the same: there, or where it is imported from."""
    parts = target.split(".")
    said = {repr(part) for part in parts} | naming(call)
    said |= {text for text in literals_in(*call.args[:1]) if text.strip("'").endswith(parts[-1])}
    spoken = names_in(call) - names_in(before) - {*parts} - _WORDS
    if spoken or literals_in(call) - said - literals_in(before):
        return False
    return any(
        was[-1] == parts[-1] and (set(was) == set(parts) or _is_looked_up(parts, was, scene))
        for was in (text.split(".") for text in known if text)
    )


def _is_looked_up(parts: list[str], was: list[str], scene: Scene) -> bool:
    """Whether the module that is patched now imports the name from where it was patched."""
    ends = "/".join(parts[:-1])
    for path in sorted(scene.new_paths):
        stem = path.removesuffix(".py").removesuffix("/__init__")
        if not path.endswith(".py") or not f"/{stem}".endswith(f"/{ends}"):
            continue
        tree = tree_of(scene.new(path))
        origin = imports(tree).get(parts[-1], "") if tree is not None else ""
        if origin and f".{'.'.join(was)}".endswith(f".{origin.lstrip('.')}"):
            return True
    return False


def calls(tree: ast.AST, read: Callable[[ast.Call], str | None]) -> Iterator[str | None]:
    """What the calls within a function replace."""
    return (read(node) for node in ast.walk(tree) if isinstance(node, ast.Call))
