"""The manifest of a batch: repositories, a change to make first, limits; read from YAML.

A manifest holds no secrets: a worker uses its own git with its own credentials.
"""

from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta
from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.errors import ConfigError
from atlas_retry.reading import read_file
from atlas_retry.settings import CascadeSettings, ConfigSection

if TYPE_CHECKING:
    from atlas_retry.config.sources import Path as Key
    from atlas_retry.config.sources import Source

PROTOCOLS = frozenset({"", "file", "git", "http", "https", "ssh"})
"""Allowed schemes of a repository's URL; git's `ext::` would run a command."""
MAX_REPOSITORIES = 30_000
"""Limit of repositories, each of which adds a letter to the state between histories."""
MAX_WINDOW = 10
"""Limit of `cascade.window_size`; that many results are kept between histories."""

REMEDY = "docs/fleet.md shows a manifest"


class Repository(ConfigSection, frozen=True, kw_only=True):
    url: str
    """URL for `git fetch`; an absolute path is on the worker's machine."""
    revision: str = "HEAD"
    cwd: str = "."
    """Folder of the workspace in the repository."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.url.rstrip("/").rpartition("/")[2].removesuffix(".git")


class PriorChange(ConfigSection, frozen=True, kw_only=True):
    """A change of each repository before its run: a shell line or a patch."""

    run: str = ""
    patch: str = ""
    """In the YAML a path relative to that file; after `read`, the patch itself."""
    message: str = "Apply the change of the fleet"


class BatchLimits(ConfigSection, frozen=True, kw_only=True):
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


class DeliverTo(ConfigSection, frozen=True, kw_only=True):
    """Where results go in addition to the store, which gets each as a patch."""

    branch: str = ""
    push: bool = False


class Manifest(ConfigSection, frozen=True, kw_only=True):
    version: Annotated[int, Meta(ge=1, le=1, description="1")]
    repositories: tuple[Repository, ...]
    ai_fix: bool = False
    """If false, no model is asked and no money is spent."""
    agent: str = ""
    """If empty, the first agent that the worker allows."""
    model: str = ""
    config: str = ""
    """In the YAML a path relative to that file; after `read`, the text of `.atlas/config.yaml`
    with what it extends."""
    change: PriorChange = PriorChange()
    limits: BatchLimits = BatchLimits()
    deliver: DeliverTo = DeliverTo()
    cascade: CascadeSettings = CascadeSettings()
    canary: bool = True
    """Whether one of the items with the same first problem goes first, and others try its patch."""


def read(path: Path) -> Manifest:
    """The manifest with the content of the files it names. Raises ConfigError."""
    from atlas_retry.config.reading import read_as

    try:
        manifest, source = read_as(config.read(path.absolute()), Manifest)
    except ConfigError as error:
        error.remedy = error.remedy or REMEDY
        raise
    if not 0 < len(manifest.repositories) <= MAX_REPOSITORIES:
        why = f"it names no repository, or more than {MAX_REPOSITORIES}"
        raise _refusal(source, ("repositories",), why)
    if manifest.cascade.window_size > MAX_WINDOW:
        key = ("cascade", "window_size")
        raise _refusal(source, key, f"cascade.window_size is {MAX_WINDOW} at most")
    for position, repository in enumerate(manifest.repositories):
        if wrong := _wrong_in(repository):
            raise _refusal(source, ("repositories", position), wrong)
    change = replace(
        manifest.change, patch=_text(source, ("change", "patch"), manifest.change.patch)
    )
    text = _text(source, ("config",), manifest.config)
    if text:
        text = config.flattened(path.absolute().parent / manifest.config)
    return replace(manifest, config=text, change=change)


def stored(manifest: Manifest) -> tuple[bytes, str]:
    """Content of the manifest in the store, and its digest."""
    content = msgspec.json.encode(manifest)
    return content, sha256(content).hexdigest()


def _text(source: "Source", key: "Key", name: str) -> str:
    """Content of a file that the manifest names, or nothing."""
    try:
        return read_file(Path(source.name).parent / name).decode("utf-8") if name else ""
    except (OSError, UnicodeDecodeError) as error:
        raise _refusal(source, key, str(error)) from error


def _wrong_in(repository: Repository) -> str | None:
    """Why no worker may get a repository."""
    parts = urlsplit(repository.url)
    inside = not Path(repository.cwd).is_absolute() and ".." not in Path(repository.cwd).parts
    if parts.password is not None:
        return f"{parts.hostname}: a password in the URL would be visible to others"
    if parts.scheme not in PROTOCOLS or "::" in repository.url.partition("/")[0]:
        return f"{repository.url}: workers do not fetch by this protocol"
    if repository.url.startswith("-") or repository.revision.startswith("-"):
        return f"{repository.url}: neither URL nor revision may begin with a dash"
    if not inside:
        return f"{repository.url}: cwd {repository.cwd} is outside the repository"
    return None


def _refusal(source: "Source", key: "Key", why: str) -> ConfigError:
    # no line of the file: it may hold a password
    place = replace(source.place(key), text=None)
    return ConfigError(why, place=place, remedy=REMEDY)
