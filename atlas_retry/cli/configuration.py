"""`atlas config`: the effective values and where each comes from, errors, schemas."""

import os
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry import config, state_dir
from atlas_retry.cli import documents, options
from atlas_retry.cli.app import config_app, examples
from atlas_retry.cli.idle import idle_gates, silent_tests
from atlas_retry.errors import StateError, UsageError
from atlas_retry.gates.memory import Memory
from atlas_retry.model import GateResult
from atlas_retry.reports.documents import encode
from atlas_retry.run.open import answers
from atlas_retry.run.triage import check_baseline
from atlas_retry.settings import CONFIGURATION_FILES, Settings
from atlas_retry.text.units import counted
from atlas_retry.workspace import place
from atlas_retry.workspace.files import StoredFile
from atlas_retry.workspace.snapshot.trees import revision_tree


@config_app.command(epilog=examples("atlas config show"))
def show(
    path: options.Folder = Path(),
    *,
    config_file: options.ConfigFile = None,
    json: options.Json = False,
) -> None:
    """Print every effective value and where it comes from."""
    _check_folder(path)
    rows = config.explain(path.resolve(), environ=os.environ, overrides=config.naming(config_file))
    if json:
        documents.write(documents.ConfigurationDocument(values=rows))
        return
    width = max(len(row.key) for row in rows)
    for row in rows:
        print(f"{row.key:<{width}}  {row.value}  ({row.origin})")


@config_app.command(epilog=examples("atlas config check"))
def check(
    path: options.Folder = Path(),
    *,
    config_file: options.ConfigFile = None,
    json: options.Json = False,
) -> None:
    """Check the configuration, and warn of what is unwise, and of gates that may check nothing."""
    _check_folder(path)
    settings = config.load(path.resolve(), environ=os.environ, overrides=config.naming(config_file))
    if settings.triage_baseline:
        check_baseline(config.root_of(path), settings, os.environ)
    root = config.root_of(path)
    idle = (*idle_gates(settings.gates, root, os.environ), *silent_tests(_last(settings, root)))
    warnings = (*settings.warnings, *idle)
    if json:
        gates, sources = len(settings.gates), tuple(settings.sources)
        documents.write(documents.CheckDocument(gates=gates, sources=sources, warnings=warnings))
        return
    for warning in warnings:
        print(f"warning: {warning}", file=sys.stderr)
    print(f"{counted(len(settings.gates), 'gate')}, read from {', '.join(settings.sources)}")


def _check_folder(path: Path) -> None:
    """Raise UsageError if the defaults would be shown for a folder that does not exist."""
    if not path.is_dir():
        raise UsageError(f"{path} is not a directory")


def _last(settings: Settings, root: Path) -> tuple[GateResult, ...]:
    """The remembered results of the gates; none if the state directory cannot be used."""
    names = {gate.name for gate in settings.gates}
    with suppress(StateError):
        memory = Memory(answers(state_dir.locate(os.environ), root), root, os.environ)
        return tuple(result for result in memory.results() if result.name in names)
    return ()


@config_app.command(epilog=examples("atlas config take origin/main"))
def take(
    revision: Annotated[str, typer.Argument(metavar="REV", help="A revision of git.")],
    path: options.Folder = Path(),
) -> None:
    """Replace the configuration in the work tree by that of a revision.

    For changes by strangers, who must not choose the commands.
    """
    root = config.root_of(path)
    base = revision_tree(root, revision, environ=os.environ)
    folder = path.resolve().relative_to(root)
    above = product((folder, *folder.parents), CONFIGURATION_FILES)
    names = [(up / name).as_posix() for up, name in above]
    found = next(filter(base.mode, names), None)
    taken = _files_of(found, root, config.reader_of(base, root, revision)) if found else []
    for name in names:
        if Path(name).parent.name == ".atlas" and (root / name).parent.is_symlink():
            place.remove(root, str(Path(name).parent))
        place.remove(root, name)
    for name in taken:
        entry = StoredFile(mode=base.mode(name) or "", oid="")
        place.put(root, name, entry, base.read(name) or b"")
    print(f"configuration of {revision}: {', '.join(taken) or 'none'}")


def _files_of(name: str, root: Path, reads: config.Read) -> list[str]:
    """The files of a configuration inside the repository, relative to its root."""
    files = map(Path, config.load_from(root / name, reads).sources)
    return [file.relative_to(root).as_posix() for file in files if file.is_relative_to(root)]


@config_app.command(epilog=examples("atlas config schema --report > report.schema.json"))
def schema(
    *,
    report: Annotated[
        bool, typer.Option(help="Print the schema of atlas's JSON documents instead.")
    ] = False,
) -> None:
    """Print the JSON Schema of the configuration, for editors."""
    print(encode(documents.schema() if report else config.schema()), end="")
