"""Facts taken before a turn, kept in memory, and compared after it."""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, filterfalse
from operator import methodcaller
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.guard.beside import INNOCENT_FACTS
from atlas_retry.guard.case import OutsideChange, Tool
from atlas_retry.guard.judge.folders import digest
from atlas_retry.guard.places import CHECK_CACHES, INSTALLED, RUN_CACHES, is_build_output, is_code
from atlas_retry.model import Gate, GitFacts
from atlas_retry.patterns import words
from atlas_retry.settings import GuardSettings, Settings
from atlas_retry.text.globs import overlap
from atlas_retry.workspace import outside
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.files import CACHE, Stat, differing, stat_of
from atlas_retry.workspace.gitfacts import git_facts
from atlas_retry.workspace.installed import Holding, hold, moved_away, own_installation
from atlas_retry.workspace.outside import (
    ENVIRONMENT_MARK,
    behind,
    imported_folders,
    led_to,
    moved_files,
    outer_environments,
    packages,
    stamps,
)
from atlas_retry.workspace.place import parents
from atlas_retry.workspace.snapshot.trees import walk
from atlas_retry.workspace.snapshot.unheld import (
    REMOVED,
    FolderStat,
    aside_folder,
    folder_stat,
    take_away,
)
from atlas_retry.workspace.walk import Scan

_OF_HOME = words("""
    .bashrc .bash_profile .bash_login .bash_aliases .profile .zshrc .zshenv .zprofile .gitconfig
    .npmrc .yarnrc .yarnrc.yml .pypirc .pip/pip.conf .config/git/config .config/git/ignore
    .config/git/attributes .config/pip/pip.conf .config/ruff/ruff.toml .config/ruff/.ruff.toml
    .config/ruff/pyproject.toml .config/mypy/config .mypy.ini .config/flake8 .config/pycodestyle
    .pylintrc .config/pylintrc .config/black .isort.cfg .coveragerc .pdbrc .eslintrc
    .eslintrc.json .prettierrc .golangci.yml .config/go/env .cargo/config.toml .cargo/config
    .m2/settings.xml .mavenrc .gradle/gradle.properties .gradle/init.gradle .shellcheckrc
    .config/shellcheckrc .config/fish/config.fish .ssh/authorized_keys
    .ssh/config .config/pre-commit .envrc .tool-versions
    """)
_OF_HOME_FOLDERS = (".local/bin", "bin", ".config/git/hooks", ".cargo/bin")
_OF_PARENTS = words("""
    conftest.py pytest.ini tox.ini setup.cfg pyproject.toml ruff.toml .ruff.toml mypy.ini
    .eslintrc.json .eslintrc.js eslint.config.js package.json tsconfig.json .prettierrc
    .editorconfig go.work Cargo.toml .cargo/config.toml sitecustomize.py .shellcheckrc
    .golangci.yml Makefile .npmrc .env .envrc node_modules/.bin
    """)
PROTECTED = (".atlas/**", "atlas.yaml", "atlas.yml", ".git/**")
"""Globs that the guard always refuses. Files that it holds are not denied, because a person can
accept them."""


class Seal(Struct, frozen=True, kw_only=True):
    """The state of everything that decides, before an agent could touch it."""

    root: Path
    gates: tuple[Gate, ...]
    guard: GuardSettings
    sources: tuple[str, ...]
    """Atlas's configuration files in the workspace."""
    shared: tuple[str, ...]
    """Absolute paths of its configuration files elsewhere."""
    facts: GitFacts
    tools: Mapping[str, tuple[str, str]]
    """Path and digest of each executable of the gates outside."""
    held: Path
    """Folder of the held content of what is installed."""
    watched: Mapping[str, str]
    """Digest or stat data, by absolute path, of each file outside the workspace that steers tools
    or that programs import."""
    linked: tuple[str, ...]
    """Folders outside the workspace that programs import from."""
    links: tuple[str, ...]
    """The project's own links, except those in place of build output."""
    installed: Mapping[str, Stat | None]
    """Stat data, by absolute path, of each file in virtual environments outside the workspace, and
    of the gates' executables in it that git does not see."""
    outer: tuple[str, ...]
    """Folders of these virtual environments."""
    look: FolderStat
    environments: frozenset[str]
    """Environments in `look` that no turn of the run has created."""
    nested: Mapping[str, GitFacts]
    """Facts about each repository inside the workspace, by the path of its `.git`."""
    environ: Mapping[str, str]
    taken_ns: int


def seal(
    root: Path,
    settings: Settings,
    environ: Mapping[str, str],
    scan: Scan | None = None,
    *,
    held: Path,
) -> Seal:
    """Take the state of everything that decides what passes.

    `scan` is a walk over the root. What is installed is held in the folder `held`, if it is small.
    """
    scan = scan or walk(root, environ)
    look = folder_stat(root, scan)
    gates = settings.gates
    programs = dict(outside.programs(gates, root, environ))
    tools = _tools(programs, root)
    folders = outside.folders(gates, root)
    environs = outside.environs(gates, environ)
    outer = outer_environments(
        root, folders | outside.projects(root, scan), environs, filter(None, programs.values())
    )
    imported = imported_folders(root, folders, environs, [gate.run for gate in gates])
    linked = tuple(sorted(_linked(root, look, outer).union(imported)))
    links = tuple(sorted(_own_links(scan)))
    shared = tuple(path for path in settings.sources if not Path(path).is_relative_to(root))
    files = (os.path.relpath(path, root) for path in filter(os.path.isfile, programs.values()))
    unseen = filterfalse(scan.is_visible, (path for path in files if path[:2] != ".."))
    inside = _stats((path for path in unseen if path not in look.aside), root)
    installed = _packages(outer) | inside
    used = inside | _stats(filter(None, (path for path, _ in tools.values())))
    no_caches = {path: look.aside[path] for path in filterfalse(_is_cache, look.aside)}
    hold(root, held, no_caches | installed | used, used)
    return Seal(
        root=root,
        gates=settings.gates,
        guard=settings.guard,
        sources=sources_inside(root, settings),
        shared=shared,
        facts=git_facts(root, environ=environ),
        tools=tools,
        held=held,
        watched=_watched(root, environ, linked, links, shared),
        linked=linked,
        links=links,
        installed=installed,
        outer=outer,
        look=look,
        environments=frozenset(look.environments),
        nested={path: _facts(root / path, environ) for path in look.nested},
        environ=environ,
        taken_ns=scan.taken_ns,
    )


def without_made(taken: Seal, wrote: Iterable[str]) -> Seal:
    """The seal without environments that earlier turns created, which wrote these paths unseen."""
    made = set[str]()
    for path in wrote:
        folder, _, name = path.rpartition("/")
        if name == ENVIRONMENT_MARK:
            made.add(folder)
        elif not _is_cache(path):
            made.add(aside_folder(path))
    return replace(taken, environments=taken.environments - made)


def _linked(root: Path, look: FolderStat, outer: Iterable[str]) -> set[str]:
    """Folders outside that installed dependencies link to, in the workspace and in `outer`."""
    return look.linked.union(*(led_to(root, environment) for environment in outer))


def _own_links(scan: Scan) -> Iterator[str]:
    for path, seen in scan.visible().items():
        if stat.S_ISLNK(seen[0]) and not is_build_output(f"{path}/") and not aside_folder(path):
            yield path


def protected(root: Path, settings: Settings) -> tuple[str, ...]:
    """Globs that an agent must not edit, because the guard would refuse them.

    The guard allows paths, but an agent denies globs: a glob that overlaps with an allowed one is
    left out.
    """
    given = [glob for glob in settings.guard.allow if not glob.startswith("!")]
    allow = [f"{glob}/" if os.path.isdir(root / glob.strip("/")) else glob for glob in given]  # noqa: PTH112 - Path raises where it may not look
    installed = (one for one in INSTALLED if not any(overlap(one, other) for other in allow))
    wanted = (*PROTECTED, *installed, *settings.guard.protect, *sources_inside(root, settings))
    return tuple(dict.fromkeys(wanted))


def sources_inside(root: Path, settings: Settings) -> tuple[str, ...]:
    """Atlas's configuration files in the workspace."""
    inside = (Path(source) for source in settings.sources)
    return tuple(p.relative_to(root).as_posix() for p in inside if p.is_relative_to(root))


class Moved(Struct, frozen=True, kw_only=True):
    """Changes outside the tree since the seal."""

    outside: tuple[OutsideChange, ...]
    tools: tuple[Tool, ...]
    installed: tuple[str, ...]
    made: tuple[str, ...]
    """Files of environments that were not there."""
    added: frozenset[str]
    """New files outside, by absolute path, and new installed ones."""
    restorable: frozenset[str]
    """Those of `installed` and of the paths of `tools` that can be put back."""
    unseen: tuple[str, ...]
    """Ignored files, and caches of checkers."""
    nested: tuple[str, ...]
    """`.git` of repositories inside that were removed or changed."""
    hiding: tuple[str, ...]
    """New `.git`, whose folders may be hidden from checks."""
    modes: tuple[str, ...]
    """Folders with changed permissions."""
    look: FolderStat
    """The state at the comparison."""


def compared(taken: Seal, scan: Scan | None = None) -> Moved:
    """Changes since the seal was taken. `scan` is a walk over the root."""
    scan, was = scan or walk(taken.root, taken.environ), taken.look
    look = folder_stat(taken.root, scan, taken.environments)
    aside = moved_files(was.aside, look.aside)
    caches = [path for path in aside if CHECK_CACHES.match(path)]
    installed = [path for path in aside if not _is_cache(path)]
    # ignored by git, in a folder that turns of the run created
    of_turns = (path for path in installed if taken.environments.isdisjoint(parents(path)))
    new = {path for path in of_turns if not scan.is_visible(path)}
    there, holding = installed_before(taken), Holding.opened(taken.root, taken.held)
    old = _changed(filterfalse(new.__contains__, installed), taken, holding)
    tools = tuple(_moved_tools(taken))
    watched = _watched(taken.root, taken.environ, taken.linked, taken.links, taken.shared)
    beside = sorted(differing(taken.watched, watched))
    # reading a repository inside changes some of its facts
    facts = ((path, _facts(taken.root / path, taken.environ)) for path in was.nested)
    inner = [(path, differing(taken.nested[path], now)) for path, now in facts]
    return Moved(
        outside=tuple(OutsideChange(place=p, path=name) for p, name in map(os.path.split, beside)),
        tools=tools,
        installed=tuple(old),
        made=tuple(sorted(new)),
        restorable=_restorable(old, tools, taken, holding),
        added=frozenset({*beside, *old}.difference(taken.watched, there)),
        unseen=(*caches, *sorted(new), *sorted(differing(was.ignored, look.ignored))),
        nested=tuple(path for path, facts in inner if not INNOCENT_FACTS.issuperset(facts)),
        hiding=tuple(path for path in look.nested if path not in was.nested),
        modes=tuple(path for path, m in look.modes.items() if was.modes.get(path, m) != m),
        look=look,
    )


def _changed(inside: Iterable[str], taken: Seal, holding: Holding) -> list[str]:
    """Installed files with other content, but for the project's own installation.

    `inside` are those of the workspace whose stat data moved.
    """
    now = _packages(taken.outer)
    now |= _stats(filterfalse(os.path.isabs, taken.installed), taken.root)
    there = installed_before(taken)
    moved = [*inside, *moved_files(taken.installed, now)]
    moved = [path for path in moved if not holding.is_same(path, there.get(path))]
    own = own_installation(taken.root, moved, holding)
    return [path for path in moved if path not in own]


def _moved_tools(taken: Seal) -> Iterator[Tool]:
    now = _tools(dict(outside.programs(taken.gates, taken.root, taken.environ)), taken.root)
    for name, was in taken.tools.items():
        if now.get(name) != was:
            yield Tool(name=name, path=now[name][0] if name in now else "")


def _restorable(
    paths: Collection[str], tools: Iterable[Tool], taken: Seal, holding: Holding
) -> frozenset[str]:
    """Those of the installed files and tools that are new, or whose earlier content was held."""
    there = installed_before(taken)
    back = {*filterfalse(there.__contains__, paths)}
    back.update(path for path in paths if holding.holds(path, there.get(path)))
    for tool in tools:
        path, was = taken.tools[tool.name]
        is_there = tool.path == path != ""
        if is_there and holding.content(path) and was != digest(Path(path)):
            back.add(path)
    return frozenset(back)


def installed_before(taken: Seal) -> dict[str, Stat | None]:
    """Stat data of what was installed, in the workspace and outside, by path."""
    return {**taken.look.aside, **taken.installed}


def put_back(taken: Seal, paths: Collection[str], into: Path) -> tuple[str, ...]:
    """Restore installed files and tools; what was added is moved into a folder.

    Returns those that could not be restored.
    """
    there = {*installed_before(taken), *(path for path, _ in taken.tools.values())}
    came = [path for path in paths if path not in there]
    left = moved_away(taken.root, came, there, into)
    holding = Holding.opened(taken.root, taken.held)
    return (*left, *filterfalse(holding.put_back, filter(there.__contains__, paths)))


def _stats(paths: Iterable[str], root: Path = Path("/")) -> dict[str, Stat | None]:
    stats = dict[str, Stat | None]()
    for path in paths:
        with suppress(OSError):
            stats[path] = stat_of((root / path).lstat())
    return stats


def _packages(folders: Iterable[str]) -> dict[str, Stat | None]:
    return dict(chain.from_iterable(packages(folder).items() for folder in folders))


def _is_cache(path: str, *, checks: bool = True) -> bool:
    """Whether a path is in a cache of runs or, with `checks`, of checkers."""
    return RUN_CACHES.match(path) or (checks and CHECK_CACHES.match(path))


def _facts(git_dir: Path, environ: Mapping[str, str]) -> GitFacts:
    return git_facts(git_dir.parent, environ=environ) if git_dir.exists() else {}


def installed_differences(before: Path, after: Path) -> tuple[str, ...]:
    """Files of installed dependencies that differ between two folders, by size and content."""
    ours = filterfalse(_is_cache, sorted({*folder_stat(before).aside, *folder_stat(after).aside}))
    return tuple(path for path in ours if digest(before / path) != digest(after / path))


def clean(taken: Seal, *, checks: bool = False, look: FolderStat | None = None) -> tuple[str, ...]:
    """Remove bytecode and test caches written since the seal, and return them.

    They may be forged, or stale for a source restored in the same second with the same size.
    `checks` includes caches of checkers. `look` is the present state, if known.
    """
    moved = sorted(differing(taken.look.aside, (look or folder_stat(taken.root)).aside))
    gone = tuple(path for path in moved if _is_cache(path, checks=checks))
    take_away(taken.root, gone, taken.held.parent / REMOVED)
    return gone


def clean_between(
    ws: Workspace, since_s: float, until_s: float, tracked: Collection[str]
) -> tuple[str, ...]:
    """Remove caches written in this time.

    Returns what else was written and has other content: files of dependencies, and those of
    `outside_between`. Uses the inode's change time, which cannot be set.
    """
    scan = walk(ws.root, ws.environ)
    look = folder_stat(ws.root, scan)
    # in folders outside snapshots, because they can be made again
    made = {folder.rstrip("/") for folder, why in scan.left_out.items() if why == CACHE}
    built = {
        path: look.ignored[path] for path in look.ignored if not made.isdisjoint(parents(path))
    }
    times_s = {path: stamp[3] / 1e9 for path, stamp in (look.aside | built).items() if stamp}
    moved = {path for path, time_s in times_s.items() if since_s <= time_s <= until_s}
    moved.difference_update(tracked)
    ours = tuple(filterfalse(_is_cache, sorted(moved - built.keys())))
    take_away(ws.root, moved.difference(ours), ws.home / REMOVED)
    holding = Holding.opened(ws.root, ws.installed)
    differ = filterfalse(holding.is_as_held, ours)
    return (*differ, *outside_between(ws, since_s, until_s))


def outside_between(ws: Workspace, since_s: float, until_s: float) -> tuple[str, ...]:
    """Files outside the workspace that its gates use and that were written in this time."""
    scan = walk(ws.root, ws.environ)
    outer = outer_environments(ws.root, {ws.root} | outside.projects(ws.root, scan), [ws.environ])
    linked = _linked(ws.root, folder_stat(ws.root, scan), outer)
    seen = _packages(outer) | stamps(linked) | behind(ws.root, _own_links(scan))
    for path in _settings_outside(ws.root, ws.environ):
        with suppress(OSError):
            seen[str(path)] = stat_of(path.lstat())
    # the change time of a file with several names is not known
    latest_s = {path: max(stamp[2], stamp[3]) / 1e9 for path, stamp in seen.items() if stamp}
    wrote = (path for path, time_s in latest_s.items() if since_s <= time_s <= until_s)
    return tuple(filterfalse(Holding.opened(ws.root, ws.installed).is_as_held, wrote))


def restore_modes(taken: Seal, moved: Moved) -> None:
    """Restore permissions of folders, which are not in snapshots."""
    for path in moved.modes:
        with suppress(OSError):
            (taken.root / path).chmod(taken.look.modes[path])


def _tools(programs: Mapping[str, str], root: Path) -> dict[str, tuple[str, str]]:
    """Path and digest of those that are outside, by name."""
    tools = {}
    for name, where in programs.items():
        if not (where and Path(where).resolve().is_relative_to(root)):
            tools[name] = (where, digest(Path(where)) if where else "")
    return tools


def _watched(
    root: Path,
    environ: Mapping[str, str],
    linked: Iterable[str],
    links: Iterable[str],
    shared: Iterable[str],
) -> dict[str, str]:
    """Outside files that configure tools, are imported, or are linked from the project."""
    code = {path: status for path, status in stamps(linked).items() if is_code(path)}
    statuses = {path: str(status) for path, status in (code | behind(root, links)).items()}
    paths = (*map(str, _settings_outside(root, environ)), *shared)
    return statuses | {path: digest(Path(path)) for path in filter(os.path.lexists, paths)}


def _settings_outside(root: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    """Paths outside, in the home and above the workspace, where tools look for settings."""
    home = Path(environ.get("HOME") or "/nonexistent")
    paths = [*map(home.joinpath, _OF_HOME), *filter(None, [config.user_path(environ)])]
    for folder in _OF_HOME_FOLDERS:
        paths += (home / folder).glob("*")
    packages = home.glob(".local/lib/python*/site-packages/*")
    paths += [path for path in packages if path.suffix in (".pth", ".py")]
    for parent in root.parents[:-1]:
        paths += [parent / name for name in _OF_PARENTS]
    return filterfalse(methodcaller("is_relative_to", root), paths)
