"""The lines about earlier attempts."""

from atlas_retry.model import Held
from atlas_retry.prompt import Brief, compose
from atlas_retry.prompt.ledger import ledger
from tests.values import RED, attempt


def test_a_refused_call_is_told_once_so_that_it_is_not_tried_again() -> None:
    line = ledger((attempt(denials=("Bash: curl x", "Bash: curl x", "Edit: ci.yml")),), 2_000)
    assert "not permitted: Bash: curl x, Edit: ci.yml" in line


def test_of_many_refused_calls_the_first_few_are_told() -> None:
    line = ledger((attempt(denials=tuple(f"Bash: {n}" for n in range(50))),), 2_000)
    assert "Bash: 3" in line
    assert "Bash: 4" not in line


def told_of(*held: Held) -> str:
    return compose(
        Brief(validation=RED, read=lambda _: None, attempt=2, history=(attempt(held=held),))
    ).text


def test_the_next_attempt_is_told_what_was_held_back_what_fails_without_it_and_the_ways_out() -> (
    None
):
    text = told_of(Held(rule="tests-changed", path="test_a.py", needed=True))
    assert "Your change to test_a.py was held back" in text
    assert "with it restored these still fail: tests. Fix the source" in text
    assert text.count("ATLAS-CANNOT-FIX") == 2


def test_of_what_fails_with_the_held_change_as_well_the_next_attempt_is_told_so() -> None:
    assert "They fail with it as well" in told_of(
        Held(rule="tests-changed", path="test_a.py", needed=False)
    )


def test_an_edit_that_stays_for_review_was_not_held_back() -> None:
    assert "held back" not in told_of(Held(rule="special-case", path="a.py", in_place=True))


def test_what_an_older_attempt_had_held_back_is_named_in_its_line() -> None:
    held = attempt(held=(Held(rule="tests-changed", path="test_a.py"),))
    assert "held back and reverted: test_a.py" in ledger((held, attempt(2)), 2_000)
