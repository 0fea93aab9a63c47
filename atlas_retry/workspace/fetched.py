"""Folders of fetched modules in caches that projects share: of Go and of Cargo.

Neither tool checks a module again that it has once unpacked there.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from atlas_retry.patterns import regex
from atlas_retry.reading import read_text

_GO_MODULE = regex(r"(?m)^(\S+) (v[^\s/]+) h1:")
"""A line of `go.sum`, except those of a `go.mod` alone. Source: https://go.dev/ref/mod#go-sum-files"""
_UPPER = regex(r"[A-Z]")


def fetched_folders(
    root: Path, environ: Mapping[str, str], folders: Iterable[Path] = ()
) -> Iterator[str]:
    """Folders of the modules that lock files in the root, one folder below, or `folders` name."""
    for lock in _locks("go.sum", root, folders):
        yield from _of_go(lock, environ)
    for lock in _locks("Cargo.lock", root, folders):
        yield from _of_cargo(lock, environ)


def _locks(name: str, root: Path, folders: Iterable[Path]) -> dict[Path, None]:
    places = (folder / name for folder in (root, *folders))
    return dict.fromkeys([*places, *root.glob(f"*/{name}")])


def go_settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that `go env -w` has set; those of the environment come first.

    Source: `go help environment`, and os.UserConfigDir of Go's standard library.
    """
    base = environ.get("XDG_CONFIG_HOME") or f"{environ.get('HOME', '')}/.config"
    file = Path(environ.get("GOENV") or f"{base}/go/env")
    with suppress(OSError):
        lines = read_text(file).splitlines()
        pairs = (line.partition("=") for line in lines)
        return {name: value for name, _, value in pairs}
    return {}


def _of_go(lock: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Source: https://go.dev/ref/mod#module-cache."""
    environ = {**go_settings(environ), **environ}
    first = environ.get("GOPATH", "").partition(":")[0] or f"{environ.get('HOME', '')}/go"
    cache = environ.get("GOMODCACHE") or f"{first}/pkg/mod"
    with suppress(OSError):
        for module, version in _GO_MODULE.findall(read_text(lock)):
            yield f"{cache}/{_escaped(module)}@{_escaped(version)}"


def _escaped(path: str) -> str:
    return _UPPER.sub(_lower, path)


def _lower(match: re.Match[str]) -> str:
    return f"!{match[0].lower()}"


def _of_cargo(lock: Path, environ: Mapping[str, str]) -> Iterator[str]:
    """Source: https://doc.rust-lang.org/cargo/guide/cargo-home.html."""
    import tomllib  # start-up

    home = Path(environ.get("CARGO_HOME") or f"{environ.get('HOME', '')}/.cargo")
    registries = [*home.glob("registry/src/*")]
    with suppress(OSError, tomllib.TOMLDecodeError, UnicodeDecodeError):
        packages = tomllib.loads(read_text(lock)).get("package")
        every = packages if isinstance(packages, list) else []
        for package in (one for one in every if isinstance(one, dict)):
            name = f"{package.get('name')}-{package.get('version')}"
            yield from (f"{registry}/{name}" for registry in registries)
