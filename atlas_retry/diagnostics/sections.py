"""Separates the sources of one output: what several programs printed into it.

A source is recognised by a prefix that repeats, as runners of monorepos, containers and CI write
it, or by a heading above its lines. Each source is read by itself, in the folder it ran in.
"""

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import chain, pairwise, starmap

from msgspec import Struct

from atlas_retry.diagnostics.failures import matching
from atlas_retry.diagnostics.places import is_file
from atlas_retry.patterns import regex, words

MAX_LAYERS = 3
"""Prefixes in front of each other: a time, a container, a package."""
SAMPLE_LINES = 2_000
"""Lines that decide whether an output has prefixes at all."""


class Prefix(Struct, frozen=True, kw_only=True):
    """How a kind of runner marks the lines of a source."""

    pattern: re.Pattern[str]
    """Group `source`, if it names one; the line's own text begins behind the match."""
    share: float = 0.0
    """Least share of the lines that must have it."""
    least: int = 2
    """Least number of lines of one source."""
    begins: re.Pattern[str] | None = None
    """How the runner announces a source, required if the prefix alone may be anything."""


_PREFIXES = (
    # times: Jenkins, docker compose --timestamps, act, foreman
    Prefix(
        pattern=regex(
            r"\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?Z?\]?(?: {1,2}|$)"
        ),
        share=0.7,
        least=3,
    ),
    # turbo, lerna with the name of the script
    Prefix(pattern=regex(r"(?P<source>@?[\w./-]+:[A-Za-z][\w:.-]*): ?(?!\d+:)")),
    # pnpm -r, bun --filter
    Prefix(
        pattern=regex(r"(?P<source>[\w@./-]+ [\w:.-]+)(?:: |\$ |:$)"),
        begins=regex(
            r"(?P<source>[\w@./-]+ [\w:.-]+)(?:\$ |: (?:Exited with code \d|Done$|Failed$))"
        ),
    ),
    # concurrently, go-task, wireit, act
    Prefix(
        pattern=regex(r" {0,8}\[(?P<source>[^\]\n]{1,80})\](?: {1,3}|: |$)(?:\| ?)?"), share=0.4
    ),
    # docker compose, foreman, moon, turbo's grouped logs
    Prefix(pattern=regex(r"(?P<source>@?[A-Za-z][\w./:-]*)\s{0,12} [|\u2502](?: |$)"), share=0.3),
    # BuildKit
    Prefix(pattern=regex(r"#(?P<source>\d+)(?: \d+\.\d+)? ")),
    Prefix(pattern=regex(r"\s{0,4}[|\u2502\u2503](?: |$)"), share=0.8, least=5),
    # nx, lerna, yarn workspaces foreach: only the name of the package
    Prefix(pattern=regex(r"(?P<source>@[\w-]+/[\w.-]+): ?")),
)
_LEVELS = words(
    "info error warn warning debug success trace fatal notice * x ok fail pass fixable run skip"
)
_TIMES = regex(r"[\d:.,TZ -]+$")

_MAKE = regex(
    r"(?:g?make|ninja)(?:\[\d+\])?: (?P<how>Entering|Leaving) directory [`'](?P<path>.+)'$"
)
_NPM = regex(r"> (?P<package>(?:@[\w.-]+/)?[\w.-]+)@\S+ \S+(?: (?P<path>/\S+))?$")
_NX = regex(r"(?:[✔✖\u00d7>] +)?(?:> )?nx run (?P<package>[\w@./-]+):[\w:-]+")
_MAVEN = regex(r"(?:\[INFO\] )?-+< (?:[\w.-]+:)?(?P<package>[\w.-]+) >-+$")
_CARGO = regex(r" {3,}(?:Checking|Compiling) (?P<package>[\w-]+) v\S+ \((?P<path>/[^)]+)\)$")
_NPM_ERROR = regex(r"npm (?:ERR!|error)(?: path (?P<path>/\S+)$|\b)")
# https://pkg.go.dev/cmd/go#hdr-Test_packages
_GO = regex(r"(?:FAIL|ok  )\t(?P<package>[^\s\[]+)(?:\t| \[)")
_RUN_PATH = regex(r"\s*RUN\s+v\S+ (?P<path>/\S+)$")
_RUN_FAILED = regex(r"\s+Test Files {2}\d+ failed")
_LAST_FAILURE = regex(r"\u23af+\[(\d+)/\1\]\u23af$")
_ECHO = regex(r"(?:[>$]|\+) (?P<command>[\w./@-]+(?: .*)?)$")
_HOOK = regex(r"- hook id: (?P<hook>\S+)$")
_HEADS = (_HOOK, _MAKE, _NPM, _NX, _MAVEN, _CARGO, _RUN_PATH)
_MAY_HEAD = regex(r"(?m)directory [`']|^> \S+@|nx run |-< \S+ >-| \(/\S+\)$|^\s*RUN +v|hook id: ")


class OutputSection(Struct, frozen=True, kw_only=True):
    """Lines of one source, read by themselves."""

    first: int
    end: int
    """Line numbers in the separated text, 0-based; `end` is exclusive."""
    folder: str | None = None
    """Where the source ran: relative to the root, or absolute; None = as the gate."""
    command: str = ""
    """What the runner says that it ran."""


Folders = Callable[[str], str | None]
"""The folder of a package, by the name that a runner gives it."""


def separated(
    text: str, folders: Folders, *, stderr_at: int | None = None
) -> tuple[str, tuple[OutputSection, ...]]:
    """The text source by source, without their prefixes, and the sections of it.

    Lines of no source come first; a text without sources is unchanged, in one section or more.
    `stderr_at` is the number of its first line of stderr, of which a heading in stdout says
    nothing.
    """
    lines = text.split("\n")
    groups: list[tuple[str | None, list[str]]] = [(None, lines)]
    for _ in range(MAX_LAYERS):
        grouped = [*chain.from_iterable(starmap(_by_source, groups))]
        if [*map(id, (own for _, own in grouped))] == [*map(id, (own for _, own in groups))]:
            break
        groups = grouped
    sections: list[OutputSection] = []
    plain: list[str] = []
    for name, own in groups:
        first = stderr_at if own is lines else None
        sections += _of_streams(own, len(plain), _folder(name or "", folders), folders, first)
        plain += own
    return text if groups[0][1] is lines else "\n".join(plain), tuple(sections)


def by_source(text: str) -> list[str]:
    """The text of each source that a prefix names."""
    groups = _by_source(None, text.split("\n"))
    return ["\n".join(lines) for name, lines in groups if name is not None]


def _folder(source: str, folders: Folders) -> str | None:
    """The folder of a source: its name, or a part of it, is that of a package."""
    names = (source, source.partition(" ")[0], source.rpartition(":")[0], source.partition(":")[0])
    parts = (*names, source.rpartition(":")[2], re.sub(r"-\d+$", "", source))
    return next(filter(None, map(folders, dict.fromkeys(filter(None, parts)))), None)


def _by_source(name: str | None, lines: list[str]) -> Iterator[tuple[str | None, list[str]]]:
    """The lines of each source; the same lines if they have no prefix."""
    step = max(len(lines) // SAMPLE_LINES, 1)
    sample = [*filter(str.strip, lines[::step])] if step > 1 else lines
    for prefix in _PREFIXES:
        if sources := _sources(prefix, sample):
            break
    else:
        yield name, lines
        return
    match = prefix.pattern.match
    groups: dict[str | None, list[str]] = defaultdict(list)
    for line in lines:
        found = match(line)
        source = found.groupdict("").get("source", "") if found else ""
        if found is None or source not in sources:
            groups[name].append(line)
        else:
            groups[source or name].append(line[found.end() :])
    yield from groups.items()


def _sources(prefix: Prefix, sample: Iterable[str]) -> frozenset[str]:
    """The sources that a prefix names in the lines, "" if it names none; empty if it is none."""
    lines = [*filter(None, sample)]
    found = filter(None, map(prefix.pattern.match, lines))
    # in front of something, or of an empty line; a list in brackets is no prefix
    filled = filter(lambda at: at[0] != at.string or not at[0].endswith("]"), found)
    counts = Counter(match.groupdict("").get("source", "") for match in filled)
    usable = set(filter(_is_source, counts))
    if prefix.begins:
        usable &= {start["source"] for start in filter(None, map(prefix.begins.match, lines))}
    repeated = sum(counts[name] for name in usable if counts[name] >= prefix.least)
    return frozenset(usable if repeated >= max(prefix.share * len(lines), 1) else ())


def _is_source(name: str) -> bool:
    """Whether it may name a source: no level, no file, no time, no count."""
    if "%" in name or name.strip().lower() in _LEVELS:
        return False
    is_place = is_file(re.split(r"[: ]", name)[0]) or is_file(name)
    is_count = _TIMES.fullmatch(name) is not None and not name.isdigit()
    return not is_place and not is_count


def _of_streams(
    lines: Sequence[str], at: int, folder: str | None, folders: Folders, stderr_at: int | None
) -> list[OutputSection]:
    """The parts of both streams; where headings in stdout name several folders, stderr has none."""
    printed = [*_headed(lines[:stderr_at], at, folder, folders)] if stderr_at else []
    if not stderr_at or len({part.folder for part in printed} - {folder}) <= 1:
        return [*_headed(lines, at, folder, folders)]
    rest, first = lines[stderr_at:], at + stderr_at
    # vitest prints failures into stderr, run by run, and numbers those of each
    ends = matching(rest, _LAST_FAILURE)
    failed = [
        part.folder
        for part in printed
        if matching(lines[part.first - at : part.end - at], _RUN_FAILED)
    ]
    if not failed or len(ends) != len(failed):
        return [*printed, *_headed(rest, first, folder, folders)]
    bounds = pairwise((0, *(end + 1 for end in [*ends][:-1]), len(rest)))
    runs = zip(bounds, failed, strict=True)
    parts = (_section(rest[start:end], first + start, where, "") for (start, end), where in runs)
    return [*printed, *parts]


def _headed(
    lines: Sequence[str], at: int, folder: str | None, folders: Folders
) -> Iterator[OutputSection]:
    """The parts that headings divide the lines into; `at` is the number of the first line."""
    start, inner, command = 0, folder, ""
    stack: list[str | None] = []
    for number, heading in _headings(lines):
        if number > start:
            yield from _footed(lines[start:number], at + start, inner, command, folders)
        start = number
        parts = heading.groupdict()
        command = parts.get("hook") or ""
        if parts.get("how") == "Leaving":
            inner = stack.pop() if stack else folder
            continue
        stack += [inner] if parts.get("how") else []
        inner = parts.get("path") or folders(parts.get("package") or "") or folder
    yield from _footed(lines[start:], at + start, inner, command, folders)


def _headings(lines: Sequence[str]) -> Iterator[tuple[int, re.Match[str]]]:
    if not _MAY_HEAD.search("\n".join(lines)):
        return
    for number, line in enumerate(lines):
        heading = next(filter(None, (head.match(line) for head in _HEADS)), None)
        if heading is not None:
            # the title of a hook is above its id
            yield max(number - ("hook" in heading.groupdict()), 0), heading


def _footed(
    own: Sequence[str], first: int, folder: str | None, command: str, folders: Folders
) -> Iterator[OutputSection]:
    """The parts that end with what names their folder: an error of npm, or the package of go."""
    start, path = 0, None
    for number, line in enumerate(own):
        if error := _NPM_ERROR.match(line):
            path = path or error["path"]
        elif path:
            yield _section(own[start:number], first + start, folder or path, command)
            start, path = number, None
        elif ended := _GO.match(line):
            inner = folder or _of_module(ended["package"], folders)
            yield _section(own[start : number + 1], first + start, inner, command)
            start = number + 1
    yield _section(own[start:], first + start, folder or path, command)


def _of_module(package: str, folders: Folders) -> str | None:
    """The folder of the module that a package of go belongs to."""
    parts = package.split("/")
    modules = ("/".join(parts[:count]) for count in range(len(parts), 0, -1))
    return next(filter(None, map(folders, modules)), None)


def _section(own: Sequence[str], first: int, folder: str | None, command: str) -> OutputSection:
    # a runner echoes the commands in front of their output
    echoed = (found["command"] for found in map(_ECHO.match, own[:400]) if found)
    return OutputSection(
        first=first,
        end=first + len(own),
        folder=folder,
        command=command or "\n".join(dict.fromkeys(echoed)),
    )


def inside_root(folder: str | None, root: str | None, cwd: str) -> str:
    """A section's folder relative to the root; the gate's own if it is not below the root."""
    if folder is None:
        return cwd
    if not folder.startswith("/"):
        return posixpath.normpath(folder)
    base = f"{root.rstrip('/')}/" if root else None
    if base and f"{folder}/".startswith(base):
        return posixpath.normpath(folder[len(base) :] or ".")
    return cwd


def folders_of(packages: Callable[[], Mapping[str, str]]) -> Folders:
    """Looks up folders by the name of a package, by path, or by the last part of either."""

    @cache
    def alike() -> Mapping[str, set[str]]:
        last: dict[str, set[str]] = defaultdict(set)
        for name, folder in packages().items():
            last[name.rpartition("/")[2]].add(folder)
        return last

    def find(name: str) -> str | None:
        known = packages().get(name) or packages().get(name.removeprefix("./"))
        ends = alike().get(name, set())
        return known or (next(iter(ends)) if len(ends) == 1 else None)

    return find
