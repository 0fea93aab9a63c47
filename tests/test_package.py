"""What is handed out: the wheel's content, what the metadata says, the picture of the demo."""

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)),
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8"},
        check=True,
        capture_output=True,
        timeout=LIMIT_S,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    tops = {name.partition("/")[0] for name in wheel.namelist()}
    assert {re.sub(r"-.*", "", top) for top in tops} == {"atlas_retry"}
    assert not [name for name in wheel.namelist() if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_holds_every_file_of_the_package(wheel: zipfile.ZipFile) -> None:
    tracked = subprocess.run(
        ("git", "ls-files", "-z", "atlas_retry"), cwd=ROOT, check=True, capture_output=True
    ).stdout.decode()
    files = {name for name in tracked.split("\0") if name and (ROOT / name).exists()}
    assert files <= set(wheel.namelist())
    assert {"atlas_retry/py.typed", "atlas_retry/cli/demo_project/project/pyproject.toml"} <= files


def test_the_metadata_promises_what_ci_tries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [
        match[1] for c in project["classifiers"] if (match := re.search(r":: (3\.\d+)$", c))
    ]
    assert project["requires-python"] == f">={versions[0]}"
    assert project["scripts"] == {"atlas": "atlas_retry.cli:main"}


def test_every_dependency_has_a_lower_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = [name for group in project["optional-dependencies"].values() for name in group]
    for dependency in (*project["dependencies"], *optional):
        assert re.search(r">=|==|^atlas-retry\[", dependency), dependency
