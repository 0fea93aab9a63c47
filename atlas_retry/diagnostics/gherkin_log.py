"""Parses what behave and the Cucumbers print of a scenario: steps, each with its place."""

from collections.abc import Iterator, Sequence

from atlas_retry.diagnostics.failures import (
    above,
    failure,
    javascript_frames,
    last_exception,
    matching,
    python_frames,
    ruby_frames,
    titled,
)
from atlas_retry.diagnostics.values import Located, Log, parses
from atlas_retry.model import Frame
from atlas_retry.patterns import regex

# https://behave.readthedocs.io/en/stable/formatters; https://cucumber.io/docs/cucumber/reporting:
# the formatters `plain`, `pretty` and `progress`, and godog's
_SCENARIO = regex(
    r" *(?:\d+\) )?(?:Scenario(?: Outline| Template)?|Example): (?P<test>\S.*?)"
    r" +# (?P<path>[^\s:]+\.feature):(?P<line>\d{1,9})$"
)
_END = regex(r"(?:Failing|Errored|Failed|Undefined|Flaky) [Ss]cenarios:|--- Failed steps:|\d+ \w+")
_STEP = regex(
    r" *(?:[✔✖?\u2013↷-] )?(?:Given|When|Then|And|But|Before|After)\b.*?(?: +# (?P<where>\S+).*)?$"
)
_TABLE = regex(r' *(?:\||"""|```|@|$)')
_STACK = regex(r" +at | +Traceback |.*\.rb:\d")
_LISTED = regex(r" +(?P<path>\S+\.feature):(?P<line>\d{1,9}) {2}\S")
"""Of behave, which places a skipped step as it does an undefined one."""


@parses(
    "gherkin",
    commands=("behave", "cucumber", "cucumber-js", "godog"),
    marks=(".feature:",),
)
def gherkin(log: Log) -> Iterator[Located]:
    """The scenarios in which a step has no definition, or something else than steps is printed."""
    listed = {(m["path"], m["line"]) for m in matching(log.lines, _LISTED).values()}
    for first, last, title in titled(log.lines, _SCENARIO, _END):
        body = log.lines[first + 1 : last + 1]
        steps = matching(body, _STEP)
        other = {*range(min(steps, default=0), len(body))} - {*steps} - {*matching(body, _TABLE)}
        error = min(other, default=len(body))
        where = title.groupdict()
        unplaced = (None, "None") if (where["path"], where["line"]) in listed else (None,)
        missing = next((n for n in steps if steps[n]["where"] in unplaced), len(body))
        if missing < error:
            said = (_name(body[missing]), "undefined step")
            problem = failure("gherkin", said, (), title["test"], where)
            yield Located(problem, first, last)
        elif error < len(body):
            step = body[max(filter(error.__gt__, steps), default=error)]
            below = next(filter(error.__lt__, steps), len(body))
            printed, frames = _said(body[error:below])
            problem = failure("gherkin", (_name(step), *printed), frames, title["test"], where)
            yield Located(problem, first, last)


def _name(step: str) -> str:
    return step.partition(" # ")[0].strip(" ✖?")


def _said(lines: Sequence[str]) -> tuple[Sequence[str], tuple[Frame, ...]]:
    """The message of an error below a step, and its stack."""
    if frames := python_frames(lines):
        plain = [line.strip() for line in lines if not line.isspace()]
        return last_exception(plain)[1].split("\n"), frames
    message = [line.strip() for line in above(lines, _STACK)]
    return message, javascript_frames(lines) or ruby_frames(lines)
