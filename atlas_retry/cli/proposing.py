"""`atlas init`: proposes gates, or asks for one; tries them, and writes the configuration."""

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import process
from atlas_retry.cli import options
from atlas_retry.cli.app import app, examples
from atlas_retry.cli.documents import InitDocument, InitialGate, write
from atlas_retry.cli.idle import idle_gates, placeholder, silent_tests
from atlas_retry.config import init as proposing
from atlas_retry.config import root_of
from atlas_retry.config.init.commands import only_checks
from atlas_retry.config.init.narrowing import without_files
from atlas_retry.config.init.values import Proposal, Proposed, Slot
from atlas_retry.errors import AtlasError, Interrupted, UsageError
from atlas_retry.reports.screen.console import screen
from atlas_retry.reports.screen.lines import aligned
from atlas_retry.run.trying import TriedGate, gate_of, try_all, untried, within_minutes
from atlas_retry.settings import CONFIGURATION_FILES, in_ci
from atlas_retry.text.units import bounded, counted, labelled

MARGINS = 4


@app.command(epilog=examples("atlas init", "atlas init --print --no-try"))
def init(
    path: options.Folder = Path(),
    *,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the configuration without writing it.")
    ] = False,
    no_try: Annotated[bool, typer.Option(help="Do not run each gate once.")] = False,
    json: options.Json = False,
    verbose: options.Verbose = 0,
    plain: options.Plain = False,
) -> None:
    """Look at the project, try its gates once, and write `.atlas/config.yaml`.

    Each gate runs on a copy of the project, at most two minutes; no file of the project changes.
    """
    if not path.is_dir():
        raise UsageError(f"{path.resolve()} is not a directory")
    how = How(print_only=print_only, tries=not no_try, json=json, verbose=verbose, plain=plain)
    initialise(path.resolve(), os.environ, how)


class How(Struct, frozen=True, kw_only=True):
    """The flags of `atlas init`."""

    print_only: bool = False
    tries: bool = True
    json: bool = False
    verbose: int = 0
    plain: bool = False


def initialise(root: Path, environ: Mapping[str, str], how: How) -> None:
    """Write or print the configuration.

    Raises UsageError if a configuration exists, or no gate can start. Interrupted while it tries
    the gates, it writes what it has, and raises.
    """
    if not how.print_only:
        proposing.refuse_to_overwrite(root)
    proposal = _proposal(root, environ)
    if not proposal.gates and not how.print_only:
        proposal = _asked(root, proposal)
    tried, interruption = _tried(root, proposal, environ, how)
    proposal = replace(proposal, choices=tuple(one.choice for one in tried))
    if not proposal.gates:
        raise proposing.nothing_found(root, proposal)
    warnings = tuple(_idle(tried, proposal, root, environ))
    if not how.print_only:
        proposing.write(root, proposal)
        lines = _summary(tried, proposal, how.verbose)
        idle = (f"warning: {warning}" for warning in warnings)
        sys.stderr.write("".join(f"{line}\n" for line in (*lines, *idle)))
    if interruption:
        raise interruption
    if how.json:
        _write_document(tried, proposal, warnings, is_written=not how.print_only)
    elif how.print_only:
        sys.stdout.write(proposing.text_of(proposal))


def _write_document(
    tried: "Sequence[TriedGate]",
    proposal: "Proposal",
    warnings: tuple[str, ...],
    *,
    is_written: bool,
) -> None:
    gates = (
        InitialGate(
            kind=one.choice.slot.kind,
            run=one.choice.run,
            reason=one.choice.reason,
            outcome=one.outcome,
            duration_s=one.duration_s,
        )
        for one in tried
    )
    write(
        InitDocument(
            wrote=CONFIGURATION_FILES[0] if is_written else None,
            configuration=proposing.text_of(proposal),
            gates=tuple(gates),
            warnings=warnings,
            not_understood=proposal.unknown,
        )
    )


def _proposal(path: Path, environ: Mapping[str, str]) -> "Proposal":
    root = root_of(path)
    folder = Path(os.path.realpath(path)).relative_to(root).as_posix()
    return proposing.propose(root, environ, folder)


def _tried(
    root: Path, proposal: "Proposal", environ: Mapping[str, str], how: How
) -> "tuple[tuple[TriedGate, ...], Interrupted | None]":
    """The gates with their outcomes; those after an interrupt are not tried."""
    if not how.tries:
        return untried(proposal.choices), None
    tried: list[TriedGate] = []
    interruption = None
    with screen(environ, plain=how.plain, to_stderr=True) as shown:
        try:
            tried.extend(try_all(root_of(root), proposal.choices, environ, shown))
        except Interrupted as error:
            interruption = error
            shown.write([("interrupted: the other gates are not tried", "warn")])
    rest = untried(proposal.choices[len(tried) :])
    return within_minutes((*tried, *rest)), interruption


class Checks(Struct, frozen=True, kw_only=True):
    """What `atlas validate` runs without a configuration."""

    text: str
    """The configuration."""
    notice: str
    """How many gates run, and what is left out because it cannot only check."""
    absent: tuple[str, ...] = ()
    """A line for each gate that this machine cannot start, with the reason."""
    rest: str = ""
    """How many lines of CI were not understood; empty if none."""
    details: tuple[str, ...] = ()
    """Those lines, and those that nobody runs here with the reason."""


def checking(path: Path, environ: Mapping[str, str], *, local: bool = False) -> Checks:
    """The configuration that init would propose for a folder, with gates that change no file.

    Left out are formatters without a check mode, commands that install something, and what
    cannot start here: the validation then is less than CI's, and says so. Raises UsageError if
    the project has no gate, AtlasError if it has but none can run, or none of CI's unless `local`.
    """
    proposal = _proposal(path, environ)
    doubled = _doubled(proposal.idle)
    asked = [*proposal.gates, *doubled]
    only = [replace(without_files(p), run=only_checks(p.run), obstacle=None) for p in asked]
    writers = [p for p, was in zip(only, asked, strict=True) if _writes(p, was)]
    kept = [p for p in only if p not in writers]
    by_ci = [p for p in proposal.choices if p.in_ci]
    if by_ci and not local and not any(p.in_ci for p in kept):
        raise _nothing_of_ci([*by_ci, *writers], has_others=bool(kept))
    if not kept:
        refusal = proposing.nothing_found(path, proposal)
        raise AtlasError(refusal.message, remedy=refusal.remedy) if proposal.idle else refusal
    return Checks(
        text=proposing.text_of(replace(proposal, choices=tuple(kept), folder=".")),
        notice=_notice(kept, writers, in_ci=in_ci(environ)),
        absent=tuple(_not_run(p) for p in proposal.idle if p not in doubled),
        rest=proposal.rest_of_ci,
        details=_details(proposal),
    )


def _notice(kept: "Sequence[Proposed]", writers: "Sequence[Proposed]", *, in_ci: bool) -> str:
    away = 0 if in_ci else sum(p.only_in_ci for p in kept)
    count = counted(len(kept) - away, "gate")
    line = f"no configuration: running the {count} that atlas init proposes"
    line += f"; left out: {', '.join(p.run for p in writers)}" if writers else ""
    return line + (f"; left to CI: {counted(away, 'gate')} (-v)" if away else "")


def _details(proposal: "Proposal") -> tuple[str, ...]:
    return (
        *(f"left to CI: {gate.run}" for gate in proposal.gates if gate.only_in_ci),
        *(f"not understood: {line}" for line in proposal.unknown),
        *(f"left out: {line}" for line in proposal.left_out),
    )


def _nothing_of_ci(gates: "Sequence[Proposed]", *, has_others: bool) -> AtlasError:
    reasons = {p.run: p.obstacle or "it has no form that only checks" for p in gates}
    lines = "".join(f"\n  {run}: {reason}" for run, reason in reasons.items())
    install = proposing.install_and(gates, "atlas validate")
    local = "to run what CI does not run: atlas validate --local" if has_others else None
    remedies = "\n  ".join(filter(None, (install, local)))
    return AtlasError(f"nothing of CI can run here:{lines}", remedy=remedies or None)


def _doubled(idle: "Iterable[Proposed]") -> "list[Proposed]":
    """Second formatters of CI: where both only check, they need not agree."""
    of_ci = (proposed for proposed in idle if proposed.in_ci)
    return [proposed for proposed in of_ci if proposed.doubled]


def _not_run(proposed: "Proposed") -> str:
    by = "CI runs this gate, this machine did not" if proposed.in_ci else "not run here"
    return f"{by}: {proposed.run}: {proposed.obstacle}"


def _writes(checking: "Proposed", proposed: "Proposed") -> bool:
    """Whether the command changes files even in its check mode."""
    cannot_check = checking.run == proposed.run and not proposed.fix
    return checking.writes or (checking.slot is Slot.FORMAT and cannot_check)


def _asked(root: Path, proposal: "Proposal") -> "Proposal":
    """The proposal with a command from the user. Raises UsageError without a terminal or answer."""
    refusal = proposing.nothing_found(root, proposal)
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise refusal
    sys.stderr.write(f"{refusal}\n")
    with process.interruptible():
        command = typer.prompt(
            "which command checks this project?",
            default="",
            show_default=False,
            prompt_suffix=" ",
            err=True,
        ).strip()
    if not command:
        raise refusal
    return replace(proposal, choices=(*proposal.choices, proposing.answered(command)))


def _idle(
    tried: Sequence["TriedGate"], proposal: "Proposal", root: Path, environ: Mapping[str, str]
) -> Iterator[str]:
    """Warnings of gates that may check nothing."""
    results = (one.result for one in tried if one.result is not None)
    gates = map(gate_of, proposal.gates)
    top = root_of(root)
    idle = idle_gates(gates, top, environ)
    yield from (*placeholder(top, environ), *idle, *silent_tests(results))


def _summary(tried: Sequence["TriedGate"], proposal: "Proposal", verbose: int) -> Iterator[str]:
    yield f"wrote {CONFIGURATION_FILES[0]}"
    every = [("gate", "why", "tried", "time"), *map(_row, tried)]
    first, _, *last = (max(map(len, column)) for column in zip(*every, strict=True))
    room = min(shutil.get_terminal_size((120, 24)).columns, 120) - sum(last) - 2 * MARGINS
    gate = min(room * 3 // 5, first)
    cells = ((bounded(row[0], gate), bounded(row[1], room - gate), *row[2:]) for row in every)
    yield from (f"  {line}" for line in aligned([*cells]).splitlines())
    for choice in proposal.choices:
        if choice.obstacle:
            yield f"warning: left out, as a comment: {choice.run}: {choice.obstacle}"
    yield from proposal.notes
    yield from _details(proposal) if verbose else ()
    if proposal.rest_of_ci:
        yield proposal.rest_of_ci
    yield from labelled("next", "atlas validate")


def _row(one: "TriedGate") -> tuple[str, str, str, str]:
    took = "" if one.duration_s is None else f"{one.duration_s:.1f} s"
    proposed = one.choice
    return f"{proposed.slot.kind}: {proposed.run}", proposed.reason, one.outcome, took
