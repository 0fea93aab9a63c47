"""The sealed replay: the original tests and settings on the new sources, in a scratch copy."""

import re
import shutil
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path

from atlas_retry import process
from atlas_retry.guard import places
from atlas_retry.guard.settingfiles import is_configuration
from atlas_retry.model import GateResult, Tree
from atlas_retry.scratch import laid_out

TIMEOUT_S = 300.0
_CANNOT_RUN = frozenset({126, 127})
_PYTEST_FAILED = 1
"""pytest: 1 = tests failed; 2-5 = it could not run them (pytest docs, "Exit codes")."""
_SHARED = re.compile(
    r"(^|/)(pyproject\.toml|setup\.cfg|package\.json|Makefile|GNUmakefile|makefile|noxfile\.py|tox\.ini"
    r"|Cargo\.toml|pom\.xml|\.pre-commit-config\.yaml|\.gitignore|\.env(rc)?)$|^\.(github|atlas|husky)/"
)
_OFFLINE = {
    "npm_config_offline": "true", "npm_config_yes": "false", "CARGO_NET_OFFLINE": "true",
    "GOPROXY": "off", "PIP_NO_INDEX": "1", "PYTHONDONTWRITEBYTECODE": "1", "CI": "true",
}  # fmt: skip
_SECRET = re.compile(r"^ANTHROPIC_|^CLAUDE_|(_|^)(TOKEN|SECRET|PASSWORD|API_KEY)$|^GIT_|^PYTEST_")


class Replay(StrEnum):
    """What the original tests say of the new sources."""

    PASSES = "passes"
    FAILS = "fails"
    UNDECIDED = "undecided"
    """They could not be run; that decides nothing."""


def is_sealed(path: str) -> bool:
    """Whether the replay takes a file as it was: tests, their data, settings of checks."""
    return places.is_test(path) or is_configuration(path) or bool(_SHARED.search(path))


def replay(
    before: Tree,
    after: Tree,
    failing: Iterable[GateResult],
    *,
    root: Path,
    environ: Mapping[str, str],
) -> Replay:
    """Run the gates that failed, as they were sealed, on the sources as they are."""
    commands = [result.command for result in failing if result.command]
    if not commands:
        return Replay.UNDECIDED
    paths = {*before.paths(), *after.paths()}
    with laid_out(paths, lambda p: before if is_sealed(p) else after, root) as scratch:
        ends = [_run(command, scratch, environ) for command in commands]
    if Replay.FAILS in ends:
        return Replay.FAILS
    return Replay.UNDECIDED if Replay.UNDECIDED in ends else Replay.PASSES


def _run(command: str, scratch: Path, environ: Mapping[str, str]) -> Replay:
    shell = shutil.which("sh") or "/bin/sh"
    kept = {name: value for name, value in environ.items() if not _SECRET.search(name)}
    done = process.run(
        process.Command(
            argv=(shell, "-c", command),
            cwd=scratch,
            env=kept | _OFFLINE,
            timeout_s=TIMEOUT_S,
            log_dir=None,
        )
    )
    return _verdict(command, done)


def _verdict(command: str, done: process.Completed) -> Replay:
    code = done.exit_code
    if done.ended is not process.Ended.EXITED or code is None or code in _CANNOT_RUN:
        return Replay.UNDECIDED
    if code == 0:
        return Replay.PASSES
    if "pytest" in command and code != _PYTEST_FAILED:
        return Replay.UNDECIDED
    missing = re.search(
        r"No module named|command not found|not found$|ENOTCACHED|ENOVERSIONS|could not determine "
        r"executable",
        done.stderr.text + done.stdout.text,
        re.MULTILINE,
    )
    return Replay.UNDECIDED if missing else Replay.FAILS
