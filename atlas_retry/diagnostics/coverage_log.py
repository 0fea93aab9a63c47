"""Reads what says that too little is covered, whatever tool says it."""

import re

from atlas_retry.diagnostics.table import region_of
from atlas_retry.diagnostics.values import THRESHOLD_RULE, Located, Log, Parser, Reading
from atlas_retry.model import Diagnostic, Level

# coverage.py and pytest-cov; jest; vitest, nyc and c8; JaCoCo; interrogate
_BELOW = re.compile(
    r"^(?:ERROR: |\[ERROR\] )?(?:Coverage failure: total of .+ is less than fail-under="
    r"|FAIL Required test coverage of .+ not reached"
    r"|Jest: .*coverage .*threshold"
    r"|Jest: Coverage for .+ does not meet "
    r"|ERROR: Coverage for .+ does not meet "
    r"|Coverage for \w+ \([\d.]+%\) does not meet "
    r"|Rule violated for .+ but expected minimum is "
    r"|RESULT: FAILED \(minimum: )"
)
# https://coverage.readthedocs.io/en/latest/cmd.html#coverage-summary-coverage-report
_FILE = re.compile(
    r"^(?P<path>\S+\.py) +\d+ +(?P<missed>[1-9]\d*) +(?:\d+ +\d+ +)?(?P<percent>\d+(?:\.\d+)?)%"
    r"(?: +(?P<lines>\d[\d, >exit-]*))?$"
)
_FIRST = re.compile(r"\d+")


def _read(log: Log) -> Reading:
    below = [i for i, line in enumerate(log.lines) if _BELOW.match(line)]
    if not below:
        return Reading()
    files = [(i, m) for i, line in enumerate(log.lines) if (m := _FILE.match(line))]
    found = [Located(_threshold(log.lines[i]), i, i) for i in below]
    found += [Located(_file(m), i, i) for i, m in files]
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
    source="https://coverage.readthedocs.io/en/latest/cmd.html",
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
