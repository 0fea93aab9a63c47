"""What a person reads when an attempt has ended."""

from atlas_retry.events import AttemptFinished
from atlas_retry.wording import lines_of
from tests.values import attempt


def test_calls_that_were_refused_are_told_once() -> None:
    event = AttemptFinished(result=attempt(denials=("Bash: curl", "Bash: curl", "Edit: ci.yml")))
    assert ("  not permitted: Bash: curl, Edit: ci.yml", "warn") in list(lines_of(event))
