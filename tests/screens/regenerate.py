"""Types the commands of every transcript anew, and prints what differs: read it before a commit."""

import difflib
import os
import sys
import tempfile
from pathlib import Path

from tests.projects import make_project
from tests.screens import SCREENS, typed_again


def main() -> int:
    for name, path in SCREENS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        before = path.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder) / "home"
            home.mkdir()
            state = {"HOME": str(home), "ATLAS_HOME": f"{folder}/state", "LANG": "C.UTF-8"}
            author = {
                f"GIT_{who}_{what}": "dev"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            }
            environ = {"PATH": os.defpath, "GIT_CONFIG_NOSYSTEM": "1", **state, **author}
            after = typed_again(before, make_project(Path(folder), environ))
        diff = difflib.unified_diff(before.splitlines(), after.splitlines(), name, name, "", "", 1)
        sys.stdout.writelines(f"{line}\n" for line in diff)
        path.write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
