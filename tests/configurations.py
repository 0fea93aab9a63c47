"""Repositories with a configuration, and what is loaded from them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from atlas_retry import config
from atlas_retry.errors import ConfigError
from atlas_retry.settings import Settings

GATES = "validation: {test: [pytest]}\n"
"""The shortest configuration that can be used."""


def project(tmp_path: Path, text: str | bytes = GATES, name: str = ".atlas/config.yaml") -> Path:
    """A repository's root with this configuration."""
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True, exist_ok=True)
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return root


def user_file(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "home" / ".config" / "atlas" / "config.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def load(
    root: Path,
    variables: Mapping[str, str] | None = None,
    flags: Mapping[str, object] | None = None,
) -> Settings:
    """Load with a home beside the repository."""
    environ = {"HOME": str(root.parent / "home"), **(variables or {})}
    return config.load(root, environ=environ, overrides=flags or {})


def refusal(root: Path, variables: Mapping[str, str] | None = None) -> ConfigError:
    """The error that this configuration ends in."""
    with pytest.raises(ConfigError) as caught:
        load(root, variables)
    return caught.value
