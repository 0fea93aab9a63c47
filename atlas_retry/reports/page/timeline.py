"""Where a run's time went, as one strip: gates, agent, gates ...; nothing about results."""

from collections.abc import Iterator
from itertools import accumulate

from msgspec import Struct

from atlas_retry.model import Outcome, Validation
from atlas_retry.reports.page.elements import Node, tag
from atlas_retry.reports.phrases import fraction
from atlas_retry.text.units import seconds


class Phase(Struct, frozen=True, kw_only=True):
    """One stretch of a run."""

    label: str
    target: str
    """Id of the section that tells more."""
    duration_ms: int
    weight: str
    """Class of its colour: agent, good, bad."""


def phases(run: Outcome) -> Iterator[Phase]:
    """The baseline, then each agent turn and the validation after it."""
    yield _validated("Baseline", "baseline", run.baseline)
    for attempt in run.attempts:
        name = f"Attempt {attempt.number}"
        target = f"attempt-{attempt.number}"
        yield Phase(
            label=f"{name}: agent",
            target=target,
            duration_ms=attempt.duration_ms,
            weight="agent",
        )
        if attempt.validation:
            yield _validated(name, target, attempt.validation)


def _validated(name: str, target: str, validation: Validation) -> Phase:
    return Phase(
        label=f"{name}: {fraction(validation)}",
        target=target,
        duration_ms=validation.duration_ms,
        weight="good" if validation.success else "bad",
    )


def timeline(run: Outcome) -> Node:
    """The strip, and the same as a list with links."""
    shown = tuple(phases(run))
    return tag(
        "div", _strip(shown), tag("ol", *map(_item, shown), class_="phases"), class_="timeline"
    )


def _strip(shown: tuple[Phase, ...]) -> Node:
    widths = [max(phase.duration_ms, 1) for phase in shown]
    total = sum(widths)
    starts = accumulate(widths, initial=0)
    pieces = [
        tag(
            "rect",
            tag("title", f"{phase.label} ({seconds(phase.duration_ms)})"),
            x=f"{1000 * start / total:.2f}",
            width=f"{max(1000 * width / total - 1.5, 1.5):.2f}",
            height="24",
            class_=phase.weight,
        )
        for phase, start, width in zip(shown, starts, widths, strict=False)
    ]
    return tag(
        "svg",
        *pieces,
        viewBox="0 0 1000 24",
        preserveAspectRatio="none",
        role="img",
        aria_label="Timeline; the list below says the same",
    )


def _item(phase: Phase) -> Node:
    return tag(
        "li",
        tag("span", class_=f"dot {phase.weight}"),
        tag("a", phase.label, href=f"#{phase.target}"),
        tag("span", seconds(phase.duration_ms), class_="time"),
    )
