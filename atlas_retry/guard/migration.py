"""Settings of a tool that moved from one file to another, as strict as they were. Reads no file."""

from collections.abc import Callable, Mapping

from atlas_retry.guard.directions import Key

Settings = Mapping[Key, object]
_WHOLE = {
    ".coveragerc": "coverage", "ruff.toml": "ruff", ".ruff.toml": "ruff", "jest.config.js": "jest",
    "jest.config.cjs": "jest", "jest.config.mjs": "jest", "jest.config.ts": "jest",
    "jest.config.json": "jest", ".prettierrc": "prettier", ".prettierrc.json": "prettier",
    ".eslintrc": "eslintConfig", ".eslintrc.json": "eslintConfig", ".mocharc.json": "mocha",
    ".nycrc": "nyc", ".nycrc.json": "nyc", ".c8rc.json": "c8", "tox.ini": "",
}  # fmt: skip
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
FILES = frozenset({*_WHOLE, *_SECTIONS, "pyproject.toml", "package.json"})
_BY_FIRST = frozenset({"jest", "prettier", "eslintConfig", "mocha", "nyc", "c8"})


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
    return _WHOLE.get(path, ""), key


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
            if tool and own:
                homes, held = found.setdefault(tool, (set(), {}))
                homes.add(path)
                held[(tool, *own)] = _plain(value)
    return found


def _plain(value: object) -> object:
    """The same whether it was spelled as INI, TOML or JavaScript."""
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    if isinstance(value, str) and "\n" in value.strip():
        return tuple(line.strip() for line in value.splitlines() if line.strip())
    if isinstance(value, str) and value.strip().isdigit():
        return float(value)
    return tuple(map(str, value)) if isinstance(value, tuple) else value
