"""Kill runs at random moments, undo or resume them, and say what was lost or paid twice.

.venv/bin/python bench/crashes.py undo 100
.venv/bin/python bench/crashes.py resume 50
"""

import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.crashes import resume_after_kills, undo_after_kills

SEED = 20261122


def main() -> int:
    """Print the tally; 1 where something is not as promised."""
    what, count = sys.argv[1], int(sys.argv[2])
    started_s = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="atlas-crashes-") as folder:
        if what == "undo":
            tally = undo_after_kills(Path(folder), count, SEED)
        else:
            tally = resume_after_kills(Path(folder), count, SEED)
    print(tally)
    print(f"{time.monotonic() - started_s:.0f} s")
    return 1 if tally.unlike or tally.paid_twice else 0


if __name__ == "__main__":
    sys.exit(main())
