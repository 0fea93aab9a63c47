"""`atlas init`: looks at a project and writes the configuration that it would have written."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from atlas_retry.config.init.detect import choose, detect, not_understood
from atlas_retry.config.init.machine import Folder, Machine
from atlas_retry.config.init.project import ProjectFiles
from atlas_retry.config.init.text import configuration
from atlas_retry.config.init.values import Proposal
from atlas_retry.errors import UsageError

CONFIGURATION = Path(".atlas/config.yaml")
OTHERS = (CONFIGURATION, Path("atlas.yaml"))


def propose(root: Path, environ: Mapping[str, str]) -> Proposal:
    """The gates that the project at `root` seems to use. Starts nothing and writes nothing."""
    files, machine = Folder(root), Machine(root, environ)
    found = [machine.settled(proposed) for proposed in detect(files)]
    choices = choose(found, machine.obstacle)
    unreadable = ProjectFiles(files).unreadable()
    unknown = not_understood(files, found)
    notes = (
        *(f"{path} cannot be read and was left out." for path in unreadable),
        *([f"not understood: {', '.join(unknown)}"] if unknown else []),
    )
    return Proposal(
        text=configuration(choices, notes),
        gates=tuple(choice.proposed for choice in choices if choice.obstacle is None),
        idle=tuple(choice for choice in choices if choice.obstacle),
        notes=notes,
    )


def write_configuration(root: Path, environ: Mapping[str, str], *, print_only: bool) -> int:
    """Write `.atlas/config.yaml` below `root`, or print it; the exit code of `atlas init`.

    Raises UsageError if there is a configuration already, or no gate that can start.
    """
    there = next((path for path in OTHERS if (root / path).exists()), None)
    if there and not print_only:
        raise UsageError(
            f"{root / there} is there already, and is never overwritten",
            remedy="atlas init --print shows what it would write",
        )
    proposal = propose(root, environ)
    if print_only:
        sys.stdout.write(proposal.text)
        return 0
    if not proposal.gates:
        raise UsageError(
            _nothing(root, proposal), remedy="write one gate yourself: atlas init --help"
        )
    _write(root / CONFIGURATION, proposal.text)
    sys.stderr.write("".join(f"{line}\n" for line in _told(proposal)))
    return 0


def _nothing(root: Path, proposal: Proposal) -> str:
    if not proposal.idle:
        return f"nothing in {root} says how it is checked"
    reasons = "; ".join(f"{choice.proposed.run}: {choice.obstacle}" for choice in proposal.idle)
    return f"no gate of {root} can start here: {reasons}"


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def _told(proposal: Proposal) -> Iterator[str]:
    yield f"wrote {CONFIGURATION}"
    for gate in proposal.gates:
        yield f"  {gate.slot.kind:<10} {gate.run}"
    for choice in proposal.idle:
        yield f"  left out   {choice.proposed.run}: {choice.obstacle}"
    yield from proposal.notes
    yield "next: atlas validate"
