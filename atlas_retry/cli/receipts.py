"""`atlas verify` and `atlas validate --receipt`: a result that can be checked without a run."""

import hashlib
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from atlas_retry.cli import options
from atlas_retry.cli.app import app, examples
from atlas_retry.diagnostics.tools import bare
from atlas_retry.errors import AtlasError, ExitCode, UsageError
from atlas_retry.guard import judge
from atlas_retry.guard.judge import with_base_configuration
from atlas_retry.history import commits
from atlas_retry.model import Gate, Validation
from atlas_retry.process import capture
from atlas_retry.reports.documents import encode
from atlas_retry.reports.receipt import (
    GuardReceipt,
    Present,
    make_receipt,
    problems,
    read_receipt,
)
from atlas_retry.reports.screen.lines import harmless
from atlas_retry.run.open import OpenWorkspace, open_configured
from atlas_retry.text.units import counted
from atlas_retry.workspace.git import commit_id

NAMESPACE = "atlas"
"""Signature namespace: signatures made for other purposes are invalid here (ssh-keygen(1))."""
VERSION_TIMEOUT_S = 10.0


@app.command(epilog=examples("atlas verify receipt.json --signers allowed_signers"))
def verify(
    receipt: Annotated[
        Path, typer.Argument(metavar="RECEIPT", help="The receipt that atlas validate wrote.")
    ],
    path: options.Folder = Path(),
    *,
    signers: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Allowed signers, in the format of ssh-keygen."),
    ] = None,
) -> ExitCode:
    """Check that a receipt belongs to this tree and these gates, without running any."""
    try:
        content = receipt.read_bytes()
    except OSError as error:
        raise UsageError(f"{receipt}: {error.strerror}") from error
    document = read_receipt(content, str(receipt))
    opened = open_configured(path.resolve(), os.environ)
    wrong = list(problems(document, present(opened, opened.settings.gates, receipt)))
    if signers:
        wrong += _unsigned(content, receipt, signers)
    for problem in wrong:
        print(harmless(f"not verified: {problem}"), file=sys.stderr)
    if wrong:
        return ExitCode.FAILED
    held = f", {len(document.guard.held)} held" if document.guard and document.guard.held else ""
    signed = "signed" if signers else "not checked for a signature"
    gates = counted(len(document.gates), "gate")
    print(f"verified: {gates} passed on {document.tree[:12]}{held}; {signed}")
    return ExitCode.OK


def write_receipt(
    file: Path,
    opened: OpenWorkspace,
    gates: Sequence[Gate],
    validation: Validation,
    *,
    sign: Path | None,
    base: str,
) -> None:
    """Write the receipt of a finished validation, and its signature next to it."""
    versions = [_version(gate, opened.root, opened.environ) for gate in gates]
    there = present(opened, gates, file)
    commit = commit_id(opened.root, opened.git.environ, base)
    asked = judge.ChangeAsked(workspace=opened.root, base=commit)
    answers = judge.judge_change(with_base_configuration(asked, opened.environ), opened.environ)
    guard = GuardReceipt(
        base=commit, refused=answers.refused, held=answers.held, noted=answers.noted
    )
    content = encode(make_receipt(validation, there, guard, versions)).encode()
    signature = _signature_of(file)
    try:
        file.write_bytes(content)
        signature.unlink(missing_ok=True)
        if sign:
            signature.write_bytes(_signed(content, sign, opened))
    except OSError as error:
        raise AtlasError(f"the receipt {file} cannot be written: {error}") from error


def present(opened: OpenWorkspace, gates: Sequence[Gate], file: Path) -> Present:
    """The present tree, configuration and gates, without the receipt files."""
    root = opened.root.resolve()
    own = [path.resolve() for path in (file, _signature_of(file))]
    inside = [str(path.relative_to(root)) for path in own if path.is_relative_to(root)]
    configuration = hashlib.sha256()
    for source in map(Path, opened.settings.sources):
        if source.is_relative_to(opened.root):
            configuration.update(hashlib.sha256(source.read_bytes()).digest())
    return Present(
        tree=commits.tree_id(opened.git, but=inside),
        configuration=configuration.hexdigest(),
        gates=tuple(gates),
        open_reviews=opened.open_reviews(),
    )


def _version(gate: Gate, root: Path, environ: Mapping[str, str]) -> str | None:
    """First line that the gate's program prints for `--version`; None if it fails."""
    name = bare(gate.run).partition(" ")[0]
    program = shutil.which(name, path=environ.get("PATH", os.defpath))
    if program is None:
        return None
    done = capture((program, "--version"), root, environ, timeout_s=VERSION_TIMEOUT_S)
    lines = done.stdout.decode(errors="replace").strip().splitlines()
    return lines[0][:200] if done.exit_code == 0 and lines else None


def _signature_of(file: Path) -> Path:
    return file.with_name(f"{file.name}.sig")


def _signed(content: bytes, key: Path, opened: OpenWorkspace) -> bytes:
    asked = ("-Y", "sign", "-n", NAMESPACE, "-f", str(key.resolve()))
    code, out, error = _ssh_keygen(*asked, root=opened.root, stdin=content)
    if code != 0:
        raise AtlasError(
            f"the receipt cannot be signed: {error}",
            remedy="with a key of your own: atlas validate --receipt FILE --sign ~/.ssh/id_ed25519",
        )
    return out


def _unsigned(content: bytes, receipt: Path, signers: Path) -> list[str]:
    """Why none of the signers has signed this; empty if one has."""
    signature = str(_signature_of(receipt).resolve())
    shared = ("-f", str(signers.resolve()), "-s", signature)
    root = Path.cwd()
    code, out, error = _ssh_keygen("-Y", "find-principals", *shared, root=root)
    if code != 0:
        return [f"no signer in {signers} has signed it: {error}"]
    signer = out.decode(errors="replace").splitlines()[0]
    asked = ("-Y", "verify", "-n", NAMESPACE, "-I", signer, *shared)
    code, _, error = _ssh_keygen(*asked, root=root, stdin=content)
    return [] if code == 0 else [f"the signature of {signer} does not match this receipt: {error}"]


def _ssh_keygen(*arguments: str, root: Path, stdin: bytes = b"") -> tuple[int | None, bytes, str]:
    done = capture(("ssh-keygen", *arguments), root, os.environ, stdin=stdin)
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return done.exit_code, done.stdout, lines[-1] if lines else f"exit code {done.exit_code}"
