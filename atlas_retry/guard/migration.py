"""Settings of a tool that moved from one file to another, as strict as they were. Reads no file."""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache

from atlas_retry.guard.directions import Key

Settings = Mapping[Key, object]
_WHOLE = (
    (r"\.coveragerc", "coverage"),
    (r"\.?ruff\.toml", "ruff"),
    (r"jest\.config\.\w+", "jest"),
    (r"vitest\.config\.\w+", "vitest"),
    (r"(\.prettierrc(\.\w+)?|prettier\.config\.\w+)", "prettier"),
    (r"\.eslintrc(\.\w+)?", "eslintConfig"),
    (r"eslint\.config\.\w+", "eslint"),
    (r"\.mocharc(\.\w+)?", "mocha"),
    (r"(\.nycrc(\.\w+)?|nyc\.config\.\w+)", "nyc"),
    (r"\.c8rc(\.\w+)?", "c8"),
    (r"\.golangci\.\w+", "golangci"),
    (r"\.?rustfmt\.toml", "rustfmt"),
    (r"\.?clippy\.toml", "clippy"),
    (r"(\.github/)?\.?codecov\.ya?ml", "codecov"),
    (r"playwright\.config\.\w+", "playwright"),
    (r"\.markdownlint\.\w+", "markdownlint"),
)
"""Files that hold the settings of one tool and nothing else."""
_SECTIONS = {
    "pytest.ini",
    ".pytest.ini",
    "setup.cfg",
    ".flake8",
    "mypy.ini",
    ".mypy.ini",
    "tox.ini",
}
"""Files whose sections are named after tools."""
_SHARED = frozenset({*_SECTIONS, "pyproject.toml", "package.json"})
_BY_FIRST = frozenset({"jest", "prettier", "eslintConfig", "mocha", "nyc", "c8"})


def holds_settings(path: str) -> bool:
    """Whether settings may move to or from a file."""
    return path in _SHARED or bool(_tool_of(path))


@lru_cache(maxsize=512)
def _tool_of(path: str) -> str:
    return next((tool for files, tool in _WHOLE if re.fullmatch(files, path)), "")


def owner(path: str, key: Key) -> tuple[str, Key]:
    """The tool that a setting belongs to, and the setting by the tool's own name."""
    if path in _SECTIONS:
        tool, _, rest = key[0].removeprefix("tool:").partition(":")
        return tool, ((rest, *key[1:]) if rest else key[1:])
    if path == "pyproject.toml":
        own = tuple(part for part in key[2:] if part != "ini_options")
        return (key[1], own) if len(key) > 1 and key[0] == "tool" else ("", key)
    if path == "package.json":
        return (key[0], key[1:]) if key and key[0] in _BY_FIRST else ("", key)
    return _tool_of(path), key


def moved(
    old: Mapping[str, Settings],
    new: Mapping[str, Settings],
    is_as_strict: Callable[[Key, Settings, Settings], bool],
) -> frozenset[str]:
    """Tools whose settings stand in another file than before, none of them looser."""
    before, after = _by_tool(old), _by_tool(new)
    found = set()
    for tool in before.keys() & after.keys():
        (homes, had), (others, has) = before[tool], after[tool]
        fresh = others - homes
        if fresh and len(others) == 1 and all(is_as_strict(k, had, has) for k in {*had, *has}):
            found.add(tool)
    return frozenset(found)


def _by_tool(files: Mapping[str, Settings]) -> dict[str, tuple[set[str], dict[Key, object]]]:
    found: dict[str, tuple[set[str], dict[Key, object]]] = {}
    for path, settings in files.items():
        for key, value in settings.items():
            tool, own = owner(path, key)
            tool, _, module = tool.partition("-") if tool.startswith("mypy-") else (tool, "", "")
            for part in module.split(",") if module else _modules(key, settings):
                if tool and own:
                    homes, held = found.setdefault(tool, (set(), {}))
                    homes.add(path)
                    held[(tool, *_of_module(own, part.strip()))] = _plain(value)
    return found


def _modules(key: Key, settings: Settings) -> Iterator[str]:
    """The modules that an override of mypy in pyproject.toml is for; one empty name for others."""
    if key[:3] != ("tool", "mypy", "overrides"):
        yield ""
    elif key[-1] != "module":
        named = settings.get((*key[:4], "module"), "")
        yield from map(str, named) if isinstance(named, tuple) else (str(named),)


def _of_module(own: Key, module: str) -> Key:
    return ("overrides", module, own[-1]) if module else own


def _plain(value: object) -> object:
    """The same whether it was spelled as INI, TOML or JavaScript."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, str) and "\n" in value.strip():
        return tuple(line.strip() for line in value.splitlines() if line.strip())
    if isinstance(value, str) and value.strip().isdigit():
        return float(value)
    return tuple(map(str, value)) if isinstance(value, tuple) else value
