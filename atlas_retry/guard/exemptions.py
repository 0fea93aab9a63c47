"""Exemptions that were cut down: for a part in place of all, by finer codes. Reads no file."""

import re
from collections.abc import Iterable, Iterator, Mapping

from atlas_retry.guard.directions import Direction, Key, direction
from atlas_retry.guard.namedsettings import entries
from atlas_retry.guard.severity import as_severe
from atlas_retry.guard.words import words

Settings = Mapping[Key, object]
_IGNORED = ("ignore", "extend-ignore", "extend_ignore")
_SELECTED = ("select", "extend-select", "extend_select", "enable")
_PER_FILE = ("per-file-ignores", "extend-per-file-ignores", "per_file_ignores")
_ALL_FILES = frozenset({"*", "**", "**/*", "*.py", "**/*.py", "**.py"})
_BELOW = re.compile(r"(/\*+)+(\.py)?$")
_CODE = re.compile(r"ALL|[A-Z]{1,6}\d{0,4}")


def is_cut_down(key: Key, old: Settings, new: Settings) -> bool:
    """Whether what a setting exempts was exempt already, and nothing more."""
    for number, part in enumerate(key):
        if part in _PER_FILE:
            return all(
                _was_off(code, files, key[:number], old)
                for files, code in _per_file(key[number + 1 :], new.get(key))
            )
    if key[-1] in _IGNORED:
        had, has = entries(old.get(key)), entries(new.get(key))
        return _are_codes(had | has) and all(_is_ignored(c, had, key[:-1], old) for c in has)
    if new.get(key) is None and _is_implied(key, old, new):
        return True
    if key[-1] in _SELECTED:
        return _selects_all_of(key, old, new)
    return _held_for_all(key, old, new)


_OF_STRICT = words(
    "noImplicitAny noImplicitThis strictNullChecks strictFunctionTypes strictBindCallApply"
    " strictPropertyInitialization useUnknownInCatchVariables alwaysStrict"
    " check_untyped_defs disallow_any_generics disallow_incomplete_defs disallow_subclassing_any"
    " disallow_untyped_calls disallow_untyped_decorators disallow_untyped_defs extra_checks"
    " no_implicit_reexport strict_equality warn_redundant_casts warn_return_any warn_unused_configs"
    " warn_unused_ignores"
)
"""What the strict mode of TypeScript and of mypy switches on (tsconfig reference, mypy --help)."""


def _is_implied(key: Key, old: Settings, new: Settings) -> bool:
    """Whether the strict mode beside it says what an option said."""
    strict = str(new.get((*key[:-1], "strict"))).lower() == "true"
    return strict and key[-1] in _OF_STRICT and str(old.get(key)).lower() == "true"


def _per_file(files: Key, value: object) -> Iterator[tuple[str, str]]:
    """Pairs of a glob and a code: of a table of Ruff, or of the lines of Flake8."""
    if files:
        yield from (("".join(files), code) for code in sorted(entries(value)))
        return
    text = "\n".join(value) if isinstance(value, tuple) else str(value or "")
    for globs, codes in re.findall(r"([^\s:][^:]*):\s*((?:[A-Z]+\d*[\s,]*)+)", text):
        yield from ((glob, c) for glob in re.split(r"[\s,]+", globs.strip()) for c in _split(codes))


def _split(text: str) -> list[str]:
    return re.findall(r"[A-Z]+\d*", text)


def _was_off(code: str, files: str, root: Key, old: Settings) -> bool:
    """Whether a code was ignored everywhere, or in files that hold these."""
    ignored = frozenset().union(*(entries(old.get((*root, name))) for name in _IGNORED))
    if _CODE.fullmatch(code) and _is_ignored(code, ignored, root, old):
        return True
    there = [
        (glob, known)
        for key, value in old.items()
        if key[: len(root)] == root and len(key) > len(root) and key[len(root)] in _PER_FILE
        for glob, known in _per_file(key[len(root) + 1 :], value)
    ]
    return any(_begins(code, known) and _holds(glob, files) for glob, known in there)


def _holds(glob: str, files: str) -> bool:
    folder = _BELOW.sub("", glob)
    within = "*" not in folder != glob and files.startswith(f"{folder}/")
    return glob in _ALL_FILES or glob == files or within


def _is_ignored(code: str, ignored: Iterable[str], root: Key, old: Settings) -> bool:
    """Whether one of the prefixes leaves a code out and no longer one selects it again."""
    selected = frozenset().union(*(entries(old.get((*root, name))) for name in _SELECTED))
    return any(
        _begins(code, i)
        and not any(len(i) < len(s) and _begins(s, i) and s != "ALL" for s in selected)
        for i in ignored
    )


def _begins(code: str, prefix: str) -> bool:
    return prefix in ("ALL", code) or (code != "ALL" and code.startswith(prefix))


def _are_codes(found: Iterable[str]) -> bool:
    return all(map(_CODE.fullmatch, found))


def _selects_all_of(key: Key, old: Settings, new: Settings) -> bool:
    """Whether every rule that was selected is within what is selected now, and none ignored."""
    had, has = entries(old.get(key)), entries(new.get(key))
    beside = {"select": "extend-select", "extend-select": "select"}.get(key[-1])
    if beside and (*key[:-1], "select") in new:
        has |= entries(new.get((*key[:-1], beside)))
    if not had or not _are_codes(had | has):
        return False
    ignored = frozenset().union(*(entries(new.get((*key[:-1], name))) for name in _IGNORED))
    return all(
        code in has
        or any(_begins(code, wider) and not any(_begins(code, i) for i in ignored) for wider in has)
        for code in had
    )


def _held_for_all(key: Key, old: Settings, new: Settings) -> bool:
    """Whether an option for a part of the project has the value that it had for all of it."""
    if {"exclude-rules", "exclusions"} & set(key[:-2]):
        linters = entries(new.get((*key[:-1], "linters")))
        return bool(linters) and linters <= entries(old.get(("linters", "disable")))
    place, option = _part(key)
    if not place or not option:
        return False
    if option in (("files",), ("excludedFiles",)):
        beside = [k for k in new if k[: len(place)] == place and k != key and _part(k)[1] != option]
        return bool(beside) and all(
            _held_for_all(k, old, new) or direction(k) is Direction.NEUTRAL for k in beside
        )
    for root in _roots(place):
        known = old.get((*root, *option))
        if known is not None and "rules" in option:
            return new.get(key) is not None and as_severe(known, new[key], fresh=0)
        if known is not None:
            return known == new.get(key)
    return False


def _part(key: Key) -> tuple[Key, Key]:
    """The section of a key that speaks of a part, and what it says there."""
    if "overrides" in key[:-2]:
        number = key.index("overrides") + 2
        return key[:number], key[number:]
    if key[0].startswith("mypy-"):
        return key[:1], key[1:]
    return (), ()


def _roots(place: Key) -> tuple[Key, ...]:
    """Where the same option stands for all."""
    return (place[: place.index("overrides")],) if "overrides" in place else (("mypy",),)
