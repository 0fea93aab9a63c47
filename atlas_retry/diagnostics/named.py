"""Names the tool of problems that are read by their structure alone.

Its rows know nothing of a tool's format.
"""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from atlas_retry.diagnostics.places import ending, read_places
from atlas_retry.diagnostics.values import Located, Log, Parser


class Named(Parser, frozen=True, kw_only=True):
    """A tool whose output is read by its structure."""

    tool: str | None = None
    """Name in the diagnostic, if a row of another name has the tool as well."""
    endings: tuple[str, ...]
    """Extensions of the files it reports."""
    compiles: bool = False
    """Whether it is a compiler: a warning that fails it is reported as an error."""
    more: str | None = None
    """Lines below a problem that continue its message."""
    coded: bool = False
    """Whether each problem has a rule."""

    def read(self, log: Log) -> Iterator[Located]:
        for problem in read_places(log):
            if self.fits(problem):
                yield self.named(problem, log)

    def fits(self, problem: Located) -> bool:
        is_coded = problem.diagnostic.rule_id is not None
        return ending(problem) in self.endings and (is_coded or not self.coded)

    def named(self, problem: Located, log: Log) -> Located:
        """The problem with the name of the tool, and the rest of its message."""
        d = replace(problem.diagnostic, tool=self.tool or self.name)
        if self.more:
            below = log.lines[problem.first + 1 : problem.last + 1]
            more = filter(None, map(re.compile(self.more).match, below))
            d = replace(d, message="\n".join((d.message, *(m["message"] for m in more))))
        return replace(problem, diagnostic=d)
