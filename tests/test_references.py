"""What documentation, docstrings and comments name is there: paths, modules, attributes."""

import ast
import importlib
import re
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from atlas_retry.config.keys import keys

ROOT = Path(__file__).parents[1]
FOLDERS = (".atlas", ".ci", ".github", "atlas_retry", "bench", "docs", "tests")
FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for group in (ROOT.glob("*"), *(ROOT.glob(f"{folder}/**/*") for folder in FOLDERS))
    for path in group
    if path.is_file() and path.suffix != ".pyc"
)
ROOMS = {path.stem for path in (ROOT / "atlas_retry").iterdir()}
PAGES = ("AGENTS.md", "CONTRIBUTING.md", "ARCHITECTURE.md")
MODULES = [name for name in FILES if re.match(r"atlas_retry/(?!cli/demo_project/).*\.py$", name)]
DOCS = [name for name in FILES if re.match(r"(docs/)?[\w-]+\.md$", name)]
PLAIN = [name for name in FILES if re.match(r"pyproject.toml|Makefile|\.ci/|\.github/", name)]
KEYS = {".".join(path) for path in keys()}

CODE = re.compile(r"```text\n(.*?)^```|`([^`\n]+)`", re.MULTILINE | re.DOTALL)
PATH = re.compile(r"(?<![\w/.~{-])[\w.*-]+(?:/[\w.*-]+)*/?")
SUFFIXES = (".py", ".md", ".toml", ".yaml", ".yml", ".json", ".txt")
PLACEHOLDER = re.compile(r"(?<![\w.-])[A-Z]{2,}(?:-[A-Z]+)*(?=/|$)")
PYTHON_FILE = re.compile(r"[\w./*-]*\w\.py\b")
DOTTED = re.compile(r"`([a-z_]+(?:\.\w+)+)`")
CITED = re.compile(r"\b[A-Z]{4,}(?='s (?:table|section|rule)\b|\.md\b)")
FOREIGN = {
    "CLAUDE.md",
    "a.py",
    "b.py",
    "calc.py",
    "coverage.py",
    "events.jsonl",
    "pre_commit/commands/run.py",
    "unittest/runner.py",
}
"""Other projects' files, names in examples, and what a run writes."""


def text_of(name: str) -> str:
    """Of a page the whole, of a module its docstrings and comments."""
    path = ROOT / name
    if path.suffix != ".py":
        return path.read_text(encoding="utf-8")
    with path.open("rb") as file:
        comments = [
            t.string for t in tokenize.tokenize(file.readline) if t.type == tokenize.COMMENT
        ]
    return "\n".join([*comments, *docstrings(path)])


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


@cache
def exists(name: str, folder: str = "") -> bool:
    """Whether it is a path from the root, the package or a folder; a bare name may be anywhere.

    A part in capitals stands for any text.
    """
    pattern = PLACEHOLDER.sub("*", f"{name}*" if name.endswith("/") else name)
    starts = {"", "atlas_retry/", f"{folder}/"} | ({"*/"} if "/" not in name else set())
    return any(fnmatchcase(file, start + pattern) for start in starts for file in FILES)


def paths_in(page: str) -> Iterator[str]:
    """What a page marks as code and looks like a path."""
    for match in CODE.finditer(page):
        for name in PATH.findall(match[1] or match[2]):
            if name.endswith(SUFFIXES) or "/" in name:
                yield name


def resolves(dotted: str) -> bool:
    """Whether a name below the package is a module, or an attribute of one."""
    there: object = importlib.import_module("atlas_retry")
    for name in dotted.split("."):
        if not hasattr(there, name) and isinstance(there, ModuleType):
            try:
                importlib.import_module(f"{there.__name__}.{name}")
            except ModuleNotFoundError:
                return False
        there = getattr(there, name, None)
    return there is not None


def contracts() -> list[dict[str, Any]]:
    tools = tomllib.loads(text_of("pyproject.toml"))["tool"]
    listed: list[dict[str, Any]] = tools["importlinter"]["contracts"]
    return listed


@pytest.mark.parametrize("page", PAGES)
def test_every_path_on_a_page_exists(page: str) -> None:
    named = set(paths_in(text_of(page)))
    assert len(named) > 3
    assert {name for name in named if not exists(name)} == set()


def test_every_file_named_in_code_exists() -> None:
    for source in (*MODULES, *PLAIN):
        text = text_of(source)
        files = set(PYTHON_FILE.findall(text)) - FOREIGN
        pages = {f"{name}.md" for name in CITED.findall(text)} - FOREIGN
        folder = source.rpartition("/")[0]
        assert {name for name in files | pages if not exists(name, folder)} == set(), source


def test_every_named_module_and_attribute_exists() -> None:
    for source in (*MODULES, *DOCS):
        named = {name.removeprefix("atlas_retry.") for name in DOTTED.findall(text_of(source))}
        ours = {name for name in named - KEYS - FOREIGN if name.partition(".")[0] in ROOMS}
        gone = {name for name in ours if not (exists(name) or resolves(name))}
        assert gone == set(), source


@pytest.mark.parametrize("door", [name for name in MODULES if name.endswith("__init__.py")])
def test_every_exported_name_exists(door: str) -> None:
    module = importlib.import_module(door.removesuffix("/__init__.py").replace("/", "."))
    assert {name for name in getattr(module, "__all__", ()) if not hasattr(module, name)} == set()


@pytest.mark.parametrize("page", ["AGENTS.md", "ARCHITECTURE.md"])
def test_the_page_lists_every_pure_module(page: str) -> None:
    (pure,) = (c["source_modules"] for c in contracts() if c["name"] == "The core is pure")
    names = [name.removeprefix("atlas_retry.") for name in pure]
    text = text_of(page)
    assert [
        n for n in names if f"`{n}`" not in text and f"`{n.replace('.', '/')}.py`" not in text
    ] == []


def test_the_diagram_shows_the_layers_in_order() -> None:
    layers: list[str] = contracts()[0]["layers"]
    picture = text_of("ARCHITECTURE.md").partition("```text\n")[2].partition("```")[0]
    lines = [set(re.findall(r"\w+", line)) for line in picture.splitlines()]
    at = 0
    for layer in layers:
        names = set(layer.split(" | "))
        at = next((n for n, words in enumerate(lines[at:], at + 1) if names <= words), 0)
        assert at, layer


def test_no_two_classes_share_a_name() -> None:
    classes = [
        node.name
        for name in MODULES
        for node in ast.walk(ast.parse((ROOT / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    ]
    assert [name for name, times in Counter(classes).items() if times > 1] == []
