"""`atlas deliver`: exactly a run's changes as a patch, a branch or a pull request."""

import io
import json as json_text
import os
import shutil
from contextlib import nullcontext, redirect_stdout
from itertools import chain
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from atlas_retry.cli import options, places
from atlas_retry.cli.app import app, examples
from atlas_retry.cli.documents import DeliveryDocument, write
from atlas_retry.cli.history import run_of, workspace_of
from atlas_retry.errors import AtlasError, ExitCode, UsageError, WorkspaceError
from atlas_retry.history import archive, commits, rescue
from atlas_retry.history.commits import Made
from atlas_retry.history.states import RunState
from atlas_retry.history.values import RunRow
from atlas_retry.process import capture
from atlas_retry.reports.delivery import MARK, Delivery, comment, message
from atlas_retry.text.commands import quoted
from atlas_retry.workspace.discovery import Workspace
from atlas_retry.workspace.isolation.isolated import lock

NO_AUTO_FIX = "no-auto-fix"
PUSH_TIMEOUT_S = 600.0
GH_TIMEOUT_S = 60.0


@app.command(epilog=examples("atlas deliver --patch fix.patch"))
def deliver(
    run: options.Run = None,
    *,
    apply: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Deliver a patch from another job instead of a run."),
    ] = None,
    patch: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a patch for git am or git apply.")
    ] = None,
    branch: Annotated[
        str | None, typer.Option(metavar="NAME", help="Commit to this branch.")
    ] = None,
    push: Annotated[bool, typer.Option(help="Push the branch, never by force.")] = False,
    pr: Annotated[
        bool, typer.Option(help="Push, and open or update the pull request with gh.")
    ] = False,
    remote: Annotated[str, typer.Option(metavar="NAME", help="The remote to push to.")] = "origin",
    max_pushes: Annotated[
        int, typer.Option(help="Consecutive deliveries without a person's commit.", min=0)
    ] = 3,
    force: Annotated[bool, typer.Option(help="Deliver a run that was undone.")] = False,
    json: options.Json = False,
) -> ExitCode:
    """Deliver the changes of a green run as a patch, a branch or a pull request.

    The commit has exactly its files, and the commit that it started from as parent.
    """
    to_branch = bool(branch or pr)
    _check(to_branch=to_branch, patch=patch, push=push)
    to = remote if push or pr else ""
    said, code = io.StringIO(), ExitCode.OK
    with redirect_stdout(said) if json else nullcontext():
        if apply:
            ws, made, text = _applied(apply, branch, run or patch)
        else:
            ws, made, text = _committed(run, store=to_branch, force=force)
        is_automatic = commits.delivered_in_a_row(ws, made.base) >= max_pushes
        if is_automatic:
            why = f"the last {max_pushes} commits come from runs: a person must look at them"
            code = _refused(why)
        else:
            _write(patch, made)
        if to_branch and not is_automatic:
            code = _to_branch(ws, text, made, branch, to, pr=pr)
    if json:
        notes = tuple(said.getvalue().splitlines())
        write(DeliveryDocument(delivered=code == ExitCode.OK, notes=notes))
    return code


def _check(*, to_branch: bool, patch: Path | None, push: bool) -> None:
    """Raise UsageError if no form of delivery is given."""
    if not (patch or to_branch):
        raise UsageError(
            "choose how to deliver the run",
            remedy="atlas deliver --patch FILE\natlas deliver --branch NAME\natlas deliver --pr",
        )
    if push and not to_branch:
        raise UsageError("--push needs a branch", remedy="atlas deliver --branch NAME --push")


def _committed(run: str | None, *, store: bool, force: bool) -> tuple[Workspace, Made, str]:
    """A run as a commit, and the commit message. Raises UsageError for one that was undone."""
    row = run_of(run, "deliver", *filter(None, [run]), "--patch", "FILE")
    if row.state is RunState.UNDONE and not force:
        raise UsageError(
            f"run {row.id} was undone", remedy=f"atlas deliver {row.id} --force --patch FILE"
        )
    delivery = _delivery(row)
    ws = workspace_of(row)
    bases = (*([row.head] if row.head else ()), "HEAD")
    note = commits.CommitMessage(text=message(delivery), at=row.ended_at or row.last_at)
    with lock(ws):
        # to the last validated state, even if the user has undone or picked something since
        held = rescue.snapshots(ws, row)
        after = delivery.attempts[-1].result if delivery.attempts else held.get(rescue.ORIGIN)
        if rescue.START not in held or after is None:
            raise WorkspaceError(f"the snapshots of run {row.id} were pruned")
        span = held[rescue.START], after
        made = commits.commit_run(ws, span, bases, note, store=store)
    return ws, made, note.text


def _applied(
    file: Path, branch: str | None, other: str | Path | None
) -> tuple[Workspace, Made, str]:
    """A patch as a commit, and its message. Raises UsageError unless it goes to a branch only."""
    if other or not branch:
        raise UsageError(
            "--apply needs a branch, and excludes a run and --patch",
            remedy=f"atlas deliver --apply {quoted(file)} --branch NAME --push",
        )
    try:
        mail = file.read_bytes()
    except OSError as error:
        raise UsageError(f"--apply {file}: {error.strerror}") from error
    ws = places.workspace_at()
    return ws, *commits.commit_patch(ws, mail)


def _delivery(row: RunRow) -> Delivery:
    """The delivery of a run. Raises UsageError if it did not end green."""
    if row.verdict is None or not row.verdict.is_green:
        ended = row.verdict or row.state
        raise UsageError(
            f"run {row.id} ended as {ended}: only runs that pass are delivered",
            remedy=f"atlas log {row.id}",
        )
    with places.journal() as connection:
        return Delivery(
            run_id=row.id,
            gates=archive.gates_of(connection, row.id),
            attempts=archive.attempts(connection, row.id),
            cost_usd=row.cost_usd,
            trailer=commits.TRAILER,
        )


def _to_branch(
    ws: Workspace, text: str, made: Made, named: str | None, remote: str, *, pr: bool
) -> ExitCode:
    branch = named or f"atlas/{text.rstrip().rpartition(': ')[2]}"  # the trailer names the run
    has_gh = shutil.which("gh") is not None
    if pr and not has_gh:
        raise AtlasError(
            "--pr needs gh, which is not installed", remedy="atlas deliver --branch NAME --push"
        )
    request = _pull_request(ws.root, branch) if remote and has_gh else None
    if request and NO_AUTO_FIX in request.labels:
        return _refused(f"{request.url} has the label {NO_AUTO_FIX}")
    commits.set_branch(ws, branch, made, is_pushed=bool(remote))
    print(f"{made.commit[:12]} on {branch}")
    if remote:
        _push(ws, made, branch, remote)
        body = comment(text, made.commit)
        if request:
            _comment(ws.root, request, body)
            print(f"commented on {request.url}")
        elif pr:
            asked = ("--head", branch, "--title", text.partition("\n")[0], "--body-file", "-")
            print(_gh(ws.root, "pr", "create", *asked, stdin=body).strip())
    return ExitCode.OK


def _push(ws: Workspace, made: Made, branch: str, remote: str) -> None:
    """Push with the user's own git, credentials and hooks."""
    argv = ("git", "push", "--porcelain", remote, f"{made.commit}:refs/heads/{branch}")
    done = capture(argv, ws.root, os.environ, timeout_s=PUSH_TIMEOUT_S)
    if done.exit_code != 0:
        lines = (done.stderr + done.stdout).decode(errors="replace").strip().splitlines()
        why = next((line for line in lines if line.startswith(("!", "fatal:", "error:"))), None)
        raise WorkspaceError(
            f"git push failed: {why or f'exit code {done.exit_code}'}",
            remedy=f"if {branch} has new commits there, run again on them: git fetch {remote}",
        )
    print(f"pushed to {remote}/{branch}")


def _write(file: Path | None, made: Made) -> None:
    """Write the patch, if one is asked for, and say what is not in it."""
    if made.also:
        listed = ", ".join(made.also[:5])
        print(f"the gates also ran with uncommitted files, which are not delivered: {listed}")
    if file is None:
        return
    try:
        file.write_bytes(made.patch)
    except OSError as error:
        raise UsageError(f"--patch {file}: {error.strerror}") from error
    print(f"{file}: git am --keep-cr {file}")


def _refused(why: str) -> ExitCode:
    print(f"nothing is delivered: {why}")
    return ExitCode.FAILED


# --- GitHub's pull requests through `gh` -----------------------------------------------------


class PullRequest(Struct, frozen=True, kw_only=True):
    """An open pull request."""

    number: int
    url: str
    labels: tuple[str, ...]


def _pull_request(root: Path, branch: str) -> PullRequest | None:
    """The open pull request of a branch."""
    try:
        answer = json_text.loads(
            _gh(root, "pr", "view", branch, "--json", "number,url,labels,state")
        )
    except AtlasError:  # gh fails if there is none
        return None
    if answer["state"] != "OPEN":
        return None
    labels = tuple(label["name"] for label in answer["labels"])
    return PullRequest(number=answer["number"], url=answer["url"], labels=labels)


def _comment(root: Path, request: PullRequest, body: str) -> None:
    """Create the comment that begins with MARK, or replace it."""
    place = f"repos/{{owner}}/{{repo}}/issues/{request.number}/comments"
    shape = f"[.[] | select(.body | startswith({json_text.dumps(MARK)})) | .id]"
    ids = _gh(root, "api", "--paginate", place, "--jq", shape)
    known = [*chain.from_iterable(json_text.loads(line) for line in ids.splitlines() if line)]
    if known:
        place = f"repos/{{owner}}/{{repo}}/issues/comments/{known[-1]}"
    method = "PATCH" if known else "POST"
    _gh(root, "api", "--method", method, place, "-F", "body=@-", stdin=body)


def _gh(root: Path, *arguments: str, stdin: str = "") -> str:
    """Output of `gh`. Raises AtlasError if it fails."""
    env = {**os.environ, "GH_PROMPT_DISABLED": "1", "NO_COLOR": "1"}
    done = capture(("gh", *arguments), root, env, stdin=stdin.encode(), timeout_s=GH_TIMEOUT_S)
    if done.exit_code != 0:
        error = done.stderr.decode(errors="replace").strip()
        raise AtlasError(f"gh {' '.join(arguments[:2])} failed: {error}", remedy="gh auth status")
    return done.stdout.decode(errors="replace")
