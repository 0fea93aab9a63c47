"""Reads lines that name a file and no line of it: what is wrong is the whole file.

Tried only where a command failed and nothing else was read.
"""

from collections.abc import Callable, Iterator
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
_COUNTED = regex(r"(?P<title>[A-Za-z][\w -]{2,60}) \((?P<count>\d{1,4})\)$")
"""A heading with the number of lines below it: `Unused files (3)`, as knip prints it."""
_IS_WRONG = regex(
    r"(?i)(?:\W*(?:error|warning|warn|err|fail(?:ed|ure)?|fatal)\b"
    r"|.*\b(?:not|cannot|would|should|must|needs?|missing|invalid|fail(?:s|ed|ure)?|incorrect\w*|wrong"
    r"|detected|outdated|stale|differs?|duplicated?|unexpected|un(?:sorted|formatted|used|known)"
    r"|broken|too (?:long|many|large|complex))\b)"
)
_IS_FINE = regex(r"(?i).*\bno (?:issues?|errors?|problems?|warnings?)\b")


def named_files(log: Log, is_file: Callable[[str], bool], *, bare: bool) -> Iterator[Located]:
    """A problem for each line that says what is wrong with a file; `bare`: or only names one."""
    title, left = "", 0
    for number, line in enumerate(islice(log.lines, _MAX_LINES)):
        text = line.strip()
        if counted := _COUNTED.match(text):
            title, left = counted["title"], int(counted["count"])
            continue
        name = _file_in(text, is_file)
        message = _message(text, name, title if left else "", bare=bare) if name else None
        if message:
            problem = Diagnostic(tool="general", message=message, path=name)
            yield Located(problem, number, number)
        left = max(0, left - bool(text))


def _message(text: str, name: str, title: str, *, bare: bool) -> str | None:
    """What a line says about a file that it names; None if that is no problem."""
    if title:
        return title if text == name else f"{title}: {text}"
    if text == name:
        return "listed" if bare else None
    return text if _IS_WRONG.match(text) and not _IS_FINE.match(text) else None


def _file_in(line: str, is_file: Callable[[str], bool]) -> str | None:
    words = (match[match.lastindex or 0].rstrip(".") for match in _NAME.finditer(line))
    likely = filter(_IS_LIKELY.search, words)
    return next(filter(is_file, islice(likely, _MAX_NAMES)), None)
