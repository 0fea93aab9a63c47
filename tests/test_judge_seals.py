"""What is sealed before a turn, and what is seen to have moved after it."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from atlas_retry.guard.judge import seals
from atlas_retry.model import Gate, Kind
from atlas_retry.patterns import words
from atlas_retry.settings import GuardSettings, Settings
from atlas_retry.workspace import outside as beyond
from atlas_retry.workspace.discovery import open_workspace
from tests.repositories import git, repository, write

Environ = dict[str, str]
Turn = Callable[[Path], object]
OF_HOME = words("""
    .bashrc .bash_profile .bash_login .bash_aliases .profile .zshrc .zshenv .zprofile .gitconfig
    .npmrc .yarnrc .yarnrc.yml .pypirc .pip/pip.conf .config/git/config .config/git/ignore
    .config/git/attributes .config/pip/pip.conf .config/ruff/ruff.toml .config/ruff/.ruff.toml
    .config/ruff/pyproject.toml .config/mypy/config .mypy.ini .config/flake8 .config/pycodestyle
    .pylintrc .config/pylintrc .config/black .isort.cfg .coveragerc .pdbrc .eslintrc .eslintrc.json
    .prettierrc .golangci.yml .config/go/env .cargo/config.toml .cargo/config .m2/settings.xml
    .mavenrc .gradle/gradle.properties .gradle/init.gradle .shellcheckrc .config/shellcheckrc
    .config/fish/config.fish .config/atlas/config.yaml .ssh/authorized_keys .ssh/config
    .config/pre-commit .envrc .tool-versions .local/bin/pytest bin/ruff .config/git/hooks/pre-commit
    .cargo/bin/cargo .local/lib/python3.11/site-packages/a.pth
    .local/lib/python3.12/site-packages/usercustomize.py
    """)
BESIDE = words("""
    conftest.py pytest.ini tox.ini setup.cfg pyproject.toml ruff.toml .ruff.toml mypy.ini
    .eslintrc.json .eslintrc.js eslint.config.js package.json tsconfig.json .prettierrc
    .editorconfig go.work Cargo.toml .cargo/config.toml sitecustomize.py .shellcheckrc
    .golangci.yml Makefile .npmrc .env .envrc node_modules/.bin
    """)


def settings(*lines: str, **guard: tuple[str, ...]) -> Settings:
    gates = tuple(Gate(name=line, kind=Kind.TEST, run=line) for line in lines)
    return Settings(gates=gates, guard=GuardSettings(**guard))  # type: ignore[arg-type]


def sealed(root: Path, asked: Settings, environ: Environ) -> seals.Seal:
    return seals.seal(root, asked, environ, held=root.parent / "held")


def moved(root: Path, environ: Environ, turn: Turn, *lines: str) -> dict[str, Any]:
    """What a turn moves, by field; what did not move left out."""
    taken = sealed(root, settings(*lines), environ)
    turn(root)
    differences = structs.asdict(seals.compared(taken))
    return {
        name: seen
        for name, seen in differences.items()
        if seen and name not in ("look", "restorable")
    }


def test_a_setting_at_home_is_dated_by_its_change_whatever_time_it_was_given(
    root: Path, environ: Environ
) -> None:
    home = Path(environ["HOME"])
    began_s = time.time() - 1
    for name in (".npmrc", ".bashrc"):
        write(home, name, "x\n")
        os.utime(home / name, (1, 1))
    ws = open_workspace(root, root.parent / "state", environ=environ)
    wrote = (str(home / ".npmrc"), str(home / ".bashrc"))
    assert sorted(seals.outside_between(ws, began_s, time.time() + 1)) == sorted(wrote)
    assert seals.outside_between(ws, 0.0, began_s) == ()


def test_an_idle_turn_changes_nothing(root: Path, environ: Environ) -> None:
    write(root, "node_modules/a/index.js", "1\n")
    write(root, "src/__pycache__/a.pyc", "1\n")
    repository(root / "inner")
    assert moved(root, environ, lambda _: None, "git status") == {}


def outside(seen: dict[str, Any]) -> set[Path]:
    return {Path(change.place, change.path) for change in seen["outside"]}


@pytest.mark.parametrize("was", [None, "before\n"], ids=["added", "changed"])
def test_tool_settings_in_the_home_folder_are_watched(
    root: Path, environ: Environ, was: str | None
) -> None:
    home = Path(environ["HOME"])

    def fill(text: str) -> None:
        for path in OF_HOME:
            write(home, path, text)

    if was:
        fill(was)
    change = moved(root, environ, lambda _: fill("after\n"))
    assert outside(change) == {home / path for path in OF_HOME}
    assert {change.path for change in change["outside"]} == {Path(p).name for p in OF_HOME}


def test_tool_settings_in_parent_folders_are_watched(tmp_path: Path, environ: Environ) -> None:
    root = repository(tmp_path / "near" / "repo")
    above = [folder / path for folder in (tmp_path, root.parent) for path in BESIDE]

    def turn(_: Path) -> None:
        for path in above:
            write(path.parent, path.name, "x\n")

    assert outside(moved(root, environ, turn)) == {*above}


@pytest.mark.parametrize(
    ("before", "turn"),
    [
        (".bashrc", lambda home: (home / ".bashrc").unlink()),
        (".bashrc", lambda home: (home / ".bashrc").chmod(0o600)),
        (".profile", lambda home: (home / ".bashrc").symlink_to(".profile")),
        (".profile", lambda home: (home / ".bashrc").symlink_to("nowhere")),
    ],
    ids=["removed", "mode", "link", "dangling"],
)
def test_a_watched_file_changes_by_mode_removal_and_link(
    root: Path, environ: Environ, before: str, turn: Turn
) -> None:
    home = Path(environ["HOME"])
    write(home, before, "1\n")
    (seen,) = moved(root, environ, lambda _: turn(home))["outside"]
    assert seen.path == ".bashrc"


def test_other_files_in_the_home_folder_are_not_watched(root: Path, environ: Environ) -> None:
    def turn(_: Path) -> None:
        for path in (".local/lib/python3.11/site-packages/a.txt", "notes.txt", ".local/share/x"):
            write(Path(environ["HOME"]), path, "x\n")

    assert moved(root, environ, turn) == {}


def test_a_workspace_inside_the_home_folder_is_not_outside(
    tmp_path: Path, environ: Environ
) -> None:
    environ["HOME"] = str(tmp_path)
    root = repository(tmp_path / "bin")
    assert moved(root, environ, lambda root: write(root, "tool", "x\n")) == {}


INSTALLED = words("""
    .venv/lib/python3.11/site-packages/a.py node_modules/a/index.js vendor/a.rb vendor/deep/er/a.rb
    target/.venv/bin/tool
    """)
CHECKED = words("""
    .eslintcache .mypy_cache/3.11/a.json .ruff_cache/x node_modules/.cache/x node_modules/.vite/x
    tsconfig.tsbuildinfo ignored/.cache/x ignored/.cache/deep/x
    """)
IGNORED = [".env", "ignored/deep/x", "inner/a.txt", "target/deep/x", "target/x"]
MADE = words("""
    src/__pycache__/a.pyc .pytest_cache/v/lastfailed src/a.py
    """)


@pytest.mark.parametrize("turn", ["added", "changed", "removed"])
def test_changes_of_installed_and_ignored_files_are_reported(
    root: Path, environ: Environ, turn: str
) -> None:
    everything = (*INSTALLED, *CHECKED, *IGNORED, *MADE)
    write(root, ".gitignore", ".env\nignored/\ntarget/\n")
    for path in ("inner/other.txt", "ignored/other.txt", "target/.venv/pyvenv.cfg"):
        write(root, path, "1\n")
    git(root / "inner", "init", "-q")
    for path in everything if turn != "added" else ():
        write(root, path, "before\n")

    def act(root: Path) -> None:
        for path in everything:
            (root / path).unlink() if turn == "removed" else write(root, path, "after\n")

    seen = moved(root, environ, act)
    new = {"added": frozenset(INSTALLED)} if turn == "added" else {}
    assert seen == new | {
        "installed": (*sorted(INSTALLED),),
        "unseen": (*sorted(CHECKED), *IGNORED),
    }


@pytest.mark.parametrize("what", ["content", "mode", "inode"])
def test_a_changed_installed_file_is_detected_despite_equal_times(
    root: Path, environ: Environ, what: str
) -> None:
    path = write(root, "node_modules/a.js", "1\n")
    was = path.stat()

    def turn(root: Path) -> None:
        if what == "inode":
            path.rename(root / "other")
            shutil.copy2(root / "other", path)
            (root / "other").unlink()
        elif what == "mode":
            path.chmod(0o755)
        else:
            path.write_text("2\n")
        os.utime(path, ns=(was.st_atime_ns, was.st_mtime_ns))

    same = what == "inode"  # an installer writes what is there again
    assert moved(root, environ, turn) == ({} if same else {"installed": ("node_modules/a.js",)})


def test_a_link_to_a_folder_is_not_followed(root: Path, environ: Environ) -> None:
    write(root.parent, "elsewhere/x.js", "1\n")

    def turn(root: Path) -> None:
        (root / "vendor").mkdir()
        (root / "vendor" / "linked").symlink_to(root.parent / "elsewhere")

    linked = "vendor/linked"
    assert moved(root, environ, turn) == {"installed": (linked,), "added": frozenset({linked})}


SITE = ".venv/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("line", "path", "text"),
    [
        ("true", f"{SITE}/dep.pth", "{lib}\n"),
        ("true", f"{SITE}/dep.pth", "import a_hook\n../../../../../lib\n"),
        ("true", f"{SITE}/dep.egg-link", "{lib}\n."),
        ("true", f"{SITE}/__editable___dep_finder.py", "MAPPING = {{'dep': '{lib}'}}\n"),
        ("true", f"{SITE}/dep-1.dist-info/direct_url.json", '{{"url": "file://{lib}"}}'),
        ("true", "node_modules/dep", None),
        ("true", "node_modules/@me/dep", None),
        ("PYTHONPATH=../lib:. pytest", None, None),
        ("NODE_PATH='{lib}' node check.js", None, None),
    ],
)
def test_code_outside_that_dependencies_point_to_is_watched(
    root: Path, environ: Environ, line: str, path: str | None, text: str | None
) -> None:
    lib = root.parent / "lib"
    write(lib, "dep.py", "1\n")
    write(lib, "node_modules/other/index.js", "1\n")
    if path and text:
        write(root, path, text.format(lib=lib))
    elif path:
        (root / path).parent.mkdir(parents=True)
        (root / path).symlink_to(lib)

    def turn(_: Path) -> None:
        write(lib, "dep.py", "2\n")
        write(lib, "new.py", "2\n")
        write(lib, "notes.log", "2\n")
        write(lib, "node_modules/other/index.js", "2\n")

    seen = moved(root, environ, turn, line.format(lib=lib))
    assert outside(seen) == {lib / "dep.py", lib / "new.py"}


@pytest.mark.parametrize(
    ("link", "to", "is_seen"),
    [
        ("tests/golden", "{shared}", True),
        ("tests/golden", "../../shared", True),
        ("tests/golden.txt", "{shared}/a/want.txt", True),
        ("tests/golden", "../src", False),
        ("tests/golden", "../..", False),
        ("tests/golden", "/dev/null", False),
        ("tests/golden", "golden", False),
        pytest.param("tests/golden", "/" + "n" * 300, False, id="a name that cannot be read"),
        ("out", "{shared}", False),
        ("ignored", "{shared}", False),
    ],
)
def test_what_links_of_the_project_lead_to_outside_is_watched(
    root: Path, environ: Environ, link: str, to: str, is_seen: bool
) -> None:
    shared = root.parent / "shared"
    write(root, ".gitignore", "ignored\n")
    write(root, "src/a.py", "1\n")
    write(shared, "a/want.txt", "48.20\n")
    (root / "tests").mkdir(exist_ok=True)
    (root / link).symlink_to(to.format(shared=shared))

    def turn(_: Path) -> None:
        write(shared, "a/want.txt", "44.83\n")
        write(shared, "__pycache__/a.pyc", "1\n")

    seen = moved(root, environ, turn)
    assert seen == {} or outside(seen) == {shared / "a/want.txt"}
    assert bool(seen) == is_seen


def test_a_file_that_comes_where_a_link_leads_and_a_link_led_elsewhere_are_seen(
    root: Path, environ: Environ
) -> None:
    shared, other = root.parent / "shared", root.parent / "other"
    write(other, "a.txt", "1\n")
    write(shared, "a.txt", "1\n")
    (root.parent / "current").symlink_to(shared)
    (root / "data").symlink_to("../current")

    def led_elsewhere(_: Path) -> None:
        (root.parent / "current").unlink()
        (root.parent / "current").symlink_to(other)

    seen = moved(root, environ, lambda _: write(shared, "new.txt", "1\n"))
    assert seen["added"] == {str(shared / "new.txt")}
    assert outside(moved(root, environ, led_elsewhere)) >= {shared / "a.txt", other / "a.txt"}


def test_no_more_is_looked_at_behind_links_than_a_turn_allows(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        write(root.parent / "shared", f"{number}.txt", "1\n")
        (root / f"link{number}").symlink_to(root.parent / "shared" / f"{number}.txt")
    monkeypatch.setattr(beyond, "_MAX_LINKS", 2)
    monkeypatch.setattr(beyond, "_MAX_FILES", 3)
    assert len(beyond.behind(root, [f"link{number}" for number in range(4)])) == 2
    (root / "all").symlink_to(root.parent / "shared")
    assert len(beyond.behind(root, ["all"])) == 3


@pytest.mark.parametrize("to", ["{root}/src", "{root}/..", "/nowhere", "../../../../../src"])
def test_an_editable_install_of_the_workspace_is_not_outside(
    root: Path, environ: Environ, to: str
) -> None:
    write(root, f"{SITE}/own.pth", to.format(root=root))
    write(root, "src/a.py", "1\n")
    assert moved(root, environ, lambda _: write(root, "src/a.py", "2\n")) == {}


@pytest.mark.parametrize(
    ("path", "seen"), [("src", ("src",)), ("node_modules", ()), ("src/deep", ("src/deep",))]
)
def test_changed_folder_permissions_are_reported_and_restored(
    root: Path, environ: Environ, path: str, seen: tuple[str, ...]
) -> None:
    (root / path).mkdir(exist_ok=True)
    (root / path).chmod(0o755)
    taken = sealed(root, settings(), environ)
    (root / path).chmod(0o700)
    beside = seals.compared(taken)
    assert beside.modes == seen
    seals.restore_modes(taken, beside)
    assert (root / path).stat().st_mode & 0o777 == (0o755 if seen else 0o700)


def test_permissions_of_a_new_folder_are_not_charged(root: Path, environ: Environ) -> None:
    taken = sealed(root, settings(), environ)
    (root / "new").mkdir(mode=0o700)
    beside = seals.compared(taken)
    assert beside.modes == ()
    seals.restore_modes(taken, beside)
    assert (root / "new").stat().st_mode & 0o777 == 0o700


def staged(inner: Path) -> None:
    write(inner, "src/a.py", "a = 1  # staged\n")
    git(inner, "add", "-A")


@pytest.mark.parametrize(
    ("turn", "seen"),
    [
        (lambda inner: git(inner, "commit", "-q", "--allow-empty", "-m", "x"), ("inner/.git",)),
        (lambda inner: git(inner, "config", "core.pager", "x"), ("inner/.git",)),
        (lambda inner: shutil.rmtree(inner / ".git"), ("inner/.git",)),
        (staged, ()),
    ],
    ids=["commit", "config", "gone", "staged"],
)
def test_only_real_changes_of_a_nested_repository_are_reported(
    root: Path, environ: Environ, turn: Turn, seen: tuple[str, ...]
) -> None:
    inner = repository(root / "inner")
    assert moved(root, environ, lambda _: turn(inner)).get("nested", ()) == seen


def test_a_new_nested_repository_is_reported_as_hiding_files(root: Path, environ: Environ) -> None:
    seen = moved(root, environ, lambda root: git(root / "src", "init", "-q"))
    assert seen["hiding"] == ("src/.git",)


def test_a_gates_executable_changes_by_place_or_content(
    tmp_path: Path, root: Path, environ: Environ
) -> None:
    tools, first = tmp_path / "tools", tmp_path / "first"
    environ["PATH"] = f"{first}:{tools}:{environ['PATH']}"
    for name in ("checker", "prober", "idle", "closer"):
        write(tools, name, "#!/bin/sh\n", 0o755)

    def turn(_: Path) -> None:
        write(tools, "checker", "#!/bin/sh\nexit 0\n", 0o755)
        write(first, "prober", "#!/bin/sh\n", 0o755)
        write(tools, "idle", "#!/bin/sh\nexit 0\n", 0o755)
        (tools / "closer").unlink()
        write(first, "absent", "#!/bin/sh\n", 0o755)

    lines = ("X=1 checker a && (prober b | sort); closer", "absent || ./idle 'idle'", "git 'broken")
    seen = {tool.name: tool for tool in moved(root, environ, turn, *lines)["tools"]}
    assert {name: tool.path for name, tool in seen.items()} == {
        "checker": str(tools / "checker"),
        "prober": str(first / "prober"),
        "closer": "",
        "absent": str(first / "absent"),
    }


@pytest.mark.parametrize(
    "line",
    ["a && t", "a || t", "a; t", "a | t", "( t )", "a & t", "V=1 t", "(a); t", "a '' > t && t"],
)
def test_every_command_of_a_command_line_is_sealed(
    tmp_path: Path, root: Path, environ: Environ, line: str
) -> None:
    tools = tmp_path / "tools"
    environ["PATH"] = str(tools)
    write(tools, "t", "#!/bin/sh\n", 0o755)
    taken = sealed(root, settings(line), environ | {"PATH": f"{tools}:/usr/bin:/bin"})
    assert taken.tools["t"][0] == str(tools / "t")


def test_a_program_inside_the_workspace_is_not_sealed_as_tool(root: Path, environ: Environ) -> None:
    write(root, "bin/ours", "#!/bin/sh\n", 0o755)
    environ["PATH"] = f"{root / 'bin'}:{environ['PATH']}"
    assert "ours" not in sealed(root, settings("ours"), environ).tools


def test_only_new_bytecode_and_test_caches_are_removed(root: Path, environ: Environ) -> None:
    there = write(root, "src/__pycache__/old.pyc", "1\n")
    stale = write(root, "src/__pycache__/stale.pyc", "1\n")
    taken = sealed(root, settings(), environ)
    came = [write(root, path, "2\n") for path in ("src/__pycache__/new.pyc", ".pytest_cache/x")]
    kept = [write(root, path, "2\n") for path in ("node_modules/x.js", ".mypy_cache/x", "src/n.py")]
    stale.write_text("22\n")
    seals.clean(taken)
    assert [path.exists() for path in (there, *kept)] == [True] * 4
    assert [path.exists() for path in (stale, *came)] == [False] * 3


def test_a_seal_holds_the_configuration(root: Path, environ: Environ) -> None:
    asked = structs.replace(
        settings("true", protect=("a",), allow=("Makefile", "**/Makefile")),
        sources=(str(root / "atlas.yaml"), "/elsewhere/config.yaml"),
    )
    taken = sealed(root, asked, environ)
    assert (taken.root, taken.gates, taken.guard.protect) == (root, asked.gates, ("a",))
    assert (taken.guard.allow, taken.sources) == (("Makefile", "**/Makefile"), ("atlas.yaml",))
    assert taken.environ == environ
    assert "HEAD" in taken.facts


def test_installed_files_of_two_folders_differ_by_content_except_caches(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    for root, text in ((old, "1\n"), (new, "2\n")):
        for path in ("node_modules/a.js", "node_modules/.cache/x", "vendor/__pycache__/a.pyc"):
            write(root, path, text)
        write(root, "src/a.js", text)
        write(root, "node_modules/same.js", "1\n")
    write(new, "vendor/new.js", "1\n")
    seen = seals.installed_differences(old, new)
    assert seen == ("node_modules/a.js", "vendor/new.js")


def test_a_huge_file_is_compared_by_size_and_modification_time(
    root: Path, environ: Environ
) -> None:
    path = Path(environ["HOME"], ".npmrc")
    with path.open("wb") as file:
        file.truncate((64 << 20) + 1)
    taken = sealed(root, settings(), environ)
    assert str(path.stat().st_mtime_ns) in taken.watched[str(path)]


def outer(root: Path) -> tuple[Path, Path]:
    """A virtual environment beside the workspace, with one package; and its packages."""
    place = root.parent / "outer"
    packages = place / "lib/python3.11/site-packages"
    write(place, "pyvenv.cfg", "home = /usr/bin\n")
    write(place, "bin/checks", "#!/bin/sh\n")
    (place / "bin/checks").chmod(0o755)
    write(packages, "dep/__init__.py", "1\n")
    write(packages, "virtualenv/.cache/data.txt", "1\n")
    return place, packages


@pytest.mark.parametrize("by", ["path", "relative path", "variable", "program", "link"])
def test_packages_of_an_environment_outside_that_gates_run_in_are_watched(
    root: Path, environ: Environ, by: str
) -> None:
    place, packages = outer(root)
    (root.parent / "tools").mkdir()
    (root.parent / "tools/checks").symlink_to(place / "bin/checks")
    variables = {
        "path": {"PATH": f"{place}/bin:{environ['PATH']}"},
        "relative path": {"PATH": f"../outer/bin/:{environ['PATH']}"},
        "variable": {"VIRTUAL_ENV": str(place)},
        "link": {"PATH": f"{root.parent}/tools:{environ['PATH']}"},
    }
    line = {"program": "A=1 ../outer/bin/checks --all", "link": "checks"}.get(by, "true")
    own = {"lib/python3.11/site-packages/fast.pth"}
    own |= {
        f"lib/python3.11/site-packages/{name}" for name in ("dep/__init__.py", "usercustomize.py")
    }
    own |= {"lib/python3.11/site-packages/virtualenv/.cache/data.txt"}

    def turn(_: Path) -> None:
        for path in own:
            write(place, path, "other\n")
        write(packages, "dep/__pycache__/__init__.cpython-311.pyc", "2\n")
        write(place, "share/notes.txt", "2\n")
        write(place, "pyvenv.cfg", "home = /elsewhere\n")

    seen = moved(root, environ | variables.get(by, {}), turn, line)
    assert {*seen["installed"]} == {f"{place}/{path}" for path in (*own, "pyvenv.cfg")}


def test_an_environment_outside_to_which_nothing_leads_is_not_watched(
    root: Path, environ: Environ
) -> None:
    place, packages = outer(root)
    plain = root.parent / "plain"
    write(plain, "bin/x", "1\n")
    write(plain, "lib/python3.11/site-packages/dep.py", "1\n")

    def turn(_: Path) -> None:
        write(packages, "dep/__init__.py", "2\n")
        write(plain, "lib/python3.11/site-packages/dep.py", "2\n")

    seen = moved(root, environ | {"PATH": f"{plain}/bin:{environ['PATH']}"}, turn)
    assert seen == {"installed": (f"{plain}/lib/python3.11/site-packages/dep.py",)}
    assert place.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may enter everything")
def test_a_folder_of_path_that_may_not_be_entered_is_no_environment(
    root: Path, environ: Environ
) -> None:
    place, _ = outer(root)
    place.chmod(0o400)
    environments = beyond.outer_environments(root, {root}, [environ | {"PATH": f"{place}/bin"}])
    place.chmod(0o700)
    assert environments == ()


def test_code_that_is_linked_into_an_environment_outside_is_watched(
    root: Path, environ: Environ
) -> None:
    place, packages = outer(root)
    lib = root.parent / "lib"
    write(lib, "dep.py", "1\n")
    write(packages, "dep.pth", f"{lib}\n{root}\n")
    seen = moved(root, environ | {"VIRTUAL_ENV": str(place)}, lambda _: write(lib, "dep.py", "2\n"))
    assert outside(seen) == {lib / "dep.py"}


def test_a_package_that_gets_another_name_has_not_moved(root: Path, environ: Environ) -> None:
    place, packages = outer(root)
    path = packages / "dep/__init__.py"
    os.link(path, root.parent / "store")
    turn = lambda _: os.link(path, root.parent / "other")  # noqa: E731
    assert moved(root, environ | {"VIRTUAL_ENV": str(place)}, turn) == {}


def test_a_dependency_that_gains_or_loses_other_names_has_not_changed(
    root: Path, environ: Environ, tmp_path: Path
) -> None:
    file = write(root, "node_modules/a/index.js", "1\n")
    store, other = tmp_path / "store.js", tmp_path / "other.js"
    os.link(file, store)
    assert moved(root, environ, lambda _: os.link(store, other)) == {}

    def lose(_: Path) -> None:
        store.unlink()
        other.unlink()

    assert moved(root, environ, lose) == {}


@pytest.mark.parametrize("names", [1, 2])
def test_a_changed_dependency_with_several_names_has_changed(
    root: Path, environ: Environ, tmp_path: Path, names: int
) -> None:
    file = write(root, "node_modules/a/index.js", "1\n")
    if names > 1:
        os.link(file, tmp_path / "store.js")
    paths = {"installed": ("node_modules/a/index.js",)}
    assert moved(root, environ, lambda _: file.write_text("22\n")) == paths

    def swap(_: Path) -> None:
        os.link(file, tmp_path / "new.js")
        file.unlink()
        shutil.copy2(tmp_path / "new.js", file)

    assert moved(root, environ, swap) == {}
