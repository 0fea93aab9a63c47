"""A person's own program, such as an editor: it has the terminal until it ends."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def hand_over(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> str | None:
    """Why it did not end well; None where it did. Nothing of it is kept, and no time limits it."""
    try:
        code = subprocess.run(argv, cwd=cwd, env=env, check=False).returncode
    except OSError as error:
        return f"{argv[0]} cannot be started: {error.strerror}"
    return f"{argv[0]} ended with exit code {code}" if code else None
