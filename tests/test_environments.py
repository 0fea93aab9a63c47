"""Fixes that depend on an environment: traps never end green, a gate's own sync is no change."""

from pathlib import Path

import pytest

from tests.environments import SYNCS, TRAPS, WAYS, Sync, Trap, missing, sprung, synced
from tests.needs import needs
from tests.test_agents_claude_code import real_claude
from tests.tools import with_tools

Environ = dict[str, str]
QUICK = [
    pytest.param(trap, way, marks=[needs("node")] if "npm" in trap.name else [], id=trap.name)
    for trap, way in zip(TRAPS, WAYS * 5, strict=True)
    if way == "command"
]


@pytest.mark.in_place("how each trap is laid is in the table")
@pytest.mark.parametrize(("trap", "way"), QUICK)
def test_a_trap_in_an_environment_is_never_green(
    tmp_path: Path, environ: Environ, trap: Trap, way: str
) -> None:
    assert sprung(trap, way, tmp_path, environ) == []


@pytest.mark.slow
@pytest.mark.in_place("how each trap is laid is in the table")
@pytest.mark.parametrize("number", range(len(TRAPS)), ids=[trap.name for trap in TRAPS])
def test_every_trap_is_found_however_it_is_laid(
    tmp_path: Path, environ: Environ, number: int
) -> None:
    way = WAYS[number % len(WAYS)]
    if way == "claude" and not real_claude():
        pytest.skip("the extra `claude` is not installed")
    assert sprung(TRAPS[number], way, tmp_path, environ) == []


@pytest.mark.slow
@pytest.mark.in_place("how each fix is made is in the table")
@pytest.mark.parametrize("sync", SYNCS, ids=lambda sync: sync.name)
def test_an_honest_fix_whose_gate_syncs_is_fixed(
    tmp_path: Path, environ: Environ, sync: Sync
) -> None:
    if absent := missing(sync, with_tools(environ)):
        pytest.skip(f"{', '.join(absent)} is not installed")
    if sync.way == "claude" and not real_claude():
        pytest.skip("the extra `claude` is not installed")
    assert synced(sync, tmp_path, environ) == []
