"""Settings by the one name that they have, whatever file, version or section spells them. Pure."""

import re
from collections.abc import Callable, Mapping

from atlas_retry.guard import places
from atlas_retry.guard.case import Scene
from atlas_retry.guard.namedsettings import entries

Key = tuple[str, ...]
Settings = Mapping[Key, object]

_RENAMED = {
    "whitelist_externals": "allowlist_externals",
}
"""Options by their newer names (tox 4, "Upgrading")."""
_LINTERS = {
    "exportloopref": "copyloopvar", "scopelint": "copyloopvar", "gomnd": "mnd",
    "goerr113": "err113", "golint": "revive", "vet": "govet", "vetshadow": "govet",
    "megacheck": "staticcheck", "gosimple": "staticcheck", "stylecheck": "staticcheck",
    "deadcode": "unused", "varcheck": "unused", "structcheck": "unused", "tenv": "usetesting",
    "logrlint": "loggercheck", "gas": "gosec", "ifshort": "", "maligned": "", "interfacer": "",
}  # fmt: skip
"""Linters of golangci-lint that got another name or became part of another one (its changelog)."""
_ESLINT = {
    "no-new-object": "no-object-constructor",
    "no-new-symbol": "no-new-native-nonconstructor",
    "no-native-reassign": "no-global-assign",
    "no-negated-in-lhs": "no-unsafe-negation",
    "no-spaced-func": "func-call-spacing",
    "@typescript-eslint/no-throw-literal": "@typescript-eslint/only-throw-error",
    "@typescript-eslint/no-var-requires": "@typescript-eslint/no-require-imports",
    "@typescript-eslint/no-parameter-properties": "@typescript-eslint/parameter-properties",
}
"""Rules of ESLint by the names that its deprecation notices give."""
_V2 = (
    (("linters-settings",), ("linters", "settings")),
    (("issues", "exclude-rules"), ("linters", "exclusions", "rules")),
    (("issues", "exclude-dirs"), ("linters", "exclusions", "paths")),
)
"""Where the second version of golangci-lint's configuration keeps what the first had."""


def named(path: str, settings: Settings) -> dict[Key, object]:
    """The settings of a file, every one by its one name."""
    name = places.name(path)
    for files, rename in _WAYS:
        if re.fullmatch(files, name):
            return rename(settings)
    return dict(settings)


def heard(path: str, settings: Settings) -> dict[Key, object]:
    """Earlier settings without a section that its tool refuses: by the name that it wants.

    pytest reads `[tool:pytest]` of setup.cfg and stops at `[pytest]`; of tox.ini and pytest.ini
    it reads `[pytest]` alone (pytest, "Configuration file formats").
    """
    wanted = {"setup.cfg": ("pytest", "tool:pytest"), "tox.ini": ("tool:pytest", "pytest"),
              "pytest.ini": ("tool:pytest", "pytest")}.get(places.name(path))  # fmt: skip
    if wanted is None or any(key[0] == wanted[1] for key in settings):
        return dict(settings)
    return {
        (wanted[1], *key[1:]) if key[0] == wanted[0] else key: value
        for key, value in settings.items()
    }


_ASSETS = re.compile(r"\\\.[\\w(|?:)]*(css|less|s[ac]ss|svg|png|jpe?g|gif|woff2?|ttf)[\w(|?:)]*\$$")
_JVM = re.compile(r"-Xm[xs]\w+|-XX:\S+|[@$]\{\w+\}|-Dfile\.encoding=\S+|--add-opens\S*|-Duser\.\S+")
_COMPILER = re.compile(r"-X?lint\S*|-Werror|-parameters|-Xlint:\S+")


def is_about_form(key: Key, before: object, after: object, scene: Scene) -> bool:
    """Whether a setting that any change would answer for says nothing of what is checked."""
    if before is not None and after is not None:
        return entries(before) == entries(after)
    if after == ():
        return before is None and bool(re.match(r"setup|transform", key[-1], re.IGNORECASE))
    if "moduleNameMapper" in key and before is None:
        return bool(_ASSETS.search(key[-1])) or _is_alias(key[-1], (str(after),), scene)
    if key[-2:-1] == ("paths",) and before is None and isinstance(after, tuple):
        return _is_alias(key[-1], after, scene)
    wanted = {"argline": _JVM, "arg": _COMPILER}.get(key[-1].lower())
    words = str(" ".join(map(str, after)) if isinstance(after, tuple) else after or "").split()
    return wanted is not None and before is None and all(map(wanted.fullmatch, words))


def _is_alias(pattern: str, targets: tuple[object, ...], scene: Scene) -> bool:
    """Whether a short name stands for a folder of code that was there."""
    folders = [re.sub(r"^(<rootDir>|\.)/|/?(\*|\$1).*$", "", str(target)) for target in targets]
    there = all(any(p.startswith(f"{f}/") for p in scene.old_paths) for f in folders if f)
    return bool(re.match(r"\^?[@~#$]/", pattern)) and all(folders) and there


def _ruff(settings: Settings) -> dict[Key, object]:
    """Codes by the prefix that Ruff gave them since 0.10."""
    return {
        key: tuple(re.sub(r"^TCH(?=\d|$)", "TC", str(code)) for code in value)
        if isinstance(value, tuple) and (key[0] != "tool" or "ruff" in key)
        else value
        for key, value in settings.items()
    }


def _tox(settings: Settings) -> dict[Key, object]:
    return {(*key[:-1], _RENAMED.get(key[-1], key[-1])): v for key, v in settings.items()}


def _golangci(settings: Settings) -> dict[Key, object]:
    found: dict[Key, object] = {}
    for key, value in settings.items():
        way = next(((old, new) for old, new in _V2 if key[: len(old)] == old), ((), ()))
        if key != ("version",):
            found[(*way[1], *key[len(way[0]) :])] = _linters(value)
    return found


def _linters(value: object) -> object:
    if not isinstance(value, tuple):
        return value
    return tuple(filter(None, (_LINTERS.get(str(v), str(v)) for v in value)))


def _codecov(settings: Settings) -> dict[Key, object]:
    """A target is a bar, a threshold how much may be lost; a comment decides nothing."""
    names = {"target": "minimum", "threshold": "tolerated", "informational": "ignore_errors"}
    return {
        (*key[:-1], names.get(key[-1], key[-1])): value
        for key, value in settings.items()
        if key[0] != "comment" and key[-1] not in ("range", "round", "precision", "default_branch")
    }


def _clippy(settings: Settings) -> dict[Key, object]:
    """A threshold of Clippy is the size up to which it is silent."""
    return {
        ("target",)
        if key[-1] == "msrv"
        else (*key[:-1], re.sub(r"^(.*)-threshold$", r"tolerated-\1", key[-1])): value
        for key, value in settings.items()
    }


def _cargo(settings: Settings) -> dict[Key, object]:
    """Levels of lints however spelled, of the workspace as well where the package inherits them."""
    inherits = settings.get(("lints", "workspace")) is True
    found: dict[Key, object] = {}
    for key, value in settings.items():
        known = key[1:] if inherits and key[:2] == ("workspace", "lints") else key
        if "lints" in known[:2] and known[-1] == "priority":
            continue
        found[known[:-1] if "lints" in known[:2] and known[-1] == "level" else known] = value
    return found


def _eslint(settings: Settings) -> dict[Key, object]:
    return {(*k[:-1], _rule(k[-1])) if "rules" in k[:-1] else k: v for k, v in settings.items()}


def _rule(name: str) -> str:
    bare = re.sub(r"^@stylistic/(js/|ts/|jsx/)?", "", name)
    return _ESLINT.get(bare, bare)


_WAYS: tuple[tuple[str, Callable[[Settings], dict[Key, object]]], ...] = (
    (r"\.?golangci\.\w+", _golangci),
    (r"\.?codecov\.ya?ml", _codecov),
    (r"\.?clippy\.toml", _clippy),
    (r"Cargo\.toml", _cargo),
    (r"\.?ruff\.toml|pyproject\.toml", _ruff),
    (r"setup\.cfg|tox\.ini", _tox),
    (r".*eslint.*|package\.json", _eslint),
)
