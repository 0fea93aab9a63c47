"""Which test files the project's own settings make a runner collect. Runs nothing."""

import re
from collections.abc import Callable

from atlas_retry.guard import places
from atlas_retry.guard.case import Scene
from atlas_retry.guard.documents import flat, parse
from atlas_retry.guard.globs import Globs
from atlas_retry.guard.jsconfig import read as read_javascript

_FILES = ("pyproject.toml", "pytest.ini", "setup.cfg", "tox.ini", ".pytest.ini", "pytest.toml")
_KEYS = {
    "pyproject.toml": ("tool", "pytest", "ini_options"),
    "pytest.ini": ("pytest",),
    ".pytest.ini": ("pytest",),
    "setup.cfg": ("tool:pytest",),
    "tox.ini": ("pytest",),
    "pytest.toml": ("pytest",),
}
_DISCOVER = re.compile(r"unittest discover.*?-s[ =]*(\S+)")


def collector(scene: Scene) -> Callable[[str], bool]:
    """Whether a file is one that runs: by name, and by the folders the settings name."""
    roots = _roots(scene)

    by_name, wanted = _goes_by_name(scene), _patterns(scene)

    def collected(path: str) -> bool:
        if wanted and places.suffix(path) in _SCRIPTS:
            return Globs(wanted).match(path)
        if by_name and places.suffix(path) in _SCRIPTS:
            return bool(_JEST.search(path))
        if not places.is_collected(path) and not _is_named(path, scene):
            return places.suffix(path) not in (".py", ".go", ".java")
        inside = not roots or any(path.startswith(f"{root}/") for root in roots)
        return inside or places.suffix(path) != ".py"

    return collected


_SCRIPTS = frozenset({".js", ".jsx", ".ts", ".tsx", ".mjs", ".cjs", ".mts", ".cts"})
_JEST = re.compile(r"(^|/)__tests__/|[.-](test|spec)\.[cm]?[jt]sx?$|(^|/)(test|spec)\.[jt]sx?$")
"""What Jest and Vitest pick up of themselves (jestjs.io, testMatch; vitest.dev, include)."""


def _patterns(scene: Scene) -> tuple[str, ...]:
    """The globs of test files that Jest or Vitest were told."""
    for path in sorted(scene.old_paths):
        if re.search(r"(^|/)(jest|vite|vitest)\.config\.\w+$", path):
            leaves = read_javascript(path, scene.old(path) or b"") or {}
        elif path == "package.json":
            leaves = flat(parse(path, scene.old(path) or b""))
        else:
            continue
        for key, value in leaves.items():
            told = key[-1] == "testMatch" or key[-2:] == ("test", "include")
            if told and isinstance(value, tuple):
                return tuple(str(glob).replace("<rootDir>/", "/") for glob in value)
    return ()


def _goes_by_name(scene: Scene) -> bool:
    """Whether the runner is one that knows tests by their names, and was told no others."""
    said = (scene.old("package.json") or b"").decode("utf-8", "replace")
    said += " ".join(scene.commands)
    others = re.search(
        r"mocha|node --test|\bava\b|\btap\b|testMatch|testRegex|cypress|playwright", said
    )
    configs = (p for p in scene.old_paths if re.search(r"(jest|vite|vitest)\.config\.\w+$", p))
    custom = any(
        re.search(rb"testMatch|testRegex|include\s*:", scene.old(path) or b"") for path in configs
    )
    return bool(re.search(r"jest|vitest", said)) and not others and not custom


def _is_named(path: str, scene: Scene) -> bool:
    return any(path in command for command in scene.commands)


def _roots(scene: Scene) -> tuple[str, ...]:
    """Folders that hold all tests, as they were said before the change."""
    found: list[str] = []
    for file in _FILES:
        content = scene.old(file)
        if content is None:
            continue
        for key, value in flat(parse(file, content)).items():
            if key[: len(_KEYS[file])] == _KEYS[file] and "testpaths" in key:
                found += value if isinstance(value, tuple) else str(value).split()
    found += [m[1] for command in scene.commands for m in _DISCOVER.finditer(command)]
    return tuple(root.strip("./") for root in found if root.strip("./"))


def selections(scene: Scene) -> tuple[str, ...]:
    """Commands and test settings, in which `-m "not slow"` leaves tests out."""
    contents = (scene.new(file) for file in _FILES)
    texts = tuple(content.decode("utf-8", "replace") for content in contents if content)
    return (*scene.commands, *texts)


_ASYNC = re.compile(rb"asyncio_mode|pytest[-_]asyncio|anyio|pytest[-_]trio")
_NAMED_IN = re.compile(
    r"(^|/)(pyproject\.toml|setup\.(cfg|py)|tox\.ini|pytest\.ini|[\w-]*requirements[\w-]*\.txt|requirements/.*\.txt)$"
)


def runs_async(scene: Scene) -> bool:
    """Whether a plugin runs tests that are coroutines, by what the project asks for."""
    named = (path for path in sorted(scene.new_paths) if _NAMED_IN.search(path))
    return any(_ASYNC.search(scene.new(path) or b"") for path in named)
