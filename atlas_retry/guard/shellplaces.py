"""Scripts of the project that shell tests call by another path than before. Pure; judges nothing.

A path counts as the same only where the folder is known in which the test runs, and where one
file alone has that name. What could not be found from there proved nothing.
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache

from msgspec import Struct

from atlas_retry.guard import places
from atlas_retry.guard.case import Scene

_HERE = r"\"?\$\(dirname (?:-- )?\"?\$(?:0|\{?BASH_SOURCE(?:\[0\]\})?)\"?\)\"?"
_GOES = re.compile(r"\b(?:cd|pushd|popd)\b")
_INTO = re.compile(rf"^cd (?:-- )?{_HERE}(?P<up>[./\w]*)\"?(?: \|\| (?:exit|return)(?: [1-9])?)?$")
_ROOTED = re.compile(
    rf"^(?:readonly |export |local )?(?P<name>\w+)=\"?\$\(cd (?:-- )?(?:{_HERE}(?P<up>[./\w]*))\"?"
    r" (?:>/dev/null )?(?:2>&1 )?&& pwd(?: -P)?\)\"?$"
)
_CALLED = re.compile(
    r"(?P<ahead>(?:^|(?<=[\s;&|(]))(?:if|while|until|then|do|else|!|run|exec|time|env|source"
    r"|\.|(?:ba|da|z|k)?sh|python3?|node|perl|ruby)(?: -[a-z]+)* |^|[;&|(] ?)"
    r"(?P<word>(?:\"?\$\{?\w+\}?\"?/|"
    rf"{_HERE}/|\"|\.(?=/))?(?P<rest>(?:[\w.-]+/|/)*[\w-]+\.\w+)\"?)(?=[\s;)|&]|$)"
)
_STATUS = re.compile(r"; ?false$")
_WORD = re.compile(r"[\w./$\"'{}=-]+$")


class _Folders(Struct, frozen=True, kw_only=True):
    """From where a test finds files: its own folder, the one it runs in, and those it names."""

    own: str
    runs_in: str
    named: Mapping[str, str]


@lru_cache(maxsize=64)
def spelled(path: str, before: bytes | None, after: bytes | None, scene: Scene) -> bytes | None:
    """A shell test of before, with the paths of its commands as they are spelled now."""
    if before is None or after is None or places.suffix(path) not in (".sh", ".bash", ".bats"):
        return before
    was, is_ = (side.decode("utf-8", "surrogateescape").splitlines() for side in (before, after))
    folders = [_folders(path, lines) for lines in (was, is_)]
    old, new = folders
    if old is None or new is None or old.runs_in != new.runs_in:
        return before
    came = [line for line in is_ if line not in was]
    told = [line if line in is_ else _follower(line, came, (old, new), scene) for line in was]
    return ("\n".join(told) + "\n").encode("utf-8", "surrogateescape")


def _folders(path: str, lines: Collection[str]) -> _Folders | None:
    own = posixpath.dirname(path)
    named = {"BATS_TEST_DIRNAME": own}
    runs_in = "."
    for line in map(str.strip, lines):
        if rooted := _ROOTED.match(line):
            named[rooted["name"]] = "" if rooted["name"] in named else f"{own}/{rooted['up']}"
        elif into := _INTO.match(line):
            if runs_in != ".":
                return None
            runs_in = posixpath.normpath(f"{own}/{into['up']}")
            own = own if runs_in == "." else ""
        elif _GOES.search(line) and not line.startswith("#"):
            return None
        elif given := re.search(r"\b(\w+)=", line):
            named[given[1]] = ""
    return _Folders(own=own, runs_in=runs_in, named=named)


def _follower(line: str, came: list[str], sides: tuple[_Folders, _Folders], scene: Scene) -> str:
    """The line that calls the same script with the same words; itself where there is none."""
    for now in came:
        calls = [*_calls(line)], [*_calls(now)]
        names = [[places.name(call["rest"]) for call in side] for side in calls]
        found = [_found(call, sides[1], scene) for call in calls[1]]
        if not found or names[0] != names[1] or None in found or not _are_alone(names[1], scene):
            continue
        lost = all(_found(call, sides[0], scene) is None for call in calls[0])
        if _bare(line) == _bare(now) or (lost and _grew(_bare(line), _bare(now))):
            came.remove(now)
            return now
    return line


def _calls(line: str) -> Iterator[re.Match[str]]:
    return _CALLED.finditer(line.strip())


def _bare(line: str) -> str:
    """A line with the names of its scripts alone."""
    said = _CALLED.sub(lambda m: f"{m['ahead']}{places.name(m['rest'])}", line.strip())
    return re.sub(r"(?:(?<=^)|(?<=[;&|(]) ?|(?<=\s))(?:(?:ba)?sh )(?=[\w-]+\.(?:ba)?sh)", "", said)


def _grew(old: str, new: str) -> bool:
    """Whether a command has the words it had, and plain ones more, and its status is its own."""
    plain = _STATUS.sub("", old)
    had, rest = plain.split(), new.split()
    for word in had:
        if word not in rest:
            return False
        rest.remove(word)
    return all(map(_WORD.match, rest)) and not re.search(r"[;&|]", plain + new)


def _are_alone(names: Collection[str], scene: Scene) -> bool:
    there = [places.name(path) for path in scene.old_paths | scene.new_paths]
    return all(there.count(name) == 1 for name in names)


def _found(call: re.Match[str], folders: _Folders, scene: Scene) -> str | None:
    """The file that a path leads to."""
    rest, word = call["rest"].lstrip("/"), call["word"].strip('"')
    variable = re.match(r"\$\{?(\w+)", word)
    if "dirname" in word:
        base = folders.own if folders.runs_in == "." else ""
    elif variable:
        base = folders.named.get(variable[1], "")
    else:
        base = folders.runs_in
    whole = posixpath.normpath(f"{base}/{rest}") if base else ""
    return whole if whole in scene.new_paths & scene.old_paths else None
