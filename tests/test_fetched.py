"""Modules that Go and Cargo keep for all projects are watched like installed dependencies."""

from pathlib import Path

import pytest

from atlas_retry.workspace.outside import fetched_folders

GO_SUM = (
    "example.com/Text/dep v1.0.0 h1:aa=\n"
    "example.com/Text/dep v1.0.0/go.mod h1:bb=\n"
    "example.com/only/mod v2.0.0/go.mod h1:cc=\n"
)
CARGO_LOCK = """version = 4
[[package]]
name = "app"
version = "0.1.0"
[[package]]
name = "memchr"
version = "2.7.4"
source = "registry+https://github.com/rust-lang/crates.io-index"
"""


@pytest.mark.parametrize("folder", ["", "service/"])
@pytest.mark.parametrize(
    ("environ", "cache"),
    [
        ({"HOME": "/h"}, "/h/go/pkg/mod"),
        ({"HOME": "/h", "GOPATH": "/g:/other"}, "/g/pkg/mod"),
        ({"HOME": "/h", "GOPATH": "/g", "GOMODCACHE": "/m"}, "/m"),
        ({"HOME": "/h", "GOPATH": "/g", "GOENV": "GOENV"}, "/written"),
    ],
)
def test_modules_of_go_are_where_go_keeps_them(
    tmp_path: Path, folder: str, environ: dict[str, str], cache: str
) -> None:
    lock = tmp_path / folder / "go.sum"
    lock.parent.mkdir(exist_ok=True)
    lock.write_text(GO_SUM)
    written = tmp_path / "env"
    written.write_text("GOMODCACHE=/written\nGOFLAGS=-tags=x\n")
    environ = environ | ({"GOENV": str(written)} if "GOENV" in environ else {})
    assert [*fetched_folders(tmp_path, environ)] == [f"{cache}/example.com/!text/dep@v1.0.0"]


@pytest.mark.parametrize("name", ["HOME", "CARGO_HOME"])
def test_crates_are_where_cargo_unpacks_them(tmp_path: Path, name: str) -> None:
    home, root = tmp_path / "home", tmp_path / "root"
    registry = home / (".cargo" if name == "HOME" else "") / "registry/src/index.crates.io-1"
    registry.mkdir(parents=True)
    root.mkdir()
    (root / "Cargo.lock").write_text(CARGO_LOCK)
    found = [*fetched_folders(root, {name: str(home)})]
    assert found == [f"{registry}/app-0.1.0", f"{registry}/memchr-2.7.4"]


ODD = (b"\xff = [\n", b"package = 3\n", b"[package]\nname = 'a'\n", b"package = [1]\n")


@pytest.mark.parametrize("content", ODD)
@pytest.mark.parametrize("name", ["go.sum", "Cargo.lock"])
def test_an_odd_lock_file_names_nothing(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / ".cargo/registry/src/index").mkdir(parents=True)
    (tmp_path / name).write_bytes(content)
    assert not [*fetched_folders(tmp_path, {"HOME": str(tmp_path)})]
