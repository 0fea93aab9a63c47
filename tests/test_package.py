"""What is handed out: the wheel's content, what the metadata says, the picture of the demo."""

import re
import subprocess
import sys
import tomllib
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from atlas_retry import __version__

ROOT = Path(__file__).parents[1]
LIMIT_S = 120.0


HOME = "https://example.org/owner/atlas"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """As a release builds it."""
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        (sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)),
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "HOME": str(folder), "LANG": "C.UTF-8", "PROJECT_URL": HOME},
        check=True,
        capture_output=True,
        timeout=LIMIT_S,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_the_wheel_holds_only_the_package(wheel: zipfile.ZipFile) -> None:
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


def test_the_metadata_lists_the_versions_that_ci_tests() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions = [
        match[1] for c in project["classifiers"] if (match := re.search(r":: (3\.\d+)$", c))
    ]
    assert project["requires-python"] == f">={versions[0]}"


def test_both_commands_are_installed(wheel: zipfile.ZipFile) -> None:
    (entry,) = [name for name in wheel.namelist() if name.endswith("/entry_points.txt")]
    # `uvx atlas-retry` runs the command that is named as the package
    for command in (b"atlas", b"atlas-retry"):
        assert command + b" = atlas_retry.cli:main" in wheel.read(entry)


def test_every_dependency_has_a_lower_bound() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = [name for group in project["optional-dependencies"].values() for name in group]
    for dependency in (*project["dependencies"], *optional):
        assert re.search(r">=|==|^atlas-retry\[", dependency), dependency


def test_links_in_the_metadata_are_absolute_and_versioned(wheel: zipfile.ZipFile) -> None:
    (name,) = [name for name in wheel.namelist() if name.endswith("/METADATA")]
    metadata = message_from_bytes(wheel.read(name))
    tag = f"v{__version__}"
    assert f"Source, {HOME}" in metadata.get_all("Project-URL", [])
    links = re.findall(r"!?\]\(([^)]+)\)", str(metadata.get_payload()))
    assert f"{HOME}/raw/{tag}/docs/demo.svg" in links
    assert f"{HOME}/blob/{tag}/SECURITY.md" in links
    assert not [link for link in links if not link.startswith(("https://", "#"))]


def test_recipes_install_the_current_version() -> None:
    texts = [(ROOT / name).read_text("utf-8") for name in ("docs/ci.md", "README.md")]
    named = {version for text in texts for version in re.findall(r"atlas-retry\S*==([\d.]+)", text)}
    assert named <= {__version__}
