"""What happened to git's own state during an agent's turn, and how what the agent did is undone.

What has no trace of its git processes is someone else's, or unknown: it stays. What git would run
is restored, whoever changed it, because gates start git.
"""

import os
import shlex
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import product
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.errors import WorkspaceError
from atlas_retry.model import GitFacts
from atlas_retry.reading import read_file
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git
from atlas_retry.workspace.gitfacts import git_facts, settings
from atlas_retry.workspace.gittrace import (
    CONFIG,
    FILES,
    STASH,
    STATE,
    SWITCHES,
    SYMBOLIC,
    USER,
    ZERO,
    AgentsGit,
    GitMoves,
    clear,
    is_value,
    moves,
    read_trace,
)
from atlas_retry.workspace.snapshot.git_state import place_of, put_back_file, set_refs
from atlas_retry.workspace.snapshot.store import read_state

_BEFORE = "git-before.json"
_NO_KEY = 5
"""Exit code of `git config` for a key that is not there."""


class GitBefore(msgspec.Struct, frozen=True, kw_only=True):
    """State of git before a turn, kept in the attempt's folder."""

    facts: dict[str, str]
    snapshot: str
    log_bytes: int = 0
    """Length of HEAD's log."""


def note_before(ws: Workspace, folder: Path, facts: GitFacts, snapshot_id: str) -> None:
    """Keep what `undo_agents` needs in the attempt's folder, also for after a kill."""
    size = 0
    with suppress(OSError):
        size = (ws.git_dir / "logs" / "HEAD").stat().st_size
    known = {**facts, **_of_the_user(ws)}
    before = GitBefore(facts=known, snapshot=snapshot_id, log_bytes=size)
    content = msgspec.json.encode(before)
    state_dir.replace_file(folder / _BEFORE, content)


def _of_the_user(ws: Workspace) -> dict[str, str]:
    """The user's own settings of git, for all repositories, as `user:KEY`."""
    with suppress(GitError):
        of_user = settings(ws.root, ws.environ, of=("global",))
        return {f"{USER}{key}": value for key, value in of_user.items()}
    return {}


def users_files(environ: Mapping[str, str]) -> frozenset[str]:
    """Absolute paths of the files that hold the user's own settings of git."""
    home = Path(environ.get("HOME", ""))
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    return frozenset(map(str, (home / ".gitconfig", config / "git/config")))


def noted(folder: Path) -> GitBefore | None:
    """What `note_before` kept; None if there is nothing that can be read."""
    with suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / _BEFORE).read_bytes(), type=GitBefore)
    return None


def has_worked(root: Path, was: GitFacts, did: AgentsGit, environ: Mapping[str, str]) -> bool:
    """Whether more has moved in a repository inside than what only others have done."""
    if not (root / ".git").exists():
        return True
    now = git_facts(root, environ=environ)
    moved = moves(was, now, did, root)
    return "unreadable" in now or bool(moved.agents or moved.runs)


class GitTurn(Struct, frozen=True, kw_only=True):
    """What happened to git's state in a turn."""

    before: GitBefore
    now: GitFacts
    did: AgentsGit
    moves: GitMoves

    @property
    def agents(self) -> GitFacts:
        """The facts before the turn, with what the agent made of them."""
        known = self.before.facts
        facts = {name: known[name] for name in known if not name.startswith(USER)}
        for name in self.moves.agents:
            facts.pop(name, None)
            if name in self.now:
                facts[name] = self.now[name]
        return facts

    def with_agents(self, name: str) -> "GitTurn":
        """The turn with one more fact that the agent changed, and that is restored already."""
        moved = replace(self.moves, agents=(*self.moves.agents, name))
        return replace(self, moves=moved, now={**self.now, name: "moved"})


def repair(ws: Workspace, folder: Path) -> tuple[str, ...]:
    """Restore HEAD and git's configuration where git could not even start with what is there.

    Returns the names of the facts. Raises WorkspaceError.
    """
    before, done = noted(folder), list[str]()
    if before is None or not ws.git_dir.is_dir():
        return ()
    head, was = ws.git_dir / "HEAD", before.facts.get("HEAD")
    if was and not (head.is_file() and is_value(os.fsdecode(read_file(head)).strip())):
        state_dir.replace_file(head, os.fsencode(f"{was}\n"))
        done.append("HEAD")
    if "unreadable" in git_facts(ws.root, environ=ws.environ):
        held, files = read_state(ws, before.snapshot), ("common/config", "own/config.worktree")
        done += [name.partition("/")[2] for name in files if put_back_file(ws, held, name)]
    return tuple(done)


def turned(ws: Workspace, folder: Path) -> GitTurn | None:
    """What happened since `note_before` in the attempt's folder; None if that is unknown."""
    before = noted(folder)
    if before is None:
        return None
    did, now = read_trace(folder), dict(git_facts(ws.root, environ=ws.environ))
    now |= _of_the_user(ws)
    if "unreadable" in now:
        moved = GitMoves(agents=("unreadable",))
    else:
        moved = _named_here(ws, moves(before.facts, now, did, ws.root), now)
    return GitTurn(before=before, now=now, did=did, moves=moved)


def _named_here(ws: Workspace, moved: GitMoves, now: GitFacts) -> GitMoves:
    """The moves without those of branches that other worktrees have checked out."""
    listed = ""
    with suppress(WorkspaceError):  # what is wrong with another worktree is not of this one
        asked = ("worktree", "list", "--porcelain")
        listed = os.fsdecode(git(*asked, cwd=ws.root, env=ws.environ))
    checked_out = {line[7:] for line in listed.splitlines() if line.startswith("branch ")}
    theirs = checked_out - {now.get("HEAD", "").removeprefix(SYMBOLIC)}
    theirs |= {f"{CONFIG}branch.{name.removeprefix('refs/heads/')}" for name in theirs}
    others = (one for one in moved.others if not one.startswith("worktrees/"))
    return replace(
        moved,
        others=tuple(one for one in others if theirs.isdisjoint((one, one.rpartition(".")[0]))),
    )


def undo(ws: Workspace, turn: GitTurn, folder: Path) -> tuple[str, ...]:
    """Undo what the agent's git did in a turn, and restore what git would run.

    Objects stay in the repository. Returns a line for each thing undone, with the command that gets
    it again. `folder` gets copies of files. Raises WorkspaceError.
    """
    wanted = {*turn.moves.agents, *turn.moves.runs}
    if "unreadable" in wanted:
        return ()
    done = (
        *_undo_head(ws, turn, wanted),
        *_undo_refs(ws, turn, wanted),
        *_undo_config(ws, turn, wanted),
        *_undo_files(ws, turn.before, wanted, folder),
    )
    (folder / _BEFORE).unlink(missing_ok=True)  # what moves from here on is not of the turn
    clear(folder)
    return done


def _undo_head(ws: Workspace, turn: GitTurn, wanted: set[str]) -> Iterator[str]:
    was = turn.before.facts.get("HEAD")
    if "HEAD" not in wanted or was is None:
        return
    there = turn.now.get("HEAD", "")
    if is_value(there) and not any(turn.did.ran(SWITCHES, ws.root)):
        # someone else detached it, and the agent only committed there
        was = _before_the_agent("HEAD", there, turn.did, turn.before.facts)
    set_refs(ws, {"HEAD": was})
    name = there.removeprefix(SYMBOLIC).removeprefix("refs/heads/")
    yield f"HEAD is restored; to go there again: git switch --detach {shlex.quote(name)}"


def _undo_refs(ws: Workspace, turn: GitTurn, wanted: set[str]) -> Iterator[str]:
    if "stash" in wanted or STASH in wanted:
        yield from _undo_stash(ws, turn)
    refs = {name for name in wanted if name.startswith("refs/")}
    for name in sorted(refs - {STASH}):
        value = turn.now.get(name, ZERO)
        target = _before_the_agent(name, value, turn.did, turn.before.facts)
        if not is_value(value):
            (ws.common_dir / name).unlink(missing_ok=True)
            target = turn.before.facts.get(name, ZERO)
        if target != value:
            set_refs(ws, {name: target})
            yield _kept(name, value)


def _before_the_agent(name: str, value: str, did: AgentsGit, before: GitFacts) -> str:
    """The value of a ref before the agent's last updates of it in a row."""
    made: dict[str, str] = {}
    for update in did.updates:
        new = value if update.new is None else update.new
        if update.name == name and not update.is_derived and update.old != new:
            made[new] = before.get(name, ZERO) if update.old is None else update.old
    seen = set[str]()
    while value in made and value not in seen:
        seen.add(value)
        value = made[value]
    return value


def _kept(name: str, oid: str) -> str:
    kind, _, short = name.removeprefix("refs/").partition("/")
    if oid == ZERO or oid.startswith(SYMBOLIC) or not is_value(oid):
        return f"{name} is restored"
    take = {
        "heads": f"git branch {shlex.quote(f'agent/{short}')} {oid[:12]}",
        "tags": f"git tag {shlex.quote(short)} {oid[:12]}",
    }.get(kind, f"git update-ref {shlex.quote(name)} {oid[:12]}")
    return f"{name} is restored; what the agent left there is kept: {take}"


def _undo_stash(ws: Workspace, turn: GitTurn) -> Iterator[str]:
    """Take the agent's own entries from the list, and give back those that it dropped.

    Entries that someone else added meanwhile stay on top.
    """
    own = {one.new for one in turn.did.updates if one.name == STASH} - {ZERO, None}
    log = ws.common_dir / "logs" / "refs" / "stash"
    was = _entries(turn.before.facts.get("stash", ""))
    there = _entries(os.fsdecode(read_file(log)) if log.is_file() else "")
    new = [one for one in there if one not in was]
    theirs = [one for one in new if one[0] not in own]
    wanted = [*was, *theirs]
    if wanted == there:
        return
    for entry in there:
        if entry not in wanted:
            yield f"the agent's stash is kept: git stash apply {entry[0][:12]}"
    if not wanted:
        git("update-ref", "-d", STASH, cwd=ws.root, env=ws.environ)
        log.unlink(missing_ok=True)
        return
    git("update-ref", "--create-reflog", STASH, wanted[-1][0], cwd=ws.root, env=ws.environ)
    olds = (ZERO, *(oid for oid, _ in wanted))
    lines = (f"{old} {oid} {rest}\n" for old, (oid, rest) in zip(olds, wanted, strict=False))
    state_dir.replace_file(log, os.fsencode("".join(lines)))
    if dropped := [one for one in was if one not in there]:
        yield f"{len(dropped)} stashes that the agent dropped are restored: git stash list"


def _entries(log: str) -> list[tuple[str, str]]:
    """Id and the rest of each line of a log, without the id before, which dropping changes."""
    parts = (line.split(" ", 2) for line in log.splitlines())
    return [(part[1], part[2]) for part in parts if len(part) > 2]  # noqa: PLR2004 - as split


def _undo_config(ws: Workspace, turn: GitTurn, wanted: set[str]) -> Iterator[str]:
    """Set single keys of the repository's configuration; all others stay."""
    for name in sorted(one for one in wanted if one.startswith((CONFIG, USER))):
        key = name.partition(":")[2]
        scopes = ("--global",) if name.startswith(USER) else ("--local", "--worktree")
        _set(ws, key, _values(turn.before.facts, name), scopes)
        scope = "--global " if name.startswith(USER) else ""
        adding = f"git config {scope}--add {shlex.quote(key)} "
        again = [adding + shlex.quote(value) for value in _values(turn.now, name)]
        command = " && ".join(again) or f"git config {scope}--unset-all {shlex.quote(key)}"
        yield f"{key} of git's configuration is restored; to set it again: {command}"


def _values(facts: GitFacts, name: str) -> list[str]:
    return facts[name].split("\n") if name in facts else []


def _set(ws: Workspace, key: str, values: Collection[str], scopes: Sequence[str]) -> None:
    for scope in scopes:
        with suppress(GitError):  # without the extension there is no such scope
            asked = ("config", scope, "--unset-all", key)
            git(*asked, cwd=ws.root, env=ws.environ, accept=(0, _NO_KEY))
    for value in values:
        git("config", scopes[0], "--add", key, value, cwd=ws.root, env=ws.environ)


def _undo_files(ws: Workspace, before: GitBefore, wanted: set[str], folder: Path) -> Iterator[str]:
    """Restore hooks and what is in `info`; what was there is copied to the attempt's folder."""
    held = read_state(ws, before.snapshot)
    files = (name for name in sorted(wanted) if name.startswith((*FILES, STATE)))
    for owner, fact in product(("common", "own"), files):
        name = f"{owner}/{fact.removeprefix(STATE)}"
        base, path = place_of(ws, name)
        there = place.read(base, path)
        if not put_back_file(ws, held, name):
            continue
        line, copy = f"{base / path} is restored", folder / "refused" / path
        if there is not None:
            copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            copy.write_bytes(there)
            again = f"cp {shlex.quote(str(copy))} {shlex.quote(str(base / path))}"
            line += f"; to take it again: {again}"
        yield line


def plain(name: str) -> str:
    """How a fact is called in front of people."""
    for prefix, word in (
        ("refs/heads/", "branch "),
        ("refs/tags/", "tag "),
        (CONFIG, ""),
        (USER, ""),
    ):
        if name.startswith(prefix):
            return word + name.removeprefix(prefix)
    return name
