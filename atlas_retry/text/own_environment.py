"""How to add packages to the environment that this atlas runs in. Installs nothing."""

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path


def installing(*packages: str, prefix: str = sys.prefix) -> str:
    """The command that adds packages to this environment: one of pipx, with pip, or of uv."""
    if (Path(prefix) / "pipx_metadata.json").exists():
        return shlex.join(("pipx", "inject", "atlas-retry", *packages))
    python = Path(sys.executable) if prefix == sys.prefix else Path(prefix, "bin", "python")
    is_of_uv = (Path(prefix) / "uv-receipt.toml").exists() or find_spec("pip") is None
    if is_of_uv:  # environments of uv have no pip
        return shlex.join(("uv", "pip", "install", "--python", str(python), *packages))
    return shlex.join((str(python), "-m", "pip", "install", *packages))
