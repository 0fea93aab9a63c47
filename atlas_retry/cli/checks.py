"""`atlas validate` and its short forms: run gates, ask no agent."""

import os
import shlex
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from atlas_retry.cli import options
from atlas_retry.errors import AtlasError, UsageError
from atlas_retry.model import Gate, Kind, Validation
from atlas_retry.text.commands import copyable

if TYPE_CHECKING:
    from atlas_retry.events import Emit
    from atlas_retry.gates.plan import Plan
    from atlas_retry.run.open import OpenWorkspace

OK, FAILED, BROKEN = 0, 1, 3
Receipt = Annotated[
    Path | None, typer.Option("--receipt", metavar="FILE", help="Write what atlas verify checks.")
]
Sign = Annotated[
    Path | None, typer.Option("--sign", metavar="KEY", help="An SSH key to sign the receipt with.")
]
Base = Annotated[
    str, typer.Option("--base", metavar="REV", help="The revision that the receipt compares with.")
]


def add_to(app: typer.Typer) -> None:
    """Add this module's commands."""
    app.command("validate")(validate)
    for kind in (Kind.FORMAT, Kind.LINT, Kind.TEST):
        app.command(kind.value, help=f"Run only the {kind.value} gates.")(_short_form(kind))


def validate(
    path: options.PathArgument = Path(),
    *,
    only: options.Only = None,
    fix: options.Fix = False,
    check: options.Check = None,
    fail_fast: options.FailFast = False,
    flake_reruns: options.FlakeReruns = 0,
    jobs: options.Jobs = None,
    receipt: Receipt = None,
    sign: Sign = None,
    base: Base = "HEAD",
    reuse: options.Reused = False,
    json: options.Json = False,
    report: options.Reports = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
    plain: options.Plain = False,
    list_only: Annotated[
        bool, typer.Option("--list", help="Name the gates and their commands; run none.")
    ] = False,
) -> int:
    """Run the gates of the project; without a configuration those that init would write."""
    from atlas_retry.cli import output
    from atlas_retry.events import Notice
    from atlas_retry.gates.plan import Reuse
    from atlas_retry.run.open import plan, remember, select, validation_logs

    if sign and not receipt:
        raise UsageError("--sign needs a receipt", remedy=f"--receipt FILE --sign {sign}")
    targets = output.targets(report or [])
    opened, proposed = _opened(path.resolve())
    chosen = _deciding(select(opened.settings.gates, only or []), is_named=bool(only))
    if list_only:
        return _listed(chosen, as_json=json)
    if receipt:
        from atlas_retry.workspace.git import commit_id

        base = commit_id(opened.root, opened.git.environ, base)  # a wrong one costs no gate
    how = replace(
        plan(opened, validation_logs(opened)),
        check=bool(os.environ.get("CI")) if check is None else check,
        fail_fast=fail_fast,
        flake_reruns=flake_reruns,
        jobs=jobs or opened.settings.jobs,
        reuse=Reuse.PASSED if reuse and not receipt else Reuse.NONE,
    )
    level = options.verbosity(quiet, verbose)
    with output.screen(os.environ, plain=plain, verbosity=level, to_stderr=json) as shown:
        if proposed:
            shown(Notice(text=proposed))
            validation = _run_aside(opened, chosen, how, shown)
        else:
            validation = _run(opened, chosen, how, shown, fix=fix)
        validation = _compared(opened, chosen, validation, how, shown)
        shown.write(output.last_lines(validation, path, verbosity=level, proposed=bool(proposed)))
    remember(opened, validation)
    if receipt:
        from atlas_retry.cli import receipts

        asked = receipts.ReceiptAsked(file=receipt, sign=sign, base=base)
        receipts.write_receipt(asked, opened, chosen, validation)
    output.publish_validation(validation, opened, targets, as_json=json)
    return exit_code_of(validation)


def _deciding(gates: tuple[Gate, ...], *, is_named: bool) -> tuple[Gate, ...]:
    """The gates, required where optional ones are all that was asked for by name."""
    if is_named and not any(gate.required for gate in gates):
        return tuple(replace(gate, required=True) for gate in gates)
    return gates


def _listed(gates: Sequence[Gate], *, as_json: bool) -> int:
    if as_json:
        from atlas_retry.text.json_text import encode

        sys.stdout.write(encode(gates).decode() + "\n")
        return OK
    width = max((len(gate.name) for gate in gates), default=0)
    for gate in gates:
        print(f"{gate.kind:<10}  {gate.name:<{width}}  {gate.run or gate.prompt}")
    return OK


def _opened(path: Path) -> "tuple[OpenWorkspace, str]":
    """The workspace, and a line about its gates where no configuration names them."""
    from atlas_retry import config
    from atlas_retry.run.open import open_configured, open_proposed

    if not path.is_dir() or config.is_configured(path):
        return open_configured(path, os.environ), ""
    from atlas_retry.cli.proposing import checking

    text, line = checking(config.root_of(path), os.environ)
    return open_proposed(path, os.environ, text), line


def _run(
    opened: "OpenWorkspace", chosen: Sequence[Gate], how: "Plan", shown: "Emit", *, fix: bool
) -> Validation:
    from atlas_retry.gates.validation import run_gates

    with _undoable(opened, chosen, shown, fix=fix) as wrote:
        if fix:
            from atlas_retry.gates.lines import run_fixers

            wrote(run_fixers(chosen, how, shown))
        validation = run_gates(chosen, how, shown)
        wrote(chain.from_iterable(result.changed for result in validation.results))
    return validation


def _compared(
    opened: "OpenWorkspace",
    chosen: Sequence[Gate],
    validation: Validation,
    how: "Plan",
    shown: "Emit",
) -> Validation:
    """The validation against the configured baseline, if there is one."""
    if not opened.settings.triage_baseline:
        return validation
    from atlas_retry.run.triage import against_baseline

    return against_baseline(opened, chosen, validation, how, shown)


def _run_aside(
    opened: "OpenWorkspace", chosen: Sequence[Gate], how: "Plan", shown: "Emit"
) -> Validation:
    """Nobody has agreed to changes yet: where hooks run, they run beside the workspace."""
    from atlas_retry import workspace
    from atlas_retry.gates.validation import run_gates

    hooks = [gate.run for gate in chosen if gate.kind is Kind.PRE_COMMIT]
    if not hooks or not opened.has_git:
        return run_gates(chosen, how, shown)
    with workspace.beside(opened.git, {}, [gate.run for gate in chosen]) as there:
        return run_gates(chosen, replace(how, wrap=there.wrap, locate=there.file), shown)


@contextmanager
def _undoable(
    opened: "OpenWorkspace", chosen: Sequence[Gate], shown: "Emit", *, fix: bool
) -> "Iterator[Callable[[Iterable[str]], None]]":
    """Hold what is there where a gate may write; the caller says what was written."""
    from atlas_retry.gates.course import is_writer

    paths: set[str] = set()
    ws = None
    if opened.has_git and any(is_writer(gate) or (fix and gate.fix) for gate in chosen):
        with suppress(AtlasError):  # a repository that cannot be used keeps no gate from running
            ws = opened.git
    if ws is None:
        yield paths.update
        if paths:
            _name_unheld(opened, paths, shown)
        return
    from atlas_retry.events import Notice
    from atlas_retry.history import validated

    opened.lookout.follow(opened.tracker.files)
    with validated.holding(ws, opened.tracker.snapshot) as held:
        yield paths.update
        if held:
            held.changed = bool(paths)
    if held and held.changed:
        shown(Notice(text="\n".join(copyable("undo", f"atlas undo {held.id}"))))


def _name_unheld(opened: "OpenWorkspace", paths: Collection[str], shown: "Emit") -> None:
    """Nothing was held of these, for no gate was said to write: say what git has of them."""
    from atlas_retry import workspace
    from atlas_retry.events import Notice
    from atlas_retry.model import Level
    from atlas_retry.reports.screen.lines import printable

    tracked = workspace.tracked(opened.root, paths, environ=opened.environ)
    others = ", ".join(printable(path) for path in sorted({*paths} - {*tracked}))
    names = " ".join(shlex.quote(printable(path)) for path in tracked)
    text = (
        "atlas undo cannot restore what a gate changed that is not configured with `writes: true`"
    )
    text += f"; as git has it staged or committed: git checkout -- {names}" if names else ""
    text += f"; not known to git: {others}" if others else ""
    text += ". With `writes: true` the next change can be undone"
    shown(Notice(level=Level.WARNING, text=text))


def _short_form(kind: Kind) -> Callable[..., int]:
    def command(
        path: options.PathArgument = Path(),
        *,
        fix: options.Fix = False,
        json: options.Json = False,
        report: options.Reports = None,
        quiet: options.Quiet = False,
        verbose: options.Verbose = 0,
        plain: options.Plain = False,
    ) -> int:
        return validate(
            path,
            only=[kind.value],
            fix=fix,
            json=json,
            report=report,
            quiet=quiet,
            verbose=verbose,
            plain=plain,
        )

    return command


def exit_code_of(validation: Validation) -> int:
    """0 passed, 1 gates fail, 3 a required gate cannot be run."""
    if validation.broken:
        return BROKEN
    return OK if validation.success else FAILED
