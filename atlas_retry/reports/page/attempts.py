"""Attempts as HTML: what was asked, changed, refused, fixed and introduced."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

from atlas_retry.model import Attempt, Diagnostic, Outcome, Tokens, Validation
from atlas_retry.reports.findings import Finding, of_attempt
from atlas_retry.reports.page.diff import diff
from atlas_retry.reports.page.elements import Node, foldable, scrollable, tag
from atlas_retry.reports.page.gates import gates
from atlas_retry.reports.page.problems import MAX_LISTED, problems
from atlas_retry.reports.phrases import fraction
from atlas_retry.reports.subject import Subject
from atlas_retry.text.units import counted, seconds, usd

MAX_PROMPT_CHARS = 200_000
UNFOLDED_PATCH_LINES = 60
KINDS = (("fixed", "good"), ("remaining", "warn"), ("introduced", "bad"))


def attempts(subject: Subject, run: Outcome) -> Iterable[Node]:
    """A section per attempt; open is the one that was kept, else the last."""
    open_number = max((a.number for a in run.attempts if a.kept), default=len(run.attempts))
    known = _known((run.baseline, run.final, *(a.validation for a in run.attempts)))
    for attempt in run.attempts:
        patch = subject.patches.get(attempt.number, "")
        prompt = subject.prompts.get(attempt.number, "")
        body = _attempt(attempt, run, known, patch=patch, prompt=prompt)
        is_open = attempt.number == open_number
        folded = foldable(_title(attempt), *body, class_="attempt", unfolded=is_open)
        yield tag("section", folded, id=f"attempt-{attempt.number}")


def _title(attempt: Attempt) -> Node:
    chip = tag("span", "kept", class_="chip good") if attempt.kept else None
    facts = tag("span", *_facts(attempt), class_="facts")
    return tag("span", tag("h2", f"Attempt {attempt.number}", chip), facts)


def _known(validations: Iterable[Validation | None]) -> dict[str, Diagnostic]:
    """Every diagnostic of the run by its fingerprint, the latest wording of each."""
    results = chain.from_iterable(one.results for one in validations if one)
    every = chain.from_iterable(result.diagnostics for result in results)
    return {diagnostic.fingerprint: diagnostic for diagnostic in every}


def _attempt(
    attempt: Attempt, run: Outcome, known: Mapping[str, Diagnostic], *, patch: str, prompt: str
) -> Iterable[Node | None]:
    yield from _words(attempt)
    yield _worse(attempt)
    yield _answers(of_attempt(run, attempt))
    yield tag("div", *(_diagnostics(attempt, known, kind) for kind in KINDS), class_="three")
    yield _changes(attempt, patch)
    yield _gates_afterwards(attempt.validation) if attempt.validation else None
    yield _prompt(attempt, prompt) if prompt else None


def _gates_afterwards(validation: Validation) -> Node:
    return foldable(f"Gates afterwards: {fraction(validation)}", gates(validation))


def _facts(attempt: Attempt) -> Iterable[Node]:
    tokens = attempt.tokens
    facts = (
        " ".join(filter(None, (attempt.agent, attempt.model))),
        seconds(attempt.duration_ms),
        "cost unknown" if attempt.cost_usd is None else usd(attempt.cost_usd),
        _tokens(tokens) if tokens != Tokens() else "",
        counted(attempt.transport_retries, "transport retry").replace("retrys", "retries")
        if attempt.transport_retries
        else "",
        fraction(attempt.validation) if attempt.validation else "not validated",
    )
    return [tag("span", fact) for fact in facts if fact]


def _tokens(tokens: Tokens) -> str:
    cached = f", {tokens.cache_read:,} from the cache" if tokens.cache_read else ""
    return f"{tokens.input:,} tokens in{cached}, {tokens.output:,} out"


def _words(attempt: Attempt) -> Iterable[Node]:
    if attempt.error:
        yield tag("p", tag("strong", "The agent erred: "), attempt.error, class_="bad box")
    if attempt.gave_up:
        yield tag("p", tag("strong", "The agent gave up: "), attempt.gave_up, class_="warn box")
    if attempt.summary.strip():
        yield tag("blockquote", attempt.summary.strip())


def _worse(attempt: Attempt) -> Node | None:
    if not attempt.worse:
        return None
    text = "This left things worse than before: nothing was built on it."
    return tag("p", text, class_="warn box")


def _answers(found: Sequence[Finding]) -> Node | None:
    if not found:
        return None
    items = [
        tag(
            "li",
            tag("code", f.where),
            " ",
            tag("code", f.seen.rule, class_="rule"),
            f" {f.sentence}",
        )
        for f in found
    ]
    heading = tag("p", tag("strong", "What the guard answered"))
    return tag("div", heading, tag("ul", *items, class_="answers"), class_="warn box")


def _diagnostics(attempt: Attempt, known: Mapping[str, Diagnostic], kind: tuple[str, str]) -> Node:
    word, weight = kind
    prints: tuple[str, ...] = getattr(attempt, word)
    each = dict.fromkeys(prints)
    diagnostics = [known.get(print_) or Diagnostic(tool="", message=print_) for print_ in each]
    title = tag(
        "span", tag("b", str(len(prints)), class_=weight if diagnostics else "dim"), f" {word}"
    )
    if not diagnostics:
        return tag("p", title, class_="none")
    left_out = len(diagnostics) - MAX_LISTED
    listed = problems(diagnostics[:MAX_LISTED], f"{left_out} more" if left_out > 0 else "")
    return foldable(title, listed)


def _changes(attempt: Attempt, patch: str) -> Node:
    title = counted(len(attempt.changes), "changed file")
    small = patch.count("\n") <= UNFOLDED_PATCH_LINES
    if patch:
        return foldable(title, *diff(patch), unfolded=small)
    items = [tag("li", tag("code", c.path), f" {c.status}") for c in attempt.changes]
    return foldable(title, tag("ul", *items)) if items else tag("p", title, class_="none")


def _prompt(attempt: Attempt, prompt: str) -> Node:
    title = f"Prompt ({attempt.prompt_chars or len(prompt):,} characters)"
    shown = prompt[:MAX_PROMPT_CHARS]
    return foldable(title, scrollable(title, tag("pre", shown)), class_="output")
