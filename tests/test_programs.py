"""What the tests stand on: their PATH, what they need of a machine, and that nothing stays open."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.commands import LEFT_OPEN, run_forked
from tests.needs import ABILITIES, INSTALL, unavailable
from tests.processes import ENV
from tests.programs import USUAL, path_of

ROOT = Path(__file__).parent.parent


def forget_a_file() -> None:
    open(os.devnull)  # noqa: PTH123, SIM115 - it is the fault


def test_a_call_that_leaves_a_file_open_fails(tmp_path: Path) -> None:
    done = run_forked(forget_a_file, cwd=tmp_path, environ=ENV)
    assert done.returncode == LEFT_OPEN
    assert f"unclosed file <_io.TextIOWrapper name='{os.devnull}'" in done.stderr


@pytest.mark.parametrize("named", [(), ("gh",)], ids=["usual", "named"])
def test_a_program_of_the_machine_is_on_the_path_only_if_named(
    named: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for program in ("gh", "sh"):
        (tmp_path / program).touch(0o755)
    monkeypatch.setenv("ATLAS_TEST_MACHINE", str(tmp_path))
    seen = {link.name: str(link.readlink()) for link in Path(path_of(*USUAL, *named)).iterdir()}
    there = {name: str(tmp_path / name) for name in ("sh", *named)}
    assert {name: seen[name] for name in seen if "python" not in name} == there


@pytest.mark.parametrize("name", [*INSTALL, *ABILITIES])
def test_what_is_lacking_is_named_with_what_brings_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLAS_TEST_MACHINE", "/nonexistent")
    if name in INSTALL:
        assert unavailable(name) == f"{name} is not on PATH: {INSTALL[name]}"
    elif why := unavailable(name):
        assert ": run the tests " in why


@pytest.mark.parametrize(("allowed", "code"), [(0, 1), (1, 0)])
def test_more_skipped_tests_than_allowed_are_a_failure(
    allowed: int, code: int, tmp_path: Path
) -> None:
    (tmp_path / "test_it.py").write_text("import pytest\n\ndef test_it():\n    pytest.skip('no')\n")
    options = ("-p", "tests.conftest", "-p", "no:cacheprovider", f"--max-skips={allowed}")
    done = subprocess.run(
        (sys.executable, "-m", "pytest", *options, str(tmp_path)),
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == code, done.stdout
    assert ("1 tests are skipped, and at most 0 may be" in done.stdout) is bool(code)
