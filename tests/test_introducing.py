"""Which part of the user's change made a test fail."""

from pathlib import Path

import pytest

from atlas_retry.events import Event, GateRanAgain
from atlas_retry.gates.validation import run_gates
from atlas_retry.model import Introduced
from atlas_retry.run.introducing import REASON, introduced
from atlas_retry.run.one import RunOptions, opened_with
from atlas_retry.run.open import plan, validation_logs
from atlas_retry.source.hunks import File, hunks_of, shown, with_hunks
from tests.projects import Project, git

GAP = "\n\n# a comment\n# and another\n# and a third\n# and a fourth\n\n\n"
SHOP = GAP.join(
    [
        "def price(item):\n    return item['price']",
        "def tax(amount):\n    return amount // 5",
        "def total(items):\n    return sum(price(item) + tax(price(item)) for item in items)",
        "def label(item):\n    return item['name']\n",
    ]
)
TEST = """
import unittest
from shop import total

class Total(unittest.TestCase):
    def test_total(self):
        self.assertEqual(total([{'price': 10, 'name': 'tea'}]), 12)
"""
RENAMED = ("item['name']", "item['name'].title()")
BROKEN = ("amount // 5", "amount // 50")
COMMENTED = ("item['price']", "item['price']  # in cents")


@pytest.fixture
def shop(project: Project) -> Project:
    (project.root / "shop.py").write_text(SHOP)
    (project.root / "test_shop.py").write_text(TEST)
    (project.root / "test_calc.py").unlink()
    (project.root / "notes.txt").write_text("one\n")
    project.commit()
    return project


def edit(project: Project, path: str, *changes: tuple[str, str]) -> None:
    file = project.root / path
    text = file.read_text()
    for old, new in changes:
        text = text.replace(old, new)
    file.write_text(text)


def found(project: Project, scratch: Path, events: list[Event]) -> Introduced | None:
    opened = opened_with(project.root, RunOptions(), project.environ)
    failed = run_gates(opened.settings.gates, plan(opened, validation_logs(opened)))
    assert not failed.success
    return introduced(opened, failed, scratch, events.append)


@pytest.mark.parametrize("is_committed", [False, True])
def test_the_part_of_a_change_with_which_a_test_fails_is_found(
    is_committed: bool, shop: Project, tmp_path: Path
) -> None:
    if is_committed:
        git(shop.root, "switch", "-q", "-c", "feature", environ=shop.environ)
    edit(shop, "shop.py", COMMENTED, BROKEN, RENAMED)
    edit(shop, "notes.txt", ("one", "two"))
    (shop.root / "new.py").write_text("X = 1\n")
    if is_committed:
        shop.commit()
    before = {path.name: path.read_bytes() for path in shop.root.glob("[a-z]*.*")}
    events: list[Event] = []
    part = found(shop, tmp_path / "scratch", events)
    line = SHOP[: SHOP.index(BROKEN[0])].count("\n") + 1
    assert part is not None
    assert part.place == f"shop.py:{line}"
    assert part.diff == f"-    return {BROKEN[0]}\n+    return {BROKEN[1]}"
    assert {path.name: path.read_bytes() for path in shop.root.glob("[a-z]*.*")} == before
    assert [event.reason for event in events if isinstance(event, GateRanAgain)] == [REASON]


def test_a_failure_that_the_baseline_has_too_is_of_no_part(shop: Project, tmp_path: Path) -> None:
    edit(shop, "shop.py", BROKEN)
    shop.commit()
    edit(shop, "shop.py", COMMENTED, RENAMED)
    assert found(shop, tmp_path / "scratch", []) is None


def test_a_change_of_one_part_is_not_searched(shop: Project, tmp_path: Path) -> None:
    edit(shop, "shop.py", BROKEN)
    events: list[Event] = []
    assert found(shop, tmp_path / "scratch", events) is None
    assert events == []


def test_the_prompt_begins_with_the_part_that_made_a_test_fail(shop: Project) -> None:
    edit(shop, "shop.py", COMMENTED, BROKEN, RENAMED)
    shop.attempt(1, {"shop.py": SHOP})
    outcome = shop.retry()
    assert outcome.verdict == "fixed"
    prompt = Path(outcome.attempts[0].prompt_path or "").read_text()
    errors = prompt[prompt.index("Previous validation failed") :]
    assert "Introduced by shop.py:" in errors.split("unittest", 1)[0]
    assert f"-    return {BROKEN[0]}\n+    return {BROKEN[1]}\n" in errors


OLD = b"".join(b"line %d\n" % number for number in range(30))


@pytest.mark.parametrize(
    ("after", "places"),
    [
        (OLD.replace(b"line 2\n", b"two\n"), ["f:3"]),
        (OLD.replace(b"line 2\n", b""), ["f:3"]),
        (OLD.replace(b"line 2\n", b"two\ntwo\n").replace(b"line 20\n", b"x\n"), ["f:3-4", "f:22"]),
        (OLD.replace(b"line 2\n", b"x\n").replace(b"line 4\n", b"x\n"), ["f:3-5"]),
        (OLD + b"no newline", ["f:31"]),
        (b"\0binary", ["f"]),
        (None, ["f"]),
    ],
)
def test_hunks_are_those_of_a_diff_and_make_the_file_again(
    after: bytes | None, places: list[str]
) -> None:
    was: File = ("100644", OLD)
    now: File = ("100644", after) if after is not None else None
    hunks = [*hunks_of("f", was, now)]
    assert [hunk.place for hunk in hunks] == places
    assert with_hunks(was, now, hunks) == now
    assert with_hunks(was, now, []) == was
    for hunk in hunks:
        assert bool(shown(hunk, was, now)) is not hunk.is_whole


def test_some_of_the_hunks_leave_the_other_lines_as_they_were() -> None:
    was: File = ("100644", OLD)
    now: File = ("100644", OLD.replace(b"line 2\n", b"two\n").replace(b"line 20\n", b""))
    first, second = hunks_of("f", was, now)
    assert with_hunks(was, now, [first]) == ("100644", OLD.replace(b"line 2\n", b"two\n"))
    assert with_hunks(was, now, [second]) == ("100644", OLD.replace(b"line 20\n", b""))
