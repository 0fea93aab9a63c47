"""Rules on the settings of linters, formatters, type checkers, runners and coverage, by meaning."""

import math
import re
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import lru_cache

from atlas_retry.guard import bars, places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.directions import Direction, Key, direction
from atlas_retry.guard.documents import flat, parse
from atlas_retry.guard.exemptions import is_cut_down
from atlas_retry.guard.globs import Globs
from atlas_retry.guard.jsconfig import read as read_javascript
from atlas_retry.guard.migration import holds_settings, moved, owner
from atlas_retry.guard.namedsettings import by_its_name, entries
from atlas_retry.guard.settingfiles import SHARED, is_configuration, steers
from atlas_retry.guard.settingnames import heard, is_about_form, named


def loosened(scene: Scene) -> Iterator[Finding]:
    """Settings that changed in any way but towards stricter ones."""
    yield from bars.lowered(scene)
    gone_on = _moved_tools(scene)
    for delta in scene.files:
        name = places.name(delta.path)
        if not is_configuration(name) and name not in SHARED:
            continue
        if gone_on and _is_of(delta, gone_on):
            continue
        if delta.is_added:
            yield from _added(delta, scene)
        elif delta.is_deleted:
            yield from _deleted(delta)
        else:
            yield from _changed(delta, scene, gone_on)


def _moved_tools(scene: Scene) -> frozenset[str]:
    """Tools whose settings moved to another file and are as strict there."""
    if not any(holds_settings(d.path) and (d.is_added or d.is_deleted) for d in scene.files):
        return frozenset()

    def as_strict(key: Key, old: Mapping[Key, object], new: Mapping[Key, object]) -> bool:
        same = entries(old.get(key)) == entries(new.get(key))
        return same or _is_innocent(key, dict(old), dict(new), scene)

    before = {p: _settings(p, scene.old(p)) or {} for p in scene.old_paths if holds_settings(p)}
    after = {p: _settings(p, scene.new(p)) or {} for p in scene.new_paths if holds_settings(p)}
    return moved(before, after, as_strict)


def _is_of(delta: Delta, tools: frozenset[str]) -> bool:
    """Whether a file that came or went holds nothing but settings of these tools."""
    if not (delta.is_added or delta.is_deleted) or not holds_settings(delta.path):
        return False
    held = _settings(delta.path, delta.after or delta.before) or {}
    owners = (owner(delta.path, key)[0] for key in held)
    return all((tool.partition("-")[0] if "mypy" in tool else tool) in tools for tool in owners)


def _added(delta: Delta, scene: Scene) -> Iterator[Finding]:
    settings = _settings(delta.path, delta.after)
    if is_configuration(delta.path) and not _is_nested_project(delta, scene):
        detail = "a new file of settings takes precedence over those that were there"
        yield Finding(path=delta.path, line=1, detail=detail)
    elif settings and not _is_nested_project(delta, scene):
        detail = f"brings settings of its own: {_shown(next(iter(settings)))}"
        yield Finding(path=delta.path, line=1, detail=detail)


def _is_nested_project(delta: Delta, scene: Scene) -> bool:
    """A project of its own in a folder that is new: nothing that was there is touched by it."""
    folder = delta.path.rpartition("/")[0]
    return bool(folder) and not any(path.startswith(f"{folder}/") for path in scene.old_paths)


def _deleted(delta: Delta) -> Iterator[Finding]:
    if is_configuration(delta.path) or _settings(delta.path, delta.before):
        yield Finding(path=delta.path, detail="settings of a checker were deleted")


def _changed(delta: Delta, scene: Scene, gone_on: frozenset[str]) -> Iterator[Finding]:
    old, new = _settings(delta.path, delta.before), _settings(delta.path, delta.after)
    if old is None:
        if delta.before and delta.after and delta.before.split() != delta.after.split():
            yield Finding(path=delta.path, line=1, detail="settings of a checker were changed")
        return
    if new is None:
        yield Finding(path=delta.path, line=1, detail="can no longer be read as settings")
        return
    old = heard(delta.path, old)
    for key in dict.fromkeys((*old, *new)):
        if owner(delta.path, key)[0] in gone_on:
            continue
        if old.get(key) != new.get(key) and not _is_innocent(key, old, new, scene):
            told = f"{_shown(key)}: {_value(old.get(key))} became {_value(new.get(key))}"
            yield Finding(path=delta.path, line=_line(delta.new_text, key), detail=told)


def _shown(key: Key) -> str:
    return ".".join(part for part in key if part)


def _value(value: object) -> str:
    return "unset" if value is None else str(value)[:80]


def _line(text: str, key: Key) -> int | None:
    for part in reversed(key):
        word = part.strip("[]")
        for number, line in enumerate(text.splitlines(), 1):
            if word and word in line:
                return number
    return 1


def _settings(path: str, content: bytes | None) -> dict[Key, object] | None:
    """The leaves that steer checkers; None when the file cannot be read by structure."""
    if content is None:
        return {}
    return _read(path, content)


@lru_cache(maxsize=32)
def _read(path: str, content: bytes) -> dict[Key, object] | None:
    name = places.name(path)
    if places.suffix(path) in (".js", ".cjs", ".mjs", ".ts", ".mts", ".cts"):
        found = read_javascript(path, content)
        return found if found is None else named(path, found)
    document = parse(path, content)
    if document is None:
        return None if content.strip() else {}
    leaves = {key: value for key, value in flat(document).items() if value != {}}
    if name not in SHARED:
        return named(path, {_normal(key): value for key, value in leaves.items()})
    return named(path, {_normal(k): v for k, v in leaves.items() if steers(name, k)})


def _normal(key: Key) -> Key:
    """Ruff's settings mean the same in `[tool.ruff]` and `[tool.ruff.lint]`."""
    if "ruff" in key[:2] or (key and key[0] == "lint"):
        return tuple(part for part in key if part != "lint")
    return key


def _is_innocent(key: Key, old: dict[Key, object], new: dict[Key, object], scene: Scene) -> bool:
    before, after = old.get(key), new.get(key)
    known = by_its_name(key, before, after, scene)
    if known or is_cut_down(key, old, new):
        return True
    if known is not None:
        return False
    if is_about_form(key, before, after, scene):
        return True
    way = direction(key)
    if before is None and way is Direction.MORE and _is_switched_off(key, after):
        return False
    if way is Direction.FIXED:
        return "overrides" in key and _is_about_strangers(key, new, scene)
    return (
        way is Direction.NEUTRAL
        or ("overrides" in key and _is_about_strangers(key, new, scene))
        or (_is_pattern_list(key, after) and _matches_nothing(before, after, scene))
        or (before is None and (_is_new_limit(key) or _leaves_all(key, after, scene)))
        or _moved(before, after, way, is_new=key not in old, extends=_extends(key))
    )


def _is_switched_off(key: Key, value: object) -> bool:
    """Whether a check that may be part of a strict mode is switched off by name."""
    said = value[0] if isinstance(value, tuple) and len(value) == 1 else value
    off = said is False or str(said).lower() in ("false", "no", "off", "0")
    strict = (
        r"disallow|check|warn|strict|no_?[a-z]|tests$|enabled$|overflow-|debug-assert|fail|halt"
        r"|enableassert"
    )
    return off and bool(re.match(strict, key[-1], re.IGNORECASE))


def _is_new_limit(key: Key) -> bool:
    """Whether a setting limits what had no limit; lines always have one."""
    return bool(re.match(r"max(?!.*line)|timeout$", key[-1], re.IGNORECASE))


def _leaves_all(key: Key, value: object, scene: Scene) -> bool:
    """Whether folders that are named for the first time leave no test out, and lead nowhere new."""
    name = key[-1]
    if ("coverage" in key or name == "collectCoverageFrom") and name in (
        "include",
        "source",
        "collectCoverageFrom",
    ):
        globs = Globs(tuple(entries(value)))
        sources = [p for p in scene.old_paths if p.startswith("src/") and places.is_code(p)]
        return bool(sources) and all(globs.match(path) for path in sources)
    folders = tuple(entry.strip("./") for entry in entries(value))
    if name == "pythonpath":
        return all(any(p.startswith(f"{f}/") for p in scene.old_paths) or not f for f in folders)
    if name != "testpaths":
        return False
    tests = [p for p in scene.old_paths if places.is_test_code(p) and places.is_collected(p)]
    return all(any(not f or p.startswith(f"{f}/") for f in folders) for p in tests)


def _extends(key: Key) -> bool:
    strict = r"extend|enable|plugin|required|strict|warn|disallow|check"
    return bool(re.search(strict, key[-1], re.IGNORECASE)) or any(k.startswith("ban") for k in key)


def _moved(before: object, after: object, way: Direction, *, is_new: bool, extends: bool) -> bool:
    """Whether a value went the allowed way."""
    old, new = _number(before), _number(after)
    if old is None or new is None:
        had, has = entries(before), entries(after)
        if way is Direction.MORE:
            return had <= has and (not is_new or extends)
        return has <= had
    return old <= new if way is Direction.MORE else old >= new


def _number(value: object) -> float | None:
    """Numbers, switches, and what is absent as nothing; None for lists and words."""
    if value is None:
        return 0.0
    if isinstance(value, bool | int | float):
        return float(value)
    if isinstance(value, tuple) and len(set(value)) == 1:
        one = _number(value[0])
        return one if len(value) == 1 or str(value[0]) in ("true", "false") else None
    text = str(value).strip().lower()
    if text in ("true", "false", "yes", "no", "on", "off"):
        return float(text in ("true", "yes", "on"))
    if text == "max":
        return math.inf
    return float(text.rstrip("%")) if re.fullmatch(r"-?\d+(\.\d+)?%?", text) else None


_PATTERNS = re.compile(r"exclu|omit|ignore_?p|ignores?$|skip|norecurse", re.IGNORECASE)


def _is_pattern_list(key: Key, value: object) -> bool:
    """Whether a setting names files to be left out: patterns of lines and rules are none."""
    is_switch = _number(value) is not None or key[-1].lower().endswith("groups")
    about_lines = key[-1] in ("exclude_also", "exclude_lines", "partial_branches")
    names_files = (
        bool(_PATTERNS.search(key[-1])) and "per-file-ignores" not in key and not about_lines
    )
    return names_files and not is_switch and isinstance(value, tuple | str)


def _matches_nothing(before: object, after: object, scene: Scene) -> bool:
    """Whether the patterns that were added leave out no file that was looked at."""
    added = entries(after) - entries(before)
    if not added or any(re.fullmatch(r"[A-Z]+\d*", entry) for entry in added):
        return False
    globs, left_out = Globs(tuple(added)), tuple(entries(before))
    known = Globs(left_out)
    kept = scene.old_paths | {p for p in scene.new_paths if places.is_code(p)}
    return not any(
        (globs.match(path) or _matches_whole(added, path))
        and not (known.match(path) or any(fnmatchcase(path, pattern) for pattern in left_out))
        for path in kept
    )


def _matches_whole(patterns: frozenset[str], path: str) -> bool:
    """As coverage.py's globs, whose `*` crosses folders, or as a regular expression."""
    for pattern in patterns:
        if fnmatchcase(path, pattern):
            return True
        try:
            if re.search(pattern, path):
                return True
        except re.error:
            continue
    return False


def _is_about_strangers(key: Key, new: dict[Key, object], scene: Scene) -> bool:
    """`ignore_missing_imports` for a library that brings no types hides nothing of the project."""
    place = key[: key.index("overrides") + 2]
    mine = {k[len(place) :]: v for k, v in new.items() if k[: len(place)] == place}
    if not mine or set(mine) - {
        ("module",),
        ("ignore_missing_imports",),
        ("follow_untyped_imports",),
    }:
        return False
    roots = {re.split(r"[./]", m)[0] for m in entries(mine.get(("module",)))}
    own = {part for path in scene.new_paths for part in re.split(r"[/.]", path)[:3]}
    return bool(roots) and not roots & (own | {"*", ""})
