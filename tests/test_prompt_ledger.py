"""The lines about earlier attempts."""

from atlas_retry.prompt.ledger import ledger
from tests.values import attempt


def test_a_refused_call_is_told_once_so_that_it_is_not_tried_again() -> None:
    line = ledger((attempt(denials=("Bash: curl x", "Bash: curl x", "Edit: ci.yml")),), 2_000)
    assert "not permitted: Bash: curl x, Edit: ci.yml" in line


def test_of_many_refused_calls_the_first_few_are_told() -> None:
    line = ledger((attempt(denials=tuple(f"Bash: {n}" for n in range(50))),), 2_000)
    assert "Bash: 3" in line
    assert "Bash: 4" not in line
