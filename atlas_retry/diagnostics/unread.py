"""Output of commands with several programs that no parser read."""

from collections.abc import Iterable, Iterator, Sequence

from atlas_retry.diagnostics.values import Located, Log
from atlas_retry.model import Diagnostic
from atlas_retry.patterns import regex

UNREAD = "unread"
"""Tool of the diagnostic for all unread lines of one gate."""
MAX_LINES = 200
MAX_MESSAGE_CHARS = 500
_SEVERAL = regex(r"[;&|\n]|^\s*(?:\S*/)?(?:make|just|task|tox|nox|npm|pnpm|yarn|sh|bash|\./\S+)\b")
"""A shell line that runs several programs, or a script or task that may."""
_NOISE = regex(r"""(?x)
    \s
    | \W*$
    | \S+/?\S*:?$
    | [$>+*#-]+[ ]
    | ={3}
    | g?make(?:\[\d+\])?:[ ]
    | npm[ ](?:ERR!|error|WARN|notice)
    | (?:warning|note|info|hint|help):[ ]
    | (?:Found|Checked|Checking|Skipped|Ran|Running|All|Some)[ ]
    | (?: In[ ]file[ ]included
        | For[ ]more[ ]information
        | Success
        | error[ ]Command[ ]failed
        | [Ee]xit[ ]status
        | Scope:[ ]
        | .*\b[Ee]xited[ ]with[ ]code[ ]\d+$
        | cache[ ](?:hit|miss|bypass),[ ]  # turbo
        | FILE:[ ]
        | diff[ ]--git[ ]
        | index[ ][0-9a-f]+\.\.
        | \S+[ ]--[ ]\d+[ ]
      )[ ]?
    | (?:[\u2716\u00d7][ ])?\d+[ ]
    | \[(?:\*|warn)\][ ]
    | (?:No[ ]fixes[ ]available|Your[ ]code[ ]has[ ]been[ ]rated|Oh[ ]no!)
    | error:[ ](?:could[ ]not[ ]compile|aborting[ ]due[ ]to)
    | .+\.{3}\w+$
    | \S+[ ](?:In|At)[ ]
    | \S+:\d+:[ ]{2,}\S  # explains the problem of another line
    """)
"""Lines that are not problems: headings, counts, warnings and echoed commands."""


def unread(log: Log, problems: Sequence[Located], programs: Iterable[str]) -> Diagnostic | None:
    """One diagnostic for all meaningful lines that no parser read; `count` is their number.

    None if nothing was read, if one program printed everything, or if a test failed, because
    runners print other lines too.
    """
    is_runner = any(problem.diagnostic.test_id for problem in problems)
    if log.exit_code in (0, None) or is_runner or not _SEVERAL.search(log.command):
        return None
    taken: set[int] = set()
    taken.update(*(range(problem.first, problem.last + 1) for problem in problems))
    rest = (line for n, line in enumerate(log.lines) if n not in taken)
    echoed = tuple(f"{program} " for program in programs)
    lines = [line for line in meaningful(rest) if not line.startswith(echoed)][:MAX_LINES]
    if not lines or not taken:
        return None
    text = "\n".join(lines)
    return Diagnostic(
        tool=UNREAD,
        message=text[:MAX_MESSAGE_CHARS],
        text=text,
        count=len(lines),
    )


def meaningful(lines: Iterable[str]) -> Iterator[str]:
    """The lines that are not headings, counts, warnings or echoed commands."""
    return (line for line in lines if not _NOISE.match(line))
