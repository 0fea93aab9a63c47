"""Signal runs twice, or kill them, at random moments over a rich work tree; say what was lost.

.venv/bin/python bench/torture.py signals 100
.venv/bin/python bench/torture.py kills 100
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.torture import Torture

SEED = 20261122
FILES = 1500


def main() -> int:
    """Print the tally; 1 where something is not as promised."""
    what, trials = sys.argv[1], int(sys.argv[2])
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="atlas-torture-") as folder:
        torture = Torture.prepared(Path(folder), FILES)
        tally = (torture.signals if what == "signals" else torture.kills)(trials, SEED)
    for failure in tally.failures:
        print(failure)
    print(
        f"{what}: {tally.trials} trials, {tally.hit} while the agent or its end was under way, "
        f"{tally.said} said that all is back, {len(tally.failures)} failures"
    )
    print(f"{time.monotonic() - started_s:.0f} s")
    return 1 if tally.failures else 0


if __name__ == "__main__":
    sys.exit(main())
