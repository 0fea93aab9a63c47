"""Ignored files that gates wrote after another gate had failed, and that may let it pass later.

A fresh checkout lacks them. If a gate failed and passes now, and nobody has edited a file since,
all gates run once more without them.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.errors import AtlasError
from atlas_retry.events import Emit, Notice, ValidationFinished, seconds_of
from atlas_retry.gates.memory import MAX_IGNORED_FILES, digest_of, ignored_files
from atlas_retry.gates.plan import Plan
from atlas_retry.model import Gate, GateResult, Level, Validation
from atlas_retry.run.open import OpenWorkspace, answers, leftovers
from atlas_retry.text.units import some
from atlas_retry.workspace import place
from atlas_retry.workspace.scan import Stat, is_settled, stat_of

MAX_SHOWN = 3
ANY = ""


class Leftovers(Struct, frozen=True, array_like=True):
    """What was written since a gate began that failed."""

    tree: str
    """Digest of the files that git does not ignore, when all gates had ended; `ANY` if it is proved
    that the gate passes only by what is left."""
    files: dict[str, Stat]
    """Ignored files outside caches."""


def confirmed(
    opened: OpenWorkspace, gates: Sequence[Gate], validation: Validation, how: Plan, emit: Emit
) -> Validation:
    """The validation; red if a gate that failed on these same files passes only by leftovers.

    Remembers what is left for the next time, unless there is a validation before.
    """
    if not opened.has_git or not opened.learned.looks:
        return validation
    if not validation.success:
        if not how.previous:
            _remember(opened, validation, _left(opened, validation))
        return validation
    there = _suspects(opened, validation)
    if not there:
        _remember(opened, validation, {})
        return validation
    names = some(sorted(there), MAX_SHOWN)
    emit(Notice(text=f"  green, but red on these same files before; running again without {names}"))
    try:
        seen = _without(opened, gates, there, replace(how, previous=validation), emit)
    except AtlasError as error:
        emit(Notice(level=Level.WARNING, text=f"not confirmed without {names}: {error}"))
        return validation
    red = [result.name for result in seen.results if result.blocks]
    _remember(opened, validation, {name: Leftovers(ANY, there) for name in red})
    if not red:
        return validation
    answers(opened.state, opened.root).unlink(missing_ok=True)  # they hold these passes
    why = (
        f"passes only with {names}, which a gate wrote later: list that gate before, or as a build"
    )
    results = tuple(_explained(result, why) for result in seen.results)
    validation = replace(validation, results=results)
    emit(ValidationFinished(validation=validation))
    return validation


def _without(
    opened: OpenWorkspace,
    gates: Sequence[Gate],
    there: Mapping[str, Stat],
    how: Plan,
    emit: Emit,
) -> Validation:
    from atlas_retry.run.aside import run_aside  # start-up

    logs = state_dir.folder(how.logs, "without")
    aside = replace(how, logs=logs, learns=False, after_attempt=True, watched=None)
    return run_aside(opened, gates, dict.fromkeys(there), aside, emit)


def _explained(result: GateResult, why: str) -> GateResult:
    return replace(result, error=f"{result.error}; {why}") if result.blocks else result


def _suspects(opened: OpenWorkspace, validation: Validation) -> dict[str, Stat]:
    """Leftovers that are still there, of gates that failed on these same files and pass now."""
    known = _recalled(opened)
    if not known:
        return {}
    trees = _trees(opened)[0], ANY
    alike = (known[one.name] for one in validation.results if one.name in known)
    was = dict(chain.from_iterable(left.files.items() for left in alike if left.tree in trees))
    began_ns = int(seconds_of(validation.started_at) * 1e9)
    there = {}
    for path, before in was.items():
        status = place.status(opened.root, path)
        now = stat_of(status) if status else None
        # what somebody else has written meanwhile is no leftover
        if now and (now == before or not is_settled(now, began_ns)):
            there[path] = now
    return there


def _trees(opened: OpenWorkspace) -> list[str]:
    """Digests of the files before the last validation, and after it."""
    return [digest_of(look.files) for look in opened.learned.looks or ()]


def _left(opened: OpenWorkspace, validation: Validation) -> dict[str, Leftovers]:
    """Leftovers by the names of the gates that failed."""
    failed = [result for result in validation.results if result.blocks]
    if not failed or not opened.learned.looks:
        return {}
    files = opened.learned.looks[1].files
    ignored = dict(islice(ignored_files(opened.root, files), MAX_IGNORED_FILES))
    tree = _trees(opened)[1]
    every = {}
    for result in failed:
        began_s = seconds_of(result.started_at or validation.started_at)
        if late := dict(_since(began_s, ignored)):
            every[result.name] = Leftovers(tree, late)
    return every


def _since(began_s: float, files: Mapping[str, Stat]) -> Iterator[tuple[str, Stat]]:
    began_ns = int(began_s * 1e9)
    for path, seen in files.items():
        is_empty_folder = path.endswith("/")
        if not is_settled(seen, began_ns) and path.isprintable() and not is_empty_folder:
            yield path, seen


def _recalled(opened: OpenWorkspace) -> dict[str, Leftovers]:
    with suppress(OSError, msgspec.MsgspecError):
        content = leftovers(opened).read_bytes()
        return msgspec.msgpack.decode(content, type=dict[str, Leftovers])
    return {}


def _remember(opened: OpenWorkspace, validation: Validation, left: Mapping[str, Leftovers]) -> None:
    """Replace what is known of the gates that ran.

    If the state directory is full or read-only, nothing is remembered.
    """
    ran = {result.name for result in validation.results}
    others = {name: known for name, known in _recalled(opened).items() if name not in ran}
    file = leftovers(opened)
    with suppress(OSError):
        if others or left:
            state_dir.replace_file(file, msgspec.msgpack.encode(others | {**left}))
        else:
            file.unlink(missing_ok=True)
