"""Parses what behave and the Cucumbers print of a scenario: steps, each with its place."""

from collections.abc import Iterator

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
_UNDEFINED = (None, "None")


@parses(
    "gherkin",
    commands=("behave", "cucumber", "cucumber-js", "godog"),
    marks=(".feature:",),
)
def gherkin(log: Log) -> Iterator[Located]:
    """The scenarios in which a step has no definition, or something else than steps is printed."""
    for first, last, title in titled(log.lines, _SCENARIO, _END):
        body = log.lines[first + 1 : last + 1]
        steps = matching(body, _STEP)
        tables = matching(body, _TABLE)
        printed = sorted({*range(len(body))} - {*steps} - {*tables})
        undefined = next((n for n in steps if steps[n]["where"] in _UNDEFINED), len(body))
        error = next((n for n in printed if n > min(steps, default=0)), len(body))
        failed = undefined if undefined < error else max((n for n in steps if n < error), default=0)
        if min(undefined, error) == len(body):
            continue
        step = body[failed].partition(" # ")[0].strip(" ✖?")
        said = body[error : next((n for n in steps if n > error), len(body))]
        frames = python_frames(said) or javascript_frames(said) or ruby_frames(said)
        exception = last_exception([line.strip() for line in said if not line.isspace()])[1]
        text = exception.split("\n") if python_frames(said) else above(said, _STACK)
        message = ["undefined step"] if undefined < error else map(str.strip, text)
        where = title.groupdict()
        problem = failure("gherkin", (step, *message), frames, title["test"], where)
        yield Located(problem, first, last)
