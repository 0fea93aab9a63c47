"""Recipes of make and commands, said in other words: variables, smaller targets, options. Pure."""

import re
from collections import Counter
from collections.abc import Collection, Iterator

from atlas_retry.guard.words import words

Lines = list[tuple[int, str]]
_VARIABLE = re.compile(r"^([A-Za-z_]\w*)\s*(?::|\?|::)?=\s*([^|;&$`#<>]*)$")
_DECIDES = words("test [ [[ ! false true : command which cd export if for while set exec source .")
_ASKS_MORE = re.compile(
    r"--strict\S*|-Werror|--max-warnings[= ]0|--warn-\S+|--disallow-\S+|-race|-v+|--verbose"
    r"|--locked|--frozen|--all-targets|--all-features|--workspace|--cov(=\S+)?|--cov-(branch|report\S*)"
    r"|--color\S*|--durations\S*|--tb=\S+|-r[aA]|--show-\S+|--no-cache|--diff|--forbid-only|--ci"
    r"|--doctest-modules"
)
_STATIC = words(
    "ruff mypy flake8 eslint black prettier pylint isort pyright basedpyright codespell"
)


def spelled(old: Lines, new: Lines, paths: Collection[str]) -> tuple[Lines, Lines]:
    """Recipes with fresh variables put in, and with what a target's fresh parts run."""
    ours, theirs = _variables(old), _variables(new)
    old = [(n, line) for n, line in old if not _is_of(line, ours.keys() - theirs.keys())]
    before = _split(_filled(old, {k: ours[k] for k in ours.keys() - theirs.keys()}))
    after = _split(_filled(new, {k: theirs[k] for k in theirs.keys() - ours.keys()}))
    return before, after + list(_of_parts(before, after, paths))


def _variables(lines: Lines) -> dict[str, str]:
    """Plain variables that are given one value."""
    found = [match for _, line in lines if (match := _VARIABLE.match(line))]
    count = Counter(match[1] for match in found)
    return {match[1]: match[2].strip() for match in found if count[match[1]] == 1}


def _is_of(line: str, names: Collection[str]) -> bool:
    match = _VARIABLE.match(line)
    return match is not None and match[1] in names


def _filled(lines: Lines, values: dict[str, str]) -> Lines:
    return [
        (n, re.sub(r"\$[({](\w+)[)}]", lambda m: values.get(m[1], m[0]), line)) for n, line in lines
    ]


def _split(lines: Lines) -> Lines:
    """`a && b` as two commands, where none of them is a question."""
    found: Lines = []
    for number, line in lines:
        target, colon, command = line.partition(": ")
        parts = command.removeprefix("@").split(" && ") if colon else []
        plain = all(re.match(r"[\w./-]+( |$)(?!.*[|;&])", part) for part in parts)
        asks = any(part.split()[:1] and part.split()[0] in _DECIDES for part in parts)
        whole = len(parts) < 2 or not plain or asks  # noqa: PLR2004 - one part is no pair
        found += [(number, line)] if whole else [(number, f"{target}: {part}") for part in parts]
    return found


def _of_parts(old: Lines, new: Lines, paths: Collection[str]) -> Iterator[tuple[int, str]]:
    """What targets that are new run for a target that was there and needs them now."""
    there = {re.split(r": | needs ", line)[0] for _, line in old}
    for _, line in new:
        target, needs, part = line.partition(" needs ")
        if not needs or target not in there or part in there:
            continue
        if any(path == part or path.startswith(f"{part}/") for path in paths):
            continue
        for number, recipe in new:
            name, colon, command = recipe.partition(": ")
            if colon and name == part:
                yield number, f"{target}: {command}"


def asks_more(old: str, new: str) -> bool:
    """Whether a command is the same but for options that let it find more, or more to look at."""
    if re.search(r"[|;&<>`]", old + new):
        return False
    rest = [*re.findall(r"--max-warnings 0|\S+", new)]
    had = [*re.findall(r"--max-warnings 0|\S+", old)]
    if had[:2] != rest[:2]:
        return False
    for word in had:
        if word not in rest:
            return False
        rest.remove(word)
    is_static = bool(_STATIC & set(had[:2])) and any(
        re.fullmatch(r"\.|\w[\w./]*", w) for w in had[2:]
    )
    return all(
        _ASKS_MORE.fullmatch(word) or (is_static and re.fullmatch(r"\w[\w./]*", word))
        for word in rest
    )
