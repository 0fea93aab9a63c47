"""The lines about earlier attempts."""

from atlas_retry.model import Held
from atlas_retry.prompt import Brief, compose
from atlas_retry.prompt.ledger import ledger
from tests.values import RED, attempt


def test_a_denied_call_is_reported_once() -> None:
    line = ledger((attempt(denials=("Bash: curl x", "Bash: curl x", "Edit: ci.yml")),), 2_000)
    assert "not permitted: Bash: curl x, Edit: ci.yml" in line


def test_only_the_first_denied_calls_are_reported() -> None:
    line = ledger((attempt(denials=tuple(f"Bash: {n}" for n in range(50))),), 2_000)
    assert "Bash: 3" in line
    assert "Bash: 4" not in line


def next_prompt_about(*held: Held) -> str:
    return compose(
        Brief(validation=RED, read=lambda _: None, attempt=2, history=(attempt(held=held),))
    ).text


def test_a_held_change_is_explained_with_its_failures_and_options() -> None:
    text = next_prompt_about(Held(rule="tests-changed", path="test_a.py", needed=True))
    assert "Your change to test_a.py (tests-changed) was held back" in text
    assert "without it these still fail: tests. Find a fix" in text
    assert "Fix the source" not in text
    assert text.count("ATLAS-CANNOT-FIX") == 2


def test_a_held_change_that_fails_anyway_is_explained() -> None:
    assert "They fail even with it" in next_prompt_about(
        Held(rule="tests-changed", path="test_a.py", needed=False)
    )


def test_an_edit_left_for_review_is_not_reported_as_held() -> None:
    assert "held back" not in next_prompt_about(
        Held(rule="special-case", path="a.py", in_place=True)
    )


def test_held_changes_of_an_older_attempt_are_named() -> None:
    held = attempt(held=(Held(rule="tests-changed", path="test_a.py"),))
    assert "held back and reverted: test_a.py (tests-changed)" in ledger((held, attempt(2)), 2_000)
