"""Digests of several parts in a row."""

import hashlib


def sha256_of(*parts: bytes) -> str:
    """SHA-256 of these bytes in a row, as hexadecimal digits."""
    digest = hashlib.sha256(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def sha1_of(*parts: bytes) -> str:
    """SHA-1 of these bytes in a row, as git makes its ids."""
    digest = hashlib.sha1(usedforsecurity=False)
    for part in parts:
        digest.update(part)
    return digest.hexdigest()
