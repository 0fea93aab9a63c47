"""Fixes that depend on an environment: traps never end green, a gate's own sync is no change."""

from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

import pytest

from tests.environments import (
    ASKS,
    RIGHT,
    SITE,
    SYNCS,
    TRAPS,
    VENV,
    WAYS,
    WRITERS,
    WRITERS_WAYS,
    Sync,
    Trap,
    missing,
    sprung,
    synced,
)
from tests.miniatures import put
from tests.needs import needs
from tests.test_agents_claude_code import real_claude
from tests.tools import with_tools

Environ = dict[str, str]
QUICK = [
    pytest.param(trap, way, marks=[needs("node")] if "npm" in trap.name else [], id=trap.name)
    for trap, way in zip(TRAPS, WAYS * 5, strict=True)
    if way == "command"
]

SYNCED = [
    pytest.param(
        sync, marks=[needs("node", *sync.needs)] if "npm" in sync.needs else [], id=sync.name
    )
    for sync in SYNCS
]


@pytest.mark.in_place("how each trap is laid is in the table")
@pytest.mark.parametrize(("trap", "way"), QUICK)
def test_a_trap_in_an_environment_is_never_green(
    tmp_path: Path, environ: Environ, trap: Trap, way: str
) -> None:
    assert sprung(trap, way, tmp_path, environ) == []


MANAGED: dict[str, tuple[str, str]] = {
    "poetry": (".cache/pypoetry/virtualenvs/mini-{own}-py3.11", ""),
    "poetry elsewhere": ("envs/mini-{own}-py3.11", "POETRY_VIRTUALENVS_PATH"),
    "pipenv": (".local/share/virtualenvs/mini-x", ""),
    "virtualenvwrapper": (".virtualenvs/mini", ""),
    "WORKON_HOME": (".cache/work/mini", "WORKON_HOME"),
    "hatch": (".local/share/hatch/env/virtual/mini/{own}/mini", ""),
}
"""Places below home, as the real tools make them, and the variable that names the folder."""


@pytest.mark.in_place("the environment is outside the workspace")
@pytest.mark.parametrize("manager", MANAGED)
def test_an_environment_that_a_manager_keeps_elsewhere_is_no_way_to_green(
    tmp_path: Path, environ: Environ, manager: str
) -> None:
    pattern, variable = MANAGED[manager]
    root, home = tmp_path / "mini", tmp_path / "home"
    own = urlsafe_b64encode(sha256(bytes(root)).digest()).decode()[:8]
    place = f"../home/{pattern.format(own=own)}"
    there = {path.replace(".venv", place): text for path, text in VENV.items()}
    # as with `poetry run`, no gate names the environment
    run = f"{place}/bin/python {ASKS}\n"
    trap = Trap(
        name=manager,
        there={**there, f"{place}/.project": f"{root}\n", "run.sh": run},
        gate="sh run.sh",
        turn=put(f"{place}/{SITE}/dep.py", RIGHT),
        variables={variable: f"{(home / pattern).parent}"} if variable else {},
    )
    assert sprung(trap, "command", tmp_path, environ) == []


NODE = pytest.mark.needs("node")
TRAPPED = [
    pytest.param(number, id=trap.name, marks=NODE if trap.gate.startswith("node ") else ())
    for number, trap in enumerate(TRAPS)
]
WRITTEN = [
    pytest.param(number, id=trap.name, marks=NODE if "node -e" in trap.gate else ())
    for number, trap in enumerate(WRITERS)
]


@pytest.mark.slow
@pytest.mark.in_place("how each trap is laid is in the table")
@pytest.mark.parametrize("number", TRAPPED)
def test_every_trap_is_found_however_it_is_laid(
    tmp_path: Path, environ: Environ, number: int
) -> None:
    way = WAYS[number % len(WAYS)]
    if way == "claude" and not real_claude():
        pytest.skip("the extra `claude` is not installed")
    assert sprung(TRAPS[number], way, tmp_path, environ) == []


@pytest.mark.slow
@pytest.mark.in_place("how each trap is laid is in the table")
@pytest.mark.parametrize("number", WRITTEN)
def test_what_the_turns_code_writes_while_gates_run_is_never_green(
    tmp_path: Path, environ: Environ, number: int
) -> None:
    trap, way = WRITERS[number], WRITERS_WAYS[number % len(WRITERS_WAYS)]
    if way == "claude" and not real_claude():
        pytest.skip("the extra `claude` is not installed")
    assert sprung(trap, way, tmp_path, environ) == []


@pytest.mark.slow
@pytest.mark.in_place("how each fix is made is in the table")
@pytest.mark.parametrize("sync", SYNCED)
def test_an_honest_fix_whose_gate_syncs_is_fixed_or_asked_about(
    tmp_path: Path, environ: Environ, sync: Sync
) -> None:
    if absent := missing(sync, with_tools(environ)):
        pytest.skip(f"{', '.join(absent)} is not installed")
    if sync.way == "claude" and not real_claude():
        pytest.skip("the extra `claude` is not installed")
    assert synced(sync, tmp_path, environ) == []
