"""Runs failing tests once more to see what they execute, where nothing that they write stays."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from time import monotonic

from msgspec.structs import replace

from atlas_retry import workspace
from atlas_retry.gates.plan import Plan, moved_to
from atlas_retry.gates.trace import MAX_S, ranked, requests_of, seen_of
from atlas_retry.gates.trace.values import Seen, TraceRequest
from atlas_retry.model import Tree, Validation
from atlas_retry.prompt import Traced
from atlas_retry.run.open import OpenWorkspace, plan
from atlas_retry.workspace.scratch import laid_out


def traced(opened: OpenWorkspace, failed: Validation, scratch: Path) -> tuple[Traced, ...]:
    """What the failing tests ran, most suspect first; empty where that is not available in time.

    `scratch` is a folder outside the workspace. A gate that could not be traced is not tried
    again. Raises Interrupted.
    """
    gates = [gate for gate in opened.settings.gates if gate.name not in opened.untraced]
    wanted = {gate.name: gate for gate in gates} if opened.settings.context.trace == "auto" else {}
    requests = requests_of(failed, wanted)
    if not requests:
        return ()
    until_s = monotonic() + min(MAX_S, sum(request.timeout_s for request in requests))
    seen: dict[TraceRequest, list[Seen]] = {}
    with suppress(TimeoutError), _apart(opened, requests, scratch, until_s) as how:
        for request in requests:
            left_s = min(request.timeout_s, until_s - monotonic())
            if left_s > 0:
                seen[request] = seen_of(replace(request, timeout_s=left_s), how)
    opened.untraced.update(request.gate.name for request in requests if not seen.get(request))
    return ranked(chain.from_iterable(seen.values()))


@contextmanager
def _apart(
    opened: OpenWorkspace, requests: Sequence[TraceRequest], scratch: Path, until_s: float
) -> Iterator[Plan]:
    """How gates run in an overlay of the workspace; where there is none, in a copy of it.

    Raises TimeoutError where the copy is not made in time.
    """
    how = plan(opened, scratch)
    if opened.has_git:
        lines = [request.gate.run for request in requests]
        with workspace.overlaid(opened.git, {}, lines) as there:
            if not isinstance(there, str):
                yield replace(how, wrap=there.wrap)
                return
    tree = workspace.directory_tree(opened.root)

    def in_time(_path: str) -> Tree:
        if monotonic() > until_s:
            raise TimeoutError
        return tree

    with laid_out(tree.paths(), in_time, opened.root) as copy:
        yield moved_to(how, copy)
