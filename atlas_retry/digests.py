"""Digests of several parts in a row."""

import hashlib


def sha256_of(*parts: bytes) -> str:
    """SHA-256 of these bytes in a row, as hexadecimal digits."""
    return hashlib.sha256(b"".join(parts), usedforsecurity=False).hexdigest()


def sha1_of(*parts: bytes) -> str:
    """SHA-1 of these bytes in a row, as git makes its ids."""
    return hashlib.sha1(b"".join(parts), usedforsecurity=False).hexdigest()
