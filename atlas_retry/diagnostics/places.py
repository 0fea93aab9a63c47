"""Reads any tool that prints places, `file:line` in whatever spelling, by their structure alone.

A problem is a place with a message: behind it, in front of it, in the lines above or below.
"""

import re
import textwrap
from collections.abc import Iterator, Sequence
from itertools import takewhile

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.failures import matching
from atlas_retry.diagnostics.table import LEVELS, region_of
from atlas_retry.diagnostics.values import Holds, Located, Log, no_file
from atlas_retry.model import Diagnostic, Level
from atlas_retry.patterns import regex, words

_SHORTEST = len("a:1")
MAX_BELOW = 30
"""Maximum lines below a place that belong to it: quoted code, carets, hints."""

_WORD = (
    r"fatal error|internal error|syntax error|parse error|error|err|fatal|failure|warning|warn|"
    r"remark|note|notice|info|information|hint|help|style|suggestion|debug|trace"
)
_BARE = r"""(?:[A-Za-z]:[\\/])?[^\s:"'()\[\]<>|,;*?`=]{1,300}+"""
_SPACED = r"""(?:[A-Za-z]:[\\/]|\\|/)(?:(?!\ [/-]\w)[^:"|<>*?=]){1,300}?"""
# file:1:2, file(1,2), file[1, 2], file, line 1, column 2
_AT = r"""(?:
      :(?P<line1>\d{1,7})(?:[:.](?P<column1>\d{1,5}))?(?:-(?:\d+[:.])?\d+|:\d+:\d+)?
        (?=[:\s,;)\]]|$)
    | :?\ ?\((?P<line2>\d{1,7})(?:[,:]\ ?(?P<column2>\d{1,5}))?[\d,:-]*\)(?!\.\w)
    | :?\[(?P<line3>\d{1,7})(?:[,:]\ ?(?P<column3>\d{1,5}))?\]
    | [:,]?\ \(?(?:(?:on|at|near)\ )?[Ll]ine:?\ (?P<line4>\d{1,7})
        (?:[,:]?\ (?:col(?:umn)?|char(?:acter)?s?)[ .:]*(?P<column4>\d{1,5})(?:-\d+)?)?\)?
    | \t(?P<line5>\d{1,7})(?=\t)
    | \ -\ (?P<line6>\d{1,7}):(?P<column6>\d{1,5})
    | \ {1,9}(?P<line8>\d{1,7}):(?P<column8>\d{1,5})(?:-[\d:]+)?$
    )"""
_PLACE = regex(
    rf"""(?x)(?:(?<![\w/\\.:@"'-])|(?<=\d>))(?:"(?P<quoted>[^"\n]{{1,300}})"
    |'(?P<single>[^'\n]{{1,300}})'
    |(?P<bare>{_BARE})) {_AT}"""
)
# perlcritic's `file: message at line 1, column 2.`
_SAID = regex(
    rf"(?x)(?P<bare>{_BARE}):\ (?=.{{1,200}}?\bat\ line\ (?P<line7>\d{{1,7}}),"
    r"\ column\ (?P<column7>\d{1,5})\b)"
)
_FIRST = regex(rf"(?x)(?P<spaced>{_SPACED}){_AT}")
_BEFORE_SPACED = regex(rf"(?i)(?:[\s*•>-]|\[[\w ]{{1,20}}\] ?|(?:{_WORD})\b:? |\d+>)*")
# What may stand in front of a place: tags, times, numbers of projects, a level, a program.
_FRONT = regex(
    rf"""(?xi)^(?:\s | \#\#\[\w+\] | \d\d:\d\d(?::\d\d)?(?:[.,]\d+)?\s | [ew]:\s
    | \[[^\]\n]{{0,60}}\] | \d{{1,4}}(?::\d{{1,4}})?> | [-*•>✖\u00d7✗⚠|]
    | \d{{1,4}}[.)]\s | (?:{_WORD})\b:?(?:\s|$) | [\w./+-]{{1,40}}:(?=\s|$) | \[$ | C/C\+\+:
    | file(?=\s["']) )*$"""
)
_ARROW = regex(r"^\s*(?:-->|,-\[|[╭┌]─*[\[▸>]?|:::|==>|=>|➜|@)\s*$")
_LEVEL = regex(rf"(?i)(?<![\w-])(?P<level>{_WORD}|[ew](?=:\s))(?![\w-]|\.\w)")
_STARTS = regex(
    rf"""(?x)^[\s:,;\])\u2013\u2014-]*(?:
      (?:\(col\.\ (?P<column>\d+)\)\ )?
      \[?(?P<level>(?i:{_WORD})|[EWCRFI]|[✖\u00d7⚠\u2139])\]?(?:\[(?P<rule>[\w:./-]+)\])?
      (?=\s*:|\s-\s|\s{{2}}|,|\t|$|\s\#?\[?[A-Z]{{0,6}}-?\d|\s\[|(?<=\])|(?<=[✖\u00d7⚠\u2139]))
    )?[\s:,|-]*"""
)
_ROW_LEVEL = regex(rf"(?i)^(?P<level>{_WORD})[\s|]+")
_CODE = regex(
    r"^(?P<open>\[)?(?P<rule>[A-Z][A-Za-z]{0,9}[-_]?\d{1,5}(?:-[A-Z])?)(?(open)\])"
    r"(?P<fix> \[\*\])?(?:(?:/\S+)?[:\s]+|$)"
)
# RuboCop
_COP = regex(r"^(?:\[Correct\w+\] )?(?P<rule>[A-Z]\w*(?:/[A-Z]\w*)+): ")
_WHOLE = regex(
    rf"(?xi)^(?P<path>{_BARE}|{_SPACED}):{{1,2}}(?:None:)?"  # Sphinx
    r"\ (?P<level>(?:fatal\ |syntax\ |parse\ )?error|warning):\ +(?P<message>\S.*)$"
)
"""A problem of a whole file."""
_TAG = regex(
    r"(?:\s+|^)[\[(](?:-W)?(?:error[,=]-?W?)?(?P<rule>[a-zA-Z@][\w@./:=-]*?)(?:,[\w.,/-]+)?[\])]\s*$"
)
_NAMED_LEVEL = regex(rf"(?i)^(?:\S{{1,20}} )?(?:{_WORD})\b[:\s]+")
_COLUMNS = regex(r"\s{2,}(?P<rule>@?[a-z][\w@/-]*?)(?:\s+(?P<tool>[a-z][\w-]*))?\s*$")
_PROJECT = regex(r"\s+\[[^\]\[]+(?:proj|\.sln|\.targets)(?:::[^\]]*)?\]\s*$")
_CLOSES = regex(r"(?i)[\s:(,-]*(?:\b(?:in file|in|at|on))?[\s:(,-]*$")
_NAMES = words(
    "Makefile Dockerfile Rakefile Gemfile Jenkinsfile Vagrantfile Procfile Podfile BUILD"
)
_EXTENSION = regex(r"(?:^|.*[^\s.])\.(?=\w*[A-Za-z])\w[\w+]{0,11}$")
_FRAME = regex(
    r"""(?x)^(?: \S*make(?:\[\d+\])?:\ (?:\*\*\*|\[)
    | \s*(?:at|from|\#\d+|\d+:)\s
    | \s*File\ "[^"]+",\ line\ \d+(?:,\ in\ |$) )"""
)
_LOGGED = regex(
    r"(?x)(?:\b|\[)(?:INFO|DEBUG|TRACE)\b(?!\s*:\s*\S+\.\w+:\d)"
    r"| :\w{1,200}:(?:PASS|IGNORE)\b"  # of Unity
    r"| ^[\[(]?\d{4}-\d\d-\d\d[T ]\d\d:\d\d.*\b(?:WARN|WARNING)\b"
)
_ACTIVITY = regex(
    r"(?i)(?:start|listen|load|runn|connect|serv|process|compil|build|fetch|send|wait|retry|work"
    r"|download|install|creat|writ|receiv|finish|enter|leav|pars|check|handl)(?:ing|ed)\b"
)
_HEADING = regex(
    rf"(?x)^\s{{0,8}}(?:(?:FILE|File|file|Checking|In)[: ]\ ?)?(?P<path>{_BARE}|{_SPACED})"
    r"(?::|:\d+:\d+|\ --\ \d+\ \w+:?|\s*\(\d[^)]*\))?\s*$"
)
_ROW = regex(
    rf"""(?xi)^(?:\s*|\s+line\ |\s*(?P<sign>[✖\u00d7⚠\u2139])\s+)(?:
      (?P<line1>\d{{1,7}})[:,]\ ?(?P<column1>\d{{1,5}})(?:-\d+(?::\d+)?)?(?:[:\s|]+)
    | (?P<line2>\d{{1,7}})\s*(?:\|\s*|\s+(?=(?:{_WORD})\b\s+\S))
    | \[(?P<line3>\d{{1,7}})(?:[,:]\ ?(?P<column3>\d{{1,5}}))?(?:,\ \d+)*\]\s*[:-]?\s*
    | (?P<line4>\d{{1,7}})(?:,\d+)*:\s+
    | (?<=line\ )(?P<line5>\d{{1,7}})[:,]?\s+
    )(?P<rest>\S.*)$"""
)
_ITEM = regex(rf"(?i)\s*\d{{1,5}}[.)] (?:{_WORD}) in $")
_ASIDE = regex(r"\S[^:]*:\d+(?::\d+)?: (?:note|help): (?!.*\[\w+\]$)")
_STACK = "Call Stack ("
"""CMake prints it between a message and its frames."""
_INDENTED = r":\s{2,}$"
_LEVELLED = regex(rf"(?i)\s*(?:{_WORD})\b")
_NOTES = ("note", "help", "debug", "trace")
_CARET = regex(r"\s*[\^~][\s\^~]*$")
_SIGNS = "\u00d7✖✗✘⚠ "
_MASKS = regex(r"^\s*(?:\d*\s*[|│]|[\^~^`-]+\s*$|\.\.\.)")


class _PlaceInLine(Struct, frozen=True):
    """A place in a line, and what stands around it."""

    path: str
    line: str
    column: str | None
    before: str
    after: str


def _candidates(line: str) -> Iterator[re.Match[str]]:
    start = _BEFORE_SPACED.match(line)
    first = _FIRST.match(line, start.end() if start else 0)
    if first:
        yield first
    if said := _SAID.match(line):
        yield said
    yield from _PLACE.finditer(line)


def is_file(path: str, holds: Holds = no_file, *, is_sure: bool = False) -> bool:
    """Whether a text is the name of a file: by its extension, or because the project has it."""
    name = re.split(r"[\\/]", path)[-1]
    if name in _NAMES or _EXTENSION.match(name):
        return True
    return (is_sure and path != name) or holds(path)


def read_places(log: Log, holds: Holds = no_file, *, strict: bool = False) -> Iterator[Located]:
    """The problems of all lines. `strict`: only those that a level, a code or a column marks.

    `strict` is for lines that other tools' parsers left over. A tool prints levels, or it does
    not: where it does, a place without one explains another. So does an indented message among
    others: gcc's `a.cc:7:3:   required from here`.
    """
    found = tuple(_PlacesInLines(log.lines, holds, strict).problems())
    levelled = {ending(problem) for problem in found if problem.otherwise}
    said = (problem.diagnostic.message.partition("\n")[0] for problem in found)
    heads = [
        log.lines[problem.first].partition(words or "\n")[0]
        for problem, words in zip(found, said, strict=True)
    ]
    indented = [re.search(_INDENTED, head) is not None for head in heads]
    for problem, is_indented in zip(found, indented, strict=True):
        is_aside = is_indented and not all(indented)
        if not is_aside and (problem.otherwise or ending(problem) not in levelled):
            yield replace(problem, otherwise=False)


def ending(problem: Located) -> str:
    """The extension of the file of a problem, in lower case."""
    return (problem.diagnostic.path or "").rpartition(".")[2].lower()


def _message(found: _PlaceInLine, *, is_row: bool = False) -> tuple[str, str | None, str | None]:
    """The message of a place with its level and rule, as far as the line has them."""
    rest = _PROJECT.sub("", found.after)
    start = (_ROW_LEVEL.match(rest) if is_row else None) or _STARTS.match(rest)
    parts = start.groupdict() if start else {}
    text = rest[start.end() if start else 0 :].strip()
    is_front = _FRONT.match(found.before)
    if not text.strip(".,)]"):
        before = _CLOSES.sub("", found.before).strip()
        text = "" if _FRONT.match(before) else _NAMED_LEVEL.sub("", before)
    elif not is_front:
        text = f"{found.before.strip()} {text}".strip()
    front = _LEVEL.search(found.before)
    level = parts.get("level") or (front["level"] if front else None)
    rule, text = _coded(text, is_row=is_row)
    return text, level, parts.get("rule") or rule


_HEADED = regex(
    r"^(?:[x!] )?(?:(?P<rule>[\w-]+\([\w@/-]+\)): |(?P<id>[a-z][a-z\d]*(?:-\w+)+) {2,}(?=[\"A-Z]))"
)
"""Of oxlint and of a column before the messages."""


def _coded(text: str, *, is_row: bool) -> tuple[str | None, str]:
    """The rule at the start or the end of a message, and the rest of it."""
    code = _CODE.match(text) or _COP.match(text)
    if code:
        return code["rule"], text[code.end() :].strip() or text
    if headed := _HEADED.match(text):
        return headed["rule"] or headed["id"], text[headed.end() :]
    tag = _TAG.search(text) or (_COLUMNS.search(text) if is_row else None)
    return (tag["rule"], text[: tag.start()].strip() or text) if tag else (None, text)


class _PlacesInLines(Struct, frozen=True):
    """The lines of one output, and what counts as a file and as a problem."""

    lines: Sequence[str]
    holds: Holds
    strict: bool
    """Whether only lines that a level, a code or a column marks are problems."""

    def problems(self) -> Iterator[Located]:
        """The problems; `otherwise` says which of them have an own level."""
        heading: str | None = None
        last = -1
        for number, line in enumerate(self.lines):
            if number <= last or len(line) < _SHORTEST or line.isspace():
                continue
            problem = self._problem(number, heading)
            named = _HEADING.match(line)
            if problem is not None:
                last = problem.last
                yield problem
            elif named and is_file(named["path"], self.holds):
                heading = named["path"]
            elif not line[0].isspace() and not _MASKS.match(line):
                heading = None

    def _problem(self, number: int, heading: str | None) -> Located | None:
        line = self.lines[number]
        if _FRAME.match(line) or _LOGGED.search(line[:120]):
            return None
        found = self._found(line)
        row = _ROW.match(line) if found is None or found.before.strip() else None
        if row and heading:
            return self._from_row(number, heading, row)
        if found is None:
            return self._of_whole_file(number)
        if titled := self._titled(number, found):
            return titled
        said = found.after.strip(" :.)],") or not _FRONT.match(found.before)
        if not said or _ARROW.match(found.before):
            return self._apart(number, found)
        return self._in_line(number, found)

    def _found(self, line: str) -> _PlaceInLine | None:
        """The first place of a line that is a file's."""
        for match in _candidates(line):
            parts = match.groupdict("")
            path = "".join(parts.get(name, "") for name in ("bare", "quoted", "single", "spaced"))
            path = path.strip()
            if is_file(path, self.holds, is_sure=bool(parts.get("quoted") or parts.get("spaced"))):
                number = next(n for n in "12345678" if parts.get(f"line{n}"))
                column = parts.get(f"column{number}") or None
                before, after = line[: match.start()], line[match.end() :]
                return _PlaceInLine(
                    path.removeprefix("file://"), parts[f"line{number}"], column, before, after
                )
        return None

    def _from_row(self, number: int, heading: str, row: re.Match[str]) -> Located | None:
        parts = row.groupdict()
        which = next(n for n in "12345" if parts[f"line{n}"])
        found = _PlaceInLine(
            heading, parts[f"line{which}"], parts.get(f"column{which}"), "", parts["rest"]
        )
        message, level, rule = _message(found, is_row=True)
        return self._located(number, found, (message, level, rule))

    def _in_line(self, number: int, found: _PlaceInLine) -> Located | None:
        """The problem whose message is in the line of its place."""
        is_front = _FRONT.match(found.before) is not None
        rest = found.after.strip()
        message, level, rule = _message(found)
        is_activity = self.strict or _ACTIVITY.match(rest.lstrip(": -"))
        is_marked = any(part is not None for part in (level, rule, found.column))
        # behind other words, a place is a problem's only if it ends the sentence, or begins its own
        ends = not rest.strip(".)],:") or rest.startswith((":", "in ", ". ", "(Severity", "of "))
        is_problem = (is_marked or not is_activity) if is_front else (level is not None and ends)
        message = message or self._below(number, found.before)
        is_aside = rule is None and f"{level}".lower() in _NOTES
        if is_aside or not (message and is_problem):
            return None
        return self._located(number, found, (message, level, rule))

    def _below(self, number: int, before: str) -> str:
        """The message directly below a level and a place, or below the code that an item quotes."""
        below = self.lines[number + 1 : number + 6]
        if not _ITEM.match(before):
            return below[0].strip() if below else ""
        said = filter(str.strip, below)
        return next((line.strip() for line in said if not line[0].isspace()), "")

    def _of_whole_file(self, number: int) -> Located | None:
        whole = _WHOLE.match(self.lines[number])
        if whole is None or not is_file(whole["path"], self.holds):
            return None
        found = _PlaceInLine(whole["path"], "", None, "", whole["message"])
        rule, message = _coded(whole["message"], is_row=False)
        return self._located(number, found, (message, whole["level"], rule))

    def _titled(self, number: int, found: _PlaceInLine) -> Located | None:
        """The problem of a title with a place and a colon, above an indented message.

        The title has a level, or the message a rule.
        """
        if not found.after.rstrip().endswith(":"):
            return None
        level = _LEVEL.search(found.before)
        below = self.lines[number + 1 : number + MAX_BELOW]
        own = [*takewhile(lambda line: not line.strip() or line.startswith(("  ", _STACK)), below)]
        last = number + len("\n".join(own).rstrip().splitlines())
        said = takewhile(lambda line: line.strip() and not line.startswith(_STACK), own)
        message = textwrap.dedent("\n".join(said))
        rule, text = (None, message) if level else _coded(message, is_row=False)
        if not message or not (level or rule):
            return None
        problem = self._located(number, found, (text, level and level["level"], rule))
        return replace(problem, last=last)

    def _apart(self, number: int, found: _PlaceInLine) -> Located | None:
        """The problem of a place that stands alone: its message is above or below."""
        before = range(number - 1, max(number - 4, -1), -1)
        above = next((n for n in before if self.lines[n].strip()), None)
        title = "" if above is None else self.lines[above].strip().lstrip(_SIGNS)
        shown = _PlaceInLine(found.path, found.line, found.column, "", title)
        message, word, rule = _message(shown)
        levelled = matching(self.lines[number + 1 : number + 6], _LEVELLED)
        is_titled = word is not None or (rule is not None and above == number - 1)
        if _ARROW.match(found.before) or (is_titled and not levelled):
            return (
                None
                if above is None
                else self._located(number, shown, (message, word, rule), first=above)
            )
        if not levelled:
            return None
        below = number + 1 + min(levelled)
        shown = _PlaceInLine(found.path, found.line, found.column, "", self.lines[below].strip())
        message, word, rule = _message(shown)
        if word is None:
            return None
        return self._located(below, shown, (message, word, rule), first=number)

    def _located(
        self,
        number: int,
        found: _PlaceInLine,
        said: tuple[str, str | None, str | None],
        *,
        first: int | None = None,
    ) -> Located:
        message, level, rule = said
        guessed = Level.WARNING if re.match(r"\w*Warning\b", message) else Level.ERROR
        problem = Diagnostic(
            tool="general",
            message=message,
            rule_id=rule,
            level=LEVELS.get((level or "").lower(), guessed),
            path=found.path,
            region=region_of({"line": found.line, "column": found.column or ""}),
        )
        start = number if first is None else first
        return Located(problem, start, self._end(number), level is not None)

    def _end(self, number: int) -> int:
        """The last line that belongs to a problem: indented or quoted ones that hold no place."""
        last = number
        title = self.lines[number]
        is_levelled = not title[:1].isspace() and _LEVEL.search(title) is not None
        for n in range(number + 1, min(number + MAX_BELOW, len(self.lines))):
            line = self.lines[n].removeprefix("[ERROR] ")
            is_quoted = bool(_MASKS.match(line) or _ASIDE.match(line))
            is_indented = line[:1].isspace() and not line.isspace()
            if not is_quoted and not (is_indented and self._explains(n, is_levelled=is_levelled)):
                break
            last = n
        return last

    def _explains(self, number: int, *, is_levelled: bool) -> bool:
        """Whether an indented line explains the problem above it, and is none itself."""
        line = self.lines[number]
        below = self.lines[number + 1] if number + 1 < len(self.lines) else ""
        if _CARET.match(below) or (is_levelled and not _LEVEL.search(line)):
            return True
        return not _PLACE.search(line) and not _ROW.match(line)
