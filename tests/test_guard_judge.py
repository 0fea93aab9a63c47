"""The guard's shell, on real folders, repositories, snapshots and processes."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from atlas_retry import judge, workspace
from atlas_retry.errors import UsageError
from atlas_retry.judge.limit import limit
from atlas_retry.model import Gate, Kind, Violation
from atlas_retry.settings import GuardSettings, Settings
from tests.guardcases import failed, rules_of

TEST = f"{sys.executable} -m pytest -q -p no:cacheprovider"
FILES = {
    "plain.py": "def double(n):\n    return n + 2\n",
    "tests/conftest.py": "import sys\n\nsys.path.insert(0, '.')\n",
    "tests/test_code.py": "from code_of import double\n\n\ndef test_double():\n    assert double(3) == 6\n",
    "code_of.py": "def double(n):\n    return n + 2\n",
}
Git = Callable[..., None]


def write(root: Path, files: Mapping[str, str]) -> Path:
    for path, content in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, encoding="utf-8")
    return root


@pytest.fixture
def repository(tmp_path: Path, environ: dict[str, str]) -> Path:
    root = write(tmp_path / "work", FILES)
    who = ("-c", "user.name=dev", "-c", "user.email=dev@example.org")
    for argv in (("init", "-q", "-b", "main"), ("add", "-A"), (*who, "commit", "-q", "-m", "x")):
        subprocess.run(("git", *argv), cwd=root, env=environ, check=True, timeout=30)
    return root


def ask(root: Path, base: str, environ: Mapping[str, str], **more: object) -> tuple[Violation, ...]:
    asked = judge.Asked(workspace=root, base=base, failing=(failed(TEST),), **more)  # type: ignore[arg-type]
    return judge.judge_change(asked, environ)


def test_a_change_is_judged_against_a_revision(repository: Path, environ: dict[str, str]) -> None:
    (repository / "tests/test_code.py").unlink()
    assert rules_of(ask(repository, "HEAD", environ)) == {"test-removed"}


def test_a_repair_is_clean(repository: Path, environ: dict[str, str]) -> None:
    write(repository, {"code_of.py": "def double(n):\n    return n * 2\n"})
    assert ask(repository, "HEAD", environ) == ()


def test_two_folders_need_no_git(tmp_path: Path, environ: dict[str, str]) -> None:
    before, after = write(tmp_path / "b", FILES), write(tmp_path / "a", FILES)
    write(after, {"pytest.ini": "[pytest]\naddopts = -k nothing\n"})
    assert rules_of(ask(after, str(before), environ)) == {"configuration-loosened"}


def test_places_outside_are_compared(tmp_path: Path, environ: dict[str, str]) -> None:
    before, after = write(tmp_path / "b", FILES), write(tmp_path / "a", FILES)
    homes = tmp_path / "h1", write(tmp_path / "h2", {".bashrc": "x", ".cache/a": "x"})
    found = ask(after, str(before), environ, outside=(homes,))
    assert [v.path for v in found] == [str(homes[1] / ".bashrc")]


def test_git_state_of_two_repositories_is_compared(
    repository: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    after = tmp_path / "after"
    subprocess.run(("cp", "-a", repository, after), check=True, timeout=30)
    argv = ("git", "config", "core.hooksPath", "/dev/null")
    subprocess.run(argv, cwd=after, env=environ, check=True, timeout=30)
    assert rules_of(ask(after, str(repository), environ)) == {"git-state"}


def test_an_executable_that_git_ignores_is_looked_at(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    files = FILES | {"node_modules/.bin/jest": "real"}
    before, after = write(tmp_path / "b", files), write(tmp_path / "a", files)
    write(after, {"node_modules/.bin/jest": "fake"})
    assert rules_of(ask(after, str(before), environ)) == {"tool-shadowed"}


def test_a_folder_that_is_not_there_is_a_usage_error(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    with pytest.raises(UsageError):
        ask(tmp_path / "none", "HEAD", environ)


def test_nothing_of_the_project_runs_without_a_replay(
    repository: Path, environ: dict[str, str]
) -> None:
    write(repository, {"tests/conftest.py": "open('ran', 'w').close()\n"})
    ask(repository, "HEAD", environ)
    assert not (repository / "ran").exists()


DATA = {"tests/data/six.json": "[6]\n", "tests/test_data.py": "def test_data():\n    pass\n"}


def test_the_original_tests_excuse_data_that_changed_beside_a_repair(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    before, after = write(tmp_path / "b", FILES | DATA), write(tmp_path / "a", FILES | DATA)
    write(
        after, {"code_of.py": "def double(n):\n    return n * 2\n", "tests/data/six.json": "[7]\n"}
    )
    assert rules_of(ask(after, str(before), environ)) == {"golden-data-changed"}
    assert ask(after, str(before), environ, with_replay=True) == ()


def test_the_replay_says_when_the_green_depends_on_the_changed_tests(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    before, after = write(tmp_path / "b", FILES), write(tmp_path / "a", FILES)
    cheat = FILES["tests/test_code.py"].replace("== 6", "== 5")
    write(after, {"tests/test_code.py": cheat})
    (found,) = ask(after, str(before), environ, with_replay=True)
    assert found.rule == "expectation-changed"
    assert found.detail.endswith("With the original tests the gate still fails.")


def test_a_replay_that_cannot_run_decides_nothing(tmp_path: Path, environ: dict[str, str]) -> None:
    before, after = write(tmp_path / "b", FILES | DATA), write(tmp_path / "a", FILES | DATA)
    write(after, {"tests/data/six.json": "[7]\n"})
    asked = judge.Asked(
        workspace=after, base=str(before), failing=(failed("no-such-tool"),), with_replay=True
    )
    assert rules_of(judge.judge_change(asked, environ)) == {"golden-data-changed"}


def sealed(root: Path, environ: dict[str, str]) -> tuple[workspace.Workspace, judge.Seal]:
    git = workspace.open_workspace(root, Path(environ["ATLAS_HOME"]), environ=environ)
    gates = (Gate(name="test", kind=Kind.TEST, run="mytool -q && pytest -q"),)
    settings = Settings(gates=gates, guard=GuardSettings(protect=("secret/",)))
    return git, judge.seal(git, settings, environ)


def attempt(root: Path, environ: dict[str, str], files: Mapping[str, str]) -> tuple[
    tuple[Violation, ...], tuple[str, ...] | None
]:  # fmt: skip
    git, taken = sealed(root, environ)
    before = workspace.snapshot(git).id
    write(root, files)
    after = workspace.snapshot(git).id
    return judge.judge_attempt(git, before, after, seal=taken, failing=(failed(TEST),))


def test_an_attempt_that_repairs_is_clean(repository: Path, environ: dict[str, str]) -> None:
    fix = {"code_of.py": "def double(n):\n    return n * 2\n"}
    assert attempt(repository, environ, fix) == ((), ())


def test_an_attempt_names_what_to_put_back(repository: Path, environ: dict[str, str]) -> None:
    both = {"code_of.py": "def double(n):\n    return n * 2\n", "ruff.toml": "select = []\n"}
    violations, put_back = attempt(repository, environ, both)
    assert rules_of(violations) == {"configuration-loosened"}
    assert put_back == ("ruff.toml",)


def test_an_attempt_may_not_touch_the_home(repository: Path, environ: dict[str, str]) -> None:
    git, taken = sealed(repository, environ)
    snapshot = workspace.snapshot(git).id
    write(Path(environ["HOME"]), {".config/ruff/ruff.toml": "select = []\n"})
    violations, put_back = judge.judge_attempt(git, snapshot, snapshot, seal=taken, failing=())
    assert rules_of(violations) == {"outside-workspace"}
    assert put_back is None


def test_a_tool_that_appears_before_another_is_noticed(
    repository: Path, tmp_path: Path, environ: dict[str, str]
) -> None:
    first = tmp_path / "first"
    environ["PATH"] = f"{first}:{environ['PATH']}"
    git, taken = sealed(repository, environ)
    snapshot = workspace.snapshot(git).id
    write(first, {"mytool": "#!/bin/sh\n"})
    (first / "mytool").chmod(0o755)
    violations, _ = judge.judge_attempt(git, snapshot, snapshot, seal=taken, failing=())
    assert rules_of(violations) == {"tool-replaced"}


def test_the_seal_tells_what_may_not_be_edited(repository: Path, environ: dict[str, str]) -> None:
    _, taken = sealed(repository, environ)
    assert "secret/" in taken.protected


@pytest.fixture
def with_submodule(repository: Path, environ: dict[str, str]) -> Path:
    """A checkout that names a submodule and does not hold its files."""
    module = f"160000,{'1' * 40},vendor/kit"
    who = ("-c", "user.name=dev", "-c", "user.email=dev@example.org")
    for argv in (
        ("update-index", "--add", "--cacheinfo", module),
        (*who, "commit", "-q", "-m", "y"),
    ):
        subprocess.run(("git", *argv), cwd=repository, env=environ, check=True, timeout=30)
    return repository


def test_a_checkout_without_its_submodules_changed_none(
    with_submodule: Path, environ: dict[str, str]
) -> None:
    assert ask(with_submodule, "HEAD", environ) == ()


def test_a_submodule_that_moved_is_told(with_submodule: Path, environ: dict[str, str]) -> None:
    moved = ("update-index", "--cacheinfo", f"160000,{'2' * 40},vendor/kit")
    subprocess.run(("git", *moved), cwd=with_submodule, env=environ, check=True, timeout=30)
    assert rules_of(ask(with_submodule, "HEAD", environ)) == {"submodule-changed"}


def test_the_time_for_judging_ends() -> None:
    assert not limit()()
    assert limit(busy_s=-1.0)()
    assert limit(whole_s=-1.0)()
