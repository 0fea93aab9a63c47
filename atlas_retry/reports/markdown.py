"""A run in GitHub's Markdown, of bounded size, for a step summary or a comment."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from atlas_retry.diagnostics.counting import counts_of, problem_trend
from atlas_retry.model import AnswerWord, Attempt, Diagnostic, GateResult, Outcome
from atlas_retry.patterns import regex
from atlas_retry.reports.findings import TOOL, Finding, of_run
from atlas_retry.reports.phrases import gate_history, headline, next_steps, plain, sparkline
from atlas_retry.reports.problems import SIGNS, listed, more, place, position, tally
from atlas_retry.reports.subject import Subject
from atlas_retry.text.units import NOT_REPORTED, counted, seconds, spent, usd

MAX_PROBLEMS, MAX_MESSAGE_CHARS, MAX_TAIL_CHARS = 30, 400, 2_000
_SPECIAL = regex(r"[^\w\s.,;/()'\"=+%?-]|_")


def report(subject: Subject) -> str:
    """Verdict, attempts, table of gates, and remaining failures."""
    mark = "✅" if subject.success else "❌"
    lines = [f"## {mark} {one_line(subject.workspace.name)}: {one_line(headline(subject))}", ""]
    if subject.run:
        lines += _run(subject.run)
    lines += _gates(subject.validation.results)
    for result in subject.validation.results:
        if not result.success:
            lines += _failure(result)
    return "\n".join(lines).rstrip() + "\n"


def _run(run: Outcome) -> Iterator[str]:
    if run.final_error:
        yield f"{one_line(run.final_error)}."
    attempts = counted(len(run.attempts), "attempt")
    yield f"{attempts} · {seconds(run.duration_ms)} · {spent(run)}"
    if problems := problem_trend(run):
        yield f"Problems: {one_line(problems)} {sparkline(counts_of(run)).strip()}"
    yield from (f"{one_line(text)}: {code(command)}" for text, command in next_steps(run))
    yield ""
    if run.attempts:
        yield "| attempt | agent | fixed | remaining | introduced | files | cost | gates |"
        yield "| --: | --- | --: | --: | --: | --: | --: | --- |"
        yield from map(_attempt, run.attempts)
        yield ""
        # each gate's status at the start and after each attempt
        columns = ["start", *(str(a.number) for a in run.attempts if a.validation)]
        yield f"| gate | {' | '.join(columns)} |"
        yield f"| --- |{' :-: |' * len(columns)}"
        for name, results in gate_history(run):
            marks = (SIGNS[result.status] if result else "" for result in results)
            yield f"| {one_line(name)} | {' | '.join(marks)} |"
        yield ""
    yield from _answers(of_run(run))


def guard_summary(findings: Sequence[Finding]) -> str:
    """The guard's answers to a change outside a run."""
    number = Counter(finding.answer.word for finding in findings)
    counts = ", ".join(f"{number[word]} {word}" for word in AnswerWord if number[word])
    mark = "❌" if number[AnswerWord.REFUSED] else "✅"
    lines = [f"## {mark} {TOOL}: {counts or 'nothing is refused, held or noted'}", ""]
    return "\n".join([*lines, *_answers(findings)]).rstrip() + "\n"


def _answers(findings: Sequence[Finding]) -> Iterator[str]:
    if not findings:
        return
    yield "| path | answer | rule | detail |"
    yield "| --- | --- | --- | --- |"
    for one in findings[:MAX_PROBLEMS]:
        short = replace(one.answer, detail=one.answer.detail[:MAX_MESSAGE_CHARS])
        detail = one_line(replace(one, answer=short).sentence.removeprefix(one.fate).lstrip(".: "))
        where, rule = code(one.answer.where), code(one.answer.rule)
        yield f"| {where} | {one_line(one.fate)} | {rule} | {detail} |"
    yield ""
    if (left := len(findings) - MAX_PROBLEMS) > 0:
        yield from (f"And {counted(left, 'more answer')}.", "")


def _attempt(attempt: Attempt) -> str:
    fate = " (kept)" if attempt.kept else " (worse)" if attempt.worse else ""
    cells = (
        f"{attempt.number}{fate}",
        one_line(" ".join(filter(None, (attempt.agent, attempt.model)))),
        *map(
            str, map(len, (attempt.fixed, attempt.remaining, attempt.introduced, attempt.changes))
        ),
        NOT_REPORTED if attempt.cost_usd is None else usd(attempt.cost_usd),
        attempt.validation.counts if attempt.validation else "not validated",
    )
    return f"| {' | '.join(cells)} |"


def _gates(results: Iterable[GateResult]) -> Iterator[str]:
    yield "| | gate | command | time | problems |"
    yield "| --- | --- | --- | --: | --: |"
    for result in results:
        optional = "" if result.required else " (optional)"
        cells = (
            f"{SIGNS[result.status]} {result.status.replace('_', ' ')}",
            f"{one_line(result.name)}{optional}",
            code(result.command),
            seconds(result.duration_ms),
            tally(result),
        )
        yield f"| {' | '.join(cells)} |"
    yield ""


def _failure(result: GateResult) -> Iterator[str]:
    yield f"<details open><summary><b>{one_line(result.name)}</b>: {one_line(result.error or '')}"
    yield from ("</summary>", "")
    shown = listed(result)[:MAX_PROBLEMS]
    yield from map(_problem, shown)
    if left := more(result, shown):
        yield f"- and {left}"
    yield ""
    tail = plain((result.stderr or result.stdout).strip())[-MAX_TAIL_CHARS:]
    if tail and not result.diagnostics:
        yield from (fenced(tail), "")
    yield from ("</details>", "")


def _problem(problem: Diagnostic) -> str:
    where = place(problem)
    rule = f" {code(problem.rule_id)}" if problem.rule_id else ""
    message = problem.message.strip()[:MAX_MESSAGE_CHARS]
    at = f" ({code(position(problem))})" if problem.test_id and problem.path else ""
    return f"- {code(where) if where else ''}{rule} {one_line(message)}{at}"


def fenced(text: str) -> str:
    """A code block with a fence longer than any run of backticks inside."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{text}\n{fence}"


def one_line(text: str) -> str:
    """One line with all special characters of Markdown and HTML escaped."""
    return _SPECIAL.sub(lambda match: f"&#{ord(match[0])};", " ".join(plain(text).split()))


def code(text: str) -> str:
    """One line of inline code."""
    return f"<code>{one_line(text)}</code>"
