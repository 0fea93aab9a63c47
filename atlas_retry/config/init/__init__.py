"""`atlas init`: looks at a project and writes the configuration that it would have written."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from atlas_retry.config.init.detect import choose, detect, not_understood
from atlas_retry.config.init.machine import Machine
from atlas_retry.config.init.project import Folder, ProjectFiles
from atlas_retry.config.init.text import configuration
from atlas_retry.config.init.values import Proposal, Proposed, Slot
from atlas_retry.errors import UsageError

CONFIGURATION = Path(".atlas/config.yaml")
OTHERS = (CONFIGURATION, Path("atlas.yaml"))
COMMANDS = {
    ".py": "python -m unittest", ".swift": "swift test", ".go": "go test ./...",
    ".rs": "cargo test", ".ts": "npx tsc --noEmit", ".js": "node --test", ".rb": "rake test",
    ".java": "mvn test", ".kt": "gradle test", ".ex": "mix test", ".cs": "dotnet test",
    ".php": "vendor/bin/phpunit", ".sh": "shellcheck *.sh", ".scala": "sbt test",
    ".hs": "cabal test", ".dart": "dart test", ".zig": "zig build test", ".lua": "busted",
    ".jl": "julia --project -e 'using Pkg; Pkg.test()'", ".ml": "dune test", ".R": "R CMD check .",
    ".c": "make check", ".cpp": "ctest --test-dir build", ".tf": "terraform validate",
    ".clj": "lein test", ".erl": "rebar3 eunit", ".ipynb": "pytest --nbmake",
}  # fmt: skip
"""What usually checks a project, by the suffix of most of its files."""


def propose(root: Path, environ: Mapping[str, str]) -> Proposal:
    """The gates that the project at `root` seems to use. Starts nothing and writes nothing."""
    files, machine = Folder(root), Machine(root, environ)
    found = [machine.settled(proposed) for proposed in detect(files)]
    unknown = not_understood(files, found)
    unreadable = ProjectFiles(files).unreadable()
    return Proposal(
        choices=choose(found, machine.obstacle),
        notes=(
            *(f"{path} cannot be read and was left out." for path in unreadable),
            *([f"not understood: {', '.join(unknown)}"] if unknown else []),
        ),
        paste=_paste(files),
    )


def answered(command: str) -> Proposed:
    """The gate of a person's own command."""
    return Proposed(slot=Slot.TEST, run=command, reason="Your own answer")


def _paste(files: Folder) -> str:
    suffixes = Counter(PurePosixPath(path).suffix for path in files.paths())
    known = (COMMANDS[suffix] for suffix, _ in suffixes.most_common() if suffix in COMMANDS)
    return f'version: 1\nvalidation: {{test: ["{next(known, "make test")}"]}}'


def refuse_to_overwrite(root: Path) -> None:
    """Raises UsageError if there is a configuration already."""
    there = next((path for path in OTHERS if (root / path).exists()), None)
    if there:
        raise UsageError(
            f"{root / there} is there already, and is never overwritten",
            remedy="atlas init --print shows what it would write",
        )


def nothing_found(root: Path, proposal: Proposal) -> UsageError:
    """Why there is no gate, and the two lines to write instead."""
    reasons = "; ".join(f"{choice.run}: {choice.obstacle}" for choice in proposal.idle)
    why = f"no gate of {root} can start here: {reasons}"
    message = why if reasons else f"nothing in {root} says how it is checked"
    notes = "".join(f"\n{note}" for note in proposal.notes)
    return UsageError(
        message + notes,
        remedy=f"atlas init at a terminal asks for it; or write {CONFIGURATION}:\n{proposal.paste}",
    )


def write(root: Path, proposal: Proposal) -> None:
    """Write `.atlas/config.yaml` below `root`. Raises UsageError where there is one by now."""
    path = root / CONFIGURATION
    path.parent.mkdir(exist_ok=True)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text_of(proposal))
    except FileExistsError:
        refuse_to_overwrite(root)


def text_of(proposal: Proposal) -> str:
    """The configuration as YAML, commented."""
    return configuration(proposal.choices, proposal.notes)
