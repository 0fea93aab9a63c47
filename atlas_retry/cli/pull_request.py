"""GitHub's pull requests through `gh`, where it is installed: labels, one comment, a new one."""

import json
import os
import shutil
from collections.abc import Mapping
from itertools import chain
from pathlib import Path

from msgspec import Struct

from atlas_retry.errors import AtlasError
from atlas_retry.process import capture

TIMEOUT_S = 60.0


class PullRequest(Struct, frozen=True, kw_only=True):
    """An open one."""

    number: int
    url: str
    labels: tuple[str, ...]


class GitHub(Struct, frozen=True, kw_only=True):
    """The repository that a work tree belongs to, as `gh` sees it."""

    root: Path
    environ: Mapping[str, str]

    @property
    def is_there(self) -> bool:
        return shutil.which("gh", path=self.environ.get("PATH", os.defpath)) is not None

    def of_branch(self, branch: str) -> PullRequest | None:
        """The open pull request of a branch; None without one, or without `gh`."""
        if not self.is_there:
            return None
        code, out, _ = self._gh("pr", "view", branch, "--json", "number,url,labels,state")
        found = json.loads(out) if code == 0 else {}
        if found.get("state") != "OPEN":
            return None
        labels = tuple(label["name"] for label in found["labels"])
        return PullRequest(number=found["number"], url=found["url"], labels=labels)

    def create(self, branch: str, title: str, body: str) -> str:
        """Open one for a branch that was pushed; its address."""
        asked = ("pr", "create", "--head", branch, "--title", title, "--body-file", "-")
        return self._done(*asked, stdin=body).strip()

    def comment(self, request: PullRequest, mark: str, body: str) -> None:
        """Write the one comment that begins with `mark`, over the one that is there already."""
        place = f"repos/{{owner}}/{{repo}}/issues/{request.number}/comments"
        shape = f"[.[] | select(.body | startswith({json.dumps(mark)})) | .id]"
        ids = self._done("api", "--paginate", place, "--jq", shape)
        pages = [json.loads(line) for line in ids.splitlines() if line]
        known = [*chain.from_iterable(pages)]
        if known:
            place = f"repos/{{owner}}/{{repo}}/issues/comments/{known[-1]}"
        method = "PATCH" if known else "POST"
        self._done("api", "--method", method, place, "-F", "body=@-", stdin=body)

    def _done(self, *arguments: str, stdin: str = "") -> str:
        code, out, error = self._gh(*arguments, stdin=stdin)
        if code != 0:
            raise AtlasError(
                f"gh {' '.join(arguments[:2])} failed: {error}", remedy="gh auth status"
            )
        return out

    def _gh(self, *arguments: str, stdin: str = "") -> tuple[int | None, str, str]:
        env = {**self.environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}
        argv = ("gh", *arguments)
        done = capture(argv, self.root, env, stdin=stdin.encode(), timeout_s=TIMEOUT_S)
        error = done.stderr.decode(errors="replace").strip()
        return done.exit_code, done.stdout.decode(errors="replace"), error
