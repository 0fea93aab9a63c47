"""Reads what says that too little is covered, whatever tool says it."""

import re

from atlas_retry.diagnostics.failures import matching
from atlas_retry.diagnostics.table import region_of
from atlas_retry.diagnostics.values import THRESHOLD_RULE, Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic, Level

_BELOW = re.compile(
    r"""^
    (?: ERROR:[ ] | \[ERROR\][ ] )?
    (?: Coverage[ ]failure:[ ]total[ ]of[ ].+[ ]is[ ]less[ ]than[ ]fail-under=  # coverage.py
      | FAIL[ ]Required[ ]test[ ]coverage[ ]of[ ].+[ ]not[ ]reached             # pytest-cov
      | Jest:[ ].*coverage[ ].*threshold
      | Jest:[ ]Coverage[ ]for[ ].+[ ]does[ ]not[ ]meet[ ]
      | ERROR:[ ]Coverage[ ]for[ ].+[ ]does[ ]not[ ]meet[ ]                     # vitest, nyc, c8
      | Coverage[ ]for[ ]\w+[ ]\([\d.]+%\)[ ]does[ ]not[ ]meet[ ]
      | Rule[ ]violated[ ]for[ ].+[ ]but[ ]expected[ ]minimum[ ]is[ ]           # JaCoCo
      | RESULT:[ ]FAILED[ ]\(minimum:[ ]                                        # interrogate
    )""",
    re.VERBOSE,
)
# https://coverage.readthedocs.io/en/latest/cmd.html#coverage-summary-coverage-report
_FILE = re.compile(
    r"""^
    (?P<path>\S+\.py)
    [ ]+\d+                            # statements
    [ ]+(?P<missed>[1-9]\d*)
    [ ]+(?:\d+[ ]+\d+[ ]+)?            # branches, partial branches
    (?P<percent>\d+(?:\.\d+)?)%
    (?:[ ]+(?P<lines>\d[\d, >exit-]*))?
    $""",
    re.VERBOSE,
)
_FIRST = re.compile(r"\d+")


def _read(log: Log) -> Reading:
    below = matching(log.lines, _BELOW)
    if not below:
        return Reading()
    found = [Located(_threshold(log.lines[i]), i, i) for i in below]
    found += [Located(_file(m), i, i) for i, m in matching(log.lines, _FILE).items()]
    return Reading(found=tuple(found), summary=tuple(below), threshold=True)


def _threshold(line: str) -> Diagnostic:
    message = line.removeprefix("[ERROR] ").removeprefix("ERROR: ")
    return Diagnostic(tool="coverage", rule_id=THRESHOLD_RULE, message=message)


def _file(match: re.Match[str]) -> Diagnostic:
    lines = match["lines"]
    first = _FIRST.search(lines) if lines else None
    tail = f": {lines.strip()}" if lines else ""
    return Diagnostic(
        tool="coverage",
        rule_id="uncovered",
        level=Level.NOTE,
        message=f"{match['missed']} lines are not covered ({match['percent']}%){tail}",
        path=match["path"],
        region=region_of({"line": first[0]}) if first else None,
    )


COVERAGE = Parser(
    name="coverage",
    commands=("coverage", "--cov-fail-under", "--coverage"),
    marks=(
        "fail-under=",
        "Required test coverage of",
        " threshold",
        "Rule violated for ",
        "RESULT: FAILED (minimum",
    ),
    read=_read,
)
