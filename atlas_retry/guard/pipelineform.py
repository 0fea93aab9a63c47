"""What a pipeline written in YAML runs, however it is laid out and split into steps. Pure."""

import re
from collections.abc import Iterator, Mapping, Sequence

import yaml
from msgspec import Struct

_COMMANDS = re.compile(r"^(run|(before_|after_)?script|commands?|cmds?|sh|bash)$")
_TERMS = re.compile(
    r"^(if|when|only|except|rules|allow_failure|continue-on-error|branches|exclude)$"
)
_ALWAYS = frozenset({"False", "None", "always", "on_success", "always()", "${{ always() }}"})
_OPENS, _CLOSES = (
    re.compile(r"^(if|case|while|until)\b(?!.*\bfi$)"),
    re.compile(r"^(fi|esac|done)\b"),
)
_FILTERS = ("branches", "branches-ignore", "paths", "paths-ignore", "tags", "tags-ignore", "types")


class Said(Struct, frozen=True):
    """One thing that a pipeline says: what, and on which terms of the steps around it."""

    line: str
    terms: frozenset[str] = frozenset()


def said(text: str) -> tuple[Said, ...] | None:
    """All that a pipeline says but for names of jobs, events and terms; None for other text."""
    document = _document(text)
    if document is None:
        return None
    body = {key: value for key, value in document.items() if key not in ("on", True)}
    used = str([v.get("extends") for v in body.values() if isinstance(v, dict)])
    found: list[Said] = []
    for key, value in body.items():
        hidden = str(key).startswith(".") and f"'{key}'" not in used
        terms = frozenset({"never run"}) if hidden else frozenset[str]()
        found += _of(str(key), value, terms)
    return tuple(found)


def _document(text: str) -> Mapping[object, object] | None:
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def _of(key: str, value: object, terms: frozenset[str]) -> Iterator[Said]:
    if isinstance(value, dict):
        own = {f"{k}={v}" for k, v in value.items() if _TERMS.match(str(k)) and not _is_always(v)}
        for name, inner in value.items():
            if not _TERMS.match(str(name)):
                yield from _of(str(name), inner, terms | own)
    elif _COMMANDS.match(key) and not isinstance(value, list):
        yield from _commands(str(value), terms)
    elif isinstance(value, list) and (_COMMANDS.match(key) or _is_nested(value)):
        for item in value:
            yield from _of(key, item, terms)
    elif isinstance(value, list):
        yield Said(f"{key}: [{', '.join(map(str, value))}]", terms)
    else:
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        yield Said(f"{key}: {' '.join(shown.split())}", terms)


def _is_nested(items: list[object]) -> bool:
    return any(isinstance(item, dict | list) for item in items)


def _is_always(value: object) -> bool:
    return str(value) in _ALWAYS


def _commands(block: str, terms: frozenset[str]) -> Iterator[Said]:
    """Commands of a block of shell; what stands within a condition is on its terms."""
    open_: list[str] = []
    for line in block.replace("\\\n", " ").splitlines():
        bare = " ".join(line.split())
        if not bare or bare.startswith("#"):
            continue
        if _CLOSES.match(bare) and open_:
            open_.pop()
        yield Said(f"run: {bare}", terms | set(open_))
        if _OPENS.match(bare):
            open_.append(bare)


def kept_of(old: Sequence[Said], new: Sequence[Said]) -> list[bool]:
    """Of everything said before whether it still is, on the same terms or fewer."""
    rest, kept = list(new), []
    for earlier in old:
        held = next((n for n in rest if n.line == earlier.line and n.terms <= earlier.terms), None)
        kept.append(held is not None)
        if held is not None:
            rest.remove(held)
    return kept


def events_narrowed(old: str, new: str) -> Iterator[str]:
    """Events that a pipeline no longer runs on, or for less than before."""
    before, after = (_events(_document(text) or {}) for text in (old, new))
    for event, had in before.items():
        has = after.get(event)
        if has is None:
            yield f"no longer runs on `{event}`"
            continue
        for name in _FILTERS:
            if _is_narrower(name, had.get(name), has.get(name)) and not _is_doubled(
                event, name, before, after
            ):
                yield f"runs on `{event}` only for {name}: {has.get(name)}"


_Events = dict[str, dict[str, object]]


def _events(document: Mapping[object, object]) -> _Events:
    told = document.get("on", document.get(True))
    if isinstance(told, dict):
        return {str(k): v if isinstance(v, dict) else {} for k, v in told.items()}
    return {str(event): {} for event in (told if isinstance(told, list) else [told]) if event}


def _is_narrower(name: str, had: object, has: object) -> bool:
    was, is_ = (
        {*map(str, v)} if isinstance(v, list) else {str(v)} if v else set() for v in (had, has)
    )
    if name.endswith("-ignore"):
        return not is_ <= was
    return bool(is_) and not (was and was <= is_)


def _is_doubled(event: str, name: str, before: _Events, after: _Events) -> bool:
    """Whether pull requests run it all still, for which pushes to their branches ran it twice."""
    whole = "pull_request" in before and not set(after.get("pull_request", {"": 0})) & set(_FILTERS)
    tags_too = name == "tags" and "branches" in before.get(event, {})
    return tags_too or (event == "push" and name == "branches" and whole)
