"""Find the hunk of the user's change with which a test began to fail, by running it on parts."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, count
from math import log2
from pathlib import Path
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry import state_dir
from atlas_retry.diagnostics.counting import shares_problem
from atlas_retry.diagnostics.selecting import reproducing_each
from atlas_retry.errors import UsageError, WorkspaceError
from atlas_retry.events import Emit, GateRanAgain
from atlas_retry.gates.validation import run_gates
from atlas_retry.guard.places import is_test
from atlas_retry.model import Gate, GateResult, Introduced, Kind, Validation
from atlas_retry.run.open import OpenWorkspace, beside, plan
from atlas_retry.source.hunks import File, FileHunk, hunks_of, shown, with_hunks
from atlas_retry.workspace import changed
from atlas_retry.workspace.git import user_environment
from atlas_retry.workspace.snapshot.trees import (
    SUBMODULE,
    contents,
    revision_tree,
    source_tree,
)

MAX_S = 60.0
MAX_FILES, MAX_HUNKS = 200, 1_000
REASON = "which part of your change made a test fail"


class _Change(Struct, frozen=True, kw_only=True):
    """What the user changed since the baseline."""

    before: Mapping[str, File]
    after: Mapping[str, File]
    hunks: tuple[FileHunk, ...]
    """Those of tests first: a test that is new fails from its own hunk on, or from a later one."""

    def contents(self, kept: int) -> dict[str, File]:
        """The files that differ from the work tree if only the first hunks are kept."""
        first = self.hunks[:kept]
        files = {
            path: with_hunks(was, self.after[path], [hunk for hunk in first if hunk.path == path])
            for path, was in self.before.items()
        }
        return {path: file for path, file in files.items() if file != self.after[path]}


def introduced(
    opened: OpenWorkspace, failed: Validation, scratch: Path, emit: Emit
) -> Introduced | None:
    """The hunk without which the first failing test does not fail so; None if that is unknown.

    The test runs alone, on halves of the change beside the workspace: with all hunks, with none,
    and then log2 of their number times. None if it does not pass without them, if there are fewer
    than two, or if that would take longer than `MAX_S`. `scratch` is a folder outside the
    workspace. Raises Interrupted.
    """
    if opened.settings.context.trace != "auto" or not opened.has_git:
        return None
    found = next(_reproduced(opened, failed), None)
    change = _change(opened) if found else None
    if not (found and change and change.hunks[1:]):
        return None
    gate, result = found
    numbers, began_s = count(), monotonic()

    def fails(kept: int) -> bool:
        """Whether it fails so with the first hunks only. Raises TimeoutError."""
        left_s = MAX_S - (monotonic() - began_s)
        if left_s <= 0:
            raise TimeoutError
        logs = state_dir.folder(scratch, f"change-{next(numbers)}")
        limited = replace(gate, timeout_s=min(gate.timeout_s, left_s))
        with beside(opened, [limited], change.contents(kept), plan(opened, logs)) as (how, _):
            (seen,) = run_gates([limited], replace(how, watched=None)).results
        return not seen.success and shares_problem(seen, result)

    number = None
    try:
        with suppress(TimeoutError):
            number = _first_failing(len(change.hunks), fails, began_s)
    except WorkspaceError:  # the tree cannot be changed for a moment
        return None
    took_ms = round((monotonic() - began_s) * 1000)
    emit(GateRanAgain(gate=gate.name, reason=REASON, duration_ms=took_ms))
    if number is None:
        return None
    hunk = change.hunks[number - 1]
    diff = shown(hunk, change.before[hunk.path], change.after[hunk.path])
    test = result.diagnostics[0].test_id or ""
    return Introduced(gate=gate.name, test=test, place=hunk.place, diff=diff)


def _reproduced(opened: OpenWorkspace, failed: Validation) -> Iterator[tuple[Gate, GateResult]]:
    """Gates that run one failing test, and their result with its problem alone."""
    gates = {gate.name: gate for gate in opened.settings.gates}
    for result in failed.failures:
        if result.kind is not Kind.TEST or result.name not in gates:
            continue
        tests = result.diagnostics
        for test, line in zip(tests, reproducing_each(result, tests), strict=True):
            if line:
                alone = replace(gates[result.name], run=line, recheck=None, fix=None, report=None)
                yield alone, replace(result, diagnostics=(test,))


def _change(opened: OpenWorkspace) -> _Change | None:
    """The change since the merge base; None if git cannot tell, or if it is too large."""
    root, environ = opened.root, opened.environ
    baseline = opened.settings.triage_baseline
    base = changed.merge_base(root, environ, baseline) or "HEAD"
    try:
        paths = changed.paths_since(root, user_environment(environ), base)
        if not 0 < len(paths) <= MAX_FILES:
            return None
        was, now = revision_tree(root, base, paths, environ=environ), source_tree(root)
        files = [path for path in paths if was.mode(path) != SUBMODULE]
        before, after = was.contents(files), contents(now, files)
    except (UsageError, WorkspaceError):
        return None
    ordered = sorted(files, key=lambda path: (not is_test(path), path))
    found = (hunks_of(path, before[path], after[path]) for path in ordered)
    hunks = tuple(chain.from_iterable(found))
    return _Change(before=before, after=after, hunks=hunks) if len(hunks) <= MAX_HUNKS else None


def _first_failing(total: int, fails: Callable[[int], bool], began_s: float) -> int | None:
    """The number of hunks with which it fails and with one less does not; None if unknown."""
    if not fails(total):
        return None
    would_take_s = (monotonic() - began_s) * (2 + log2(total))
    if would_take_s > MAX_S or fails(0):
        return None
    return 1 + bisect_left(range(1, total), x=True, key=fails)
