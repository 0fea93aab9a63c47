"""Every measurement of `make bench`, one after the other; each prints ratios of one run."""

import runpy
from pathlib import Path

for script in ("compare.py", "snapshot.py"):
    print(f"== {script}")
    runpy.run_path(str(Path(__file__).with_name(script)), run_name="__main__")
