"""What a person reads when an attempt has ended, and of what failed."""

import pytest

from atlas_retry.model import (
    Change,
    ChangeStatus,
)
from atlas_retry.text.units import changed


@pytest.mark.parametrize(
    ("status", "lines", "shown"),
    [
        (ChangeStatus.MODIFIED, (1, 1), "a (+1 -1)"),
        (ChangeStatus.MODIFIED, (None, None), "a (modified)"),
        (ChangeStatus.ADDED, (2, 0), "a (+2 -0)"),
        (ChangeStatus.ADDED, (0, 0), "a (added)"),
        (ChangeStatus.DELETED, (0, 1), "a (deleted)"),
        (ChangeStatus.MODE, (0, 0), "a (mode)"),
    ],
)
def test_a_change_is_shown_as_lines_only_where_these_say_what_happened(
    status: ChangeStatus, lines: tuple[int | None, int | None], shown: str
) -> None:
    change = Change(path="a", status=status, added=lines[0], removed=lines[1])
    assert changed(change) == shown
