"""Test libraries of JavaScript whose names come to stand for something of the project's own."""

import posixpath
import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.words import words

SUFFIXES = (".js", ".cjs", ".mjs", ".ts", ".tsx", ".jsx", ".mts", ".cts")
LIBRARY = re.compile(
    r"(node:)?(assert(/strict)?|test)$|(chai|expect|vitest|ava|tape?|mocha|should|power-assert"
    r"|uvu(/assert)?|@jest/globals|@playwright/test)$"
)
_GLOBALS = words("expect test it describe")
"""What Jest, Mocha and Vitest hand to tests without an import."""
_IMPORT = re.compile(
    r"\bimport\s+(?!type\b)([\w$*{][^;'\"]*?)\s*from\s*['\"]([^'\"]+)['\"]"
    r"|\b(?:const|let|var)\s+([\w$]+|\{[^}]*\})\s*=\s*require\(\s*['\"]([^'\"]+)['\"]\s*\)"
)
_EXPORTED = re.compile(r"\bexport\s*(\*|\{[^}]*\})\s*from\s*['\"]([^'\"]+)['\"]")
_MADE = re.compile(r"\s*(\{|\[|\(|async\b|function\b|class\b|new\b|Object\.|[\w$]+\s*=>)")
_MAX_DEPTH = 3


def replaced(scene: Scene) -> Iterator[Finding]:
    """Names that a test had from its library and now has from a module that makes them itself."""
    for delta in scene.files:
        if places.suffix(delta.path) in SUFFIXES and places.is_test(delta.path) and delta.before:
            yield from _of_file(delta, scene)


def _of_file(delta: Delta, scene: Scene) -> Iterator[Finding]:
    before, after = bindings(delta.old_text), bindings(delta.new_text)
    known = {name for name, (origin, _) in before.items() if LIBRARY.match(origin)}
    known |= {n for n in _GLOBALS - before.keys() if re.search(rf"\b{n}[.(]", delta.old_text)}
    for name in sorted(known):
        origin, member = after.get(name, ("", name))
        local = not origin and name not in _GLOBALS
        if origin.startswith(("./", "../")):
            path = posixpath.normpath(posixpath.join(posixpath.dirname(delta.path), origin))
            own = _is_made(path, member, scene, _MAX_DEPTH)
        else:
            own = local and _is_own(delta.new_text, name)
        if own:
            line = next(
                (n for n, s in enumerate(delta.new_text.splitlines(), 1) if name in s), None
            )
            detail = f"`{name}` is no longer the library's: {origin or 'the test'} makes it"
            yield Finding(path=delta.path, line=line, detail=detail)


def bindings(text: str) -> dict[str, tuple[str, str]]:
    """Imported names to the module and the name there."""
    found: dict[str, tuple[str, str]] = {}
    for match in _IMPORT.finditer(text):
        clause, origin = (match[1], match[2]) if match[1] else (match[3], match[4])
        head, _, named = clause.partition("{")
        for part in named.rstrip("} \n").split(","):
            there, _, here = re.sub(r"\s+as\s+|\s*:\s*", " ", part).strip().partition(" ")
            found[here or there] = (origin, there)
        for part in head.split(","):
            bare = re.sub(r"^\s*\*\s*as\s+", "", part).strip()
            found[bare] = (origin, "default")
    found.pop("", None)
    return found


def _is_made(path: str, name: str, scene: Scene, depth: int) -> bool:
    """Whether a module of the project makes what it exports by a name, and hands on no library."""
    text = _source(path, scene)
    if text is None or depth == 0:
        return False
    for clause, origin in _EXPORTED.findall(text):
        if re.search(rf"\b{re.escape(name)}\b", clause):
            folder = posixpath.dirname(path)
            further = posixpath.normpath(posixpath.join(folder, origin))
            return origin.startswith(".") and _is_made(further, name, scene, depth - 1)
    return _is_own(text, name)


def _source(path: str, scene: Scene) -> str | None:
    stem = re.sub(r"\.[cm]?js$", "", path)
    tried = (path, *(f"{p}{s}" for p in (path, stem, f"{path}/index") for s in SUFFIXES))
    for candidate in tried:
        found = scene.new(candidate)
        if found is not None:
            return found.decode("utf-8", "replace")
    return None


def _is_own(text: str, name: str) -> bool:
    """Whether a text defines a name as an object, a function or a class of its own."""
    word = re.escape(name)
    if re.search(rf"\b(function\*?|class)\s+{word}\b", text):
        return True
    said = [rf"\b(?:const|let|var)\s+{word}\s*(?::[^=\n]*)?=(?!=)", rf"\bexports\.{word}\s*=(?!=)"]
    if name == "default":
        said = [r"\bexport\s+default\b", r"\bmodule\.exports\s*=(?!=)"]
    for pattern in said:
        for match in re.finditer(pattern, text):
            value = text[match.end() :]
            if _MADE.match(value):
                return True
            named = re.match(r"\s*([\w$]+)\s*;?\s*(\n|$)", value)
            if named and named[1] != name and _is_own(text, named[1]):
                return True
    inner = re.search(r"\bmodule\.exports\s*=\s*\{(.*)", text, re.DOTALL)
    return bool(inner and re.search(rf"(^|[,{{\s]){word}\s*(\(|:\s*(function|async|\())", inner[1]))
