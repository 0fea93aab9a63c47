"""What is installed: held before a turn, compared and put back after it."""

from pathlib import Path

import pytest

from atlas_retry.workspace.files import stat_of
from atlas_retry.workspace.installed import (
    MAX_FILE_BYTES,
    Holding,
    Stats,
    hold,
    own_installation,
)

BIG = "node_modules/esbuild/bin/esbuild"
SMALL = "node_modules/dep/index.js"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    written(root, BIG, b"x" * (MAX_FILE_BYTES + 1))
    written(root, SMALL, b"y")
    return root


def written(root: Path, path: str, content: bytes) -> None:
    """A file made anew, as installers do."""
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    fresh = target.with_name("fresh")
    fresh.write_bytes(content)
    fresh.replace(target)


def seen(root: Path, *paths: str) -> Stats:
    return {path: stat_of((root / path).lstat()) for path in paths}


def held(root: Path, *paths: str) -> tuple[Holding, Stats]:
    was = seen(root, *(paths or (BIG, SMALL)))
    return hold(root, root.parent / "held", was, ()), was


@pytest.mark.parametrize("path", [BIG, SMALL])
def test_a_file_rewritten_with_the_same_bytes_is_the_same(root: Path, path: str) -> None:
    holding, was = held(root)
    written(root, path, (root / path).read_bytes())
    assert seen(root, path) != {path: was[path]}
    assert holding.is_same(path, was[path])


@pytest.mark.parametrize("path", [BIG, SMALL])
def test_a_file_of_the_same_size_with_another_byte_differs(root: Path, path: str) -> None:
    holding, was = held(root)
    written(root, path, b"z" + (root / path).read_bytes()[1:])
    assert not holding.is_same(path, was[path])


def test_a_big_file_is_known_and_cannot_be_put_back(root: Path) -> None:
    holding, was = held(root)
    assert not holding.holds(BIG, was[BIG])
    assert not holding.put_back(BIG)
    assert holding.holds(SMALL, was[SMALL])


def test_what_is_big_is_read_once(root: Path) -> None:
    held(root)
    was = seen(root, BIG)
    # whoever reads it would notice: it cannot be read any more, and its stat data are as before
    contents = root.parent / "held/contents"
    before = contents.stat().st_size
    holding, _ = held(root)
    assert holding.files[BIG].digest
    assert contents.stat().st_size == before == 1
    assert seen(root, BIG) == was


def test_a_big_file_becomes_held_when_a_gate_starts_it(root: Path) -> None:
    held(root)
    was = seen(root, BIG, SMALL)
    holding = hold(root, root.parent / "held", was, (BIG,))
    written(root, BIG, b"other")
    assert holding.put_back(BIG)
    assert (root / BIG).stat().st_size == MAX_FILE_BYTES + 1


SITE = ".venv/lib/python3.11/site-packages"
OWN, PLUGIN = f"{SITE}/sums-1.0.dist-info", f"{SITE}/strict-1.0.dist-info"
ENTRIES = b"[pytest11]\nstrict = strict\n"


@pytest.fixture
def environment(root: Path) -> Path:
    """An environment with the project itself, another package and a start-up file."""
    url = f'{{"url": "file://{root}", "dir_info": {{"editable": true}}}}'.encode()
    for path, content in {
        f"{OWN}/direct_url.json": url,
        f"{OWN}/entry_points.txt": b"[console_scripts]\nsums = calc:main\n",
        f"{OWN}/METADATA": b"Version: 1.0\n",
        f"{SITE}/sums.pth": b"%b\n" % bytes(root),
        f"{PLUGIN}/METADATA": b"Version: 1.0\n",
        f"{PLUGIN}/entry_points.txt": ENTRIES,
        f"{SITE}/strict.pth": b"import strict; strict.install()\n",
        f"{SITE}/lib.pth": b"/elsewhere/lib\n",
    }.items():
        written(root, path, content)
    return root


def own(root: Path, changes: dict[str, bytes | None]) -> frozenset[str]:
    """Those of the changes that are taken for the project's own installation."""
    files = [str(path.relative_to(root)) for path in (root / ".venv").rglob("*") if path.is_file()]
    holding, _ = held(root, *files)
    for path, content in changes.items():
        if content is None:
            (root / path).unlink()
        else:
            written(root, path, content)
    return own_installation(root, changes, holding)


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_the_project_installed_again_is_its_own_installation(
    environment: Path, version: str
) -> None:
    names = ("direct_url.json", "entry_points.txt", "METADATA")
    content = {name: (environment / OWN / name).read_bytes() for name in names}
    changes: dict[str, bytes | None] = {}
    if version != "1.0":
        changes = dict.fromkeys((f"{OWN}/{name}" for name in names), None)
    folder = f"{SITE}/sums-{version}.dist-info"
    changes |= {f"{folder}/{name}": text for name, text in content.items()}
    changes |= {f"{folder}/METADATA": b"Version: x\n", f"{SITE}/sums.pth": None}
    changes |= {f"{SITE}/_sums.pth": b"%b/src\n" % bytes(environment)}
    assert own(environment, changes) == {*changes}


TRAPS: dict[str, dict[str, bytes | None]] = {
    "a plugin's start-up file removed": {f"{SITE}/strict.pth": None},
    "a plugin's start-up file emptied": {f"{SITE}/strict.pth": b""},
    "the project led elsewhere": {f"{SITE}/sums.pth": b"/elsewhere/lib\n"},
    "words of two lines mixed": {f"{SITE}/new.pth": b"import strict;\n"},
    "a plugin called the project": {f"{PLUGIN}/entry_points.txt": None},
    "a plugin called the project, and changed": {f"{PLUGIN}/METADATA": b"Version: 2\n"},
    "the project's own plugin dropped": {f"{OWN}/entry_points.txt": None},
    "the project given another's plugin": {f"{OWN}/entry_points.txt": ENTRIES},
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_is_not_the_projects_own_installation(environment: Path, name: str) -> None:
    url = (environment / OWN / "direct_url.json").read_bytes()
    beside: dict[str, bytes | None] = {f"{OWN}/METADATA": b"Version: 1.0.1\n"}
    if "called" in name:
        beside |= {f"{PLUGIN}/direct_url.json": url}
    trap = TRAPS[name]
    assert own(environment, beside | trap).isdisjoint(trap)
