"""Torture atlas at random moments and with what is made to break it; a table of what was found.

.venv/bin/python bench/torture.py                    # every row, about an hour
.venv/bin/python bench/torture.py kills=10 bombs=3   # some rows, with so many trials
.venv/bin/python bench/torture.py kills=10 seed=7    # at other moments
"""

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import (
    environments,
    torture_commands,
    torture_doors,
    torture_fifos,
    torture_git,
    torture_stops,
    torture_streams,
    torture_trees,
)
from tests.torture import Tally, Torture

SEED = 20261122
FILES = 400
Row = Callable[[Path, int, int], Tally]


def _of_rig(row: Callable[[Torture, int, int], Tally]) -> Row:
    return lambda folder, trials, seed: row(Torture.prepared(folder, FILES), trials, seed)


ROWS: dict[str, tuple[Row, int]] = {
    "signals": (_of_rig(Torture.signals), 100),
    "kills": (_of_rig(Torture.kills), 100),
    "undo_signals": (_of_rig(Torture.undo_signals), 30),
    "resumes": (torture_commands.resumes, 20),
    "resumes_in_layers": (torture_commands.resumes_in_layers, 20),
    "layers": (torture_commands.layers, 100),
    "validate": (torture_commands.validate, 40),
    "deliver": (torture_commands.deliver, 40),
    "shapes": (torture_trees.shapes, 34),
    "several": (torture_trees.several, 20),
    "nobody": (torture_trees.nobody, 20),
    "full_disk": (torture_trees.full_disk, 60),
    "sizes": (torture_trees.sizes, 3),
    "bombs": (torture_streams.bombs, len(torture_streams.BOMBS)),
    "outputs": (torture_streams.outputs, 40),
    "api": (torture_streams.api, 40),
    "claude": (torture_streams.claude, 16),
    "person": (torture_git.person, 40),
    "gitfiles": (torture_git.gitfiles, 24),
    "fifos": (torture_fifos.fifos, 60),
    "doors": (torture_doors.doors, 60),
    "stops": (torture_stops.stops, 56),
    "thrown_away": (torture_git.thrown_away, 24),
    "traps": (environments.traps, len(environments.TRAPS + environments.WRITERS)),
    "syncs": (environments.syncs, len(environments.SYNCS)),
    "git_keys": (torture_streams.git_keys, 10),
}
"""Each with its usual number of trials."""


def main() -> int:
    """Print a line a row, and each failure before it; 1 where something is not as promised."""
    asked = dict(word.partition("=")[::2] for word in sys.argv[1:])
    seed, failed = int(asked.pop("seed", SEED)), 0
    for name, trials in (asked or dict.fromkeys(ROWS, "")).items():
        row, usual = ROWS[name]
        started_s = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="atlas-torture-") as folder:
            at = Path(folder).resolve() / name
            at.mkdir()
            tally = row(at, int(trials or usual), seed)
        print(*tally.failures, *(f"  {note}" for note in tally.notes), sep="\n")
        print(
            f"{name:<14}{tally.trials:>4} trials, {tally.hit:>4} hits, "
            f"{len(tally.failures):>3} failures, {time.monotonic() - started_s:.0f} s",
            flush=True,
        )
        failed += len(tally.failures)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
