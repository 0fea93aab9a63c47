"""Which parts of files decide that the product and its checks share."""

import re
from collections.abc import Callable
from itertools import chain

from atlas_retry.guard import places
from atlas_retry.guard.case import Delta
from atlas_retry.patterns import regex, words
from atlas_retry.text.documents import Key, flat, parse
from atlas_retry.workspace.files import differing

_PACKAGING = words("poetry pdm hatch setuptools flit uv rye scikit-build maturin commitizen")
_STEERING = words("sources source index indexes scripts envs override overrides env")
_OF_PACKAGE_JSON = words("""
    name version description main type module exports imports types typings files bin man keywords
    author contributors maintainers license repository homepage bugs funding sideEffects browser
    private dependencies peerDependencies optionalDependencies devDependencies publishConfig unpkg
    jsdelivr peerDependenciesMeta engines directories typesVersions
    """)
_OF_SETUP_CFG = regex(r"^(metadata|options(\..*)?|bumpversion.*|bdist\w*|sdist|egg_info)$")
_OF_COMPOSER = words("scripts config repositories extra autoload-dev")
_OF_GRADLE = regex(r"(?i)test|check|lint|jacoco|verif|ignore|exclude|exec|doFirst|doLast")
_OF_CARGO = words("lints profile patch replace test bench")


def _pyproject(key: Key) -> bool:
    if key[0] != "tool":
        return key[0] == "build-system"
    if len(key) > 1 and key[1] in _PACKAGING:
        return bool(_STEERING & set(key[2:]))
    return True


def _cargo(key: Key) -> bool:
    of_tests = key[-1] in ("autotests", "autobins", "doctest", "harness", "test")
    return bool(_OF_CARGO & set(key[:2])) or of_tests or "dev-dependencies" in key[:3]


def _pom(key: Key) -> bool:
    path = key[0].split("/")
    steers = {"build", "profiles", "reporting", "pluginrepositories", "repositories"}
    named = re.search(r"skip|test|check|fail|argline", path[-1])
    return bool(steers & set(path)) or ("properties" in path and bool(named))


BY_KEY: dict[str, Callable[[Key], bool]] = {
    "pyproject.toml": _pyproject,
    "package.json": lambda key: key[0] not in _OF_PACKAGE_JSON,
    "setup.cfg": lambda key: not _OF_SETUP_CFG.match(key[0]),
    "Cargo.toml": _cargo,
    "pom.xml": _pom,
    "composer.json": lambda key: key[0] in _OF_COMPOSER,
}
"""Functions by file name that tell whether the setting at a key path decides."""

BY_LINE: dict[str, re.Pattern[str]] = {
    "go.mod": regex(r"^\s*(replace|exclude|toolchain|tool)\b|=>"),
    "CMakeLists.txt": regex(r"(?i)test|check|-W|sanitiz|fail|execute_process|add_custom|file *\("),
    "build.gradle": _OF_GRADLE,
    "build.gradle.kts": _OF_GRADLE,
    "setup.py": regex(r"(?i)test|cmdclass|entry_points|\bopen *\(|write|subprocess|\bos\."),
    "meson.build": regex(r"(?i)test|check|-W|sanitiz|fail|run_command|custom_target"),
    "Package.swift": regex(r"(?i)test"),
    "mix.exs": regex(r"(?i)test|alias|elixirc_options"),
    "Gemfile": regex(r"path:|git:|github:|source|rspec|minitest|rubocop"),
}
"""Patterns of deciding lines in files that are not parsed."""

_REQUIREMENTS = regex(r"^(requirements|constraints)[\w.-]*\.txt$")
REDIRECTED = regex(r"^\s*-|://|git\+|file:|@")


def is_shared(path: str) -> bool:
    """Whether the product and its checks share a file."""
    name = places.name(path)
    return name in BY_KEY or name in BY_LINE or bool(_REQUIREMENTS.match(name))


def deciding_part(delta: Delta) -> str | None:
    """Description of the deciding part that changed in a shared file; None if none did."""
    name = places.name(delta.path)
    if not is_shared(delta.path):
        return None
    if _REQUIREMENTS.match(name):
        return _of_requirements(delta)
    keys = decisive(delta)
    if keys is None:
        return "a file that cannot be read"
    return f"`{'.'.join(keys[0]).strip()[:60]}`" if keys else None


def decisive(delta: Delta) -> list[Key] | None:
    """The changed settings of a shared file that decide; None if it cannot be read."""
    name = places.name(delta.path)
    counts = BY_KEY.get(name) or (lambda key: bool(BY_LINE[name].search(key[0])))
    old, new = delta.both(_leaves)
    if old is None or new is None:
        return None

    def decides(key: Key) -> bool:
        is_added = key not in old and _is_addition(key)
        depends = name in BY_LINE or any(map(DEPENDS.search, key))
        is_redirected = depends and _redirects(old.get(key), new.get(key))
        return is_redirected or (counts(key) and not is_added)

    return [key for key in sorted(differing(old, new)) if decides(key)]


_STARTED_BY_OTHERS = regex(r"^(pre|post|install|prepare|version|dependencies)")
"""Package scripts that npm starts with others. Source: npm's page `scripts`."""


def _is_addition(key: Key) -> bool:
    """Whether a new setting is a script that nothing starts, or a dependency from its registry."""
    if key[0] == "scripts":
        return not _STARTED_BY_OTHERS.match(key[-1])
    return any(map(DEPENDS.search, key)) and key[-1] not in ("path", "git", "registry", "url")


def _leaves(path: str, content: bytes) -> dict[Key, object] | None:
    """Its settings by their key paths; its lines where no structure is read here."""
    if not content.strip():
        return {}
    if places.name(path) in BY_LINE:
        lines = content.decode("utf-8", "replace").splitlines()
        return dict.fromkeys(((line,) for line in lines), "")
    document = parse(path, content)
    return None if document is None else flat(document)


def _redirects(old: object, new: object) -> bool:
    """Whether a dependency now comes from another place than its registry."""
    was, now = (set(map(str, v if isinstance(v, tuple) else (v,))) for v in (old, new))
    return any(re.search(r"git\+|file:|link:|://|^npm:|@ ", text) for text in now - was)


def _of_requirements(delta: Delta) -> str | None:
    """A requirement from elsewhere than the index; other new ones are additions.

    A package of the tests may move to a later version, and not be dropped.
    """
    old, new = delta.old_text.splitlines(), delta.new_text.splitlines()
    gone = [line for line in filter(str.strip, old) if line not in new]
    came = [line for line in new if line not in old]
    if not re.search(r"dev|test|lint|constraints", delta.path):
        gone = []
    left = [line for line in gone if not any(is_later(line, other) for other in came)]
    decisive = [*filter(REDIRECTED.search, came), *left]
    return f"`{decisive[0].strip()[:60]}`" if decisive else None


def is_later(old: str, new: str) -> bool:
    """Whether only the version differs, and is later: `ruff==0.6`, `actions/checkout@v4`."""
    was, now = _VERSION.fullmatch(old), _VERSION.fullmatch(new)
    if not (was and now) or was["name"] != now["name"]:
        return False
    before, after = ([*map(int, one["version"].split("."))] for one in (was, now))
    return before < after


_VERSION = regex(r"(?P<name>[^\d=@](.*[=~>]=|.*@v?)|v?)\s*(?P<version>\d+(\.\d+)*)\s*(#.*)?")


_MANIFESTS = words("""
    pyproject.toml package.json Cargo.toml pom.xml go.mod Gemfile composer.json setup.cfg setup.py
    package-lock.json yarn.lock pnpm-lock.yaml uv.lock poetry.lock Pipfile go.sum Cargo.lock
    """)


def is_manifest(path: str) -> bool:
    """Whether a file declares dependencies."""
    name = places.name(path)
    return name in _MANIFESTS or bool(_REQUIREMENTS.match(name))


DEPENDS = regex(r"(?i)depend|require|^deps$")


def dependencies_changed(delta: Delta) -> bool:
    """Whether a manifest has other packages or versions; if unreadable, whether it grew."""
    if not is_manifest(delta.path):
        return False
    old, new = delta.both(_leaves)
    if places.name(delta.path) not in BY_KEY or old is None or new is None:
        return bool(delta.added_lines)
    return any(map(DEPENDS.search, chain.from_iterable(differing(old, new))))
