"""`atlas prompt` and `atlas guard`: print the prompt; judge a change."""

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry import config
from atlas_retry.cli import options, output
from atlas_retry.cli.app import app, examples
from atlas_retry.errors import ExitCode, UsageError
from atlas_retry.guard import Ruling, judge
from atlas_retry.guard.judge import with_base_configuration
from atlas_retry.guard.judge.replay import replayed
from atlas_retry.model import Answer
from atlas_retry.reports.documents import GuardDocument, encode
from atlas_retry.reports.findings import of_change
from atlas_retry.reports.github import annotations
from atlas_retry.reports.markdown import guard_summary
from atlas_retry.reports.screen.lines import printable
from atlas_retry.run.briefing import preview
from atlas_retry.run.folders import find


@app.command(epilog=examples("atlas prompt", "atlas prompt --from report.json"))
def prompt(
    workspace: options.Workspace = ".",
    *,
    config_file: options.ConfigFile = None,
    start_from: options.StartFrom = None,
    max_chars: Annotated[
        int | None, typer.Option(help="Limit of the whole prompt, in characters.", min=200)
    ] = None,
) -> None:
    """Print the prompt that would be sent; spends nothing."""
    (folder,) = find([workspace], Path.cwd(), os.environ)
    recorded = output.recorded(start_from)
    flags = config.naming(config_file)
    text = preview(folder, os.environ, flags, recorded=recorded, max_chars=max_chars)
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


@app.command(
    epilog=examples("atlas guard . --base origin/main", "atlas guard --base HEAD~1 --json")
)
def guard(
    path: options.Folder = Path(),
    *,
    base: Annotated[
        str, typer.Option(metavar="REV_OR_DIR", help="The state before the change.")
    ] = "HEAD",
    start_from: options.StartFrom = None,
    outside: Annotated[
        list[str] | None,
        typer.Option(
            metavar="BEFORE:AFTER", help="Also judge a folder outside the workspace; repeatable."
        ),
    ] = None,
    allow: options.Allow = None,
    strict: Annotated[bool, typer.Option(help="Also exit with 1 for held changes.")] = False,
    why: Annotated[
        str | None, typer.Option(metavar="PATH", help="Explain how a path is judged.")
    ] = None,
    replay: Annotated[
        bool, typer.Option(help="Re-run the failed gates without the held changes.")
    ] = False,
    json: options.Json = False,
) -> ExitCode:
    """Judge a change; exit with 1 if any of it is refused.

    Runs nothing of the project without --replay.
    """
    recorded = output.recorded(start_from)
    asked = with_base_configuration(
        judge.ChangeAsked(
            workspace=path.resolve(),
            base=base,
            gates=recorded.gates if recorded else (),
            failing=recorded.validation.failures if recorded else (),
            outside=tuple(_places(pair) for pair in outside or ()),
            allow=tuple(allow or ()),
        ),
        os.environ,
    )
    if why:
        return _explained(judge.explain(asked, why, os.environ), why)
    judgement = judge.judge_change(asked, os.environ)
    if replay:
        judgement = replayed(asked, judgement, os.environ)
    findings = of_change(judgement.answers)
    if json:
        refused, held, noted = judgement.refused, judgement.held, judgement.noted
        print(encode(GuardDocument(violations=refused, held=held, noted=noted)), end="")
    else:
        _show(judgement.answers)
    if output.on_github():
        text = annotations(one.diagnostic for one in findings)
        output.write_on_github(text, guard_summary(findings), to_stderr=json)
    return ExitCode.FAILED if judgement.refused or (strict and judgement.held) else ExitCode.OK


def _places(pair: str) -> tuple[Path, Path]:
    before, colon, after = pair.partition(":")
    if not colon:
        why = f"--outside {pair} is not BEFORE:AFTER"
        raise UsageError(why, remedy="atlas guard --outside OLD:NEW")
    if not (os.path.lexists(before) or os.path.lexists(after)):
        raise UsageError(f"--outside {pair}: neither exists")
    return Path(before), Path(after)


def _explained(rulings: Sequence["Ruling"], path: str) -> ExitCode:
    if not rulings:
        print(f"{path}: did not change")
    for ruling in rulings:
        answer = f"{ruling.answer.word}: {ruling.answer.detail}" if ruling.answer else "kept"
        print(f"{path}: {ruling.mechanism}: {answer}")
    return ExitCode.OK


def _show(answers: Sequence[Answer]) -> None:
    rows = [
        (f"{printable(one.where)}: {one.word}: {one.rule}: {one.detail}", "") for one in answers
    ]
    with output.screen(os.environ, plain=True) as shown:
        shown.write(rows or [("nothing is refused, held or noted", "")])
