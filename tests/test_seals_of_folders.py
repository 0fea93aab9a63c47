"""What is sealed for a gate of a folder: what its command resolves to there."""

from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path

import pytest

from atlas_retry.guard.judge import seals
from atlas_retry.model import Gate, Kind
from atlas_retry.settings import Settings
from tests.repositories import write

Environ = dict[str, str]
FOLDER, UP = "services/api", "../../.."
GO_SUM = "example.com/dep v1.0.0 h1:abc=\n"


def seal(
    root: Path, environ: Environ, line: str, cwd: str, env: Mapping[str, str] = {}
) -> seals.Seal:
    (root / FOLDER).mkdir(parents=True, exist_ok=True)
    gate = Gate(name="test", kind=Kind.TEST, run=line, cwd=cwd, env=tuple(env.items()))
    return seals.seal(root, Settings(gates=(gate,)), environ, held=root.parent / "held")


def made(place: Path) -> Path:
    """A virtual environment with a program."""
    write(place, "pyvenv.cfg", "home = /usr/bin\n")
    write(place, "bin/check", "#!/bin/sh\n")
    (place / "bin/check").chmod(0o755)
    return place


@pytest.mark.parametrize(
    ("line", "cwd", "env"),
    [
        (f"{UP}/outer/bin/check", FOLDER, {}),
        (f"cd {FOLDER} && {UP}/outer/bin/check", ".", {}),
        (f"(cd services; cd api; {UP}/outer/bin/check)", ".", {}),
        ("true", FOLDER, {"UV_PROJECT_ENVIRONMENT": f"{UP}/outer"}),
        ("check", FOLDER, {"PATH": f"{UP}/outer/bin:/bin"}),
        ("true", ".", {"VIRTUAL_ENV": "../outer"}),
    ],
)
def test_the_environment_of_a_gate_is_watched(
    root: Path, environ: Environ, line: str, cwd: str, env: dict[str, str]
) -> None:
    place = made(root.parent / "outer")
    assert f"{place}" in seal(root, environ, line, cwd, env).outer


@pytest.mark.parametrize("line", ["true", f"cd {FOLDER} && true", f"make -C {FOLDER}"])
@pytest.mark.parametrize("manager", ["poetry", "pipenv", "hatch"])
def test_the_environment_that_a_manager_keeps_for_a_folder_is_watched(
    root: Path, environ: Environ, manager: str, line: str
) -> None:
    home, folder = Path(environ["HOME"]), root / FOLDER
    own = urlsafe_b64encode(sha256(bytes(folder)).digest()).decode()[:8]
    places = {
        "poetry": f".cache/pypoetry/virtualenvs/api-{own}-py3.11",
        "pipenv": ".local/share/virtualenvs/api-x",
        "hatch": f".local/share/hatch/env/virtual/api/{own}/api",
    }
    place = made(home / places[manager])
    write(place, ".project", f"{folder}\n")
    write(root, f"{FOLDER}/pyproject.toml", "")
    cwd = FOLDER if line == "true" else "."
    assert f"{place}" in seal(root, environ, line, cwd).outer


@pytest.mark.parametrize(
    ("line", "env"),
    [
        (f"PYTHONPATH={UP}/shared python -m unittest", {}),
        ("python -m unittest", {"PYTHONPATH": f"{UP}/shared"}),
        ("go test ./...", {}),
    ],
)
def test_code_that_a_gate_imports_from_outside_is_watched(
    root: Path, environ: Environ, line: str, env: dict[str, str]
) -> None:
    shared = root.parent / "shared"
    module = Path(environ["HOME"], "go/pkg/mod/example.com/dep@v1.0.0")
    for place in (shared, module):
        write(place, "dep.py", "1\n")
    if line.startswith("go"):
        write(root, f"{FOLDER}/go.sum", GO_SUM)
    taken = seal(root, environ, line, FOLDER, env)
    assert f"{module if line.startswith('go') else shared}" in taken.linked


@pytest.mark.parametrize(
    ("line", "cwd", "env"),
    [
        ("./tools/check", FOLDER, {}),
        (f"cd {FOLDER} && ./tools/check", ".", {}),
        ("check", FOLDER, {"PATH": "tools"}),
    ],
)
def test_an_ignored_program_of_a_gate_is_held(
    root: Path, environ: Environ, line: str, cwd: str, env: dict[str, str]
) -> None:
    path = f"{FOLDER}/tools/check"
    write(root, ".gitignore", "tools/\n")
    write(root, path, "#!/bin/sh\nexit 1\n")
    (root / path).chmod(0o755)
    taken = seal(root, environ, line, cwd, env)
    write(root, path, "#!/bin/sh\nexit 0\n")
    assert seals.compared(taken).installed == (path,)
    assert seals.put_back(taken, [path], root.parent / "removed") == ()
    assert (root / path).read_text() == "#!/bin/sh\nexit 1\n"


@pytest.mark.parametrize(
    ("line", "cwd", "env"),
    [
        (f"{UP}/tools/check", FOLDER, {}),
        ("../tools/check", ".", {}),
        ("check", ".", {"PATH": "../tools"}),
    ],
)
def test_a_program_of_a_gate_outside_is_compared_by_content(
    root: Path, environ: Environ, line: str, cwd: str, env: dict[str, str]
) -> None:
    tool = root.parent / "tools/check"
    write(tool.parent, tool.name, "#!/bin/sh\nexit 1\n")
    tool.chmod(0o755)
    taken = seal(root, environ, line, cwd, env)
    tool.write_text("#!/bin/sh\nexit 0\n")
    (moved,) = seals.compared(taken).tools
    assert moved.path == f"{tool}"
    assert seals.put_back(taken, [moved.path], root.parent / "removed") == ()
    assert tool.read_text() == "#!/bin/sh\nexit 1\n"
