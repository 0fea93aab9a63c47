"""Nothing of an attempt stays, however often and whenever its end is interrupted.

The short form of `bench/torture.py`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from atlas_retry import config
from atlas_retry.model import Kind
from tests import torture_fifos, torture_git, torture_stops, torture_streams, torture_trees
from tests.repositories import entries
from tests.torture import Tally, Torture


@pytest.fixture(scope="module")
def torture(tmp_path_factory: pytest.TempPathFactory) -> Torture:
    return Torture.prepared(tmp_path_factory.mktemp("torture"), files=300)


def test_a_second_signal_during_restore_leaves_no_part_of_the_attempt(
    torture: Torture,
) -> None:
    tally = torture.signals(2, seed=3)
    assert tally.failures == []
    assert tally.hit


def test_a_kill_is_undone_even_if_the_undo_is_killed_too(torture: Torture) -> None:
    assert torture.kills(2, seed=4).failures == []


def test_an_interrupted_undo_is_complete_or_can_be_repeated(torture: Torture) -> None:
    assert torture.undo_signals(1, seed=5).failures == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "row",
    [
        torture_trees.shapes,
        torture_trees.several,
        torture_trees.nobody,
        torture_trees.full_disk,
        torture_streams.bombs,
        torture_streams.outputs,
        torture_streams.api,
        torture_streams.claude,
        torture_streams.git_keys,
        torture_git.person,
        torture_git.gitfiles,
        torture_git.thrown_away,
        torture_stops.stops,
        torture_fifos.fifos,
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_torture_trials_find_no_failure(
    row: Callable[[Path, int, int], Tally], tmp_path_factory: pytest.TempPathFactory
) -> None:
    tally = row(tmp_path_factory.mktemp("row"), 1, 7)
    assert tally.failures == []
    assert tally.trials == 1 or tally.notes


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.REVIEW])
def test_hostile_output_is_tried_in_gates_of_every_kind(kind: Kind) -> None:
    section = torture_streams.hostile_gates(kind, "exit 1")
    text = yaml.safe_dump({"version": 1, "validation": section})
    (gate,) = config.load_text(text.encode(), "config.yaml").gates
    assert gate.kind is kind


def test_undo_reports_files_that_differ_from_before(torture: Torture, tmp_path: Path) -> None:
    rig = torture.copied(tmp_path / "rig")
    rig.atlas("retry", ".", "--ai-fix")
    for number in range(7):
        (rig.root / "many" / f"{number}.txt").write_text("mine")
    before = entries(rig.root)
    code, output = rig.atlas("undo")
    assert code == 1
    assert output.startswith("not undone: run ")
    assert "many/0.txt, many/1.txt, many/2.txt, many/3.txt, many/4.txt and 2 more" in output
    assert entries(rig.root) == before
