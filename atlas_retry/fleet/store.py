"""The store for large files of a batch: manifest, reports, patches, logs; a folder or S3.

Each machine has its own address and credentials for it; no payload names them.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from urllib.parse import urlsplit

import fsspec  # type: ignore[import-untyped]  # it has no types of its own
import msgspec

from atlas_retry.errors import AtlasError, UsageError
from atlas_retry.fleet.batch import ItemResult
from atlas_retry.fleet.manifest import Manifest
from atlas_retry.text.own_environment import installing

RESULT, REPORT, PATCH, LOG = "result.json", "run.json", "fix.patch", "log.txt"
ATTEMPT = "attempt.json"
"""File with the latest attempt of a current run."""


class Store:
    """A place that all machines of a fleet reach. Raises AtlasError if it cannot be used."""

    def __init__(self, url: str) -> None:
        """`url` is a folder, or any address that fsspec knows, such as `s3://bucket/prefix`."""
        if urlsplit(url).password is not None:
            raise UsageError(
                "the address of a store must not contain a password", remedy="AWS_PROFILE ..."
            )
        self.url = url.rstrip("/")
        try:
            self._files, self._root = fsspec.core.url_to_fs(self.url)
        except (ImportError, ValueError) as error:
            raise UsageError(f"--store {url}: {error}", remedy=installing("s3fs")) from error

    def put(self, batch: str, name: str, content: bytes) -> None:
        """Write a file of a batch; replaces one of the same name."""
        path = self._path(batch, name)
        with self._reached("written"):
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            fresh = f"{path}.{os.urandom(4).hex()}"  # so that no reader sees half of a file
            self._files.pipe_file(fresh, content)
            self._files.mv(fresh, path)

    def get(self, batch: str, name: str) -> bytes | None:
        """Content of a file; None if there is none of this name."""
        with self._reached("read"), suppress(FileNotFoundError):
            return bytes(self._files.cat_file(self._path(batch, name)))
        return None

    def manifest(self, batch: str, digest: str) -> Manifest:
        """The manifest of a batch. Raises AtlasError if it is missing or a different one."""
        content = self.get(batch, "manifest.json")
        if content is None:
            raise AtlasError(
                f"the store {self.url} has no batch {batch}",
                remedy="--store of atlas fleet start and of every worker must be the same place",
            )
        if sha256(content).hexdigest() != digest:
            raise AtlasError(f"the manifest in {self.url} is not the one of batch {batch}")
        return msgspec.json.decode(content, type=Manifest)

    def result(self, batch: str, run: str) -> ItemResult | None:
        content = self.get(batch, f"{run}/{RESULT}")
        return msgspec.json.decode(content, type=ItemResult) if content else None

    def results(self, batch: str) -> dict[str, ItemResult]:
        """Results of the ended runs of a batch, by run id."""
        with self._reached("read"):
            contents = self._files.cat(self._files.glob(self._path(batch, f"*/{RESULT}")))
        ended = [msgspec.json.decode(one, type=ItemResult) for one in contents.values()]
        return {result.run: result for result in ended}

    def address(self, batch: str, name: str) -> str:
        return f"{self.url}/{batch}/{name}"

    def _path(self, batch: str, name: str) -> str:
        return f"{self._root}/{batch}/{name}"

    @contextmanager
    def _reached(self, done: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise AtlasError(f"the store {self.url} cannot be {done}: {error}") from error
