"""Words for what pydantic refuses: the place, what was expected, the nearest key. Pure."""

import json
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from atlas_retry.config.keys import keys
from atlas_retry.config.models import MAPPING, TEXT, model_of
from atlas_retry.config.sources import SAME, Path, Source, Sources, dotted
from atlas_retry.errors import ConfigError, Place, nearest
from atlas_retry.settings import ConfigSection
from atlas_retry.text.redaction import clean, redact

MAX_SHOWN_CHARS = 200
WORDS: Mapping[str, str] = {
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
    "model_attributes_type": "a mapping",
}
"""What was expected, by the type of pydantic's error, for keys without words of their own."""
JSON = "expected JSON for a list or a mapping"

OTHER_WORDS = {"command": "run", "run": "command"}
"""A gate's command is `run`, that of `quality_gates` and of an agent `command`."""


def problems_of(source: Source, section: type[ConfigSection]) -> Iterator[ConfigError]:
    """One error for each invalid value of a source."""
    yield from source.problems
    model = model_of(section)
    try:
        if source.is_text:
            model.model_validate(source.values)
        else:  # strict: of the types of JSON; 3 is no text
            model.model_validate_json(json.dumps(source.values, default=str), strict=True)
    except ValidationError as error:
        for one in error.errors(include_url=False):
            path = tuple(step for step in one["loc"] if step not in (TEXT, MAPPING, "[key]"))
            yield _problem(path, one, source, section)


def _problem(
    path: Path, error: ErrorDetails, source: Source, section: type[ConfigSection]
) -> ConfigError:
    kind, value, facts = error["type"], error["input"], error.get("ctx") or {}
    if kind == "extra_forbidden":
        return ConfigError(_unknown(path, section), place=source.place(path, of_key=True))
    if kind == "missing":
        return refused(path[:-1], f"{path[-1]} is missing", source)
    if source.is_text and isinstance(value, str) and WORDS.get(kind, "").startswith("a "):
        return ConfigError(JSON, place=source.place(path))
    expected = f"expected {facts.get('expected') or WORDS.get(kind, kind)}"
    found = _found(value)
    if kind == "tuple_type" and isinstance(value, str):
        found += f"; write {path[-1]}: [{json.dumps(redact(clean(value))[:MAX_SHOWN_CHARS])}]"
    return refused(path, f"{facts.get('error', expected)}, found {found}", source)


def refused(path: Path, message: str, given: Source | Sources) -> ConfigError:
    """One error about the value at this path."""
    return ConfigError(f"{dotted(path) or 'configuration'}: {message}", place=given.place(path))


def together(errors: Sequence[ConfigError]) -> ConfigError:
    """All errors as one, source by source, in the order of the file, one for each place."""
    sources = list(dict.fromkeys(error.place.source for error in errors))

    def order(place: Place) -> tuple[int, int, int]:
        return sources.index(place.source), place.line or 0, place.column or 0

    by_place = {error.place: error for error in reversed(errors)}
    first, *others = (by_place[place] for place in sorted(by_place, key=order))
    return ConfigError(
        first.message,
        place=without_secrets(first.place),
        remedy=first.remedy,
        also=[ConfigError(other.message, place=without_secrets(other.place)) for other in others],
    )


def without_secrets(place: Place) -> Place:
    """The place with a line that has no secrets and no control codes."""
    if place.text is None:
        return place
    return replace(place, text=redact(clean(place.text))[:MAX_SHOWN_CHARS])


def _unknown(path: Path, section: type[ConfigSection]) -> str:
    *above, key = (step for step in path if isinstance(step, str))
    known_keys = list(keys(section))
    siblings = [known[-1] for known in known_keys if known[:-1] == tuple(above)]
    elsewhere = {known[-1]: dotted(known) for known in reversed(known_keys)}
    aliases = [str(old[-1]) for old in SAME if old[:-1] == tuple(above)]
    other = OTHER_WORDS.get(key)
    here = other if other in siblings else nearest(key, [*siblings, *aliases])
    near = here or elsewhere.get(nearest(key, [*elsewhere]) or "")
    hint = f"did you mean {near}?" if near else f"known here: {', '.join(siblings)}"
    return f"unknown key {dotted(path)}; {hint}"


def _found(value: object) -> str:
    match value:
        case None:
            return "nothing"
        case bool():
            return str(value).lower()
        case str():
            return repr(redact(clean(value))[:MAX_SHOWN_CHARS])
        case dict():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return str(value)[:MAX_SHOWN_CHARS]
