"""Resolves package names and path aliases of a JavaScript project. Reads no file."""

import posixpath
from collections.abc import Iterable, Iterator, Mapping

from atlas_retry.patterns import regex
from atlas_retry.text.documents import parse

Aliases = tuple[tuple[str, str], ...]
"""Patterns and targets, each with at most one `*`; the most reliable first."""
_BUILT = regex(r"(^|/)(?:dist|lib|build|out|es|esm|cjs)/")
_ENDING = regex(r"(?:\.d)?\.[cm]?[jt]sx?$")


def aliases_of(manifests: Iterable[tuple[str, bytes]]) -> Aliases:
    """Aliases defined by package.json and tsconfig.json files, given by path and content.

    Source: https://nodejs.org/api/packages.html, https://www.typescriptlang.org/tsconfig#paths
    """
    aliases: list[tuple[str, str]] = []
    for path, content in manifests:
        folder, name = posixpath.split(path)
        values = parse(path, content)
        if isinstance(values, dict):
            read = _package if name == "package.json" else _paths
            aliases += read(folder, values)
    return tuple(aliases)


def aliased(module: str, aliases: Aliases) -> Iterator[str]:
    """Paths that an import may mean, some without suffix."""
    for pattern, target in aliases:
        before, star, after = pattern.partition("*")
        if star and module.startswith(before) and module.endswith(after):
            middle = module[len(before) : len(module) - len(after)]
            yield from _sources(target.replace("*", middle))
        elif module == pattern:
            yield from _sources(target)


def _sources(target: str) -> Iterator[str]:
    """The file itself, and the source of a built file."""
    path = posixpath.normpath(target)
    yield path
    stem = _ENDING.sub("", path)
    yield stem
    if _BUILT.search(stem):
        yield _BUILT.sub(r"\1src/", stem, count=1)
        yield _BUILT.sub(r"\1", stem, count=1)


def _package(folder: str, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    name = values.get("name")
    if not isinstance(name, str):
        return
    for key in ("exports", "imports"):
        entries = values.get(key)
        inside = entries if isinstance(entries, dict) else {".": entries}
        for entry, target in inside.items():
            pattern = str(entry) if key == "imports" else posixpath.normpath(f"{name}/{entry}")
            yield from ((pattern, posixpath.join(folder, leaf)) for leaf in _leaves(target))
    for key in ("source", "module", "main", "types"):
        yield from ((name, posixpath.join(folder, leaf)) for leaf in _leaves(values.get(key)))
    yield from ((name, posixpath.join(folder, index)) for index in ("src/index", "index"))
    yield from ((f"{name}/*", posixpath.join(folder, tail)) for tail in ("src/*", "*"))


def _leaves(target: object) -> Iterator[str]:
    """The paths of an entry under all conditions."""
    if isinstance(target, str):
        yield target
    elif isinstance(target, dict):
        for value in target.values():
            yield from _leaves(value)
    elif isinstance(target, list):
        for value in target:
            yield from _leaves(value)


def _paths(folder: str, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    options = values.get("compilerOptions")
    if not isinstance(options, dict):
        return
    base = posixpath.join(folder, str(options.get("baseUrl", ".")))
    paths = options.get("paths")
    for pattern, targets in (paths if isinstance(paths, dict) else {}).items():
        yield from ((str(pattern), posixpath.join(base, leaf)) for leaf in _leaves(targets))
