"""What `atlas validate` may import: every module here is paid for at every call."""

import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from atlas_retry.cli import calls
from atlas_retry.cli.checks import validate
from atlas_retry.cli.runs import retry
from tests.commands import run_atlas
from tests.projects import Project, make_project

LEFT_OUT = """
import sys
from types import SimpleNamespace
from atlas_retry.cli import imports
if "newer" in sys.argv:
    imports.SimpleNamespace = lambda **members: SimpleNamespace()
imports.settle()
import decimal, ipaddress, locale, textwrap, urllib.parse, uuid
from pathlib import Path
import msgspec
class Value(msgspec.Struct):
    number: int
assert msgspec.json.schema(Value)["$defs"]["Value"]["required"] == ["number"]
assert msgspec.inspect.type_info(int) == msgspec.inspect.IntType()
assert uuid.UUID(int=1) and decimal.Decimal(1) == 1
assert urllib.parse.urlsplit("a://b").scheme == "a" and Path("/a b").as_uri() == "file:///a%20b"
assert ipaddress.ip_address("::1").is_loopback
assert locale.getlocale() and textwrap.dedent(" a") == "a"
assert isinstance(sys.modules["ipaddress"].__file__, str)
"""
THIRD_PARTY = {"atlas_retry", "msgspec", "typing_extensions"}
"""Roots outside the standard library; Typer reads only lines that did not run before."""

OURS = {
    "atlas_retry.cli",
    "atlas_retry.config",
    "atlas_retry.digests",
    "atlas_retry.reports.screen.console",
    "atlas_retry.gates.course",
    "atlas_retry.errors",
    "atlas_retry.events",
    "atlas_retry.gates.files",
    "atlas_retry.gates.lines",
    "atlas_retry.gates.plan",
    "atlas_retry.gates.results",
    "atlas_retry.gates.validation",
    "atlas_retry.gates.logs",
    "atlas_retry.gates.memory",
    "atlas_retry.model",
    "atlas_retry.patterns",
    "atlas_retry.reading",
    "atlas_retry.process",
    "atlas_retry.text.file_names",
    "atlas_retry.text.redaction",
    "atlas_retry.settings",
    "atlas_retry.run.open",
    "atlas_retry.state_dir",
    "atlas_retry.text.units",
    "atlas_retry.reports.problems",
    "atlas_retry.reports.screen.event_lines",
    "atlas_retry.reports.screen.gate_lines",
    "atlas_retry.reports.screen.lines",
    "atlas_retry.workspace",
}

ROOMS = {"gates", "reports", "run", "text"}
"""Of these, not every module is allowed; empty packages cost next to nothing."""

DEAR = {
    *("asyncio", "difflib", "email", "gettext", "http", "inspect", "multiprocessing", "sqlite3"),
    *("_hashlib", "shutil", "tempfile", "unittest", "xml"),
    *("decimal", "ipaddress", "locale", "platform", "textwrap", "urllib", "uuid", "zlib"),
}
"""Of the standard library; no validation needs them."""


@pytest.fixture
def project(tmp_path: Path, environ: dict[str, str]) -> Project:
    made = make_project(tmp_path, environ)
    made.configure(validation={"lint": ["true"]})
    return made


def imported(project: Project) -> set[str]:
    """Modules of the second call: the first one leaves its configuration remembered."""
    for _ in range(2):
        done = subprocess.run(
            (sys.executable, "-X", "importtime", "-m", "atlas_retry", "validate"),
            cwd=project.root,
            env=project.environ,
            check=True,
            capture_output=True,
            text=True,
        )
    return named(done.stderr)


def named(text: str) -> set[str]:
    return set(re.findall(r"^import time:.*\| +(\S+)$", text, re.MULTILINE))


def allowed_as(name: str) -> str:
    """A module of the rooms whose modules are named one by one, else its package."""
    parts = name.split(".")
    in_room = parts[1] in ROOMS
    return name if in_room else ".".join(parts[:2])


def bare() -> set[str]:
    """What this interpreter imports by itself: `sitecustomize` and the like are the machine's."""
    command = (sys.executable, "-X", "importtime", "-c", "import copy, platform")
    done = subprocess.run(command, env={}, check=True, capture_output=True, text=True)
    return {name.partition(".")[0] for name in named(done.stderr)}


def test_validate_imports_only_what_it_needs(project: Project) -> None:
    modules = imported(project)
    roots = {name.partition(".")[0] for name in modules}
    ours = {allowed_as(name) for name in modules if name.startswith("atlas_retry.")}
    packages = {f"atlas_retry.{room}" for room in ROOMS} | {"atlas_retry.reports.screen"}
    machine = bare()
    assert roots - machine - set(sys.stdlib_module_names) <= THIRD_PARTY
    assert ours - packages <= OURS | {"atlas_retry.__main__"}
    assert not roots & DEAR


@pytest.mark.parametrize("msgspec", ["known", "newer"])
def test_what_the_start_leaves_out_is_there_when_it_is_used(msgspec: str) -> None:
    subprocess.run((sys.executable, "-c", LEFT_OUT, msgspec), check=True)


@pytest.fixture
def called(project: Project, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs a command line in the project, and returns its exit code."""
    monkeypatch.setenv("ATLAS_HOME", project.environ["ATLAS_HOME"])

    def call(*words: str) -> int:
        return run_atlas(words, cwd=project.root, environ=project.environ).returncode

    return call


@pytest.mark.parametrize("words", [["validate", "-q"], ["validate", "--only", "lint", "-j2", "."]])
def test_the_same_words_lead_to_the_same_call(called: Callable[..., int], words: list[str]) -> None:
    assert called(*words) == called(*words) == 0
    again = calls.recalled(words)
    assert isinstance(again, partial)
    assert again.func is validate
    given = {"path": Path(), "quiet": "-q" in words}
    given |= {"only": ["lint"], "jobs": 2} if "--only" in words else {"only": None, "jobs": None}
    assert {name: again.keywords[name] for name in given} == given
    assert calls.recalled([*words, "--fix"]) is None


def test_a_run_with_the_same_words_needs_no_typer(called: Callable[..., int]) -> None:
    words = ["retry", "--max-attempts", "2", "-q"]
    assert called(*words) == called(*words) == 0
    again = calls.recalled(words)
    assert isinstance(again, partial)
    assert again.func is retry
    assert (again.keywords["max_attempts"], again.keywords["quiet"]) == (2, True)


def test_calls_of_another_program_are_forgotten(
    called: Callable[..., int], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert called("validate") == 0
    assert calls.recalled(["validate"])
    monkeypatch.setattr(calls, "__version__", "another")
    assert calls.recalled(["validate"]) is None


def test_refused_lines_and_calls_of_other_commands_are_not_kept(
    called: Callable[..., int],
) -> None:
    for words in (["validate", "--nothing"], ["validate", "--only", "none"], ["status"]):
        called(*words)
        assert calls.recalled(words) is None


def test_importing_the_api_imports_no_running_code() -> None:
    code = "import sys; from atlas_retry import retry, validate; print(*sys.modules)"
    done = subprocess.run((sys.executable, "-c", code), check=True, capture_output=True, text=True)
    ours = {name for name in done.stdout.split() if name.startswith("atlas_retry.")}
    assert ours == {f"atlas_retry.{name}" for name in ("api", "events", "model", "patterns")}
