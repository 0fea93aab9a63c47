"""A long run ends with the terminal's bell, a short or a quiet one does not."""

from io import StringIO

import pytest

from atlas_retry.reports.screen.console import LiveScreen


@pytest.mark.parametrize(
    ("after_s", "verbosity", "rings"), [(0.0, 0, True), (60.0, 0, False), (0.0, -1, False)]
)
def test_the_bell_rings_only_after_a_long_run(after_s: float, verbosity: int, rings: bool) -> None:
    stream = StringIO()
    with LiveScreen(stream=stream, verbosity=verbosity, bell_after_s=after_s):
        assert "\a" not in stream.getvalue()
    assert ("\a" in stream.getvalue()) == rings
