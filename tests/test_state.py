"""The state directory's own housekeeping."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from atlas_retry import state_dir


def test_several_processes_may_trim_the_state_at_once(tmp_path: Path) -> None:
    for number in range(200):
        folder = tmp_path / f"{number:03}"
        folder.mkdir()
        (folder / "stdout.log").write_text("3 passed\n")
    with ThreadPoolExecutor(max_workers=4) as pool:
        made = [pool.submit(state_dir.trim, tmp_path, keep=2) for _ in range(4)]
    assert [one.exception() for one in made] == [None] * 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["198", "199"]
