"""What a source is by its path and head: a test, vendored, generated, of another system. Pure."""

import platform
import sys
from collections.abc import Collection, Iterator
from itertools import chain, product

from atlas_retry.patterns import regex

MAX_HEADER_BYTES = 2_000
_VENDORED = regex(r"(^|/)(_?vendor(ed)?|third[_-]party|node_modules|external|_*generated_*)/")
_GENERATED_NAME = regex(r"(\.pb\.\w+|_pb2(_grpc)?\.pyi?|[._]generated\.\w+|\.min\.js|\.g\.dart)$")
_GENERATED = regex(rb"(?i)@generated\b|code generated|auto-?generated|do not (edit|modify)")
_TEST_PATH = regex(r"""(?x)
    (^|/)(tests?|testing|specs?|__tests__|testcases|testdata)/
    | (^|/)(test_[^/]*|conftest)\.py$
    | _(test|tests|spec)\.\w+$
    | \.(test|spec)\.\w+$
    | (^|/)tests?\.rs$
    | Tests?\.(java|kt|php|cs)$
    """)
_SYSTEMS = {
    "linux": "linux unix posix",
    "darwin": "darwin macos osx mac unix posix",
    "win32": "windows win32 win64 win nt",
    "freebsd": "freebsd unix posix",
    "other": "openbsd netbsd dragonfly solaris illumos aix android wasi emscripten plan9",
}
_MACHINES = {"x86_64": "x86_64 amd64 x86 x64", "aarch64": "aarch64 arm64", "other": "wasm32 s390x"}
_NAME = regex(r"x86_64|[a-z0-9]+")


def _split(names: dict[str, str], own: str) -> tuple[frozenset[str], frozenset[str]]:
    mine = frozenset(names.get(own, "").split())
    return mine, frozenset(" ".join(names.values()).split()) - mine


_KNOWN = (_split(_SYSTEMS, sys.platform), _split(_MACHINES, platform.machine()))


def is_vendored(path: str) -> bool:
    """Whether a file is in a folder of others' code, or of generated code."""
    return bool(_VENDORED.search(path) or _GENERATED_NAME.search(path))


def is_generated(source: bytes) -> bool:
    """Whether the head of a file says that a program wrote it."""
    return _GENERATED.search(source[:MAX_HEADER_BYTES]) is not None


def is_of_other_system(path: str, paths: Collection[str]) -> bool:
    """Whether a file is for another system or processor, and its like for this one is beside it.

    A file for Windows is beside one for Unix: alone, its windows may be those of a screen.
    """
    likes = tuple(chain.from_iterable(_likes(path, *names) for names in _KNOWN))
    return bool(likes) and any(one.startswith(likes) for one in paths)


def _likes(path: str, own: frozenset[str], others: frozenset[str]) -> Iterator[str]:
    """How the paths begin that differ from this one in the name of the system."""
    names = [*_NAME.finditer(path.lower())]
    if own.isdisjoint(name[0] for name in names):
        starts = (path[: name.start()] for name in names if name[0] in others)
        yield from (f"{start}{one}" for start, one in product(starts, own))


def is_test_path(path: str) -> bool:
    """Whether a file is a test or belongs to tests, by path."""
    return _TEST_PATH.search(path) is not None
