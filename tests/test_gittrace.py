"""What is read from the traces that git writes, whatever else stands in them."""

from pathlib import Path

import pytest

from atlas_retry.workspace import gitmoves
from atlas_retry.workspace.gittrace import (
    ZERO,
    AgentsGit,
    GitCommand,
    RefUpdate,
    clear,
    moves,
    read_trace,
    variables,
)
from tests.repositories import git

A, B = "a" * 40, "b" * 40
X, REMOTE = "refs/heads/x", "refs/remotes/o/x"


def did(*commands: str, updates: tuple[RefUpdate, ...] = ()) -> AgentsGit:
    made = (
        GitCommand(verb=line.split()[0], arguments=("git", *line.split()), worktree="/w")
        for line in commands
    )
    return AgentsGit(commands=tuple(made), updates=updates)


def moving(name: str, new: str, why: str = "") -> AgentsGit:
    return did(updates=(RefUpdate(name=name, old=A, new=new, why=why),))


def test_garbage_and_missing_traces_say_nothing(tmp_path: Path) -> None:
    assert read_trace(tmp_path) == AgentsGit()
    garbage = b'\xff\0{"event":"start"}\n{"event":"start","sid":1,"argv":5}\n  0: x -> y (F=0x1'
    for path in variables(tmp_path).values():
        Path(path).write_bytes(garbage)
    assert read_trace(tmp_path) == AgentsGit()
    clear(tmp_path)
    assert [*tmp_path.iterdir()] == []


def test_real_git_names_its_commands_and_the_refs_it_moves(root: Path, tmp_path: Path) -> None:
    folder = tmp_path / "trace"
    folder.mkdir()
    for line in ("tag one", "branch -m main trunk", "tag -d one", "switch -qc other"):
        git(root, *line.split(), stdin=b"", **variables(folder))
    seen = read_trace(folder)
    assert [one.verb for one in seen.commands] == ["tag", "branch", "tag", "switch"]
    assert {one.worktree for one in seen.commands} == {str(root)}
    head = git(root, "rev-parse", "HEAD").decode().strip()
    moved = [(one.name, one.new) for one in seen.updates if one.name.startswith("refs/")]
    assert moved == [
        ("refs/tags/one", head),
        ("refs/heads/main", ZERO),
        ("refs/heads/trunk", None),
        ("refs/tags/one", ZERO),
        ("refs/heads/other", head),
    ]


@pytest.mark.parametrize(
    ("name", "before", "now", "seen", "who"),
    [
        (X, None, B, did(), "others"),
        (X, A, B, moving(X, B), "agents"),
        (X, A, B, moving(X, A), "others"),
        (X, A, None, moving(X, ZERO), "agents"),
        ("HEAD", "ref: refs/heads/main", "ref: refs/heads/side", did("switch side"), "agents"),
        ("HEAD", "ref: refs/heads/main", "ref: refs/heads/side", did("switch -"), "agents"),
        ("HEAD", "ref: refs/heads/main", "ref: refs/heads/side", did("checkout a.py"), "others"),
        (REMOTE, A, B, moving(REMOTE, B, "fetch"), ""),
        (REMOTE, A, B, moving(REMOTE, B, "update by push"), "agents"),
        ("config:user.name", None, "x", did("config --get user.name"), "others"),
        ("config:user.name", None, "x", did("config user.name"), "others"),
        ("config:user.name", None, "x", did("config user.name x"), "agents"),
        ("config:user.name", "x", None, did("config --unset user.name"), "agents"),
        ("config:alias.co", None, "x", did(), "runs"),
        ("config:alias.co", None, "x", did("config alias.co x"), "agents"),
        ("config:remote.o.url", None, "x", did("remote -v"), "others"),
        ("config:remote.o.url", None, "x", did("remote add o x"), "agents"),
        ("config:branch.b.merge", None, "x", did("branch --show-current"), "others"),
        ("user:user.name", None, "x", did("config --global user.name x"), "agents"),
        ("user:user.name", None, "x", did("config user.name x"), "others"),
        ("user:core.pager", None, "x", did(), "runs"),
        ("hooks/pre-commit", None, "x", did("commit"), "runs"),
        ("info/exclude", "x", "y", did(), "runs"),
        ("info/refs", "x", "y", did("gc"), ""),
        ("state:MERGE_HEAD", None, A, did("stash list", "rebase x"), "others"),
        ("state:MERGE_HEAD", None, A, did("merge x"), "agents"),
        ("state:MERGE_HEAD", A, None, did("commit"), "agents"),
        ("index-flags:a.py", None, "skip-worktree", did("update-index"), "agents"),
        ("index", A, B, did("add"), ""),
    ],
)  # fmt: skip
def test_a_fact_is_the_agents_only_where_its_git_made_it(
    name: str, before: str | None, now: str | None, seen: AgentsGit, who: str
) -> None:
    was, there = ({} if value is None else {name: value} for value in (before, now))
    moved = moves(was, there, seen, Path("/w"))
    found = {"agents": moved.agents, "runs": moved.runs, "others": moved.others}
    assert [key for key, names in found.items() if names == (name,)] == ([who] if who else [])


def test_a_tag_that_the_agent_fetched_and_then_moved_is_as_it_was_fetched() -> None:
    name = "refs/tags/v1"
    fetched = RefUpdate(name=name, old=ZERO, new=A, why="fetch: storing tag")
    moved = RefUpdate(name=name, old=A, new=B)
    did = AgentsGit(updates=(fetched, moved))
    assert gitmoves._before_the_agent(name, B, did, {}) == A
