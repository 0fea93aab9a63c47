"""What is taken at the start of a run, kept in memory, and compared at its end. Judges nothing."""

import hashlib
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from atlas_retry.guard import OutsideChange, Tool, protected_globs
from atlas_retry.judge import folders
from atlas_retry.model import Gate, GitFacts
from atlas_retry.settings import Settings
from atlas_retry.workspace import git_facts

_OF_HOME = (
    ".bashrc", ".bash_profile", ".bash_login", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
    ".zprofile", ".gitconfig", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".pip/pip.conf",
    ".config/git/config", ".config/git/ignore", ".config/git/attributes",
    ".config/pip/pip.conf", ".config/ruff/ruff.toml", ".config/ruff/.ruff.toml",
    ".config/ruff/pyproject.toml", ".config/mypy/config", ".mypy.ini", ".config/flake8",
    ".config/pycodestyle", ".pylintrc", ".config/pylintrc", ".config/black", ".isort.cfg",
    ".coveragerc", ".pdbrc", ".eslintrc", ".eslintrc.json", ".prettierrc", ".golangci.yml",
    ".config/go/env", ".cargo/config.toml", ".cargo/config", ".m2/settings.xml", ".mavenrc",
    ".gradle/gradle.properties", ".gradle/init.gradle", ".shellcheckrc", ".config/shellcheckrc",
    ".config/fish/config.fish", ".config/atlas/config.yaml", ".ssh/authorized_keys",
    ".ssh/config", ".config/pre-commit", ".envrc", ".tool-versions",
)  # fmt: skip
_OF_HOME_FOLDERS = (".local/bin", "bin", ".config/git/hooks", ".cargo/bin")
_OF_PARENTS = (
    "conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "ruff.toml",
    ".ruff.toml", "mypy.ini", ".eslintrc.json", ".eslintrc.js", "eslint.config.js",
    "package.json", "tsconfig.json", ".prettierrc", ".editorconfig", "go.work", "Cargo.toml",
    ".cargo/config.toml", "sitecustomize.py", ".shellcheckrc", ".golangci.yml", "Makefile",
    ".npmrc", ".env", ".envrc", "node_modules/.bin",
)  # fmt: skip
_MAX_BYTES = 64 << 20


class Seal(Struct, frozen=True, kw_only=True):
    """The state of everything that decides, before an agent could touch it."""

    root: Path
    gates: tuple[Gate, ...]
    protect: tuple[str, ...]
    allow: tuple[str, ...]
    sources: tuple[str, ...]
    """Atlas's configuration files within the workspace."""
    protected: tuple[str, ...]
    """Globs that an agent is told not to edit."""
    facts: GitFacts
    tools: Mapping[str, tuple[str, str]]
    """Of each executable of the gates: where it is, and its digest."""
    watched: Mapping[str, str]
    """Digests of files outside the workspace that steer tools, by absolute path."""
    executed: Mapping[str, tuple[str, bytes]]
    """Ignored files of the workspace that get executed."""
    environ: Mapping[str, str]


def seal(root: Path, settings: Settings, environ: Mapping[str, str]) -> Seal:
    """Take the state of everything that decides what passes."""
    return Seal(
        root=root,
        gates=settings.gates,
        protect=settings.guard.protect,
        allow=settings.guard.allow,
        sources=_sources(root, settings),
        protected=protected(root, settings),
        facts=git_facts(root, environ=environ),
        tools=_resolved(settings.gates, root, environ),
        watched=_watched(root, environ),
        executed=folders.held(root),
        environ=environ,
    )


def protected(root: Path, settings: Settings) -> tuple[str, ...]:
    """Globs that an agent is told not to edit."""
    guard = settings.guard
    return protected_globs(guard.protect, guard.allow, _sources(root, settings))


def _sources(root: Path, settings: Settings) -> tuple[str, ...]:
    inside = (Path(source) for source in settings.sources)
    return tuple(p.relative_to(root).as_posix() for p in inside if p.is_relative_to(root))


def moved_tools(taken: Seal) -> tuple[Tool, ...]:
    """Executables that a gate would now find elsewhere, or other than they were."""
    now = _resolved(taken.gates, taken.root, taken.environ)
    return tuple(
        Tool(name=name, before=" ".join(was), after=" ".join(now.get(name, ("", ""))),
             path=now.get(name, ("", ""))[0])
        for name, was in taken.tools.items()
        if now.get(name) != was
    )  # fmt: skip


def changes_outside(taken: Seal) -> tuple[OutsideChange, ...]:
    """Watched files outside the workspace that are not as they were."""
    now = _watched(taken.root, taken.environ)
    paths = sorted({*taken.watched, *now})
    return tuple(
        OutsideChange(place=str(Path(path).parent), path=Path(path).name)
        for path in paths
        if taken.watched.get(path) != now.get(path)
    )


def _resolved(
    gates: Iterable[Gate], root: Path, environ: Mapping[str, str]
) -> dict[str, tuple[str, str]]:
    found = {}
    for name in dict.fromkeys(word for gate in gates for word in _programs(gate.run)):
        where = shutil.which(name, path=environ.get("PATH")) or ""
        if where and not Path(where).resolve().is_relative_to(root):
            found[name] = (where, _digest(Path(where)))
        elif not where:
            found[name] = ("", "")
    return found


def _programs(line: str) -> Iterator[str]:
    """First words of the simple commands of a shell line, variables in front left out."""
    try:
        words = list(shlex.shlex(line, posix=True, punctuation_chars=True))
    except ValueError:
        return
    starts = True
    for word in words:
        if word in ("&&", "||", ";", "|", "(", "&"):
            starts = True
        elif starts and "=" not in word:
            starts = False
            if "/" not in word:
                yield word


def _watched(root: Path, environ: Mapping[str, str]) -> dict[str, str]:
    home = Path(environ.get("HOME") or "/nonexistent")
    paths = [home / name for name in _OF_HOME]
    paths += [p for name in _OF_HOME_FOLDERS for p in (home / name).glob("*")]
    paths += [
        p for p in home.glob(".local/lib/python*/site-packages/*") if p.suffix in (".pth", ".py")
    ]
    paths += [parent / name for parent in list(root.parents)[:-1] for name in _OF_PARENTS]
    return {
        str(path): _digest(path)
        for path in paths
        if not path.is_relative_to(root) and (path.is_file() or path.is_symlink())
    }


def _digest(path: Path) -> str:
    try:
        link = str(path.readlink()) if path.is_symlink() else ""
        status = path.stat()
        if status.st_size > _MAX_BYTES:
            return f"{link} {status.st_size} {status.st_mtime_ns}"
        return f"{link} {status.st_mode:o} {hashlib.sha256(path.read_bytes()).hexdigest()}"
    except OSError as error:
        return f"unreadable: {error.strerror}"
