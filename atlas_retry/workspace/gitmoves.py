"""Who moved git's own state during an agent's turn, and how what the agent did is undone.

What its git processes did is known from their trace. What has no trace is someone else's, or
unknown: it stays. What git would run is restored, whoever changed it, because gates start git.
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
from atlas_retry.model import GitFacts
from atlas_retry.patterns import regex
from atlas_retry.reading import read_file
from atlas_retry.workspace import place
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.git import GitError, git
from atlas_retry.workspace.gitfacts import facts_since, git_facts, settings
from atlas_retry.workspace.gittrace import ZERO, AgentsGit, RefUpdate, clear, read_trace
from atlas_retry.workspace.snapshot.git_state import place_of, put_back_file, set_refs
from atlas_retry.workspace.snapshot.store import read_state

_BEFORE = "git-before.json"
_SYMBOLIC, _CONFIG, _USER, _STASH = "ref: ", "config:", "user:", "refs/stash"
_FILES = ("hooks/", "info/")
"""Facts that are files in which git finds programs, or which files it should not see."""
_ELSEWHERE, _STATE = "hooksPath/", "state:"
_COPIES = ("refs/remotes/", "refs/prefetch/")
_DERIVED = frozenset({"info/refs", "info/sparse-checkout"})
"""Files that git makes from its other state."""
_NEVER = frozenset({"index", "state:ORIG_HEAD", "state:FETCH_HEAD", "shallow", *_DERIVED})
"""Facts that staging, fetching and looking change."""
_VALUE = regex(r"[0-9a-f]{40,64}|ref: refs/\S+")
_RUNS = regex(
    r"config:(?:core\.(?:hookspath|fsmonitor|editor|pager|askpass|sshcommand|gitproxy"
    r"|alternaterefscommand|attributesfile|excludesfile|worktree)|sequence\.editor|include\.path"
    r"|includeif\..*|alias\..*|filter\..*|credential\..*|diff\.external|diff\..*\.(?:command|textconv)"
    r"|merge\..*\.driver|(?:merge|diff)tool\..*|gpg\..*program|pager\..*|interactive\.difffilter"
    r"|hook\..*|remote\..*\.(?:uploadpack|receivepack|vcs|proxy)|uploadpack\.packobjectshook"
    r"|submodule\..*\.update|trailer\..*|url\..*|browser\..*|man\..*|init\.templatedir|core\.bare)\Z"
)
"""Settings that name commands, or another work tree. Source: git-config(1)."""
_SETTING = {
    "remote": ("remote", "submodule"),
    "branch": ("branch", "checkout", "switch", "push", "pull", "worktree", "rebase", "remote"),
    "submodule": ("submodule",),
    "maintenance": ("maintenance",),
}
"""Commands that write settings of a section, besides `config`. All may also only read."""
_READS = frozenset({"--get", "--get-all", "--get-regexp", "--get-urlmatch", "--list", "-l", "get"})
_READS_REMOTE = frozenset({"show", "get-url", "-v", "--verbose"})
_BEGINS = {
    "MERGE": ("merge", "pull"),
    "CHERRY": ("cherry-pick",),
    "REVERT": ("revert",),
    "rebase": ("rebase", "pull", "am"),
    "BISECT": ("bisect",),
}
"""Commands that leave operations unfinished, by how the names of their files start."""
_ENDS = frozenset({"commit", "reset", "checkout", "switch"})
"""Commands that end any of them."""
_SWITCHES = frozenset({"switch", "checkout", "symbolic-ref", "branch", "rebase", "bisect"})
"""Commands that may move HEAD to another branch."""
_NO_KEY = 5
"""Exit code of `git config` for a key that is not there."""
_FLAGS = frozenset({"update-index", "sparse-checkout"})


class GitBefore(msgspec.Struct, frozen=True, kw_only=True):
    """State of git before a turn, kept in the attempt's folder."""

    facts: dict[str, str]
    snapshot: str
    log_bytes: int = 0
    """Length of HEAD's log."""


class GitMoves(Struct, frozen=True, kw_only=True):
    """Facts that moved during a turn, by who moved them."""

    agents: tuple[str, ...] = ()
    """By git processes below the agent."""
    runs: tuple[str, ...] = ()
    """What git would run, or hide; by anyone."""
    others: tuple[str, ...] = ()
    """By a person, or unknown."""


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
        return {f"{_USER}{key}": value for key, value in of_user.items()}
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


def moves(before: GitFacts, now: GitFacts, did: AgentsGit, root: Path) -> GitMoves:
    """Who moved each fact that differs. Submodules' facts count by the same rules."""
    found: dict[str, list[str]] = {"agents": [], "runs": [], "others": [], "": []}
    for name in sorted({*before, *now}):
        if before.get(name) == now.get(name):
            continue
        inner, own = root, name
        if name.startswith("submodules/"):
            path, _, own = name.removeprefix("submodules/").partition(":")
            inner = root / path
        prefix = name.removesuffix(own)
        sides = _below(prefix, before), _below(prefix, now)
        found[_who(own, *sides, did, inner)].append(name)
    return GitMoves(
        agents=tuple(found["agents"]), runs=tuple(found["runs"]), others=tuple(found["others"])
    )


def _who(name: str, before: GitFacts, now: GitFacts, did: AgentsGit, root: Path) -> str:
    """The field of `GitMoves` for a fact that differs; empty for derived data."""
    if name in _NEVER:
        return ""
    if name.startswith("refs/") and not _is_value(now.get(name, ZERO)):
        return "agents"
    if name.startswith(_ELSEWHERE):
        return "" if _hooks_moved(before, now, root) else "agents"
    if _is_agents(name, before, now, did, root):
        return "agents"
    if name.startswith(_COPIES):
        return ""
    setting = name.replace(_USER, _CONFIG, 1) if name.startswith(_USER) else name
    return "runs" if name.startswith(_FILES) or _RUNS.match(setting) else "others"


def _hooks_moved(before: GitFacts, now: GitFacts, root: Path) -> bool:
    """Whether other hooks are configured, or they are files of the workspace, which are judged."""
    was, there = (facts.get("config:core.hookspath", "") for facts in (before, now))
    return was != there or (root / Path(was).expanduser()).resolve().is_relative_to(root)


def _below(prefix: str, facts: GitFacts) -> GitFacts:
    if not prefix:
        return facts
    start = len(prefix)
    return {name[start:]: value for name, value in facts.items() if name.startswith(prefix)}


def _is_agents(name: str, before: GitFacts, now: GitFacts, did: AgentsGit, root: Path) -> bool:
    """Whether the trace shows that the agent's git made this fact what it is now."""
    match name.partition(":")[0]:
        case "config" | "user":
            return _set_by(name, did, root)
        case "index-flags":
            return any(did.ran(_FLAGS, root))
        case "state":
            return any(did.ran(_operating(name, is_there=name in now), root))
        case "refs":  # a table of refs, which only git can read
            return any(not one.is_derived for one in did.updates)
        case "stash":
            return any(one.name == _STASH for one in did.updates)
        case _:  # a ref; files are written by hand
            value, own = now.get(name, ZERO), (one for one in did.updates if one.name == name)
            is_at = name == "HEAD" and _switched(value, did, root)
            return is_at or any(_made(one, value, before) for one in own)


def _switched(value: str, did: AgentsGit, root: Path) -> bool:
    """Whether a command of the agent names the branch that HEAD is at.

    Git 2.55 traces no update of HEAD itself.
    """
    branch = value.removeprefix(_SYMBOLIC)
    names = {branch, branch.removeprefix("refs/heads/"), "-"}
    return any(not names.isdisjoint(one.arguments) for one in did.ran(_SWITCHES, root))


def _operating(name: str, *, is_there: bool) -> frozenset[str]:
    """The commands that begin, or also end, the operation that a file is of."""
    file = name.removeprefix(_STATE)
    begins = next((verbs for start, verbs in _BEGINS.items() if file.startswith(start)), ())
    return frozenset(begins) if is_there else _ENDS.union(begins)


def _made(update: RefUpdate, value: str, before: GitFacts) -> bool:
    """Whether this update left the ref with this value."""
    if update.is_derived:
        return False
    if update.new is None:
        return value in before.values()
    # newer git traces a symbolic ref without its target
    return update.new == value or (value.startswith(_SYMBOLIC) and update.new == ZERO)


def _set_by(name: str, did: AgentsGit, root: Path) -> bool:
    """Whether a command of the agent may have written this setting, which it names."""
    scope, _, key = name.partition(":")
    section, _, rest = key.partition(".")
    every = did.ran(("config",), root)
    if scope == "user":
        every = (one for one in did.commands if "--global" in one.arguments)
    return any(_writes(one.arguments, key, section) for one in every) or (
        scope != "user" and _set_beside(section, rest.rpartition(".")[0].lower(), did, root)
    )


def _set_beside(section: str, name: str, did: AgentsGit, root: Path) -> bool:
    """Whether another command than `config` may have written a setting of this name."""
    for one in did.ran(_SETTING.get(section, ()), root):
        words = {word.lower() for word in one.arguments[1:]}
        if name in words and not (one.verb == "remote" and words & _READS_REMOTE):
            return True
    return False


def _writes(arguments: Sequence[str], key: str, section: str) -> bool:
    """Whether a `git config` wrote this key: it has a value, or an option that changes it."""
    words = [word.lower() for word in arguments[1:]]
    if not _READS.isdisjoint(words):
        return False
    if any(word.endswith("-section") for word in words) and section in words:
        return True
    if key not in words:
        return False
    is_last = words[-1] == key
    return not is_last or any(word.startswith(("--unset", "unset", "--edit")) for word in words)


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
        facts = {name: known[name] for name in known if not name.startswith(_USER)}
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
    if was and not (head.is_file() and _is_value(os.fsdecode(read_file(head)).strip())):
        state_dir.replace_file(head, os.fsencode(f"{was}\n"))
        done.append("HEAD")
    if "unreadable" in facts_since(ws.root, before.facts, environ=ws.environ):
        held, files = read_state(ws, before.snapshot), ("common/config", "own/config.worktree")
        done += [name.partition("/")[2] for name in files if put_back_file(ws, held, name)]
    return tuple(done)


def _is_value(text: str) -> bool:
    """Whether git itself can have written this into a ref."""
    return bool(_VALUE.fullmatch(text))


def turned(ws: Workspace, folder: Path) -> GitTurn | None:
    """What happened since `note_before` in the attempt's folder; None if that is unknown."""
    before = noted(folder)
    if before is None:
        return None
    did, now = read_trace(folder), dict(facts_since(ws.root, before.facts, environ=ws.environ))
    now |= _of_the_user(ws)
    if "unreadable" in now:
        moved = GitMoves(agents=("unreadable",))
    else:
        moved = moves(before.facts, now, did, ws.root)
    return GitTurn(before=before, now=now, did=did, moves=moved)


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
    set_refs(ws, {"HEAD": was})
    there = turn.now.get("HEAD", "").removeprefix(_SYMBOLIC).removeprefix("refs/heads/")
    yield f"HEAD is restored; to go there again: git switch --detach {shlex.quote(there)}"


def _undo_refs(ws: Workspace, turn: GitTurn, wanted: set[str]) -> Iterator[str]:
    if "stash" in wanted or _STASH in wanted:
        yield from _undo_stash(ws, turn)
    refs = {name for name in wanted if name.startswith("refs/")}
    for name in sorted(refs - {_STASH}):
        value = turn.now.get(name, ZERO)
        target = _before_the_agent(name, value, turn.did, turn.before.facts)
        if not _is_value(value):
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
    if oid == ZERO or oid.startswith(_SYMBOLIC) or not _is_value(oid):
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
    own = {one.new for one in turn.did.updates if one.name == _STASH} - {ZERO, None}
    was, there = _entries(turn.before.facts.get("stash", "")), _entries(_stash_log(ws))
    new = [one for one in there if one not in was]
    theirs = [one for one in new if one[0] not in own]
    wanted = [*was, *theirs]
    if wanted == there:
        return
    log = ws.common_dir / "logs" / "refs" / "stash"
    for entry in there:
        if entry not in wanted:
            yield f"the agent's stash is kept: git stash apply {entry[0][:12]}"
    if not wanted:
        git("update-ref", "-d", _STASH, cwd=ws.root, env=ws.environ)
        log.unlink(missing_ok=True)
        return
    git("update-ref", "--create-reflog", _STASH, wanted[-1][0], cwd=ws.root, env=ws.environ)
    olds = (ZERO, *(oid for oid, _ in wanted))
    lines = (f"{old} {oid} {rest}\n" for old, (oid, rest) in zip(olds, wanted, strict=False))
    state_dir.replace_file(log, os.fsencode("".join(lines)))
    if dropped := [one for one in was if one not in there]:
        yield f"{len(dropped)} stashes that the agent dropped are restored: git stash list"


def _stash_log(ws: Workspace) -> str:
    with suppress(OSError):
        return os.fsdecode(read_file(ws.common_dir / "logs" / "refs" / "stash"))
    return ""


def _entries(log: str) -> list[tuple[str, str]]:
    """Id and the rest of each line of a log, without the id before, which dropping changes."""
    parts = (line.split(" ", 2) for line in log.splitlines())
    return [(part[1], part[2]) for part in parts if len(part) > 2]  # noqa: PLR2004 - as split


def _undo_config(ws: Workspace, turn: GitTurn, wanted: set[str]) -> Iterator[str]:
    """Set single keys of the repository's configuration; all others stay."""
    for name in sorted(one for one in wanted if one.startswith((_CONFIG, _USER))):
        key = name.partition(":")[2]
        scopes = ("--global",) if name.startswith(_USER) else ("--local", "--worktree")
        _set(ws, key, _values(turn.before.facts, name), scopes)
        scope = "--global " if name.startswith(_USER) else ""
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
    files = (name for name in sorted(wanted) if name.startswith((*_FILES, _STATE)))
    for owner, fact in product(("common", "own"), files):
        name = f"{owner}/{fact.removeprefix(_STATE)}"
        base, path = place_of(ws, name)
        was = place.read(base, path)
        if put_back_file(ws, held, name):
            yield f"{base / path} is restored{_copied(was, base / path, folder / 'refused' / path)}"


def _copied(content: bytes | None, file: Path, copy: Path) -> str:
    """Copy what a file was, and say how to take it again; empty if there was none."""
    if content is None:
        return ""
    copy.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    copy.write_bytes(content)
    return f"; to take it again: cp {shlex.quote(str(copy))} {shlex.quote(str(file))}"


def plain(name: str) -> str:
    """How a fact is called in front of people."""
    for prefix, word in (
        ("refs/heads/", "branch "),
        ("refs/tags/", "tag "),
        (_CONFIG, ""),
        (_USER, ""),
    ):
        if name.startswith(prefix):
            return word + name.removeprefix(prefix)
    return name
