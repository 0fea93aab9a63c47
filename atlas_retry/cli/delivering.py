"""`atlas deliver`: what a run changed, and nothing else, as a patch, a branch or a pull request."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from atlas_retry.cli.history import Run, found_run, workspace_of
from atlas_retry.errors import AtlasError, UsageError, WorkspaceError

if TYPE_CHECKING:
    from atlas_retry.cli.pull_request import GitHub
    from atlas_retry.history import RunRow
    from atlas_retry.reports.delivery import Delivery
    from atlas_retry.workspace import Made, Workspace

NO_AUTO_FIX = "no-auto-fix"
PUSH_TIMEOUT_S = 600.0
DELIVERED, NOT_DELIVERED = 0, 1


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("deliver")(deliver)


def deliver(
    run: Run = None,
    *,
    apply: Annotated[
        Path | None,
        typer.Option(
            "--apply", metavar="FILE", help="Deliver this patch of another job instead of a run."
        ),
    ] = None,
    patch: Annotated[
        Path | None,
        typer.Option("--patch", metavar="FILE", help="Write a patch for git am or git apply."),
    ] = None,
    branch: Annotated[
        str | None, typer.Option("--branch", metavar="NAME", help="Commit to this branch.")
    ] = None,
    push: Annotated[bool, typer.Option("--push", help="Push the branch, never by force.")] = False,
    pr: Annotated[
        bool, typer.Option("--pr", help="Push, and open or update the pull request, by gh.")
    ] = False,
    remote: Annotated[str, typer.Option("--remote", help="The remote to push to.")] = "origin",
    max_pushes: Annotated[
        int,
        typer.Option(
            "--max-pushes", min=0, help="Deliveries in a row before a person has to look."
        ),
    ] = 3,
) -> int:
    """Deliver what a green run changed: exactly its files, upon the commit that it started from."""
    from atlas_retry import workspace

    to_branch = bool(branch or pr)
    _check(to_branch=to_branch, patch=patch, push=push)
    _check_applied(apply, only_to_branch=bool(branch) and not (run or patch))
    ws, made, text = _applied(apply) if apply else _committed(run, store=to_branch)
    if workspace.delivered_in_a_row(ws, made.base) >= max_pushes:
        return _refused(
            f"the last {max_pushes} commits come from runs: somebody has to look, or --max-pushes"
        )
    if made.also:
        listed = ", ".join(made.also[:5])
        print(f"validated together with what is not committed, and not delivered: {listed}")
    if patch:
        _write(patch, made.patch)
    if not to_branch:
        return DELIVERED
    there = remote if push or pr else ""
    return _to_branch(ws, text, made, branch or f"atlas/{_run_id(text)}", there, pr=pr)


def _check_applied(file: Path | None, *, only_to_branch: bool) -> None:
    """Raises UsageError for a patch that does not go to a branch, and there only."""
    if file and not only_to_branch:
        raise UsageError(
            "--apply needs a branch, and nothing else to deliver",
            remedy=f"atlas deliver --apply {file} --branch NAME --push",
        )


def _check(*, to_branch: bool, patch: Path | None, push: bool) -> None:
    """Raises UsageError where nothing says what a delivery is made of."""
    if not (patch or to_branch):
        raise UsageError(
            "deliver as what?", remedy="atlas deliver --patch FILE, --branch NAME, --pr"
        )
    if push and not to_branch:
        raise UsageError("--push needs a branch", remedy="atlas deliver --branch NAME --push")


def _committed(run: str | None, *, store: bool) -> "tuple[Workspace, Made, str]":
    """A run as a commit, and what that says."""
    from atlas_retry import workspace
    from atlas_retry.reports.delivery import message

    row = found_run(run)
    delivery = _delivery(row)
    ws = workspace_of(row)
    bases = (*([row.head] if row.head else ()), "HEAD")
    note = workspace.CommitMessage(text=message(delivery), at=row.ended_at or row.last_at)
    with workspace.lock(ws):
        made = workspace.commit_run(ws, _span(ws, row, delivery), bases, note, store=store)
    return ws, made, note.text


def _applied(file: Path) -> "tuple[Workspace, Made, str]":
    """A patch as a commit, and what that says."""
    from atlas_retry import state_dir, workspace

    try:
        mail = file.read_bytes()
    except OSError as error:
        raise UsageError(f"--apply {file}: {error.strerror}") from error
    ws = workspace.open_workspace(Path.cwd(), state_dir.locate(os.environ), environ=os.environ)
    return ws, *workspace.commit_patch(ws, mail)


def _run_id(text: str) -> str:
    return text.rstrip().rpartition(": ")[2]


def _delivery(row: "RunRow") -> "Delivery":
    """Raises UsageError for a run that did not end green."""
    from atlas_retry import history, state_dir, workspace
    from atlas_retry.history import archive
    from atlas_retry.reports.delivery import Delivery

    if row.verdict is None or not row.verdict.is_green:
        ended = row.verdict or row.state
        raise UsageError(
            f"run {row.id} ended as {ended}: only what is green is delivered",
            remedy=f"atlas log {row.id}",
        )
    with history.reading(state_dir.locate(os.environ)) as connection:
        return Delivery(
            run_id=row.id,
            gates=archive.gates_of(connection, row.id),
            attempts=archive.attempts(connection, row.id),
            cost_usd=row.cost_usd,
            trailer=workspace.TRAILER,
        )


def _span(ws: "Workspace", row: "RunRow", delivery: "Delivery") -> tuple[str, str]:
    """From the start to what was validated last, whatever was undone or picked since."""
    from atlas_retry.history import rescue

    held = rescue.snapshots(ws, row)
    after = delivery.attempts[-1].result if delivery.attempts else held.get(rescue.ORIGIN)
    if rescue.START not in held or after is None:
        raise WorkspaceError(f"the snapshots of run {row.id} are no longer held: it was pruned")
    return held[rescue.START], after


def _to_branch(
    ws: "Workspace", text: str, made: "Made", branch: str, remote: str, *, pr: bool
) -> int:
    from atlas_retry import workspace
    from atlas_retry.cli.pull_request import GitHub

    github = GitHub(root=ws.root, environ=os.environ)
    if pr and not github.is_there:
        raise AtlasError(
            "--pr needs gh, which is not installed", remedy="atlas deliver --branch NAME --push"
        )
    request = github.of_branch(branch) if remote else None
    if request and NO_AUTO_FIX in request.labels:
        return _refused(f"{request.url} has the label {NO_AUTO_FIX}")
    workspace.set_branch(ws, branch, made, is_pushed=bool(remote))
    print(f"{made.commit[:12]} on {branch}")
    if remote:
        _push(ws, made, branch, remote)
        _publish(github, text, made, branch, pr=pr)
    return DELIVERED


def _publish(github: "GitHub", text: str, made: "Made", branch: str, *, pr: bool) -> None:
    from atlas_retry.reports.delivery import MARK, comment

    body = comment(text, made.commit)
    if request := github.of_branch(branch):
        github.comment(request, MARK, body)
        print(f"commented on {request.url}")
    elif pr:
        print(github.create(branch, text.partition("\n")[0], body))


def _push(ws: "Workspace", made: "Made", branch: str, remote: str) -> None:
    """With the user's own git: its credentials, and its hooks, which are the user's rules."""
    from atlas_retry.process import capture

    argv = ("git", "push", "--porcelain", remote, f"{made.commit}:refs/heads/{branch}")
    done = capture(argv, ws.root, os.environ, timeout_s=PUSH_TIMEOUT_S)
    if done.exit_code != 0:
        lines = (done.stderr + done.stdout).decode(errors="replace").strip().splitlines()
        why = next((line for line in lines if line.startswith(("!", "fatal:", "error:"))), None)
        raise WorkspaceError(
            f"git push failed: {why or f'exit code {done.exit_code}'}",
            remedy=f"git fetch {remote}; where {branch} has moved on, run again upon it",
        )
    print(f"pushed to {remote}/{branch}")


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as error:
        raise UsageError(f"--patch {file}: {error.strerror}") from error
    print(f"{file}: git am --keep-cr {file}")


def _refused(why: str) -> int:
    print(f"nothing is delivered: {why}")
    return NOT_DELIVERED
