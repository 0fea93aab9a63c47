"""Commit message of a delivered run, and its form as a comment in Markdown."""

from itertools import chain

from msgspec import Struct

from atlas_retry.model import Attempt, GateCourse
from atlas_retry.reports.markdown import fenced, one_line
from atlas_retry.reports.phrases import plain
from atlas_retry.text.units import counted, usd

MARK = "<!-- atlas deliver -->"
"""First line of the comment, by which a later delivery finds and updates it."""
MAX_SUBJECT_CHARS = 72


class Delivery(Struct, frozen=True, kw_only=True):
    """A run that ended green."""

    run_id: str
    gates: tuple[GateCourse, ...]
    attempts: tuple[Attempt, ...]
    cost_usd: float
    trailer: str
    """Name of the trailer that distinguishes the commit from a person's."""

    @property
    def repaired(self) -> tuple[GateCourse, ...]:
        return tuple(gate for gate in self.gates if gate.before is not gate.after)


def title(delivery: Delivery) -> str:
    """Subject of the commit: `Make lint and test pass`."""
    kinds = list(dict.fromkeys(gate.kind.value for gate in delivery.repaired)) or ["the checks"]
    *others, last = kinds
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"Make {listed} pass"[:MAX_SUBJECT_CHARS]


def message(delivery: Delivery) -> str:
    """The commit message, the trailer last."""
    gates = []
    for gate in delivery.gates:
        course = gate.after if gate.before is gate.after else f"{gate.before} -> {gate.after}"
        gates.append(f"{_plain_line(gate.name)} ({gate.kind}): {course.replace('_', ' ')}")
    every = chain.from_iterable(attempt.held for attempt in delivery.attempts)
    held = (
        f"held, and not in this commit: {_plain_line(path)} ({rule})"
        for path, rule in dict.fromkeys((held.path, held.rule) for held in every)
    )
    is_known = any(attempt.cost_usd is not None for attempt in delivery.attempts)
    cost = usd(delivery.cost_usd) if is_known or not delivery.attempts else "cost not reported"
    effort = f"{counted(len(delivery.attempts), 'attempt')}, {cost}"
    lines = [f"- {line}" for line in (*gates, effort, *held)]
    trailer = f"{delivery.trailer}: {delivery.run_id}"
    return "\n".join([title(delivery), "", *lines, "", trailer, ""])


def comment(text: str, commit: str) -> str:
    """The commit message as a comment without mentions and links."""
    subject, _, body = text.partition("\n")
    lines = (MARK, f"## {one_line(subject)}", f"commit {commit}", fenced(body.strip()))
    return "\n\n".join(lines) + "\n"


def _plain_line(text: str) -> str:
    return " ".join(plain(text).split())
