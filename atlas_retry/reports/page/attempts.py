"""Attempts as HTML: prompt, changes, guard's answers, fixed and introduced problems.

A patch has one block per file, with syntax highlighting.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, takewhile
from typing import TYPE_CHECKING

from atlas_retry.model import Attempt, Diagnostic, Outcome, Tokens
from atlas_retry.patterns import regex
from atlas_retry.reports.findings import Finding, of_attempt
from atlas_retry.reports.page.elements import Node, foldable, scrollable, tag
from atlas_retry.reports.page.gates import MAX_LISTED, gates, problems
from atlas_retry.reports.subject import Subject
from atlas_retry.text.units import counted, seconds, usd

if TYPE_CHECKING:
    from pygments.lexer import Lexer

MAX_PROMPT_CHARS = 200_000
KINDS = (("fixed", "good"), ("remaining", "warn"), ("introduced", "bad"))
MAX_LINES, UNFOLDED_LINES = 3_000, 60
"""Limits for patches."""
MAX_LINE_CHARS = 500
"""Longer lines are not highlighted: a lexer may take quadratic time."""
COLOURED = ("c", "k", "m", "s", "na", "nc", "nd", "nf", "nt")
"""Starts of the classes in the style sheet."""
LINE_KINDS = {"+": "added", "-": "removed", "@": "hunk", "\\": "hunk"}
_NAME = regex(r'diff --git .*? "?b/(.*?)"?')


def attempts(subject: Subject, run: Outcome) -> Iterable[Node]:
    """One section per attempt, unfolded if kept or else the last, and one for the baseline."""
    open_number = max((a.number for a in run.attempts if a.kept), default=len(run.attempts))
    known = _known(run)
    for attempt in run.attempts:
        chip = tag("span", "kept", class_="chip good") if attempt.kept else None
        facts = (tag("span", fact) for fact in _facts(attempt) if fact)
        title = tag(
            "span",
            tag("h2", f"Attempt {attempt.number}", chip),
            tag("span", *facts, class_="facts"),
        )
        patch = subject.patches.get(attempt.number, "")
        prompt = subject.prompts.get(attempt.number, "")
        folded = foldable(
            title,
            *_words(attempt),
            _answers(of_attempt(run, attempt)),
            tag("div", *(_problems(attempt, known, *kind) for kind in KINDS), class_="three"),
            *_afterwards(attempt, patch, prompt),
            class_="attempt",
            unfolded=attempt.number == open_number,
        )
        yield tag("section", folded, id=f"attempt-{attempt.number}")
    before = foldable(f"Before the first attempt: {run.baseline.counts}", gates(run.baseline))
    yield tag("section", before, id="baseline")


def _known(run: Outcome) -> dict[str, Diagnostic]:
    """The latest diagnostic of the run for each fingerprint."""
    known: dict[str, Diagnostic] = {}
    after = (attempt.validation for attempt in run.attempts if attempt.validation)
    for result in chain.from_iterable(one.results for one in (run.baseline, run.final, *after)):
        known |= {diagnostic.fingerprint: diagnostic for diagnostic in result.diagnostics}
    return known


def _facts(attempt: Attempt) -> Iterator[str]:
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


def _words(attempt: Attempt) -> Iterator[Node]:
    if attempt.error:
        yield tag("p", tag("strong", "The agent failed: "), attempt.error, class_="bad box")
    if attempt.gave_up:
        yield tag("p", tag("strong", "The agent gave up: "), attempt.gave_up, class_="warn box")
    if attempt.summary.strip():
        yield tag("blockquote", attempt.summary.strip())
    if attempt.worse:
        text = "This made things worse, and was discarded."
        yield tag("p", text, class_="warn box")


def _answers(findings: tuple[Finding, ...]) -> Node | None:
    items = []
    for finding in findings:
        rule = tag("code", finding.seen.rule, class_="rule")
        items.append(tag("li", tag("code", finding.where), " ", rule, f" {finding.sentence}"))
    heading = tag("p", tag("strong", "Answers of the guard"))
    answers = tag("ul", *items, class_="answers")
    return tag("div", heading, answers, class_="warn box") if items else None


def _problems(attempt: Attempt, known: Mapping[str, Diagnostic], word: str, weight: str) -> Node:
    prints: tuple[str, ...] = getattr(attempt, word)
    title = tag("span", tag("b", str(len(prints)), class_=weight if prints else "dim"), f" {word}")
    if not prints:
        return tag("p", title, class_="none")
    unknown = (print_ for print_ in prints if print_ not in known)
    known = {**known, **{print_: Diagnostic(tool="", message=print_) for print_ in unknown}}
    each = [known[print_] for print_ in dict.fromkeys(prints)]
    left_out = len(each) - MAX_LISTED
    return foldable(title, problems(each[:MAX_LISTED], f"{left_out} more" if left_out > 0 else ""))


def _afterwards(attempt: Attempt, patch: str, prompt: str) -> Iterator[Node]:
    """Changed files, the gates afterwards, and the prompt."""
    title = counted(len(attempt.changes), "changed file")
    items = [tag("li", tag("code", c.path), f" {c.status}") for c in attempt.changes]
    if patch:
        yield foldable(title, *_diff(patch), unfolded=patch.count("\n") <= UNFOLDED_LINES)
    else:
        yield foldable(title, tag("ul", *items)) if items else tag("p", title, class_="none")
    if attempt.validation:
        title = f"Gates afterwards: {attempt.validation.counts}"
        yield foldable(title, gates(attempt.validation))
    if prompt:
        title = f"Prompt ({attempt.prompt_chars or len(prompt):,} characters)"
        text = tag("pre", prompt[:MAX_PROMPT_CHARS])
        yield foldable(title, scrollable(title, text), class_="output")


def _diff(patch: str) -> Iterator[Node]:
    """One foldable block per file; after `MAX_LINES` of one attempt, files are only named."""
    left = MAX_LINES
    for text in re.split(r"^(?=diff --git )", patch, flags=re.MULTILINE)[1:]:
        first, *lines = text.removesuffix("\n").split("\n")
        name = _NAME.fullmatch(first)
        path = name[1] if name else first
        head = [*takewhile(lambda line: not line.startswith("@@ "), lines)]
        changed = lines[len(head) :]
        size = sum(not line.startswith("@@ ") for line in changed)
        left -= size
        if left >= 0:
            yield _file(path, head, changed)
        else:
            shown = f": {counted(size, 'line')} not shown"
            yield tag("p", tag("code", path), shown, class_="dim")


def _file(path: str, head: list[str], lines: list[str]) -> Node:
    marks = [line[:1] for line in lines]
    title = tag(
        "span",
        tag("code", path),
        " ",
        tag("span", f"+{marks.count('+')}", class_="plus"),
        " ",
        tag("span", f"−{marks.count('-')}", class_="minus"),  # noqa: RUF001 - a true minus
    )
    # modes, renames and `Binary files differ`
    remarks = [line for line in head if not line.startswith(("---", "+++", "index "))]
    lexer = _lexer(path)
    shown = (
        tag("span", *_coloured(line, lexer), class_=LINE_KINDS.get(line[:1])) for line in lines
    )
    return foldable(
        title,
        *(tag("p", remark, class_="dim") for remark in remarks),
        scrollable(f"Changes of {path}", tag("pre", *shown), class_="diff") if lines else None,
        class_="file",
        unfolded=len(lines) <= UNFOLDED_LINES,
    )


def _lexer(path: str) -> "Lexer | None":
    from pygments.lexers import get_lexer_for_filename
    from pygments.util import ClassNotFound

    try:
        return get_lexer_for_filename(path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


def _coloured(line: str, lexer: "Lexer | None") -> Iterator[Node]:
    """One line, highlighted on its own, so that multi-line strings are coloured as code."""
    if lexer is None or line.startswith("@@ ") or len(line) > MAX_LINE_CHARS:
        yield line
        return
    from pygments.token import STANDARD_TYPES

    yield line[:1]
    for kind, value in lexer.get_tokens(line[1:]):
        style = STANDARD_TYPES.get(kind, "")  # as Pygments' own style sheets name it
        yield tag("span", value, class_=style) if style.startswith(COLOURED) else value
