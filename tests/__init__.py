"""Whichever program runs tests, or parts of them: its PATH is that of the tests."""

from tests.programs import keep_to_usual_programs

keep_to_usual_programs()
