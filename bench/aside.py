"""Seconds of one `true` aside, in an overlay and in place, by the number of files.

python bench/aside.py [FILES ...]
"""

import statistics
import sys
import tempfile
from pathlib import Path

from snapshot import ENVIRON, git, make, timed

from atlas_retry.process import Command, run
from atlas_retry.workspace.discovery import Workspace, open_workspace
from atlas_retry.workspace.isolation.isolated import beside
from atlas_retry.workspace.snapshot.snapshots import snapshot

ROUNDS = 5


def measure(ws: Workspace, changes: dict[str, tuple[str, bytes] | None]) -> dict[str, float]:
    """One round: the bare command, a snapshot when nothing changed, then both ways."""
    command = Command(argv=("true",), cwd=ws.root, env=ws.environ)
    found = {"bare": timed(lambda: run(command)), "snapshot": timed(lambda: snapshot(ws))}

    def aside(*, in_place: bool) -> None:
        with beside(ws, changes, in_place=in_place) as there:
            run(there.wrap(command))

    found["overlay"] = timed(lambda: aside(in_place=False))
    found["in place"] = timed(lambda: aside(in_place=True))
    return found


def main(sizes: list[int]) -> None:
    """Print the medians, for three changed files and for a tenth of all."""
    print("files changed    bare   look overlay in place")
    for files in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "repo"
            make(root, files)
            git(root, "init", "-q")
            git(root, "add", "-A")
            ws = open_workspace(root, Path(folder) / "state", environ={**ENVIRON, "HOME": folder})
            snapshot(ws)  # as at the start of a run
            paths = sorted(str(path.relative_to(root)) for path in root.rglob("*.py"))
            for count in (3, files // 10):
                edit = ("100644", b"changed = 1\n")
                changes: dict[str, tuple[str, bytes] | None] = dict.fromkeys(paths[:count], edit)
                rounds = [measure(ws, changes) for _ in range(ROUNDS)]
                medians = [statistics.median(r[k] for r in rounds) for k in rounds[0]]
                shown = " ".join(f"{median:7.3f}" for median in medians)
                print(f"{files:5} {count:7} {shown}")


main([int(files) for files in sys.argv[1:]] or [100, 2000, 20000])
