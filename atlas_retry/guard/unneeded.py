"""Changes of settings that the gates should not need; whether they do is seen by running them."""

import re
from collections.abc import Iterator, Mapping
from itertools import chain

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Ruling, Scene, more_often
from atlas_retry.guard.settings import DEPENDS, REDIRECTED, decisive, is_later, is_shared
from atlas_retry.model import Answer
from atlas_retry.patterns import regex, words
from atlas_retry.source.tokens import WORD
from atlas_retry.text.documents import Key, flat, parse
from atlas_retry.text.globs import Globs
from atlas_retry.workspace.files import differing


def unneeded(delta: Delta, reason: Answer, scene: Scene) -> Ruling | None:
    """The ruling on settings that are kept if the gates pass with the earlier ones too.

    They only add dependencies, jobs, steps or rules, run a later version, ask a checker for more,
    or ignore nothing that is there. None for others.
    """
    if delta.before is None or delta.after is None or delta.old_mode != delta.new_mode:
        return None
    if not _only_adds(delta, reason, scene):
        return None
    detail = "only adds, and the gates pass without"
    return Ruling(
        path=delta.path,
        mechanism=f"decides: {reason.rule}",
        answer=Answer(rule="settings-added", path=delta.path, detail=detail),
        as_before={delta.path: (delta.old_mode or "100644", delta.before)},
    )


def _only_adds(delta: Delta, reason: Answer, scene: Scene) -> bool:
    if places.name(delta.path) == ".gitignore":
        return _ignores_nothing(delta, scene)
    if _MAKEFILE.search(places.name(delta.path)):
        return _has_more_rules(delta.old_text, delta.new_text)
    if reason.rule == "settings-changed":
        was, now = map(flat, delta.both(parse))
        keys = decisive(delta) if is_shared(delta.path) else differing(was, now)
        # what is not known to ask for more does not
        if keys and all(_is_stricter(key, was.get(key), now.get(key)) for key in keys):
            return True
    if reason.rule not in ("settings-changed", "pipeline-changed") or is_shared(delta.path):
        return False
    old, new = delta.both(parse)
    return isinstance(old, dict) and bool(old) and _grew(old, new, "")


def _ignores_nothing(delta: Delta, scene: Scene) -> bool:
    """Whether all patterns are there, and the new ones match no file."""
    lost = more_often(enumerate(delta.old_text.splitlines()), delta.new_text.splitlines())
    patterns = Globs(tuple(line for _, line in delta.added_lines if line.strip()[:1] != "#"))
    folder = delta.path.removesuffix(".gitignore")
    paths = {*scene.case.before.paths(), *scene.case.after.paths()}
    there = (path.removeprefix(folder) for path in paths if path.startswith(folder))
    return not any(lost) and not any(map(patterns.match, there))


_MAKEFILE = regex(r"(?i)^(gnu)?makefile$|\.mk$|^\.?justfile$")
_RULE = regex(r"[\w-]+( [\w-]+)*\s*:(?![:=])[^=$%]*")
"""The head of a rule for plain names, which computes nothing when it is read."""
_PHONY = regex(r"(?m)^\.PHONY\s*:(.*)\n?")


def _has_more_rules(old: str, new: str) -> bool:
    """Whether everything is there in order, and all else are rules under names without a use."""
    phony, now = (set(" ".join(_PHONY.findall(text)).split()) for text in (old, new))
    before, after = (_blocks(_PHONY.sub("", text)) for text in (old, new))
    rest = iter(after)
    if not phony <= now or after[:1] != before[:1] or not all(block in rest for block in before):
        return False
    known = {*WORD.findall(old)}
    heads = [block.partition("\n")[0] for block in after if block not in before]
    names = chain.from_iterable(WORD.findall(head.partition(":")[0]) for head in heads)
    return len(after) - len(before) == len(heads) and (
        all(map(_RULE.fullmatch, heads)) and known.isdisjoint(names)
    )


def _blocks(text: str) -> list[str]:
    """Lines of a Makefile, each with the indented ones below it."""
    lines = (line.rstrip() for line in text.splitlines())
    plain = "\n".join(line for line in lines if line.strip()[:1] not in ("", "#"))
    return re.split(r"\n(?![ \t])", plain)


_MORE = regex(
    r"(?i)select|enabled?$|checks?$|strict|^warn|error|disallow|require|deny|threshold|under$"
)
"""Names of settings that ask for more with more members, a higher number, or if they are true."""
_LESS = regex(r"(?i)ignore|exclude|omit|skip|disable|allow(ed)?$|^max")
"""Names of settings that ask for less then."""


def _is_stricter(key: Key, old: object, new: object) -> bool:
    less, more = (any(map(pattern.search, key)) for pattern in (_LESS, _MORE))
    # clang-tidy and flake8 list names in one text
    was, now = (tuple(v.split(",")) if isinstance(v, str) else v for v in (old, new))
    fewer, rest = (now, was) if less else (was, now)
    if less is more:
        return False
    if isinstance(fewer, int | float) and isinstance(rest, int | float):
        return fewer <= rest
    if not (isinstance(fewer, tuple) and isinstance(rest, tuple)):
        return False
    takes_back = any(item[:1] in ("-", "!") for item in {*rest} - {*fewer})
    return {*fewer} <= {*rest} and not takes_back


_ITEMS = words("jobs steps repos hooks matrix envlist env_list")
"""Lists and tables of CI, tox and pre-commit whose members run by themselves."""
_VERSIONS = words("uses rev")
"""What CI and pre-commit run, with its version."""


def _grew(old: object, new: object, key: str) -> bool:
    """Whether everything is there as it was, in order, among more of what may be added."""
    # as text: `True` is not `1` there
    if repr(old) == repr(new):
        return True
    depends = bool(DEPENDS.search(key))
    if isinstance(old, str) and isinstance(new, str):
        return is_later(old, new) if key in _VERSIONS else depends and _more_lines(old, new)
    if not isinstance(old, dict | list) or not isinstance(new, dict | list):
        return False
    may_add = depends or key in _ITEMS or len(old) == len(new)
    if isinstance(old, dict):
        return may_add and _each(old, new, key)
    return may_add and _in_order(old, iter(new))


def _each(old: Mapping[str, object], new: object, key: str) -> bool:
    there = new if isinstance(new, dict) else {}
    # a matrix runs more with more values, and less with more that is excluded
    inner = {name: key if key == "matrix" != name else f"{name}" for name in old}
    excludes = "exclude" in there.keys() - old.keys()
    return not excludes and all(n in there and _grew(old[n], there[n], inner[n]) for n in old)


def _in_order(old: list[object], rest: Iterator[object]) -> bool:
    return all(any(_grew(one, other, "") for other in rest) for one in old)


def _more_lines(old: str, new: str) -> bool:
    """Whether all lines are there, and the others name packages of an index."""
    lines, now = set(old.split("\n")), set(new.split("\n"))
    return lines <= now and not any(map(REDIRECTED.search, now - lines))
