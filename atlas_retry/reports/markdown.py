"""A run in GitHub's Markdown, for a step summary or a comment; bounded, as both have limits."""

import re
from collections.abc import Iterable, Iterator

from atlas_retry.model import Attempt, Diagnostic, GateResult, Outcome, Status
from atlas_retry.reports.phrases import complaints, counted, fraction, headline, place, plain
from atlas_retry.reports.subject import Subject
from atlas_retry.units import seconds, usd

MARKS = {
    Status.PASSED: "✅",
    Status.FAILED: "❌",
    Status.TIMED_OUT: "⏱️",
    Status.BROKEN: "🛠️",
    Status.VACUOUS: "🫥",
    Status.FLAKY: "⚠️",
    Status.SKIPPED: "⏭️",
}
MAX_COMPLAINTS, MAX_MESSAGE_CHARS, MAX_TAIL_CHARS = 30, 400, 2_000
_SPECIAL = re.compile(r"[^\w\s.,;/()'\"=+%?-]|_")


def report(subject: Subject) -> str:
    """Verdict, table of gates, attempts, and what still fails."""
    mark = "✅" if subject.success else "❌"
    told = [f"## {mark} {_text(subject.workspace.name)}: {_text(headline(subject))}", ""]
    if subject.run:
        told += _run(subject.run)
    told += _gates(subject.validation.results)
    for result in subject.validation.results:
        if not result.success:
            told += _failure(result)
    return "\n".join(told).rstrip() + "\n"


def _run(run: Outcome) -> Iterator[str]:
    if run.final_error:
        yield f"{_text(run.final_error)}."
    attempts = counted(len(run.attempts), "attempt")
    yield f"{attempts} · {seconds(run.duration_ms)} · {usd(run.cost_usd)}"
    if run.remedy:
        yield f"Next: {_code(run.remedy)}"
    yield ""
    if run.attempts:
        yield "| attempt | agent | fixed | remaining | introduced | files | cost | gates |"
        yield "| --: | --- | --: | --: | --: | --: | --: | --- |"
        yield from map(_attempt, run.attempts)
        yield ""
    for attempt in run.attempts:
        for violation in attempt.violations:
            where = _code(f"{violation.path}:{violation.line or ''}".rstrip(":"))
            yield f"- attempt {attempt.number}, refused by the guard: {where} " + _text(
                f"{violation.rule}: {violation.detail}"
            )
    yield ""


def _attempt(attempt: Attempt) -> str:
    cells = (
        f"{attempt.number}{' (kept)' if attempt.kept else ''}",
        _text(" ".join(filter(None, (attempt.agent, attempt.model)))),
        str(len(attempt.fixed)),
        str(len(attempt.remaining)),
        str(len(attempt.introduced)),
        str(len(attempt.changes)),
        "?" if attempt.cost_usd is None else usd(attempt.cost_usd),
        fraction(attempt.validation) if attempt.validation else "not validated",
    )
    return f"| {' | '.join(cells)} |"


def _gates(results: Iterable[GateResult]) -> Iterator[str]:
    yield "| | gate | command | time | problems |"
    yield "| --- | --- | --- | --: | --: |"
    for result in results:
        optional = "" if result.required else " (optional)"
        status = result.status.replace("_", " ")
        yield (
            f"| {MARKS[result.status]} {status} | {_text(result.name)}{optional} "
            f"| {_code(result.command)} | {seconds(result.duration_ms)} "
            f"| {len(result.diagnostics) or ''} |"
        )
    yield ""


def _failure(result: GateResult) -> Iterator[str]:
    yield f"<details open><summary><b>{_text(result.name)}</b>: {_text(result.error or '')}"
    yield "</summary>"
    yield ""
    told = complaints(result)
    yield from map(_complaint, told[:MAX_COMPLAINTS])
    if len(told) > MAX_COMPLAINTS:
        yield f"- and {len(told) - MAX_COMPLAINTS} more"
    yield ""
    tail = plain((result.stderr or result.stdout).strip())[-MAX_TAIL_CHARS:]
    if tail and not result.diagnostics:
        yield from _fenced(tail)
    yield "</details>"
    yield ""


def _complaint(complaint: Diagnostic) -> str:
    where = place(complaint)
    rule = f" {_code(complaint.rule_id)}" if complaint.rule_id else ""
    message = complaint.message.strip()[:MAX_MESSAGE_CHARS]
    return f"- {_code(where) if where else ''}{rule} {_text(message)}"


def _fenced(text: str) -> Iterator[str]:
    """A fence longer than any run of backticks inside."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}text"
    yield text
    yield fence
    yield ""


def _text(text: str) -> str:
    """One line in which no character means anything to Markdown or HTML."""
    one_line = " ".join(plain(text).split())
    return _SPECIAL.sub(lambda found: f"&#{ord(found[0])};", one_line)


def _code(text: str) -> str:
    return f"<code>{_text(text)}</code>"
