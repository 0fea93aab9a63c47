"""What the page shows of attempts: facts, problems they fixed and introduced, patches.

A patch has one block per file, with syntax highlighting.
"""

import re
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import chain, takewhile

from msgspec import Struct
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import STANDARD_TYPES
from pygments.util import ClassNotFound

from atlas_retry.model import Attempt, Diagnostic, Outcome, Tokens
from atlas_retry.patterns import regex
from atlas_retry.reports.findings import of_attempt
from atlas_retry.text.units import seconds, usd

MAX_PROMPT_CHARS = 200_000
MAX_LINES, UNFOLDED_LINES = 3_000, 60
"""Limits for patches."""
MAX_LINE_CHARS = 500
"""Longer lines are not highlighted: a lexer may take quadratic time."""
COLOURED = ("c", "k", "m", "s", "na", "nc", "nd", "nf", "nt")
"""Starts of the classes in the style sheet."""
LINE_KINDS = {"+": "added", "-": "removed", "@": "hunk", "\\": "hunk"}
_NAME = regex(r'diff --git .*? "?b/(.*?)"?')


def values(run: Outcome) -> dict[str, object]:
    """For the template `attempts.html`; the open attempt is the kept one, or else the last."""
    known: dict[str, Diagnostic] = {}
    """The latest diagnostic of the run for each fingerprint."""
    after = (attempt.validation for attempt in run.attempts if attempt.validation)
    for result in chain.from_iterable(one.results for one in (run.baseline, run.final, *after)):
        known |= {diagnostic.fingerprint: diagnostic for diagnostic in result.diagnostics}

    def known_problems(prints: Iterable[str]) -> list[Diagnostic]:
        return [known.get(one) or Diagnostic(tool="", message=one) for one in dict.fromkeys(prints)]

    return {
        "coloured": coloured,
        "facts_of": facts_of,
        "files_of": files_of,
        "findings_of": lambda attempt: of_attempt(run, attempt),
        "known_problems": known_problems,
        "line_kind": lambda line: LINE_KINDS.get(line[:1]),
        "max_prompt_chars": MAX_PROMPT_CHARS,
        "open_number": max((a.number for a in run.attempts if a.kept), default=len(run.attempts)),
        "unfolded_lines": UNFOLDED_LINES,
    }


def facts_of(attempt: Attempt) -> Iterator[str]:
    """Agent, time, cost and result in short."""
    tokens = attempt.tokens
    yield " ".join(filter(None, (attempt.agent, attempt.model)))
    yield seconds(attempt.duration_ms)
    yield "cost not reported" if attempt.cost_usd is None else usd(attempt.cost_usd)
    if tokens != Tokens():
        cached = f", {tokens.cache_read:,} from the cache" if tokens.cache_read else ""
        yield f"{tokens.input:,} tokens in{cached}, {tokens.output:,} out"
    if attempt.transport_retries:
        yield f"transport retries: {attempt.transport_retries}"
    yield attempt.validation.counts if attempt.validation else "not validated"


class ChangedFile(Struct, frozen=True, kw_only=True):
    """One file of a patch."""

    path: str
    size: int
    """Number of lines without the headers of hunks."""
    added: int
    removed: int
    remarks: tuple[str, ...]
    """Modes, renames and `Binary files differ`."""
    lines: tuple[str, ...] | None
    """None after `MAX_LINES` of one patch: then the file is only named."""


def files_of(patch: str) -> Iterator[ChangedFile]:
    """The files of a patch as `git diff` prints it."""
    left = MAX_LINES
    for text in re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)[1:]:
        first, *lines = text.removesuffix("\n").split("\n")
        name = _NAME.fullmatch(first)
        head = [*takewhile(lambda line: not line.startswith("@@ "), lines)]
        changed = lines[len(head) :]
        size = sum(not line.startswith("@@ ") for line in changed)
        left -= size
        marks = [line[:1] for line in changed]
        yield ChangedFile(
            path=name[1] if name else first,
            size=size,
            added=marks.count("+"),
            removed=marks.count("-"),
            remarks=tuple(line for line in head if not line.startswith(("---", "+++", "index "))),
            lines=tuple(changed) if left >= 0 else None,
        )


def coloured(line: str, path: str) -> Iterator[tuple[str, str]]:
    """Class and text of the parts of one line, highlighted on its own.

    So strings of several lines are coloured as code.
    """
    lexer = _lexer(path)
    if lexer is None or line.startswith("@@ ") or len(line) > MAX_LINE_CHARS:
        yield "", line
        return
    yield "", line[:1]
    for kind, value in lexer.get_tokens(line[1:]):
        style = STANDARD_TYPES.get(kind, "")  # as Pygments' own style sheets name it
        yield style if style.startswith(COLOURED) else "", value


@cache
def _lexer(path: str) -> Lexer | None:
    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None
