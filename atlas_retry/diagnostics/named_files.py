"""Reads lines that name a file and no line of it: what is wrong is the whole file.

Tried only where a command failed and nothing else was read.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

from atlas_retry.diagnostics.values import Located, Log
from atlas_retry.model import Diagnostic
from atlas_retry.patterns import regex

_MAX_LINES = 2_000
_MAX_NAMES = 8
"""Words of a line that are looked up."""
_NAME = regex(
    r"""'([^'\n]{1,300})'|"([^"\n]{1,300})"|`([^`\n]{1,300})`|([^\s'"`:,;()<>=]{2,300})"""
)
_IS_LIKELY = regex(r"[./]")
_TITLE = regex(r"(?P<title>[A-Za-z].{2,120}?)(?: \(\d{1,4}\)|:)$")
"""Above a list of files: knip's `Unused files (3)`, REUSE's `The following files have no ...:`."""
_MARKED = regex(r"[\u2716\u2717\u2718\u00d7\u26a0] ?(?P<message>\S.*)$")
"""Below the name of a file."""
_IS_WRONG = regex(
    r"(?i)(?:\W*(?:error|warning|warn|err|fail(?:ed|ure)?|fatal)\b"
    r"|.*\b(?:not|cannot|would|should|must|needs?|missing|invalid|fail(?:s|ed|ure)?|incorrect\w*|wrong"
    r"|detected|outdated|stale|differs?|duplicated?|unexpected|un(?:sorted|formatted|used|known)"
    r"|broken|too (?:long|many|large|complex))\b)"
)
_IS_FINE = regex(r"(?i).*\bno (?:issues?|errors?|problems?|warnings?)\b")


def named_files(log: Log, is_file: Callable[[str], bool], *, is_check: bool) -> Iterator[Located]:
    """A problem for each line that says what is wrong with a file; of a check, also lists."""
    lines = [line.strip() for line in log.lines[:_MAX_LINES]]
    names = [_file_in(text, is_file) for text in lines]
    titles = _titles(lines, names)
    below = (*lines[1:], "")
    for number, name in enumerate(names):
        if name is None:
            continue
        text = lines[number]
        message = _wrong(text)
        if is_check:
            message = _of_check(text, name, titles[number], below[number])
        if message:
            yield Located(Diagnostic(tool="general", message=message, path=name), number, number)


def _titles(lines: Sequence[str], names: Sequence[str | None]) -> list[str]:
    """The title of the list in which each line is; empty if it is in none."""
    titles: list[str] = []
    title, before = "", None
    for text, name in zip(lines, names, strict=True):
        titled = None if name else _TITLE.match(text)
        if titled:
            title = titled["title"]
        elif name is None and (text or before):
            title = ""
        titles.append(title)
        before = name
    return titles


def _of_check(text: str, name: str, title: str, below: str) -> str | None:
    """What a line of a check says about a file: it may be an item of a list, or a heading."""
    words = text.lstrip("*-\u2022 ")
    if title:
        return title if words == name else f"{title}: {words}"
    if words != name:
        return _wrong(text)
    marked = _MARKED.match(below)
    return marked["message"] if marked else "listed"


def _wrong(text: str) -> str | None:
    return text if _IS_WRONG.match(text) and not _IS_FINE.match(text) else None


def _file_in(line: str, is_file: Callable[[str], bool]) -> str | None:
    words = (match[match.lastindex or 0].rstrip(".") for match in _NAME.finditer(line))
    likely = filter(_IS_LIKELY.search, words)
    return next(filter(is_file, islice(likely, _MAX_NAMES)), None)
