"""Rule on golden data: changed, deleted, or only under another name as its test is.

Where the old name still belongs to a test the runner would write its expectations anew.
"""

import json
import posixpath
import re
from collections.abc import Callable, Iterator

from msgspec import Struct

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.documents import flat, parse
from atlas_retry.guard.suites import suite
from atlas_retry.guard.supplies import is_written_out
from atlas_retry.guard.units import HELPER

_KEPT_TOGETHER = re.compile(r"\.(snap|ambr)$")
_ONE_OF_INSTA = re.compile(r"\A---\r?\n.*?^---\r?\n", re.DOTALL | re.MULTILINE)
"""Where the value comes from, before the value itself (insta.rs, file format)."""


class Entry(Struct, frozen=True, kw_only=True):
    """One expectation of a file that holds those of many tests."""

    tests: str
    """The file of the tests."""
    key: str
    body: str


def changed(scene: Scene) -> Iterator[Finding]:
    """Expected output that was changed to what comes out, or deleted so that it is written anew."""
    for delta in scene.deltas:
        if not places.is_golden(delta.path) or delta.is_added or not delta.is_file:
            continue
        if _follows(delta, scene):
            continue
        if delta.is_deleted and not is_written_out(delta, scene):
            yield Finding(path=delta.path, detail="data of tests was deleted", soft=True)
        elif delta.is_deleted:
            continue
        elif delta.before != delta.after and not _holds_the_same(delta):
            detail = "data of tests was changed: expectations follow the code"
            yield Finding(path=delta.path, line=_first_difference(delta), detail=detail, soft=True)


def _holds_the_same(delta: Delta) -> bool:
    """Whether everything that was in it still is: formatting, and entries that were added."""
    if places.suffix(delta.path) in (".json", ".yaml", ".yml", ".toml"):
        old, new = parse(delta.path, delta.before or b""), parse(delta.path, delta.after or b"")
        if isinstance(old, list) and isinstance(new, list):
            kept = [json.dumps(item, sort_keys=True, default=str) for item in new]
            return all(json.dumps(item, sort_keys=True, default=str) in kept for item in old)
        if isinstance(old, dict) and isinstance(new, dict):
            return flat(old).items() <= flat(new).items()
        return old == new and old is not None
    if _value_of(delta.old_text) == _value_of(delta.new_text):
        return True
    if delta.path.endswith((".snap", ".ambr")):
        return set(_parts(delta.old_text)) <= set(_parts(delta.new_text))
    return delta.old_text.split() == delta.new_text.split()


def _parts(text: str) -> list[str]:
    parts = re.split(r"^(?=exports\[|# name:)", text, flags=re.MULTILINE)
    return [part.replace("\r\n", "\n").strip() for part in parts if not part.startswith("//")]


def _first_difference(delta: Delta) -> int:
    pairs = zip(delta.old_text.splitlines(), delta.new_text.splitlines(), strict=False)
    return next((n for n, (old, new) in enumerate(pairs, 1) if old != new), 1)


def _follows(delta: Delta, scene: Scene) -> bool:
    """Whether all that a file of expected output held is held for tests of other names now."""
    if _KEPT_TOGETHER.search(delta.path) and not _is_of_insta(delta.old_text):
        return _entries_follow(delta, scene)
    return delta.is_deleted and _file_follows(delta, scene)


def _value_of(text: str) -> str:
    """The text of a snapshot of insta without what it says of its origin; else the text."""
    return _ONE_OF_INSTA.sub("", text)


def _is_of_insta(text: str) -> bool:
    return bool(_ONE_OF_INSTA.match(text))


def _entries_follow(delta: Delta, scene: Scene) -> bool:
    there = set(_entries(delta.path, delta.new_text))
    gone = [entry for entry in _entries(delta.path, delta.old_text) if entry not in there]
    came = [
        entry
        for other in scene.files
        if _KEPT_TOGETHER.search(other.path)
        for entry in {*_entries(other.path, other.new_text)}
        - {*_entries(other.path, other.old_text)}
    ]
    keys = {(entry.tests, entry.key) for entry in there}
    return bool(gone) and all(
        (entry.tests, entry.key) not in keys
        and not _is_test(entry, scene)
        and any(entry.body == other.body and _is_test(other, scene) for other in came)
        for entry in gone
    )


def _entries(path: str, text: str) -> Iterator[Entry]:
    tests = _tests_of(path)
    for part in re.split(r"^(?=exports\[|# name:)", text.replace("\r\n", "\n"), flags=re.MULTILINE):
        found = re.match(r"exports\[`((?:\\.|[^`\\])*)`\]|# name: (.*)", part)
        if found:
            key = (found[1] or found[2]).strip()
            yield Entry(tests=tests, key=key, body=part[found.end() :].strip())


def _tests_of(path: str) -> str:
    """The file of the tests: `a/__snapshots__/b.spec.js.snap` is of `a/b.spec.js`."""
    folder, name = posixpath.split(path)
    stem = name.removesuffix(".snap")
    if name.endswith(".ambr"):
        stem = f"{name.removesuffix('.ambr')}.py"
    return posixpath.join(posixpath.dirname(folder), stem)


def _is_test(entry: Entry, scene: Scene) -> bool:
    """Whether a test that there is now has this key."""
    units = suite(entry.tests, scene.new(entry.tests)).units
    names = {_spoken(unit.name) for unit in units if not unit.name.startswith(HELPER)}
    key = re.sub(r"(\.\d+|\[.*)$", "", entry.key)
    key = _spoken(re.sub(r" \d+$", "", key))
    return key in names or any(key.startswith(f"{name}: ") for name in names)


def _spoken(name: str) -> str:
    return " ".join(name.replace(" > ", " ").replace("::", ".").split())


def _file_follows(delta: Delta, scene: Scene) -> bool:
    """Whether a file that no test speaks of any more came anew under a name that one speaks of."""
    was = _value_of(delta.old_text)
    came = [d.path for d in scene.files if d.is_added and _value_of(d.new_text) == was]
    if not was.strip():
        return False
    name = places.name(delta.path)
    own = name if _is_spoken(name, scene.old_paths, scene.old) else _stem(delta.path)
    if _is_spoken(own, scene.new_paths, scene.new):
        return False
    return any(_is_spoken(_stem(path), scene.new_paths, scene.new) for path in came)


def _stem(path: str) -> str:
    """The word that a test is likely to say: of insta's names the last part."""
    found = re.match(r"[\w-]*", places.name(path).rpartition("__")[2])
    return found[0] if found else ""


def _is_spoken(word: str, paths: frozenset[str], read: Callable[[str], bytes | None]) -> bool:
    """Whether source that takes part in tests says a word."""
    said = re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])".encode())
    tests = (p for p in sorted(paths) if places.is_test_code(p) or p.endswith(".rs"))
    return bool(word) and any(said.search(read(path) or b"") for path in tests)
