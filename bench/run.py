"""Every measurement of `make bench`, one after the other; each prints ratios of one run.

python bench/run.py [ROUNDS]
"""

import subprocess
import sys
from pathlib import Path

rounds = sys.argv[1] if len(sys.argv) > 1 else "7"
for script, *words in (
    ("red.py",),
    ("compare.py", rounds),
    ("growth.py", "100", "2000", "20000", "100000"),
    ("snapshot.py", "20000", rounds),
    ("batch.py", "40", "41", "0", "1"),
    ("batch.py", "40", "41", "0", "4"),
    ("journal.py", "10000"),
):
    print("==", script, *words, flush=True)
    subprocess.run((sys.executable, Path(__file__).with_name(script), *words), check=False)
