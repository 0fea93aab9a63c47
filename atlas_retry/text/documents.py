"""Configuration files as plain values; None for files that cannot be parsed."""

import json
import posixpath
import re
import tomllib
from collections.abc import Callable, Mapping

from atlas_retry.patterns import regex, words

Key = tuple[str, ...]

_COMMENT = regex(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = regex(r'("(?:\\.|[^"\\])*")|,(?=\s*[}\]])', re.DOTALL)


def parse(path: str, content: bytes) -> object:
    """The document of a file; None if its format is unknown or its content invalid."""
    text = content.decode("utf-8", "replace")
    name, suffix = posixpath.basename(path), posixpath.splitext(path)[1].lower()
    reader = _READERS.get(suffix) or _READERS.get(name)
    if reader is None and name.endswith("rc"):
        is_json = text.lstrip().startswith("{")
        reader = _json if is_json else _yaml if ":" in text else None
    try:
        return reader(text) if reader else None
    except (ValueError, RecursionError):
        return None


def _csv(text: str) -> object:
    return [re.split(r"[,;\t]", line) for line in text.splitlines()]


def _json(text: str) -> object:
    bare = _COMMENT.sub(lambda match: match[1] or "", text)
    return json.loads(_TRAILING.sub(lambda match: match[1] or "", bare))


def _yaml(text: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(text) from error


def _xml(text: str) -> object:
    """Texts and attributes (`a/@c`) by the paths of their elements."""
    from defusedxml import ElementTree

    try:
        waiting = [("", ElementTree.fromstring(text))]
    except ElementTree.ParseError as error:
        raise ValueError(text) from error
    texts: dict[str, list[str]] = {}
    while waiting:
        above, element = waiting.pop()
        path = f"{above}{element.tag.rpartition('}')[2].lower()}"
        for key, value in element.items():
            texts.setdefault(f"{path}/@{key}", []).append(value)
        for part in (element.text, *(child.tail for child in element)):
            if part and part.strip():
                texts.setdefault(path, []).append(part.strip())
        waiting += ((f"{path}/", child) for child in reversed(element))
    return texts


def _ini(text: str) -> object:
    import configparser

    reader = configparser.RawConfigParser(strict=False, allow_no_value=True, delimiters=("=", ":"))
    reader.optionxform = str  # type: ignore[assignment,method-assign]
    try:
        reader.read_string(text if text.lstrip().startswith("[") else f"[top]\n{text}")
    except (AttributeError, configparser.Error) as error:
        # AttributeError: configparser appends a continuation line to a key without a value
        raise ValueError(text) from error
    return {section: dict(reader.items(section)) for section in reader.sections()}


_READERS: Mapping[str, Callable[[str], object]] = {
    **dict.fromkeys((".json", ".jsonc", ".json5"), _json),
    **dict.fromkeys(
        words(".ini .cfg .flake8 .coveragerc .pylintrc .pydocstyle .bandit pylintrc"), _ini
    ),
    ".editorconfig": _ini,
    **dict.fromkeys((".yaml", ".yml", ".clang-tidy", ".clang-format", ".yamllint"), _yaml),
    **dict.fromkeys((".toml", ".lock"), tomllib.loads),
    **dict.fromkeys((".csv", ".tsv"), _csv),
    ".xml": _xml,
}
"""By suffix or name. Raise ValueError for invalid content."""


def flat(value: object, prefix: Key = ()) -> dict[Key, object]:
    """Every leaf by its key path. Lists of plain values stay whole, as tuples of text."""
    if isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        value = {f"[{number}]": item for number, item in enumerate(value)}
    if isinstance(value, dict):
        leaves: dict[Key, object] = {}
        for key, inner in value.items():
            leaves |= flat(inner, (*prefix, str(key)))
        return leaves or ({prefix: {}} if prefix else {})
    return {prefix or ("",): tuple(map(str, value)) if isinstance(value, list) else value}
