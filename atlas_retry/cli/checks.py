"""`atlas validate` and its short forms: run gates without an agent."""

import os
import shlex
from collections.abc import Callable, Collection, Sequence
from contextlib import ExitStack, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from atlas_retry import config
from atlas_retry.cli import options, output
from atlas_retry.cli.app import app, examples
from atlas_retry.errors import AtlasError, ExitCode, UsageError
from atlas_retry.events import Emit, Notice
from atlas_retry.gates.fixers import run_fixers
from atlas_retry.gates.plan import Plan, Reuse
from atlas_retry.gates.results import redacted_gate
from atlas_retry.gates.state import is_writer
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Gate, GateResult, Kind, Level, Status, Validation
from atlas_retry.reports.screen.lines import printable
from atlas_retry.run.open import (
    OpenWorkspace,
    open_configured,
    plan,
    remember,
    select,
    validation_logs,
)
from atlas_retry.settings import in_ci
from atlas_retry.text.commands import quoted
from atlas_retry.text.units import counted, first_few, labelled
from atlas_retry.workspace.git import commit_id

if TYPE_CHECKING:
    from atlas_retry.cli.proposing import Checks
    from atlas_retry.workspace.changed import Changed

NOT_RUN = (Status.BROKEN, Status.SKIPPED)


@app.command(
    epilog=examples(
        "atlas validate",
        "atlas validate --only lint --fix",
        "atlas validate --changed origin/main",
        "atlas validate --only test --report junit=junit.xml",
    )
)
def validate(
    path: options.Folder = Path(),
    *,
    only: options.Only = None,
    config_file: options.ConfigFile = None,
    fix: options.Fix = False,
    check: options.Check = None,
    fail_fast: Annotated[bool, typer.Option(help="Stop at the first failure.")] = False,
    flake_reruns: Annotated[
        int, typer.Option(help="Re-run a failing test gate up to N times.", min=0)
    ] = 0,
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", help="Gates to run at once; by default one per processor.", min=1
        ),
    ] = None,
    receipt: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a receipt for atlas verify.")
    ] = None,
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="An SSH key to sign the receipt with.")
    ] = None,
    base: Annotated[
        str, typer.Option(metavar="REV", help="The revision to compare with in the receipt.")
    ] = "HEAD",
    reuse: Annotated[bool, typer.Option(help="Skip gates that passed on the same files.")] = False,
    as_committed: Annotated[
        bool, typer.Option(help="Run on HEAD and index, as a fresh clone: without ignored files.")
    ] = False,
    review: Annotated[
        bool, typer.Option(help="Ask review gates, too; this may cost money.")
    ] = False,
    changed: Annotated[
        str | None,
        typer.Option(
            metavar="[REV]",
            help="Run only what files concern that changed since the branch left REV, by "
            "default the main branch.",
        ),
    ] = None,
    staged: Annotated[bool, typer.Option(help="Run only what staged files concern.")] = False,
    local: Annotated[
        bool, typer.Option(help="Without a configuration, run gates although CI runs none of them.")
    ] = False,
    json: options.Json = False,
    report: options.Report = None,
    quiet: options.Quiet = 0,
    verbose: options.Verbose = 0,
    plain: options.Plain = False,
    list_only: Annotated[
        bool, typer.Option("--list", help="List the gates and their commands without running them.")
    ] = False,
) -> ExitCode:
    """Run the project's gates.

    Without a configuration, run those that `atlas init` would write.
    """
    _refuse(receipt, sign, fix=fix, as_committed=as_committed)
    targets = output.targets(report)
    opened, proposed = _opened(path.resolve(), config_file, only or (), local=local)
    chosen = select(opened.settings.gates, only or ())
    if list_only:
        return _print_gates(chosen, as_json=json)
    if receipt:  # a wrong base costs no gate
        base = commit_id(opened.root, opened.git.environ, base)
    if opened.settings.triage_baseline:
        from atlas_retry.run.triage import check_baseline

        check_baseline(opened.root, opened.settings, os.environ)
    how = plan(opened, validation_logs(opened))
    how = replace(
        how,
        check=in_ci(os.environ) if check is None else check,
        fail_fast=fail_fast,
        flake_reruns=flake_reruns,
        jobs=jobs or opened.settings.jobs,
        waiting=() if jobs else how.waiting,  # `-j 1` is one at a time
        reuse=Reuse.PASSED if reuse and not receipt else Reuse.NONE,
        review=_reviewer(opened, chosen, how.logs) if review else None,
    )
    change = _change(opened, changed, receipt, staged=staged)
    level = output.verbosity(quiet, verbose)
    with output.screen(os.environ, plain=plain, verbosity=level, to_stderr=json) as shown:
        with output.naming_interruption(shown) as emit:
            chosen, how = _limited(opened, chosen, how, emit, change)
            if as_committed:
                from atlas_retry.run.committed import validate_as_committed

                validation = validate_as_committed(opened, chosen, how, emit)
            elif proposed:
                validation = _counted(_run_aside(opened, chosen, how, emit, proposed.notice))
            else:
                validation = _run(opened, chosen, how, _until_compared(chosen, emit), fix=fix)
            validation = _triaged(opened, chosen, validation, how, emit)
        _name_absent(proposed, shown, verbose)
        open_reviews = opened.open_reviews()
        end = output.Closing(
            validation=validation,
            open_reviews=open_reviews,
            place=_place(path, config_file, only),
            origins=_origins(path, config_file, validation, is_written=not proposed),
        )
        shown.write(output.last_lines(end, verbosity=level, proposed=bool(proposed)))
        if how.check and not as_committed:
            shown.write(output.only_here_lines(opened, validation, verbosity=level))
    remember(opened, validation)
    if receipt:
        from atlas_retry.cli.receipts import write_receipt

        write_receipt(receipt, opened, chosen, validation, sign=sign, base=base)
    output.publish_validation(validation, opened, targets, open_reviews, as_json=json)
    return exit_code_of(validation) or (ExitCode.FAILED if open_reviews else ExitCode.OK)


def _place(path: Path, config_file: Path | None, only: Sequence[str] | None) -> str:
    """The words with which a next command is about the same gates."""
    named = ["--config", str(config_file)] if config_file else []
    return shlex.join([str(path), *named, *output.limited_to(only)])


def _origins(
    path: Path, config_file: Path | None, validation: Validation, *, is_written: bool
) -> dict[str, str]:
    """Where the commands of gates are written, if some of them are broken.

    Empty if the configuration is gone: a gate may have deleted it.
    """
    if not is_written or not validation.broken:
        return {}
    with suppress(AtlasError):
        named = config.naming(config_file)
        rows = config.explain(path.resolve(), environ=os.environ, overrides=named)
        of_gates = (row for row in rows if row.key.startswith("validation."))
        return {row.value.strip("'\""): row.origin for row in of_gates}
    return {}


def _short_form(kind: str) -> Callable[..., ExitCode]:
    """The command that runs the gates of one kind, with the options that most people need."""

    def validate_kind(
        path: options.Folder = Path(),
        *,
        fix: options.Fix = False,
        check: options.Check = None,
        json: options.Json = False,
        quiet: options.Quiet = 0,
        verbose: options.Verbose = 0,
        plain: options.Plain = False,
    ) -> ExitCode:
        return validate(
            path,
            only=[kind],
            fix=fix,
            check=check,
            json=json,
            quiet=quiet,
            verbose=verbose,
            plain=plain,
        )

    return validate_kind


for kind in ("format", "lint", "test"):
    summary = f"Run the {kind} gates: validate --only {kind}."
    app.command(kind, help=summary, epilog=examples(f"atlas {kind}"))(_short_form(kind))


def _refuse(receipt: Path | None, sign: Path | None, *, fix: bool, as_committed: bool) -> None:
    """Raise UsageError for flags that exclude each other."""
    if sign and not receipt:
        remedy = f"atlas validate --receipt FILE --sign {quoted(sign)}"
        raise UsageError("--sign needs a receipt", remedy=remedy)
    if as_committed and (fix or receipt):
        given = "--fix" if fix else "--receipt"
        raise UsageError(f"--as-committed runs on a copy, so {given} has no meaning")


def _reviewer(
    opened: OpenWorkspace, chosen: Sequence[Gate], scratch: Path
) -> Callable[[Gate], GateResult]:
    """A function that asks the agents of review gates, which are there.

    Raises UsageError without such a gate, and AgentError.
    """
    asked = [gate for gate in chosen if gate.kind is Kind.REVIEW]
    if not asked:
        raise UsageError(
            "--review: no review gate is chosen",
            remedy='validation: {review: [{name: taste, prompt: "Is it plain?"}]}',
        )
    from atlas_retry.run.reviewer import paid_reviewer

    return paid_reviewer(opened, asked, scratch)


def _change(
    opened: OpenWorkspace, revision: str | None, receipt: Path | None, *, staged: bool
) -> "Changed | None":
    """The change to which the validation is limited; None if to none. Raises UsageError."""
    if not staged and revision is None:
        return None

    if receipt:
        remedy = f"atlas validate --receipt {quoted(receipt)}"
        raise UsageError("a receipt is for the whole project, not for a change", remedy=remedy)
    if not opened.has_git:
        remedy = f"atlas validate {quoted(opened.root)}"
        raise UsageError("without git it is unknown what changed", remedy=remedy)
    if staged and revision is not None:
        raise UsageError("--changed and --staged exclude each other", remedy="use one of them")
    root, env = opened.root, opened.git.environ
    from atlas_retry.workspace import changed

    if not staged:
        return changed.since(root, env, revision or "")
    # `git commit -a` and `git commit FILE` call hooks with an index of their own
    own = opened.environ.get("GIT_INDEX_FILE")
    return changed.staged(root, {**env, "GIT_INDEX_FILE": own} if own else env)


def _limited(
    opened: OpenWorkspace,
    chosen: tuple[Gate, ...],
    how: Plan,
    shown: Emit,
    change: "Changed | None",
) -> tuple[tuple[Gate, ...], Plan]:
    """The gates and the plan for a change, if there is one in question."""
    if change is None:
        return chosen, how

    from atlas_retry.gates.files import limited

    gates, of_gates, left_out = limited(chosen, change.paths, opened.root)
    scope = replace(how.scope, of_gates=of_gates, left_out=left_out, is_limited=True)
    shown(Notice(text=f"only what changed: {counted(len(change.paths), 'file')} {change.how}"))
    if change.partly:
        text = "gates read files as they are on disk; these differ from what is staged: "
        shown(Notice(level=Level.WARNING, text=text + first_few(change.partly)))
    return gates, replace(how, scope=scope, learns=False)


def _print_gates(gates: Sequence[Gate], *, as_json: bool) -> ExitCode:
    from atlas_retry.cli.documents import GatesDocument, write

    if as_json:
        write(GatesDocument(gates=tuple(redacted_gate(gate) for gate in gates)))
        return ExitCode.OK
    width = max((len(gate.name) for gate in gates), default=0)
    for gate in gates:
        print(f"{gate.kind:<10}  {gate.name:<{width}}  {redacted_gate(gate).run or gate.prompt}")
    return ExitCode.OK


def _opened(
    path: Path, file: Path | None, named: Collection[str], *, local: bool
) -> tuple[OpenWorkspace, "Checks | None"]:
    """The workspace, and the proposed gates if it has no configuration."""
    if file or not path.is_dir() or config.is_configured(path, os.environ):
        return open_configured(path, os.environ, config.naming(file), named=named), None

    from atlas_retry.cli.proposing import checking

    proposed = checking(path, os.environ, local=local)
    return open_configured(path, os.environ, proposed=proposed.text, named=named), proposed


def _run(
    opened: OpenWorkspace, chosen: Sequence[Gate], how: Plan, shown: Emit, *, fix: bool
) -> Validation:
    """Run fixers and gates; if one may write files, take a snapshot for `atlas undo` first."""
    may_write = opened.has_git and any(is_writer(gate) or (fix and gate.fix) for gate in chosen)
    git = held = None
    with suppress(AtlasError):  # the gates run even if the repository is unusable
        git = opened.git if may_write else None
    with ExitStack() as stack:
        if git:
            from atlas_retry.history import validated

            held = stack.enter_context(validated.holding(git, opened.tracker.snapshot))
        paths = {*run_fixers(chosen, how, shown)} if fix else set()
        validation = run_gates(chosen, how, shown)
        paths.update(chain.from_iterable(result.changed for result in validation.results))
        if held:
            held.changed = bool(paths)
    if held and held.changed:
        shown(Notice(text="\n".join(labelled("undo", f"atlas undo {held.id}"))))
    if paths and not git:
        _name_unheld(opened, paths, shown)
    return validation


def _until_compared(chosen: Sequence[Gate], emit: Emit) -> Emit:
    if not any(gate.accepts_baseline for gate in chosen):
        return emit

    from atlas_retry.run.triage import until_compared

    return until_compared(chosen, emit)


def _triaged(
    opened: OpenWorkspace, chosen: Sequence[Gate], validation: Validation, how: Plan, shown: Emit
) -> Validation:
    """The validation, with problems that exist at `triage.baseline` too marked as such."""
    if not opened.settings.triage_baseline:
        return validation

    from atlas_retry.run.triage import against_baseline

    return against_baseline(opened, chosen, validation, how, shown)


def _run_aside(
    opened: OpenWorkspace, chosen: Sequence[Gate], how: Plan, shown: Emit, notice: str
) -> Validation:
    """Run the gates on a copy: without a configuration the user agreed to no changes.

    They run one after the other, as a later one may need what an earlier one wrote.
    """
    shown(Notice(text=notice))
    if not opened.has_git:
        return run_gates(chosen, how, shown)
    from atlas_retry.workspace.isolation import isolated

    with isolated.in_turn(opened.git, [gate.run for gate in chosen]) as there:
        aside = replace(how, wrap=there.wrap, locate=there.file, jobs=1, waiting=())
        return run_gates(chosen, aside, shown)


def _counted(validation: Validation) -> Validation:
    """The validation in which gates that cannot run here do not count, if others did run.

    They are named; with a configuration each of them counts.
    """
    has_run = any(r.required and r.status not in NOT_RUN for r in validation.results)
    if not has_run:
        return validation
    broken = [result for result in validation.results if result.status is Status.BROKEN]
    results = (replace(r, required=False) if r in broken else r for r in validation.results)
    return replace(validation, results=tuple(results))


def _name_absent(proposed: "Checks | None", shown: Emit, verbose: int) -> None:
    """Warn of each proposed gate that this machine could not start, and of unknown lines of CI."""
    if proposed:
        details = proposed.details if verbose else ()
        for line in filter(None, (*proposed.absent, *details, proposed.rest)):
            shown(Notice(level=Level.WARNING, text=line))


def _name_unheld(opened: OpenWorkspace, paths: Collection[str], shown: Emit) -> None:
    """Warn of changed files without a snapshot, and show how to look at those that git tracks.

    A person may have edited them while gates ran, so no command that overwrites them is named.
    """
    tracked = frozenset[str]()
    with suppress(AtlasError):
        from atlas_retry.workspace.git import tracked as tracked_by_git

        tracked = tracked_by_git(opened.root, opened.git.environ, paths)
    others = ", ".join(printable(path) for path in sorted({*paths} - tracked))
    names = " ".join(shlex.quote(printable(path)) for path in sorted(tracked))
    text = "files changed while gates ran, by a gate or by someone else; atlas undo cannot restore"
    text += " them, as no gate that ran is configured with `writes: true`"
    text += f"; to see the change: git diff -- {names}" if names else ""
    text += f"; not known to git: {others}" if others else ""
    shown(Notice(level=Level.WARNING, text=text))


def exit_code_of(validation: Validation) -> ExitCode:
    """0 passed, 1 gates fail, 3 a required gate cannot be run."""
    if validation.broken:
        return ExitCode.BROKEN
    return ExitCode.OK if validation.success else ExitCode.FAILED
