"""Quotes the lines in which tools count what failed or lack coverage. Counts nothing itself."""

from atlas_retry.patterns import regex

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
