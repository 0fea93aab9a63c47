"""Every measurement of `make bench`, one after the other; each prints ratios of one run."""

import subprocess
import sys
from pathlib import Path

WAYS = (
    ("compare.py",),
    ("growth.py", "100", "2000", "20000", "100000"),
    ("snapshot.py",),
    ("red.py",),
    ("batch.py", "40", "41", "0", "1"),
    ("batch.py", "40", "41", "0", "4"),
    ("journal.py", "10000"),
)

for script, *words in WAYS:
    print("==", script, *words, flush=True)
    subprocess.run((sys.executable, Path(__file__).with_name(script), *words), check=False)
