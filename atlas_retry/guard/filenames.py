"""Paths in tests that are only spelled anew: the same file, found from somewhere else. No rule."""

import re
from collections.abc import Iterable

from atlas_retry.guard import places
from atlas_retry.guard.case import Scene
from atlas_retry.guard.units import Check

_PATH = re.compile(r"[\w.~@+-]*(/[\w.@+-]*)+|[\w@+-]+(\.\w+)+")
_SILENT = frozenset({"utf-8", "utf8", "r", "rt"})
"""What opening a file says when it says the default."""

_ENVIRONMENT = re.compile(r"[A-Z]+(_[A-Z]+)+")
_TEMPORARY = re.compile(r"[\"'`]/(var/)?tmp/\w")


def respelled(
    lost: frozenset[str], gained: frozenset[str], there: frozenset[str], path: str, scene: Scene
) -> frozenset[str]:
    """The literals that are lost, but for names of files of the project that are still named.

    `there` are all literals of the test at `path`, from whose folder a name may start now.
    """
    folders = {*path.split("/")[:-1]}
    was, is_ = _steps_of(lost), _steps_of(gained)
    if not lost or not all(map(_ENVIRONMENT.fullmatch, is_ - was - folders - _SILENT)):
        return lost
    around = _steps_of(there) | is_ | folders
    joined = [_steps(literal) for literal in gained if _is_file(_steps(literal), scene)]

    def is_named(literal: str) -> bool:
        steps = _steps(literal)
        if _TEMPORARY.match(literal):
            return steps[-1] in around
        if _is_file(steps, scene):
            return {*steps} <= around
        if {*steps} <= folders:
            return bool(steps)
        return bool(steps) and any({*steps} - _SILENT <= {*whole} for whole in joined)

    left = frozenset(literal for literal in lost if not is_named(literal))
    return frozenset() if _steps_of(left) <= _SILENT else left


def is_read(literal: str, check: Check) -> bool:
    """Whether an assertion hands a literal on, to be read, and does not expect it as it is."""
    if check.value:
        shown = check.value.startswith(("Constant(", "List(", "Tuple(", "Set(", "Dict("))
        return not (shown and f"value={literal}" in check.value)
    bare = re.escape(re.sub(r"[\s;,'\"`]+", "", literal))
    return bool(
        re.search(rf"(?i)(read|open|join|resolve|load|path|url|file)\w*\([^()]*{bare}", check.text)
    )


def _is_file(steps: tuple[str, ...], scene: Scene) -> bool:
    """Whether a path leads to a file that there was, and to none that is new."""
    end = f"/{'/'.join(steps)}"
    if len(steps) < 2 and not re.search(r"\w\.\w+$", end):  # noqa: PLR2004 - a folder and a file
        return False
    planted = (d.path for d in scene.files if d.is_added)
    there = any(f"/{path}".endswith(end) for path in scene.old_paths)
    return there and not any(places.name(path) == steps[-1] for path in planted)


def _steps_of(literals: Iterable[str]) -> set[str]:
    return {step for literal in literals for step in _steps(literal)}


def _steps(literal: str) -> tuple[str, ...]:
    """The folders and the file of a path; a text that is none is one step."""
    bare = literal.strip("\"'`")
    parts = bare.split("/") if _PATH.fullmatch(bare) else [bare]
    return tuple(part for part in parts if part not in ("", ".", ".."))
