"""What a run that is delivered has done: a commit message, and a comment in Markdown."""

from collections.abc import Iterator

from msgspec import Struct

from atlas_retry.model import Attempt, GateCourse, Verdict
from atlas_retry.reports.markdown import code, one_line
from atlas_retry.reports.phrases import VERDICTS, counted, plain
from atlas_retry.text.units import usd

MARK = "<!-- atlas deliver -->"
"""By it the comment is found again that is to be updated."""
MAX_SUBJECT_CHARS = 72


class Delivery(Struct, frozen=True, kw_only=True):
    """A run that ended green."""

    run_id: str
    verdict: Verdict
    gates: tuple[GateCourse, ...]
    attempts: tuple[Attempt, ...]
    cost_usd: float
    trailer: str
    """Name of the line by which the commit can be told from a person's."""

    @property
    def repaired(self) -> tuple[GateCourse, ...]:
        return tuple(gate for gate in self.gates if gate.before is not gate.after)


def title(delivery: Delivery) -> str:
    """`Make lint and test pass`."""
    kinds = list(dict.fromkeys(gate.kind.value for gate in delivery.repaired)) or ["the checks"]
    *others, last = kinds
    listed = f"{', '.join(others)} and {last}" if others else last
    return f"Make {listed} pass"[:MAX_SUBJECT_CHARS]


def message(delivery: Delivery) -> str:
    """The commit message, the trailer last."""
    lines = [
        title(delivery),
        "",
        *(f"- {_plain_line(g.name)} ({g.kind}): {_course(g)}" for g in delivery.gates),
        f"- {_cost(delivery)}",
        *(
            f"- held, and not in this commit: {_plain_line(where)} ({rule})"
            for where, rule in _held(delivery)
        ),
    ]
    return "\n".join([*lines, "", f"{delivery.trailer}: {delivery.run_id}", ""])


def comment(delivery: Delivery, commit: str) -> str:
    """The same for a pull request."""
    lines = [
        MARK,
        f"## {one_line(VERDICTS[delivery.verdict])}: {one_line(title(delivery))}",
        "",
        f"{_cost(delivery)} · run {code(delivery.run_id)} · commit {commit}",
        "",
        "| gate | before | after |",
        "| --- | --- | --- |",
    ]
    lines += [f"| {one_line(g.name)} ({g.kind}) | {g.before} | {g.after} |" for g in delivery.gates]
    if held := list(_held(delivery)):
        lines += ["", "Held, and not in the commit; a person can accept it:", ""]
        lines += [f"- {code(where)}: {code(rule)}" for where, rule in held]
    return "\n".join([*lines, ""])


def _course(gate: GateCourse) -> str:
    if gate.before is gate.after:
        return gate.after.value.replace("_", " ")
    return f"{gate.before} -> {gate.after}".replace("_", " ")


def _cost(delivery: Delivery) -> str:
    return f"{counted(len(delivery.attempts), 'attempt')}, {usd(delivery.cost_usd)}"


def _held(delivery: Delivery) -> Iterator[tuple[str, str]]:
    found = ((held.path, held.rule) for attempt in delivery.attempts for held in attempt.held)
    yield from dict.fromkeys(found)


def _plain_line(text: str) -> str:
    return " ".join(plain(text).split())
