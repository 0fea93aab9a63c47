"""Lines of an output that say nothing of a failure, and those that count failures. Pure."""

import re

from atlas_retry.patterns import regex

_RULER = regex(r"^([=_*~-]{3})[=_*~-]{2,}(?:( .*?) ?[=_*~-]{5,})?$", re.MULTILINE)
_DOTS = regex(r"^(\S+\.py )?[.FEsxX]+ *\[ *\d+%\]\n|^[FEsxX]*\.[.FEsxX]{3,}\n", re.MULTILINE)
_WENT_WELL = regex(r"""(?mx)^(?:
      test[ ]\S+(?:[ ]-[ ]should[ ]panic)?[ ]\.\.\.[ ]ok
    | \S+[ ]\([\w.]+\)[ ]\.\.\.[ ]ok
    | (?!.*(?i:fail|error)).*[ ](?:PASSED|Passed)(?:[ ]+\[[^]\n]*\]|[ ]+[\d.]+[ ]?m?s(?:ec)?)?
    | (?:\[gw\d+\][ ].*|[ ]*)(?:PASS|PASSED|Passed)[ ]+\S.*
    | \s*(?:\u2713|\u2714|\u221a|ok[ ]\d+)[ ].*
    | ok[ ]+\t?\S+\t[\d.]+s
    | [ ]*(?:===[ ]RUN|---[ ]PASS:)[ ].*
    | [ ]+(?:Compiling|Downloaded|Fresh)[ ]\S+[ ]v\d.*
    )\n""")
"""A runner's line on one test that passed, and a package manager's on one package."""


def quiet(text: str) -> str:
    """The text without dots of progress, long rulers, and lines that report a success."""
    return _WENT_WELL.sub("", _RULER.sub(r"\1\2", _DOTS.sub("", text)))


MAX_LINES, MAX_LINE_CHARS = 3, 300
TAIL_CHARS = 20_000
_SUMMARY = regex(r"""(?x)
    ^=+[ ].*\b(passed|failed|errors?|no[ ]tests[ ]ran)\b.*[ ]=+$
    | ^\d+[ ](passed|failed)\b.*
    | ^Found[ ]\d+[ ].*
    | ^(Tests?|Test[ ]Suites|Ran|FAILED[ ]\(|OK[ ]\(|Total|TOTAL)\b.*\d.*
    | ^\d+[ ]errors?\b.*
    | ^test[ ]result:[ ]FAILED.*
    | ^.*\bproblems?[ ]\(\d+[ ]errors?.*
    | ^ERROR:[ ]Coverage[ ].*
    | ^FAIL[ ]Required[ ]test[ ]coverage.*
    | ^error:[ ]could[ ]not[ ]compile.*
    | ^BUILD[ ]FAILED.*
    | ^\[ERROR\][ ]Tests[ ]run:[ ].*
    | ^\#[ ](pass|fail)[ ]\d+
    """)


def summary_of(stdout: str, stderr: str) -> str:
    """A tool's own summary: counts of failures, coverage; its last lines."""
    tail = f"{stdout[-TAIL_CHARS:]}\n{stderr[-TAIL_CHARS:]}".splitlines()
    lines = [line.strip() for line in tail if _SUMMARY.match(line.strip())]
    return "\n".join(line[:MAX_LINE_CHARS] for line in dict.fromkeys(lines[-MAX_LINES:]))
