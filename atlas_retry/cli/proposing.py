"""`atlas init`: proposes gates, or asks for one; tries them, and writes the configuration."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.errors import AtlasError, Interrupted, UsageError
from atlas_retry.reports.screen.console import screen
from atlas_retry.reports.screen.lines import aligned
from atlas_retry.settings import CONFIGURATION_FILES
from atlas_retry.text.units import bounded, copyable, counted

if TYPE_CHECKING:
    from atlas_retry.config.init.values import Proposal, Proposed
    from atlas_retry.run.trying import TriedGate

MARGINS = 4


def init(
    path: Path = Path(),
    *,
    print_only: bool = False,
    no_try: bool = False,
    plain: bool = False,
) -> int:
    """Look at the project, try its gates once, and write `.atlas/config.yaml`.

    Each gate runs on a copy of the project, at most two minutes; no file of the project changes.
    """
    tries = not no_try
    return initialise(path.resolve(), os.environ, print_only=print_only, tries=tries, plain=plain)


def initialise(
    root: Path, environ: Mapping[str, str], *, print_only: bool, tries: bool, plain: bool
) -> int:
    """Write or print the configuration, and return the exit code.

    Raises UsageError if a configuration exists, or no gate can start.
    """
    from atlas_retry.config import init as proposing
    from atlas_retry.run.trying import try_all, untried

    if not root.is_dir():
        raise UsageError(f"{root} is not a directory")
    if not print_only:
        proposing.refuse_to_overwrite(root)
    proposal = proposing.propose(root, environ)
    if not proposal.gates and not print_only:
        proposal = _asked(root, proposal)
    tried = untried(proposal.choices)
    if tries:
        with screen(environ, plain=plain, to_stderr=True) as shown:
            try:
                tried = try_all(root, proposal.choices, environ, shown)
            except Interrupted:
                shown.write([("interrupted: no configuration is written", "warn")])
                raise
    proposal = replace(proposal, choices=tuple(one.choice for one in tried))
    if print_only:
        sys.stdout.write(proposing.text_of(proposal))
        return 0
    if not proposal.gates:
        raise proposing.nothing_found(root, proposal)
    proposing.write(root, proposal)
    sys.stderr.write("".join(f"{line}\n" for line in _summary(tried, proposal)))
    return 0


class Checks(Struct, frozen=True, kw_only=True):
    """What `atlas validate` runs without a configuration."""

    text: str
    """The configuration."""
    notice: str
    """How many gates run, and what is left out because it cannot only check."""
    absent: tuple[str, ...] = ()
    """A line for each gate that this machine cannot start, with the reason."""


def checking(root: Path, environ: Mapping[str, str]) -> Checks:
    """The configuration that init would propose, with gates that change no file.

    Left out are formatters without a check mode, commands that install something, and what
    cannot start here: the validation then is less than CI's, and says so. Raises UsageError if
    the project has no gate, AtlasError if it has but none can run.
    """
    from atlas_retry.config import init as proposing
    from atlas_retry.config.init.commands import only_checks

    proposal = proposing.propose(root, environ)
    doubled = _doubled(proposal.idle)
    asked = [*proposal.gates, *doubled]
    only = [replace(p, run=only_checks(p.run), obstacle=None) for p in asked]
    writers = [p for p, was in zip(only, asked, strict=True) if _writes(p, was)]
    kept = [p for p in only if p not in writers]
    if not kept:
        refusal = proposing.nothing_found(root, proposal)
        raise AtlasError(refusal.message, remedy=refusal.remedy) if proposal.idle else refusal
    line = f"no configuration: running the {counted(len(kept), 'gate')} that atlas init proposes"
    left = f"; left out: {', '.join(p.run for p in writers)}" if writers else ""
    return Checks(
        text=proposing.text_of(replace(proposal, choices=tuple(kept))),
        notice=line + left,
        absent=tuple(_not_run(p) for p in proposal.idle if p not in doubled),
    )


def _doubled(idle: "Iterable[Proposed]") -> "list[Proposed]":
    """Second formatters of CI: where both only check, they need not agree."""
    of_ci = (proposed for proposed in idle if proposed.in_ci)
    return [proposed for proposed in of_ci if proposed.doubled]


def _not_run(proposed: "Proposed") -> str:
    by = "CI runs this gate, this machine did not" if proposed.in_ci else "not run here"
    return f"{by}: {proposed.run}: {proposed.obstacle}"


def _writes(checking: "Proposed", proposed: "Proposed") -> bool:
    """Whether the command changes files even in its check mode."""
    from atlas_retry.config.init.values import Slot

    cannot_check = checking.run == proposed.run and not proposed.fix
    return checking.writes or (checking.slot is Slot.FORMAT and cannot_check)


def _asked(root: Path, proposal: "Proposal") -> "Proposal":
    """The proposal with a command from the user. Raises UsageError without a terminal or answer."""
    from atlas_retry.config import init as proposing

    refusal = proposing.nothing_found(root, proposal)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise refusal
    sys.stderr.write(f"{refusal}\n")
    command = typer.prompt(
        "which command checks this project?", default="", show_default=False, err=True
    ).strip()
    if not command:
        raise refusal
    return replace(proposal, choices=(*proposal.choices, proposing.answered(command)))


def _summary(tried: Sequence["TriedGate"], proposal: "Proposal") -> Iterator[str]:
    yield f"wrote {CONFIGURATION_FILES[0]}"
    every = [("gate", "why", "tried", "time"), *map(_row, tried)]
    first, _, *last = (max(map(len, column)) for column in zip(*every, strict=True))
    room = min(shutil.get_terminal_size().columns, 120) - sum(last) - 2 * MARGINS
    gate = min(room * 3 // 5, first)
    cells = ((bounded(row[0], gate), bounded(row[1], room - gate), *row[2:]) for row in every)
    yield from (f"  {line}" for line in aligned([*cells]).splitlines())
    yield from proposal.notes
    yield from copyable("next", "atlas validate")


def _row(one: "TriedGate") -> tuple[str, str, str, str]:
    took = "" if one.duration_s is None else f"{one.duration_s:.1f} s"
    proposed = one.choice
    return f"{proposed.slot.kind}: {proposed.run}", proposed.reason, one.outcome, took
