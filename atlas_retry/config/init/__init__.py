"""`atlas init`: proposes and writes a configuration for a project."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePosixPath
from textwrap import wrap

import msgspec

from atlas_retry.config.init import accounting, tasks
from atlas_retry.config.init.accounting import AccountedLine, Role
from atlas_retry.config.init.detect import choose, detect, not_understood
from atlas_retry.config.init.local_tools import LocalTools
from atlas_retry.config.init.values import Proposal, Proposed, Slot
from atlas_retry.config.keys import ValidationKeys
from atlas_retry.config.project import MAKEFILES, Folder, ProjectFiles
from atlas_retry.config.reference import descriptions
from atlas_retry.diagnostics.tools import short_name
from atlas_retry.errors import UsageError
from atlas_retry.reading import read_text
from atlas_retry.settings import CONFIGURATION_FILES
from atlas_retry.text.units import bounded

HEAD = """\
# Written by `atlas init` for you to read and edit. `atlas validate` runs these gates; each
# must exit with 0. `atlas config show` lists all other keys with their values.
version: 1
"""
CUSTOM_RETRIES = 3
MAX_LISTED = 12
COMMANDS = {
    ".py": "python -m unittest", ".swift": "swift test", ".go": "go test ./...",
    ".rs": "cargo test", ".ts": "npx tsc --noEmit", ".js": "node --test", ".rb": "rake test",
    ".java": "mvn test", ".kt": "gradle test", ".ex": "mix test", ".cs": "dotnet test",
    ".php": "vendor/bin/phpunit", ".sh": "shellcheck *.sh", ".scala": "sbt test",
    ".hs": "cabal test", ".dart": "dart test", ".zig": "zig build test", ".lua": "busted",
    ".jl": "julia --project -e 'using Pkg; Pkg.test()'", ".ml": "dune test", ".R": "R CMD check .",
    ".c": "make check", ".cpp": "ctest --test-dir build", ".tf": "terraform validate",
    ".clj": "lein test", ".erl": "rebar3 eunit", ".ipynb": "pytest --nbmake",
}  # fmt: skip
"""Usual test command of a project, by the suffix of most of its files."""


def propose(root: Path, environ: Mapping[str, str], folder: str = ".") -> Proposal:
    """The gates that a repository, or a folder of it, seems to use. Starts and writes nothing."""
    files = Folder(root)
    whole, here = ProjectFiles(files), ProjectFiles(files).at(folder)
    accounts = accounting.accounts(whole, accounting.jobs_of_ci(whole, _repository(root)))
    tools = LocalTools(root, environ, files)
    proposed_gates = [tools.startable(p) for p in detect(files, folder, accounts)]
    unknown = not_understood(here, proposed_gates)
    return Proposal(
        choices=choose(proposed_gates, tools.tried),
        notes=(
            *(f"{path} cannot be read and was left out." for path in here.unreadable()),
            *([f"not understood: {', '.join(unknown)}"] if unknown else []),
        ),
        unknown=tuple(_shown(each) for each in accounts if each.role is Role.UNKNOWN),
        left_out=tuple(
            f"{_shown(each)}: {each.reason}" for each in accounts if each.role is Role.LEFT_OUT
        ),
        folder=folder,
    )


def _shown(account: AccountedLine) -> str:
    """A line of CI and its file, in one line."""
    line = bounded(" ".join(account.line.line.split()), accounting.MAX_SHOWN)
    return f"`{line}` of {account.line.file}"


def _repository(root: Path) -> str:
    """`owner/name` of the remote `origin`; empty if unknown."""
    try:
        text = read_text(root / ".git/config")
    except OSError:
        return ""
    url = re.search(r'\[remote "origin"\][^\[]*?url = \S*?([\w.-]+/[\w.-]+?)(?:\.git)?/?\n', text)
    return url[1] if url else ""


def answered(command: str) -> Proposed:
    """The gate of a command that the user typed."""
    return Proposed(slot=Slot.TEST, run=command, reason="Your answer")


def paste(root: Path) -> str:
    """A minimal configuration for the project's language, in two lines."""
    paths = Folder(root).paths()
    suffixes = Counter(PurePosixPath(path).suffix for path in paths)
    known = (COMMANDS[suffix] for suffix, _ in suffixes.most_common() if suffix in COMMANDS)
    command = next(known, "make test")
    scripts = [path for path in paths if re.search(r"test[^/]*\.sh$", path)]
    if not command.startswith("make "):
        pass
    elif {*MAKEFILES} & {*paths}:
        target = tasks.find(ProjectFiles(Folder(root)), "make", ("check", "test", "tests"))
        command = target.run if target else "make"
    elif scripts:
        command = f"sh {scripts[0]}"
    elif command == COMMANDS[".c"]:
        command = "cc -o check *.c && ./check"
    return f'version: 1\nvalidation: {{test: ["{command}"]}}'


def refuse_to_overwrite(root: Path) -> None:
    """Raise UsageError if a configuration exists."""
    there = next((path for path in CONFIGURATION_FILES if (root / path).exists()), None)
    if there:
        raise UsageError(
            f"{root / there} exists, and is never overwritten",
            remedy="atlas init --print",
        )


def nothing_found(root: Path, proposal: Proposal) -> UsageError:
    """Error that says why there is no gate, and which two lines to write instead."""
    reasons = "".join(f"\n  {choice.run}: {choice.obstacle}" for choice in proposal.idle)
    why = f"no gate of {root} can start here:{reasons}"
    message = why if reasons else f"nothing in {root} says how to check it"
    notes = "".join(f"\n{note}" for note in (*proposal.notes, proposal.rest_of_ci) if note)
    write = f"write {CONFIGURATION_FILES[0]}:\n{paste(root)}"
    if install := install_and(proposal.idle, "atlas init"):
        return UsageError(message + notes, remedy=install)
    ask = "answer the question of atlas init at a terminal"
    return UsageError(message + notes, remedy=f"{ask}, or {write}")


def install_and(gates: Iterable[Proposed], command: str) -> str | None:
    """What lets most gates start, and the command to type after it; None if nothing is known."""
    remedies = Counter(gate.remedy for gate in gates if gate.remedy)
    for remedy, _ in remedies.most_common(1):
        is_command = not remedy.startswith("install ")
        return f"{remedy} && {command}" if is_command else f"{remedy}, then: {command}"
    return None


def write(root: Path, proposal: Proposal) -> None:
    """Write `.atlas/config.yaml` in `root`. Raises UsageError if it exists."""
    path = root / CONFIGURATION_FILES[0]
    path.parent.mkdir(exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text_of(proposal))
    except FileExistsError:
        refuse_to_overwrite(root)


def text_of(proposal: Proposal) -> str:
    """The configuration as YAML; gates that cannot start here are comments, with the reason."""
    unknown = [f"CI also runs {line}, which atlas does not know." for line in proposal.unknown]
    left_out = [f"Left out: {line}." for line in proposal.left_out]
    notes = [*proposal.notes, *_first(unknown), *_first(left_out)]
    lines = [HEAD.rstrip(), *_comment(notes, "")]
    lines.append("validation:" if proposal.gates else "# validation:")
    names = _names(proposal.gates)
    for key, words in descriptions(ValidationKeys).items():
        listed = [one for one in proposal.choices if one.slot.key == key]
        lines += _listed(key, words, listed, names, proposal.folder)
    return "\n".join(lines) + "\n"


def _listed(
    key: str, words: str, listed: list[Proposed], names: Mapping[str, str], folder: str
) -> Iterator[str]:
    """The gates of one key, each with why it is there."""
    if not listed:
        return
    yield from _comment([words], "  ")
    active = any(choice.obstacle is None for choice in listed)
    yield f"  {key}:" if active else f"  # {key}:"
    for choice in listed:
        idle = "" if choice.obstacle is None else f"Left out here: {choice.obstacle}"
        said = (f"{choice.reason}.", choice.note, idle)
        yield from _comment(filter(None, said), "    ")
        mark = "# " if idle else ""
        yield from (f"    {mark}{line}" for line in _mapping(choice, names, folder))


def _first(sentences: Sequence[str]) -> Iterator[str]:
    """The first of these sentences, and the number of the others."""
    yield from sentences[:MAX_LISTED]
    if len(sentences) > MAX_LISTED:
        yield f"{len(sentences) - MAX_LISTED} more are listed by atlas init -v."


def _names(gates: Sequence[Proposed]) -> Mapping[str, str]:
    """Names of the gates that others follow, by their keys; no other gate gets such a name."""
    followed = {*chain.from_iterable(gate.follows for gate in gates)}
    derived = Counter(short_name(gate.run) for gate in gates)
    numbers = Counter[str]()
    names: dict[str, str] = {}
    for gate in gates:
        name = short_name(gate.run)
        numbers[name] += 1
        if gate.key in followed:
            names[gate.key] = name if derived[name] == 1 else f"{name} ({numbers[name]})"
    return names


def _mapping(proposed: Proposed, names: Mapping[str, str], folder: str) -> Sequence[str]:
    before = [names[key] for key in proposed.follows if key in names][-1:]
    cwd = PurePosixPath(proposed.cwd)
    cwd = cwd.relative_to(folder) if cwd.is_relative_to(folder) else cwd
    keys = (
        ("name", names.get(proposed.key)),
        ("run", proposed.run),
        ("fix", proposed.fix),
        ("recheck", proposed.recheck),
        ("inputs", proposed.inputs),
        ("files", proposed.files),
        ("required", None if proposed.required else False),
        ("max_retries", CUSTOM_RETRIES if proposed.slot is Slot.CUSTOM else None),
        ("after", before),
        ("when", "ci" if proposed.only_in_ci else None),
        ("writes", proposed.writes or None),
        ("cwd", cwd.as_posix() if cwd != PurePosixPath() else None),
        ("timeout", proposed.timeout),
        ("env", dict(proposed.env)),
    )
    # JSON is YAML, and needs no quoting rules for commands.
    lines = [
        f"{key}: {msgspec.json.encode(value).decode()}"
        for key, value in keys
        if value not in (None, "", (), [], {})
    ]
    return [("- " if number == 0 else "  ") + line for number, line in enumerate(lines)]


def _comment(sentences: Iterable[str], indent: str) -> Iterator[str]:
    for sentence in sentences:
        shown = "".join(c if c.isprintable() else " " for c in sentence)
        yield from (
            f"{indent}# {line}" for line in wrap(shown, 96 - len(indent), break_on_hyphens=False)
        )
