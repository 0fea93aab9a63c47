"""Data that went from Python tests into files of their own, which they name. Compares nothing."""

import ast
import csv
import io
import json
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Scene
from atlas_retry.guard.documents import parse
from atlas_retry.guard.fresh import tree_of
from atlas_retry.guard.pychecks import last
from atlas_retry.guard.units import Unit

Row = tuple[str, ...]


class Data(Struct, frozen=True, kw_only=True):
    """One file of data that is new, in literals as Python spells them."""

    name: str
    rows: tuple[Row, ...]
    literals: frozenset[str]


def are_whole(source: bytes | None) -> bool:
    """Whether a test file takes all that it reads: it cuts nothing off, and leaves nothing out."""
    tree = tree_of(source)
    return tree is not None and not any(
        isinstance(node, ast.Slice)
        or (isinstance(node, ast.comprehension) and bool(node.ifs))
        or (isinstance(node, ast.Name | ast.Attribute) and last(node) in _CUTTING)
        for node in ast.walk(tree)
    )


_CUTTING = frozenset({"islice", "filter", "takewhile", "dropwhile", "filterfalse", "compress"})


def of_scene(scene: Scene) -> tuple[Data, ...]:
    """The files of data that came with a change."""
    fresh = (d for d in scene.files if d.is_added and places.is_test(d.path))
    return tuple(data for d in fresh if (data := _read(d)) is not None)


def with_data(unit: Unit, files: tuple[Data, ...]) -> Unit:
    """A test with what the files hold that it, or its file, names."""
    for data in files:
        if any(data.name in literal for literal in unit.literals):
            rows = unit.rows or data.rows
            unit = replace(unit, literals=unit.literals | data.literals, rows=rows)
    return unit


def _read(delta: Delta) -> Data | None:
    suffix = places.suffix(delta.path)
    if suffix == ".json":
        try:
            said: object = json.loads(delta.new_text)
        except ValueError:
            return None
    elif suffix in (".yaml", ".yml", ".toml"):
        said = parse(delta.path, delta.after or b"")
    elif suffix == ".csv":
        said = [[_number(cell) for cell in row] for row in csv.reader(io.StringIO(delta.new_text))]
    elif suffix == ".txt":
        said = [delta.new_text, *delta.new_text.splitlines()]
    else:
        return None
    literals = frozenset(_leaves(said))
    return Data(name=places.name(delta.path), rows=tuple(_rows(said)), literals=literals)


def _number(cell: str) -> object:
    try:
        return ast.literal_eval(cell)
    except (ValueError, SyntaxError):
        return cell


def _rows(said: object) -> Iterator[Row]:
    if isinstance(said, dict):
        said = [[key, value] for key, value in said.items()]
    if isinstance(said, list):
        for row in said:
            parts = list(row.values()) if isinstance(row, dict) else row
            yield tuple(_leaves(parts))


def _leaves(said: object) -> Iterator[str]:
    if isinstance(said, dict):
        for key, value in said.items():
            yield repr(key)
            yield from _leaves(value)
    elif isinstance(said, list | tuple):
        for part in said:
            yield from _leaves(part)
    elif said is not None and not isinstance(said, bool):
        yield repr(said)
