"""Rules on entries of the tree: links, modes, submodules, planted bytecode, shadowed tools."""

import posixpath
import re
import sys
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta, Finding, Scene
from atlas_retry.guard.words import words

_LINK, _SUBMODULE, _EXECUTABLE = "120000", "160000", "100755"
_TOOLS = words(
    "pytest _pytest pluggy unittest nose2 hypothesis coverage ruff mypy black isort flake8"
    " pylint pyright bandit tox nox pre_commit pre-commit jest vitest mocha eslint prettier"
    " tsc node npm npx yarn pnpm go gofmt golangci-lint cargo rustc rustfmt clippy mvn gradle"
    " java javac make cmake shellcheck bats sh bash env git python python3 pip sitecustomize"
    " usercustomize conftest_plugin ava tap c8 nyc biome stylelint rubocop rspec phpunit"
    " phpstan attr attrs py iniconfig"
)
_INTERPRETER_HOOKS = re.compile(r"(^|/)(sitecustomize|usercustomize)\.py$|\.pth$|\.egg-link$")
_INSTALLED = re.compile(r"(^|/)(node_modules/(\.bin/|\.hooks/)?|site-packages/|\.?venv/bin/)")
_UNCHECKED = 0b01


def links(scene: Scene) -> Iterator[Finding]:
    """Links that lead out of the workspace, or stand where a file of substance stood."""
    for delta in scene.deltas:
        if delta.new_mode != _LINK:
            continue
        target = delta.new_text
        inside = posixpath.normpath(posixpath.join(posixpath.dirname(delta.path), target))
        if target.startswith("/") or inside.startswith("../"):
            yield Finding(path=delta.path, detail=f"is now a link out of the workspace: {target}")
        elif not delta.is_added and delta.old_mode != _LINK:
            yield Finding(path=delta.path, detail=f"a file was replaced by a link to {target}")
        elif places.is_test(delta.path) and not delta.is_added:
            yield Finding(path=delta.path, detail=f"a link of the tests now leads to {target}")


def modes(scene: Scene) -> Iterator[Finding]:
    """Files that can no longer be read or run as before."""
    for delta in scene.deltas:
        if delta.is_added or delta.is_deleted or delta.old_mode == delta.new_mode:
            continue
        script = (delta.before or b"")[:2] == b"#!"
        if delta.old_mode == _EXECUTABLE and delta.new_mode == "100644" and script:
            yield Finding(path=delta.path, detail="is no longer executable")
        elif delta.after is None:
            yield Finding(path=delta.path, detail="can no longer be read")


def submodules(scene: Scene) -> Iterator[Finding]:
    """Submodules bring code in that no diff shows."""
    for delta in scene.deltas:
        if _SUBMODULE in (delta.old_mode, delta.new_mode):
            yield Finding(path=delta.path, detail="a submodule was added, moved or removed")
        elif delta.path == ".gitmodules":
            yield Finding(path=delta.path, detail="submodules were changed")


def bytecode(scene: Scene) -> Iterator[Finding]:
    """Compiled Python that the interpreter trusts without looking at the source (PEP 552)."""
    for delta in scene.deltas:
        if places.suffix(delta.path) not in (".pyc", ".pyo") or not delta.after:
            continue
        flags = int.from_bytes(delta.after[4:8], "little")
        if "__pycache__/" not in delta.path:
            yield Finding(path=delta.path, detail="compiled code without a source was planted")
        elif flags == _UNCHECKED:
            detail = "compiled code that is never checked against its source was planted"
            yield Finding(path=delta.path, detail=detail)
        elif _source_of(delta.path) not in scene.new_paths:
            yield Finding(path=delta.path, detail="compiled code without a source was planted")


def _source_of(path: str) -> str:
    folder = posixpath.dirname(posixpath.dirname(path))
    return posixpath.join(folder, places.name(path).split(".")[0] + ".py")


def shadows(scene: Scene) -> Iterator[Finding]:
    """New files that an interpreter or a shell would take instead of the tool or library."""
    for delta in scene.deltas:
        if delta.is_deleted:
            continue
        if _INTERPRETER_HOOKS.search(delta.path):
            yield Finding(path=delta.path, detail="runs by itself in every Python process")
        elif _INSTALLED.search(delta.path) and _is_of_tool(delta.path):
            yield Finding(path=delta.path, detail="an installed tool was changed in place")
        elif delta.is_added and _hides_source(delta.path, scene):
            yield Finding(path=delta.path, detail="type checkers read it instead of the source")
        elif delta.is_added and _shadows_module(delta, scene):
            yield Finding(path=delta.path, detail="stands in the way of the real module or tool")
        elif delta.is_added and _satisfies_make(delta.path, scene):
            yield Finding(path=delta.path, detail="make takes it for the result of a target")
        elif delta.is_added and _is_lookalike(delta):
            yield Finding(path=delta.path, detail="is an executable with the name of a tool")


def _satisfies_make(path: str, scene: Scene) -> bool:
    """Whether a new file or folder is named like a target that is not declared phony."""
    name = path.partition("/")[0]
    if any(old == name or old.startswith(f"{name}/") for old in scene.old_paths):
        return False
    said = (scene.new("Makefile") or b"").decode("utf-8", "replace")
    phony = " ".join(re.findall(r"^\.PHONY\s*:(.*)$", said, re.MULTILINE)).split()
    targets = re.findall(
        r"^([\w-]+)\s*:(?!=)",
        (scene.old("Makefile") or b"").decode("utf-8", "replace"),
        re.MULTILINE,
    )
    asked = {word for command in scene.commands if "make" in command for word in command.split()}
    checks = asked | {"test", "lint", "check", "format", "typecheck", "verify"}
    return name in targets and name in checks and name not in phony


def _hides_source(path: str, scene: Scene) -> bool:
    """A stub beside a module: only the stub is checked then (PEP 484, "Stub files")."""
    return path.endswith(".pyi") and path.removesuffix("i") in scene.old_paths


def _is_of_tool(path: str) -> bool:
    return bool(set(re.split(r"[/.]", path)) & _TOOLS) or "/.bin/" in path


def _shadows_module(delta: Delta, scene: Scene) -> bool:
    """A Python module at an import root that is named like the library's or the tool's own."""
    path = delta.path
    if places.suffix(path) not in (".py", ".so", ".pyi"):
        return False
    folder, name = posixpath.split(path)
    module = name.split(".")[0]
    if module == "__init__":
        folder, module = posixpath.split(folder)
        if any(old.startswith(f"{posixpath.join(folder, module)}/") for old in scene.old_paths):
            return False
    if f"{folder}/__init__.py".lstrip("/") in scene.new_paths and folder:
        return False
    if _hides_own(folder, module, delta, scene):
        return True
    known = module in _TOOLS or module in sys.stdlib_module_names or module in _wanted(scene)
    return known and (folder in ("", "src", "lib", "tests", "test") or module in _TOOLS)


_ROOTS = ("", "src", "lib", "python")


def _hides_own(folder: str, module: str, delta: Delta, scene: Scene) -> bool:
    """Whether imports of the project's own module or package, which is still there, end here."""
    if not (places.is_test(delta.path) or folder in _ROOTS) or not delta.new_text.strip():
        return False
    homes = (posixpath.join(root, module) for root in _ROOTS)
    own = {f"{home}{end}" for home in homes for end in (".py", "/__init__.py")}
    beside = posixpath.join(folder, module, "__init__.py")
    return bool((own - {delta.path}) & scene.old_paths & scene.new_paths - {beside})


def _wanted(scene: Scene) -> frozenset[str]:
    """Names of declared dependencies, as modules."""
    found: set[str] = set()
    for file in ("pyproject.toml", "requirements.txt", "requirements-dev.txt"):
        text = (scene.old(file) or b"").decode("utf-8", "replace")
        found |= set(
            re.findall(
                r"^[ \t]*[\"']?([A-Za-z][\w\-]*)[ \t]*(?:\[.*?\])?[<>=~!]", text, re.MULTILINE
            )
        )
        found |= set(re.findall(r"[\"']([A-Za-z][\w\-]*)(?:\[.*?\])?[ \t]*[<>=~!]", text))
    return frozenset(name.replace("-", "_").lower() for name in found)


def _is_lookalike(delta: Delta) -> bool:
    stem = places.name(delta.path).removesuffix(".sh").removesuffix(".cmd")
    script = (delta.after or b"").startswith(b"#!") or delta.new_mode == _EXECUTABLE
    return script and stem in _TOOLS and "." not in stem


def deleted_packages(scene: Scene) -> Iterator[Finding]:
    """`__init__.py` of a folder of tests: unittest finds nothing in a folder without one."""
    for delta in scene.deltas:
        if delta.is_deleted and places.name(delta.path) == "__init__.py":
            folder = posixpath.dirname(delta.path)
            stay = any(p.startswith(f"{folder}/test") for p in scene.new_paths)
            if places.is_test(delta.path) and stay:
                yield Finding(path=delta.path, detail="the tests beside it may no longer be found")
