"""The manifest of a batch: repositories, a change to make first, limits; read from YAML.

A manifest holds no secrets: a worker uses its own git with its own credentials.
"""

from hashlib import sha256
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from atlas_retry.errors import ConfigError, Place
from atlas_retry.settings import CascadeSettings

PROTOCOLS = frozenset({"", "file", "git", "http", "https", "ssh"})
"""Allowed schemes of a repository's URL; git's `ext::` would run a command."""
MAX_REPOSITORIES = 30_000
"""Limit of repositories, each of which adds a letter to the state between histories."""
MAX_WINDOW = 10
"""Limit of `cascade.window_size`; that many results are kept between histories."""


class Repository(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    """URL for `git fetch`; an absolute path is on the worker's machine."""
    revision: str = "HEAD"
    cwd: str = "."
    """Folder of the workspace in the repository."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.url.rstrip("/").rpartition("/")[2].removesuffix(".git")


class PriorChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A change of each repository before its run: a shell line or a patch."""

    run: str = ""
    patch: str = ""
    """In the YAML a path relative to that file; after `read`, the patch itself."""
    message: str = "Apply the change of the fleet"


class BatchLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits of a batch and of each of its runs; a worker's own limits also apply."""

    max_cost_usd: float | None = None
    """Limit of the whole batch; None: unlimited."""
    max_cost_usd_per_run: float | None = 5.0
    max_attempts: int | None = None
    max_minutes: float | None = None
    deaths: int = 2
    """Number of workers lost over one item after which it is given up."""
    runs_at_once: int = 50
    settle_minutes: float = 10.0
    """Minutes to wait at the end for lost machines to report their costs."""


class DeliverTo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where results go in addition to the store, which gets each as a patch."""

    branch: str = ""
    push: bool = False


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: Literal[1]
    repositories: tuple[Repository, ...]
    ai_fix: bool = False
    """If false, no model is asked and no money is spent."""
    agent: str = ""
    """If empty, the first agent that the worker allows."""
    model: str = ""
    config: str = ""
    """In the YAML a path relative to that file; after `read`, the text of `.atlas/config.yaml`."""
    change: PriorChange = PriorChange()
    limits: BatchLimits = BatchLimits()
    deliver: DeliverTo = DeliverTo()
    cascade: CascadeSettings = field(default_factory=CascadeSettings)
    canary: bool = True
    """Whether one of the items with the same first problem goes first, and others try its patch."""


def read(path: Path) -> Manifest:
    """The manifest with the content of the files it names. Raises ConfigError."""
    import yaml

    try:
        manifest = msgspec.convert(yaml.safe_load(path.read_bytes()), Manifest)
        change = replace(manifest.change, patch=_text(path, manifest.change.patch))
        whole = replace(manifest, config=_text(path, manifest.config), change=change)
    except (OSError, yaml.YAMLError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise _refusal(path, str(error)) from error
    if not 0 < len(whole.repositories) <= MAX_REPOSITORIES:
        raise _refusal(path, f"it names no repository, or more than {MAX_REPOSITORIES}")
    if whole.cascade.window_size > MAX_WINDOW:
        raise _refusal(path, f"cascade.window_size is {MAX_WINDOW} at most")
    for repository in whole.repositories:
        _check(path, repository)
    return whole


def stored(manifest: Manifest) -> tuple[bytes, str]:
    """Content of the manifest in the store, and its digest."""
    content = msgspec.json.encode(manifest)
    return content, sha256(content).hexdigest()


def _text(manifest: Path, name: str) -> str:
    return (manifest.parent / name).read_text(encoding="utf-8") if name else ""


def _check(path: Path, repository: Repository) -> None:
    """Raise ConfigError for a repository that no worker may get."""
    parts = urlsplit(repository.url)
    inside = not Path(repository.cwd).is_absolute() and ".." not in Path(repository.cwd).parts
    if parts.password is not None:
        raise _refusal(path, f"{parts.hostname}: a password in the URL would be visible to others")
    if parts.scheme not in PROTOCOLS or "::" in repository.url.partition("/")[0]:
        raise _refusal(path, f"{repository.url}: workers do not fetch by this protocol")
    if repository.url.startswith("-") or repository.revision.startswith("-"):
        raise _refusal(path, f"{repository.url}: neither URL nor revision may begin with a dash")
    if not inside:
        raise _refusal(path, f"{repository.url}: cwd {repository.cwd} is outside the repository")


def _refusal(path: Path, why: str) -> ConfigError:
    return ConfigError(why, place=Place(str(path)), remedy="docs/fleet.md shows a manifest")
