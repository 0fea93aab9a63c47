"""What the git of an agent's processes did, by its trace, and who moved each fact of git's state.

Only reads what git itself wrote. A git that was started without these variables, such as the
user's own, leaves nothing here.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from atlas_retry.model import GitFacts
from atlas_retry.patterns import regex
from atlas_retry.reading import read_start

_EVENTS, _REFS = "git-events", "git-refs"
MAX_TRACE_BYTES = 64 << 20
"""Read of each trace; a longer one says nothing about what came later."""
ZERO = "0" * 40
_HAS_OLD = 0x8
"""A flag of a ref's update: the old value is known (git's refs/refs-internal.h, REF_HAVE_OLD)."""
_UPDATE = regex(
    r" \d+: (?P<name>\S+) (?P<old>[0-9a-f]{40,64}) -> (?P<new>[0-9a-f]{40,64}) "
    r'\(F=0x(?P<flags>[0-9a-f]+), T=0x[0-9a-f]+\) "(?P<why>.*)'
)
_CREATED = regex(r' create_symref: (\S+) -> (\S+) "')
_RENAMED = regex(r' (?:rename|copy)_ref: (\S+) -> (\S+) "')
_DROPPED = " reflog_expire: refs/stash: 0"
_DELETED = regex(r"refs/debug\.c:\d+\s+(refs/\S+)\Z")
SYMBOLIC, CONFIG, USER, STASH = "ref: ", "config:", "user:", "refs/stash"
FILES = ("hooks/", "info/")
"""Facts that are files in which git finds programs, or which files it should not see."""
_ELSEWHERE, STATE = "hooksPath/", "state:"
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
SWITCHES = frozenset({"switch", "checkout", "symbolic-ref", "branch", "rebase", "bisect"})
"""Commands that may move HEAD to another branch."""
_FLAGS = frozenset({"update-index", "sparse-checkout"})
_FETCHED = ("fetch", "pull", "storing tag", "clone")
_TO_REMOTE = "refs/remotes/"


class RefUpdate(Struct, frozen=True, kw_only=True):
    """One ref as one git process moved it."""

    name: str
    old: str | None
    """None if git did not look at it."""
    new: str | None
    """Id, or `ref: ` and the target; `ZERO` if it was deleted, None if it has the value of
    another one."""
    why: str = ""
    """As in the reflog."""

    @property
    def is_derived(self) -> bool:
        """Whether it only repeats what another repository has."""
        if self.name.startswith((_TO_REMOTE, "refs/prefetch/")):
            return not self.why or self.why.startswith(_FETCHED)  # pruning says no reason
        return self.name.startswith("refs/tags/") and self.why.startswith(_FETCHED)


class GitCommand(Struct, frozen=True, kw_only=True):
    """One git process that found a repository."""

    verb: str
    """The command, aliases resolved."""
    arguments: tuple[str, ...]
    worktree: str
    """Absolute path; empty if git did not say."""


class AgentsGit(Struct, frozen=True, kw_only=True):
    """What the git processes below an agent did."""

    commands: tuple[GitCommand, ...] = ()
    updates: tuple[RefUpdate, ...] = ()

    def ran(self, verbs: Iterable[str], root: Path) -> Iterator[GitCommand]:
        """The commands with one of these verbs in a work tree."""
        wanted = {*verbs}
        for one in self.commands:
            if one.verb in wanted and one.worktree in ("", str(root)):
                yield one


def variables(folder: Path) -> dict[str, str]:
    """Variables with which git writes its trace into this folder.

    Sources: git(1), GIT_TRACE2_EVENT and GIT_TRACE_REFS; the latter came with git 2.30.
    """
    return {"GIT_TRACE2_EVENT": str(folder / _EVENTS), "GIT_TRACE_REFS": str(folder / _REFS)}


def read_trace(folder: Path) -> AgentsGit:
    """What was traced into this folder so far; empty if nothing was."""
    return AgentsGit(
        commands=tuple(_commands(_lines(folder / _EVENTS))),
        updates=tuple(_updates(_lines(folder / _REFS))),
    )


def clear(folder: Path) -> None:
    """Remove the trace, which lists every ref that a command such as `git log` has read."""
    for name in (_EVENTS, _REFS):
        (folder / name).unlink(missing_ok=True)


def _lines(path: Path) -> list[str]:
    with suppress(OSError):
        if not path.is_symlink():
            lines = read_start(path, MAX_TRACE_BYTES)
            return lines.decode("utf-8", "surrogateescape").splitlines()
    return []


def _commands(lines: Iterable[str]) -> Iterator[GitCommand]:
    """Source: git's api-trace2, events `start`, `def_repo` and `cmd_name`, by `sid`."""
    arguments: dict[str, tuple[str, ...]] = {}
    worktrees: dict[str, str] = {}
    for text in lines:
        if '"event":"start"' in text or '"event":"def_repo"' in text or "cmd_name" in text:
            try:
                event = json.loads(text)
                sid = str(event["sid"])
            except (ValueError, KeyError, TypeError):
                continue
            match event:
                case {"event": "start", "argv": list(argv)}:
                    arguments[sid] = tuple(map(str, argv))
                case {"event": "def_repo", "worktree": str(worktree)}:
                    worktrees[sid] = worktree
                case {"event": "cmd_name", "name": str(verb)}:
                    where, line = worktrees.get(sid, ""), arguments.get(sid, ())
                    yield GitCommand(verb=verb, arguments=line, worktree=where)


def _updates(lines: Iterable[str]) -> Iterator[RefUpdate]:
    """Source: git's refs/debug.c."""
    for line in lines:
        if update := _UPDATE.search(line):
            is_known = int(update["flags"], 16) & _HAS_OLD or update["old"].strip("0")
            yield RefUpdate(
                name=update["name"],
                old=_id(update["old"]) if is_known else None,
                new=_id(update["new"]),
                why=update["why"].removesuffix('"'),
            )
        elif symbolic := _CREATED.search(line):
            yield RefUpdate(name=symbolic[1], old=None, new=f"ref: {symbolic[2]}")
        elif renamed := _RENAMED.search(line):
            yield RefUpdate(name=renamed[1], old=None, new=ZERO)
            yield RefUpdate(name=renamed[2], old=None, new=None)
        elif _DROPPED in line:
            yield RefUpdate(name="refs/stash", old=None, new=None)
        elif deleted := _DELETED.search(line):
            yield RefUpdate(name=deleted[1], old=None, new=ZERO)


def _id(text: str) -> str:
    return text if text.strip("0") else ZERO


class GitMoves(Struct, frozen=True, kw_only=True):
    """Facts that moved during a turn, by who moved them."""

    agents: tuple[str, ...] = ()
    """By git processes below the agent."""
    runs: tuple[str, ...] = ()
    """What git would run, or hide; by anyone."""
    others: tuple[str, ...] = ()
    """By a person, or unknown."""


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
    if name.startswith("refs/") and not is_value(now.get(name, ZERO)):
        return "agents"
    if name.startswith(_ELSEWHERE):
        return "" if _hooks_moved(before, now, root) else "agents"
    if _is_agents(name, before, now, did, root):
        return "agents"
    if name.startswith(_COPIES):
        return ""
    setting = name.replace(USER, CONFIG, 1) if name.startswith(USER) else name
    return "runs" if name.startswith(FILES) or _RUNS.match(setting) else "others"


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
            return any(one.name == STASH for one in did.updates)
        case _:  # a ref; files are written by hand
            value, own = now.get(name, ZERO), (one for one in did.updates if one.name == name)
            is_at = name == "HEAD" and _switched(value, did, root)
            return is_at or any(_made(one, value, before) for one in own)


def _switched(value: str, did: AgentsGit, root: Path) -> bool:
    """Whether a command of the agent names the branch that HEAD is at.

    Git 2.55 traces no update of HEAD itself.
    """
    branch = value.removeprefix(SYMBOLIC)
    names = {branch, branch.removeprefix("refs/heads/"), "-"}
    return any(not names.isdisjoint(one.arguments) for one in did.ran(SWITCHES, root))


def _operating(name: str, *, is_there: bool) -> frozenset[str]:
    """The commands that begin, or also end, the operation that a file is of."""
    file = name.removeprefix(STATE)
    begins = next((verbs for start, verbs in _BEGINS.items() if file.startswith(start)), ())
    return frozenset(begins) if is_there else _ENDS.union(begins)


def _made(update: RefUpdate, value: str, before: GitFacts) -> bool:
    """Whether this update left the ref with this value."""
    if update.is_derived:
        return False
    if update.new is None:
        return value in before.values()
    # newer git traces a symbolic ref without its target
    return update.new == value or (value.startswith(SYMBOLIC) and update.new == ZERO)


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


def is_value(text: str) -> bool:
    """Whether git itself can have written this into a ref."""
    return bool(_VALUE.fullmatch(text))
