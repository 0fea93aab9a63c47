"""Rules on dependencies and ignore files; which golden data went into the tests."""

import re
from collections.abc import Iterator

from atlas_retry.guard import pins, places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.documents import flat, parse
from atlas_retry.guard.globs import Globs, lines_of

_LOCAL = re.compile(
    r"^(file:|link:|portal:|\.{0,2}/|git[+:@]|github:|https?://|npm:|workspace:\.)|\.tgz$"
)
_TOOLS = re.compile(
    r"^(pytest|ruff|mypy|flake8|pylint|black|isort|coverage|tox|nox|bandit|pyright|jest|vitest|mocha|chai"
    r"|eslint|prettier|typescript|nyc|c8|ts-jest|hypothesis|attrs|pre-commit)([\w@/.-]*)$"
    r"|^(@\w+/)?(eslint|jest|vitest|typescript|prettier|types)[\w/.-]*$|^@(eslint|jest|vitest|typescript-eslint)/"
)
_REQUIREMENTS = re.compile(r"(dev-|test-)?(requirements|constraints).*\.(txt|in)$")
_PIN = re.compile(r"^\s*[\"']?([A-Za-z][\w.\-]*)(?:\[[^\]]*\])?\s*([<>=!~^@].*?)[\"']?\s*,?\s*$")


def dependencies(scene: Scene) -> Iterator[Finding]:
    """Dependencies led elsewhere, and tools of the gates pinned to something older."""
    for delta in scene.files:
        name = places.name(delta.path)
        if name in ("package.json", "Cargo.toml", "composer.json"):
            yield from _manifest(delta)
        elif name == "go.mod":
            yield from _go_mod(delta)
        elif name in ("pyproject.toml", "tox.ini", "setup.cfg") or _REQUIREMENTS.match(name):
            yield from _pins(delta)
        yield from pins.held_back(delta)


def _manifest(delta: Delta) -> Iterator[Finding]:
    old = flat(parse(delta.path, delta.before)) if delta.before else {}
    new = flat(parse(delta.path, delta.after)) if delta.after else {}
    for key, value in new.items():
        if old.get(key) == value or delta.is_added:
            continue
        section = next((part for part in key if _SECTION.search(part)), None)
        if section is None:
            continue
        redirected = section in ("overrides", "resolutions", "patch", "replace", "pnpm")
        where = str(value)
        if redirected or key[-1] in ("path", "git") or (_LOCAL.search(where) and _known(key, old)):
            yield _told(delta, key, f"{'.'.join(key)} now leads to {where}")
        elif key in old and _TOOLS.match(key[-1]) and pins.is_older(where, str(old[key])):
            yield _told(delta, key, f"{key[-1]} went back from {old[key]} to {where}")


_SECTION = re.compile(r"ependencies$|^(overrides|resolutions|patch|replace|pnpm)$")


def _known(key: tuple[str, ...], old: dict[tuple[str, ...], object]) -> bool:
    """Whether the name was a dependency before, or is that of a tool."""
    return any(k[-1] == key[-1] for k in old) or bool(_TOOLS.match(key[-1]))


def _told(delta: Delta, key: tuple[str, ...], detail: str) -> Finding:
    lines = enumerate(delta.new_text.splitlines(), 1)
    line = next((number for number, text in lines if key[-1] in text), 1)
    return Finding(path=delta.path, line=line, detail=detail)


def _go_mod(delta: Delta) -> Iterator[Finding]:
    old = set(map(str.strip, delta.old_text.splitlines()))
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        if line.strip() not in old and "=>" in line:
            yield Finding(path=delta.path, line=number, detail=f"leads elsewhere: {line.strip()}")


def _pins(delta: Delta) -> Iterator[Finding]:
    old = dict(_pinned(delta.old_text))
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        if line in delta.old_text.splitlines():
            continue
        for text in re.findall(r"[\"']([^\"']+)[\"']", line) or [line]:
            name, pin = next(iter(_pinned(text)), ("", ""))
            if not _TOOLS.match(name) or "tool." in text:
                continue
            if ("<" in pin and "<" not in old.get(name, "")) or pins.is_older(
                pin, old.get(name, "")
            ):
                detail = f"{name} was held back: {pin.strip()}"
                yield Finding(path=delta.path, line=number, detail=detail)
            elif "@" in pin:
                yield Finding(path=delta.path, line=number, detail=f"{name} leads elsewhere: {pin}")


def _pinned(text: str) -> Iterator[tuple[str, str]]:
    for line in text.splitlines():
        for part in re.findall(r"[\"']([^\"']+)[\"']", line) or [line]:
            found = _PIN.match(part)
            if found:
                yield found[1].lower(), found[2]


_IGNORE_FILE = re.compile(r"(^|/)\.[\w-]*ignore$")
"""Of git, of the searchers whose files others honour (`.ignore`, `.rgignore`), of single tools."""
_OF_PACKAGERS = re.compile(
    r"/\.(docker|npm|helm|gcloud|vercel|cf|eb|slug|vscode|nodemon|watchman|eleventy|st)ignore$"
)
"""What they leave out is not shipped, or not watched; it is checked all the same."""
_LEFT_BY_TOOLS = Globs(
    (
        "*.egg-info/", "*.dist-info/", "*.dSYM/", "__pycache__/", "node_modules/", ".venv/",
        "venv/", ".tox/", ".nox/", ".nyc_output/", "htmlcov/",
    )
)  # fmt: skip
"""Folders that building and running leave behind: no gate looks at them, tracked or not."""
_LEFTOVERS = Globs(
    (
        ".coverage", ".DS_Store", "*.log", "*.py[co]", "*.class", "*.o", "*.obj", "*.so", "*.a",
        "*.dll", "*.exe", "*.swp", "*.bak", "*.orig", "*.rej", "*.tmp", "*.pid", "*.db",
    )
)  # fmt: skip
"""Files of the same sort; among tests they may be data."""


def ignore_files(scene: Scene) -> Iterator[Finding]:
    """Patterns that leave out files which were looked at."""
    for delta in scene.files:
        if not _IGNORE_FILE.search(delta.path) or _OF_PACKAGERS.search(f"/{delta.path}"):
            continue
        folder = delta.path.rpartition("/")[0]
        before, after = lines_of(delta.old_text), lines_of(delta.new_text)
        hidden = [p for p in _below(folder, scene) if after.match(p) and not before.match(p)]
        if hidden:
            line = _line_that_hides(delta, hidden[0])
            detail = f"leaves out {hidden[0]}" + (" and others" if len(hidden) > 1 else "")
            yield Finding(path=delta.path, line=line, detail=detail)


def _below(folder: str, scene: Scene) -> Iterator[str]:
    for path in sorted(scene.old_paths | {p for p in scene.new_paths if places.is_code(p)}):
        if (not folder or path.startswith(f"{folder}/")) and not _is_left_by_tools(path):
            yield path[len(folder) + 1 if folder else 0 :]


def _is_left_by_tools(path: str) -> bool:
    return _LEFT_BY_TOOLS.match(path) or (_LEFTOVERS.match(path) and not places.is_test(path))


def _line_that_hides(delta: Delta, path: str) -> int:
    for number, line in enumerate(delta.new_text.splitlines(), 1):
        if line.strip() and line not in delta.old_text.splitlines() and Globs((line,)).match(path):
            return number
    return 1


def written_out(scene: Scene) -> frozenset[str]:
    """Names, as literals, of files of expected output whose text went into the tests."""
    gone = (d for d in scene.files if d.is_deleted and places.is_golden(d.path))
    return frozenset(repr(places.name(d.path)) for d in gone if is_written_out(d, scene))


def is_written_out(delta: Delta, scene: Scene) -> bool:
    """Whether what the file held stands in a test now, line by line."""
    wanted = [line.strip() for line in delta.old_text.splitlines() if line.strip()]
    texts = (d.new_text for d in scene.files if places.is_test_code(d.path))
    return bool(wanted) and any(
        "\n".join(wanted) in "\n".join(line.strip() for line in text.splitlines()) for text in texts
    )
