"""Types the commands of every transcript anew, and makes every page; prints what differs.

Read it before a commit. With names only those.
"""

import difflib
import os
import sys
import tempfile
from pathlib import Path

from tests.projects import make_project
from tests.screens import SCREENS, typed_again
from tests.screens.pages import PAGES, page


def main() -> int:
    wanted = sys.argv[1:]
    for path in (*SCREENS.values(), *PAGES):
        if wanted and path.stem not in wanted:
            continue
        before = path.read_text(encoding="utf-8") if path.exists() else ""
        after = page(PAGES[path]) if path in PAGES else _typed(before)
        names = (path.stem, path.stem)
        diff = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, "", "", 1)
        sys.stdout.writelines(f"{line}\n" for line in diff)
        path.write_text(after, encoding="utf-8")
    return 0


def _typed(before: str) -> str:
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
        return typed_again(before, make_project(Path(folder), environ))


if __name__ == "__main__":
    sys.exit(main())
