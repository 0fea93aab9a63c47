"""Digests are those of hashlib, whoever makes them."""

import hashlib
from collections.abc import Iterator

import pytest

from atlas_retry import digests

LARGE = b"x" * ((1 << 18) + 1)


@pytest.fixture(params=["own code", "a build without it"], autouse=True)
def build(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    digests._own.cache_clear()
    if request.param != "own code":
        monkeypatch.setattr(digests, "_OWN", {"sha1": ("_none",), "sha256": ("_none",)})
    yield
    digests._own.cache_clear()


@pytest.mark.parametrize("parts", [(), (b"",), (b"a", b"bc"), (LARGE,), (b"a", LARGE)])
def test_digests_are_those_of_hashlib(parts: tuple[bytes, ...]) -> None:
    whole = b"".join(parts)
    assert digests.sha256_of(*parts) == hashlib.sha256(whole).hexdigest()
    assert digests.sha1_of(*parts) == hashlib.sha1(whole, usedforsecurity=False).hexdigest()
