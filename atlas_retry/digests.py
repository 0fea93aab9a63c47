"""Digests. Of little content they are made without OpenSSL.

Loading it takes as long as Python's own code needs for half a MiB, which is more than a short
command hashes; `random` in the standard library does the same.
"""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hashlib import _Hash

_LITTLE_BYTES = 1 << 18
_OWN = {"sha1": ("_sha1",), "sha256": ("_sha256", "_sha2")}
"""Modules with Python's own code; the last one since 3.12."""


def sha256_of(*parts: bytes) -> str:
    """SHA-256 of these bytes in a row, as hexadecimal digits."""
    return _of("sha256", parts)


def sha1_of(*parts: bytes) -> str:
    """SHA-1 of these bytes in a row, as git makes its ids."""
    return _of("sha1", parts)


def started(name: str, size: int) -> "_Hash":
    """A digest by the name of its kind, for about so many bytes."""
    module = _own(name) if size <= _LITTLE_BYTES else "hashlib"
    digest: _Hash = getattr(import_module(module), name)(usedforsecurity=False)
    return digest


@cache
def _own(name: str) -> str:
    """The module with Python's own code; a build may lack it."""
    for module in _OWN[name]:
        try:
            import_module(module)
        except ImportError:
            continue
        return module
    return "hashlib"


def _of(name: str, parts: tuple[bytes, ...]) -> str:
    digest = started(name, sum(map(len, parts)))
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
