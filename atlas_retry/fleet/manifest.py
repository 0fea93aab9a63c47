"""What a batch is asked for: repositories, what to change first, limits; reading it from YAML.

A manifest holds no secret: a worker uses its own git, with its own credentials.
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
"""Of a repository's URL; git's `ext::` would run a command."""
MAX_REPOSITORIES = 30_000
"""What became of each is a letter that travels from one history to the next."""
MAX_WINDOW = 10
"""Results that are looked at together; they travel from one history to the next."""


class Repository(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    url: str
    """As for `git fetch`; an absolute path is one of the worker's machine."""
    revision: str = "HEAD"
    cwd: str = "."
    """The folder of the repository that is the workspace."""
    name: str = ""

    @property
    def label(self) -> str:
        return self.name or self.url.rstrip("/").rpartition("/")[2].removesuffix(".git")


class PriorChange(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done to each repository before its run: a line of shell, or a patch."""

    run: str = ""
    patch: str = ""
    """In the file a path, relative to it; once read the patch itself."""
    message: str = "Apply the change of the fleet"


class BatchLimits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Of a batch and of each of its runs; a worker's own limits hold as well."""

    max_cost_usd: float | None = None
    """Of the whole batch; None: unlimited."""
    max_cost_usd_per_run: float | None = 5.0
    max_attempts: int | None = None
    max_minutes: float | None = None
    deaths: int = 2
    """So many workers may be lost over one item."""
    runs_at_once: int = 50
    settle_minutes: float = 10.0
    """So long the end waits for lost machines to say what they had spent."""


class DeliverTo(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where results go, beside the store, which gets each as a patch."""

    branch: str = ""
    push: bool = False


class Manifest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    version: Literal[1]
    repositories: tuple[Repository, ...]
    ai_fix: bool = False
    """Without it no model is asked and no money is spent."""
    agent: str = ""
    """Empty: the first that the worker allows."""
    model: str = ""
    config: str = ""
    """In the file a path, relative to it; once read the text that becomes `.atlas/config.yaml`."""
    change: PriorChange = PriorChange()
    limits: BatchLimits = BatchLimits()
    deliver: DeliverTo = DeliverTo()
    cascade: CascadeSettings = field(default_factory=CascadeSettings)
    canary: bool = True
    """Of items with the same first problem one goes first, and its patch is tried on the others."""


def read(path: Path) -> Manifest:
    """The manifest with the files it names.

    Raises ConfigError naming what is wrong.
    """
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
    """The manifest as the store keeps it, and its digest."""
    content = msgspec.json.encode(manifest)
    return content, sha256(content).hexdigest()


def _text(manifest: Path, name: str) -> str:
    return (manifest.parent / name).read_text(encoding="utf-8") if name else ""


def _check(path: Path, repository: Repository) -> None:
    """Raise ConfigError for what no worker may be handed."""
    parts = urlsplit(repository.url)
    inside = not Path(repository.cwd).is_absolute() and ".." not in Path(repository.cwd).parts
    if parts.password is not None:
        raise _refusal(path, f"{parts.hostname}: a password in the URL would be seen by everybody")
    if parts.scheme not in PROTOCOLS or "::" in repository.url.partition("/")[0]:
        raise _refusal(path, f"{repository.url}: not a protocol that workers fetch by")
    if repository.url.startswith("-") or repository.revision.startswith("-"):
        raise _refusal(path, f"{repository.url}: neither URL nor revision may begin with a dash")
    if not inside:
        raise _refusal(path, f"{repository.url}: cwd {repository.cwd} is outside the repository")


def _refusal(path: Path, why: str) -> ConfigError:
    return ConfigError(why, place=Place(str(path)), remedy="docs/fleet.md shows a manifest")
