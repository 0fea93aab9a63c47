"""What is printed as the next step works where it is printed; another workspace is not touched."""

import ast
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.core import TyperGroup
from typer.main import get_command

from atlas_retry.agents.claude_code import binary
from atlas_retry.cli.app import app
from atlas_retry.cli.command_line import MODULES, register
from atlas_retry.text.own_environment import installing
from tests.projects import CALC, FIXED, WORSE, Ended, Project, atlas, git, make_project

ROOT = Path(__file__).parents[1]
NAMES = "|".join(sorted({name for names in MODULES.values() for name in names.split()}))
WORDS = (
    r"(?:add|allow|check|list|note|pause|remove|report|schema|show|start|stop|take)\b",
    r"\.(?= |$)|X\b|[A-Z]+\b|\d[\w-]*",
    r"--?[a-z][\w=-]*(?: [\w:/-]+(?= --|$|[,;:)]))?",
)
"""Subcommands, values, and options with a value: what follows them is prose."""
COMMAND = re.compile(rf"\batlas (?:{NAMES})\b(?: (?:{'|'.join(WORDS)}))*")


def proposed() -> Iterator[tuple[str, str]]:
    """Each command line of atlas in a text of the package, and its file; X stands for a value."""
    for path in sorted((ROOT / "atlas_retry").rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        nodes = [*ast.walk(tree)]
        documented = (ast.Module, ast.ClassDef, ast.FunctionDef)
        docs = {
            ast.get_docstring(node, clean=False) for node in nodes if isinstance(node, documented)
        }
        within = {
            id(part) for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values
        }
        for node in nodes:
            for line in _texts(node) if id(node) not in within else ():
                if line not in docs:
                    yield from ((command, path.name) for command in _commands(line))


def _commands(text: str) -> Iterator[str]:
    """A line that begins with a command, as it is copied whole; else the commands in it."""
    for line in text.splitlines():
        is_message = re.search(r" (?:needs|cannot) |X$", line)
        if COMMAND.match(line) and not is_message:
            yield re.split(" [<>] ", line)[0]
        else:
            yield from COMMAND.findall(line)


def _texts(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        yield node.value
    if isinstance(node, ast.JoinedStr):
        yield "".join(str(v.value) if isinstance(v, ast.Constant) else "X" for v in node.values)


@pytest.mark.parametrize(("line", "file"), sorted(set(proposed())))
def test_a_command_that_atlas_names_is_one_that_it_takes(
    line: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATLAS_FLEET_STORE", "X")
    register()
    words = shlex.split(line)[1:]
    command, path = get_command(app), "atlas"
    while isinstance(command, TyperGroup) and words and words[0] in command.commands:
        path = words.pop(0)
        command = command.commands[path]
    assert path != "atlas", f"{file}: {line}"
    if words:  # else it is only named
        words = [__file__ if word == "MANIFEST" else word for word in words]
        needs_value = (
            words[-1] in {"--path", "--patch", "--report", "--sign", "--why"} and path != "schema"
        )
        command.make_context(path, [*words, *["X=X"] * needs_value])  # or an error of usage


def steps(text: str, label: str) -> list[str]:
    """The commands below a label."""
    lines = iter(text.splitlines())
    found: list[str] = []
    for line in lines:
        if line == f"{label}:":
            found += [step.strip() for step in _indented(lines)]
    return found


def _indented(lines: object) -> list[str]:
    taken = []
    for line in lines:  # type: ignore[attr-defined]
        if not line.startswith("  "):
            break
        taken.append(line)
    return taken


def typed(project: Project, command: str, cwd: Path | None = None) -> Ended:
    program, *words = shlex.split(command)
    assert program == "atlas"
    return atlas(project, *words, cwd=cwd)


@pytest.mark.parametrize("words", [("diff", "RUN"), ("deliver", "RUN")])
def test_a_run_of_another_workspace_is_refused_with_the_command_that_works(
    words: tuple[str, ...], project: Project, tmp_path: Path
) -> None:
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    run = atlas(project, "log").out.split()[0]
    (tmp_path / "other").mkdir()
    other = make_project(tmp_path / "other", project.environ)
    line = [run if word == "RUN" else word for word in words]
    also = ("--patch", "fix.patch") if words[0] == "deliver" else ()
    refused = atlas(other, *line, *also)
    assert refused.code == 2
    assert f"run {run} is of another workspace, {project.root}" in refused.err
    assert (project.root / "calc.py").read_text() == FIXED
    (command,) = steps(refused.err, "next")
    assert typed(other, command.replace("FILE", str(tmp_path / "fix.patch"))).code == 0


def test_content_that_the_last_commit_has_is_no_edit(project: Project) -> None:
    (project.root / "calc.py").write_text(WORSE)
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    run = atlas(project, "log").out.split()[0]
    git(project.root, "checkout", "-q", ".", environ=project.environ)
    assert (project.root / "calc.py").read_text() == CALC
    assert atlas(project, "pick", run, "1").code == 0
    assert (project.root / "calc.py").read_text() == FIXED


def test_an_edit_of_a_person_still_prevents_a_pick(project: Project) -> None:
    project.attempt(1, {"calc.py": FIXED})
    assert atlas(project, "retry", ".", "--ai-fix").code == 0
    run = atlas(project, "log").out.split()[0]
    assert atlas(project, "undo").code == 0
    (project.root / "calc.py").write_text("# mine\n")
    assert atlas(project, "pick", run, "1").code == 1
    assert (project.root / "calc.py").read_text() == "# mine\n"


def test_a_command_works_in_another_directory(project: Project, tmp_path: Path) -> None:
    ended = atlas(
        project, "-C", str(project.root.parent), "-C", "project", "validate", cwd=tmp_path / "home"
    )
    assert ended.code == 1
    assert "test_add" in ended.out


def test_hooks_without_gates_are_warned_of(project: Project) -> None:
    assert "no gates" not in atlas(project, "hook", "install").err
    (project.root / ".atlas" / "config.yaml").unlink()
    assert "no gates" in atlas(project, "hook", "install").err


@pytest.mark.parametrize(
    ("mark", "start"),
    [
        ("pipx_metadata.json", "pipx inject atlas-retry claude-agent-sdk"),
        ("uv-receipt.toml", "uv pip install --python "),
    ],
)
def test_packages_are_added_by_the_tool_that_made_the_environment(
    mark: str, start: str, tmp_path: Path
) -> None:
    (tmp_path / mark).touch()
    assert installing("claude-agent-sdk", prefix=str(tmp_path)).startswith(start)


def test_a_login_names_a_cli_that_is_not_on_the_path(tmp_path: Path) -> None:
    assert binary.log_in("/opt/claude", {"PATH": str(tmp_path)}).startswith("/opt/claude /login")
    (tmp_path / "claude").symlink_to("/bin/true")
    on_path = binary.log_in(str(tmp_path / "claude"), {"PATH": str(tmp_path)})
    assert on_path.startswith("claude /login")
