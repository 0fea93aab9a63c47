"""The plugin and the marketplace file of this repository, installed by path in the real CLI."""

import json
import subprocess
from pathlib import Path

import pytest
from msgspec.structs import replace

from atlas_retry.cli.hook import hosts, installing
from tests.hooks import claude
from tests.messages_server import call, edit, say, serving
from tests.projects import FIXED, Project
from tests.test_agents_claude_code import real
from tests.tools import with_tools

ROOT = Path(__file__).parents[1]
COMMANDS = {"atlas:validate", "atlas:fix", "atlas:why"}


def test_its_hooks_are_those_that_install_writes() -> None:
    written = json.loads(installing.merged("", "atlas", hosts.HOSTS["claude"], source=""))
    assert json.loads((ROOT / "plugin" / "hooks" / "hooks.json").read_text()) == written


@pytest.mark.claude
def test_claude_code_installs_it_by_path_and_is_held_to_the_gates(project: Project) -> None:
    test = {"run": "python3 -S -m unittest -q", "name": "sum"}
    project.configure(validation={"test": [test]}, retry={"flake_reruns": 0})
    project.commit()
    project = replace(project, environ=with_tools(project.environ))
    settings = {"CLAUDE_CONFIG_DIR": str(project.root.parent / "claude")}
    for words in (("marketplace", "add", str(ROOT)), ("install", "atlas@atlas")):
        done = subprocess.run(
            (real(), "plugin", *words),
            cwd=project.root,
            env=project.environ | settings,
            check=False,
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    file = project.root / "calc.py"
    fix = (call("Read", file_path=str(file)), edit(file, "a - b", "a + b"))
    note = call("Write", file_path=str(project.root / "notes.txt"), content="x")
    with serving(note, say("done"), *fix, say("now it is")) as server:
        stream = claude(project, server, "make it green")
    (started,) = (event for event in stream if event.get("subtype") == "init")
    assert {*map(str, started["slash_commands"])} >= COMMANDS  # type: ignore[call-overload]
    assert "atlas:atlas" in started["skills"]  # type: ignore[operator]
    assert "gates: red, 1 problem" in server.requests[2].user_text
    assert stream[-1]["result"] == "now it is"
    assert file.read_text() == FIXED
