"""Parses unified diffs of formatters: one problem a file, at the first line that would change."""

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from atlas_retry.diagnostics.failures import titled
from atlas_retry.diagnostics.table import region_of
from atlas_retry.diagnostics.values import Located, Log, parses
from atlas_retry.model import Diagnostic
from atlas_retry.patterns import regex

# https://www.gnu.org/software/diffutils/manual/html_node/Unified-Format.html
_FILE = regex(r"\+\+\+ (?:b/)?(?P<path>[^\t]+?)(?:\.orig|:after)?(?:\t.*)?$")
_HUNK = regex(r"@@ -(?P<line>\d+)(?:,\d+)? \+\d+")
TOOL = "diff"
_END = regex(r"(?!\+\+\+ |@@ )(?![-+ @\\]|$)|--- ")


@parses(
    TOOL,
    commands=("--diff", "gofmt -d", "gofumpt -d", "shfmt -d", "yapf -d", "git diff"),
    marks=("\t(reformatted)\n",),
)
def diff(log: Log) -> Iterator[Located]:
    """One problem for each file that has a hunk."""
    is_generated = " git diff " in log.words
    message = "file differs from the commit" if is_generated else "file would be reformatted"
    for first, last, title in titled(log.lines, _FILE, _END):
        line = _first_change(log.lines[first + 1 : last + 1])
        if line is not None:
            problem = Diagnostic(
                tool=TOOL,
                message=message,
                rule_id="changed" if is_generated else "unformatted",
                path=title["path"],
                region=region_of({"line": str(line)}),
            )
            yield Located(problem, first, last)


def _first_change(lines: tuple[str, ...]) -> int | None:
    """The line of the file as it is: the hunk's, after the unchanged lines at its start."""
    number: int | None = None
    for line in lines:
        hunk = _HUNK.match(line)
        if hunk:
            number = int(hunk["line"])
        elif number is not None:
            if line.startswith(("-", "+")):
                return number
            number += 1
    return number


def joined_with_diffs(problems: Iterable[Located]) -> list[Located]:
    """The problems; one that only names a file has the place in its diff, which is no other one.

    `black --check --diff` and `isort --check --diff` print both.
    """
    every = list(problems)
    whole = {p.diagnostic.path for p in every if p.diagnostic.region is None}
    diffs = {p.diagnostic.path: p.diagnostic for p in every if p.diagnostic.tool == TOOL}
    joined: list[Located] = []
    for problem in every:
        d = problem.diagnostic
        diff = diffs.get(d.path) if d.path in whole else None
        if diff and d.region is None:
            at_diff = replace(d, region=diff.region, text=diff.text)
            joined.append(replace(problem, diagnostic=at_diff))
        elif d != diff:
            joined.append(problem)
    return joined
