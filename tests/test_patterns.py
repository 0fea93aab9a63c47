"""Constant patterns are compiled at first use; here all of them are, so that a fault shows."""

import gc
import re
from importlib import import_module
from pathlib import Path

import pytest

from atlas_retry.patterns import LatePattern, regex

PACKAGE = Path(__file__).parents[1] / "atlas_retry"


def test_every_constant_pattern_compiles() -> None:
    for path in PACKAGE.rglob("*.py"):
        if "import regex" in path.read_text(encoding="utf-8"):
            import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    gc.unfreeze()  # what was frozen after the tests were collected is not among all objects
    late = [made for made in gc.get_objects() if isinstance(made, LatePattern)]
    compiled = [pattern.groups for pattern in late]
    assert len(compiled) > 200


def test_a_pattern_is_compiled_when_it_is_first_used() -> None:
    pattern = regex("(")
    with pytest.raises(re.error, match="missing"):
        pattern.match("")


def test_it_answers_as_a_compiled_pattern() -> None:
    pattern = regex(rb"(?P<word>\w+)")
    assert pattern.pattern == rb"(?P<word>\w+)"
    assert pattern.findall(b"one two") == [b"one", b"two"]
    assert pattern.sub(b"x", b"one") == b"x"
