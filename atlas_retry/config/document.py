"""Reads YAML 1.2 into values with their lines and columns. Knows no key of the configuration."""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Protocol

import yaml

from atlas_retry.config.sources import Path, Source, Tree
from atlas_retry.errors import ConfigError, Place
from atlas_retry.patterns import regex

MAX_NODES = 20_000
"""Values of one file, aliases counted each time: limits YAML bombs."""
MAX_DEPTH = 64
"""Also limits the recursion of libyaml, which overflows the stack at about 50,000."""
TAG = "tag:yaml.org,2002:"

# YAML 1.1 §5.4: all of these end a line in PyYAML's marks.
LINE_BREAK = regex("\r\n|[\r\n\x85\u2028\u2029]")

SCALARS: Mapping[str, tuple[Any, Callable[[str], object]]] = {
    "null": (regex(r"(~|null|Null|NULL|)\Z"), lambda _: None),
    "bool": (regex(r"(true|True|TRUE|false|False|FALSE)\Z"), lambda text: text[0] in "tT"),
    "int": (
        regex(r"([-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+)\Z"),
        lambda text: int(text, {"0o": 8, "0x": 16}.get(text[:2], 10)),
    ),
    "float": (
        regex(
            r"([-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
            r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z"
        ),
        lambda text: float(text.lower().replace(".i", "i").replace(".n", "n")),
    ),
}
"""Form and value of what is not text, by tag: YAML 1.2 §10.3.2."""


class YamlLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """PyYAML's loader, which by itself reads YAML 1.1: `off` as false, `1:30` as 90."""

    yaml_implicit_resolvers: ClassVar[dict[str | None, list[tuple[str, Any]]]] = {
        None: [(f"{TAG}merge", regex(r"<<\Z"))]
        + [(TAG + name, form) for name, (form, _) in SCALARS.items()]
    }


class CiLoader(YamlLoader):
    """For documents as CI reads them, with a tag of GitLab."""


# a tuple: GitLab's reference to the lines of another job
CiLoader.add_constructor("!reference", lambda loader, node: tuple(loader.construct_sequence(node)))


def source_of(content: bytes, name: str) -> Source:
    """Every value of a YAML document, with its place.

    An empty document has no values. Duplicate keys, tags and keys that are not text become problems
    of the source. Raises ConfigError for invalid YAML or UTF-8, or too many values.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        message = f"not UTF-8: byte 0x{content[error.start]:02x} at offset {error.start}"
        at = len(content[: error.start].decode())
        place = _place_of(content.decode("utf-8", "replace"), at, name)
        raise ConfigError(message, place=place) from error
    if unprintable := yaml.reader.Reader.NON_PRINTABLE.search(text):
        message = f"the control character U+{ord(unprintable[0]):04X} is not allowed in YAML"
        raise ConfigError(message, place=_place_of(text, unprintable.start(), name))
    reading = _Reading(name, text)
    try:
        reading.measure()
        root = yaml.compose(text, Loader=YamlLoader)
    except yaml.MarkedYAMLError as error:
        raise reading.syntax_error(error) from error
    values = reading.value(root, ()) if root is not None else None
    if values is not None and not isinstance(values, dict):
        place = reading.places[()]
        raise ConfigError("a configuration must be a mapping of keys to values", place=place)
    return Source(
        name=name,
        values=values or {},
        places=reading.places | {(): Place(name)},
        keys=reading.keys,
        problems=tuple(reading.problems),
    )


def _place_of(text: str, at: int, source: str) -> Place:
    *above, before = LINE_BREAK.split(text[:at])
    line = before + LINE_BREAK.split(text[at:], maxsplit=1)[0]
    return Place(source, len(above) + 1, len(before) + 1, line)


class _Mark(Protocol):
    """A position, from 0, in both of PyYAML's readers."""

    line: int
    column: int


class _Reading:
    """One pass over one document that collects places and problems."""

    def __init__(self, source: str, text: str) -> None:
        self._source = source
        self._text = text
        self._lines = LINE_BREAK.split(text.rstrip())
        self._seen = 0
        self._merging: list[yaml.Node] = []
        self.places: dict[Path, Place] = {}
        self.keys: dict[Path, Place] = {}
        self.problems: list[ConfigError] = []

    def measure(self) -> None:
        """Refuse deep nesting, which overflows the composer's stack, from the stream of events."""
        depth = 0
        for seen, event in enumerate(yaml.parse(self._text, Loader=YamlLoader)):
            depth += isinstance(event, yaml.CollectionStartEvent)
            depth -= isinstance(event, yaml.CollectionEndEvent)
            self._bound(event.start_mark, nodes=seen, depth=depth)

    def value(self, node: yaml.Node, path: Path) -> object:
        self._seen += 1
        self._bound(node.start_mark, nodes=self._seen, depth=len(path))
        self.places[path] = self._place(node.start_mark)
        if isinstance(node, yaml.MappingNode) and node.tag == TAG + "map":
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode) and node.tag == TAG + "seq":
            return [self.value(item, (*path, at)) for at, item in enumerate(node.value)]
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._problem(f"the tag {node.tag} is not allowed: write a plain value", node)
        return None

    def syntax_error(self, error: yaml.MarkedYAMLError) -> ConfigError:
        mark = error.problem_mark or error.context_mark
        place = self._place(mark)
        why = " ".join(filter(None, (error.problem, error.context)))
        if place.text and place.text[place.column - 1 if place.column else 0 :].startswith("\t"):
            why = "a tab: YAML needs spaces there"
        return ConfigError(f"not valid YAML: {why}", place=place)

    def _bound(self, mark: _Mark | None, *, nodes: int, depth: int) -> None:
        if nodes > MAX_NODES:
            message = f"more than {MAX_NODES} values, repeated aliases included"
            raise ConfigError(message, place=self._place(mark))
        if depth > MAX_DEPTH:
            raise ConfigError(f"nested deeper than {MAX_DEPTH} levels", place=self._place(mark))

    def _mapping(self, node: yaml.MappingNode, path: Path) -> Tree:
        own: Tree = {}
        merged: Tree = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                self._problem("a key must be text", key_node)
                continue
            key = key_node.value
            if key_node.tag == TAG + "merge":
                merged |= self._merge(value_node, path)
                continue
            if key in own:
                first = self.keys[*path, key].line
                self._problem(f"{key} is set twice: first in line {first}", key_node)
            self.keys[*path, key] = self._place(key_node.start_mark)
            own[key] = self.value(value_node, (*path, key))
        return merged | own

    def _merge(self, node: yaml.Node, path: Path) -> Tree:
        """The mapping that `<<` merges; of several mappings, the first with a key wins."""
        sources = node.value if isinstance(node, yaml.SequenceNode) else [node]
        merged: Tree = {}
        here = self.places[path]
        for source in reversed(sources):
            if source in self._merging:
                message = "<< merges a mapping into itself"
                raise ConfigError(message, place=self._place(source.start_mark))
            self._merging.append(source)
            value = self.value(source, path)
            self._merging.pop()
            if isinstance(value, dict):
                merged |= value
            else:
                self._problem("<< takes a mapping or a list of mappings", source)
        self.places[path] = here
        return merged

    def _scalar(self, node: yaml.ScalarNode) -> object:
        if node.tag == f"{TAG}str":
            return node.value
        form, value_of = SCALARS.get(node.tag.removeprefix(TAG), (None, str))
        if form is None or not form.match(node.value):
            self._problem(f"the tag {node.tag} is not allowed: write a plain value", node)
            return None
        try:
            return value_of(node.value)
        except ValueError:
            self._problem("this looks like a number, but is not a valid one", node)
        return None

    def _problem(self, message: str, node: yaml.Node) -> None:
        self.problems.append(ConfigError(message, place=self._place(node.start_mark)))

    def _place(self, mark: _Mark | None) -> Place:
        if mark is None:
            return Place(self._source)
        if mark.line < len(self._lines):
            text = self._lines[mark.line].rstrip()
            return Place(self._source, mark.line + 1, mark.column + 1, text)
        last = self._lines[-1]
        return Place(self._source, len(self._lines), len(last) + 1, last)
