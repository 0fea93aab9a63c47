"""Tests in languages without a grammar: a file is one unit, its lines the checks."""

import re

from atlas_retry.guard.units import PARTIAL, WEAK, Check, Suite, Unit

_ASSERTING = re.compile(
    r"\b(assert\w*|expect\w*|should\w*|verify\w*|check\w*|REQUIRE|CHECK)\b", re.IGNORECASE
)
_SKIPPING = re.compile(
    r"\b(skip\w*|pending|markTestSkipped|markTestIncomplete|GTEST_SKIP|DISABLED_\w+|xit|xdescribe|"
    r"Ignore|exit 0|@Disabled|filter_run\w*|exclusion_filter|inclusion_filter)\b"
)


def read(path: str, source: bytes) -> Suite:
    """One unit: every line that asserts is a check, every line that skips a marker."""
    lines = source.decode("utf-8", "replace").splitlines()
    checks, markers = [], []
    for number, line in enumerate(lines, 1):
        bare = line.strip()
        if bare.startswith(("#", "//", "*", "--")):
            continue
        if _DECLARES.search(bare):
            checks.append(_declared(" ".join(lines[number - 1 : number + 1]), number))
        if _ASSERTING.search(bare):
            checks.append(_line_check(bare, number))
        if found := _SKIPPING.search(bare):
            markers.append(found[0])
    unit = Unit(path=path, name="(file)", line=1, checks=tuple(checks), markers=tuple(markers))
    return Suite(path=path, units=(unit,))


_DECLARES = re.compile(
    r"^@(\w+\.)?(Parameterized|Repeated)?Test\b|^\[(Fact|Theory|Test|TestMethod|TestCase)\b"
    r"|^func test\w+\(|^(it|test|specify)[ (]"
)
_ANY_ERROR = re.compile(r"(?i:throw|fail|raise)\w*\W+(Throwable|Exception|Error)\b")


def _declared(lines: str, number: int) -> Check:
    """A line that makes a test of the next one: without it nothing is run."""
    names = frozenset(re.findall(r"[A-Za-z_]\w+", lines))
    return Check(text=f"declares {lines.split()}", strength=PARTIAL, line=number, names=names)


def _line_check(line: str, number: int) -> Check:
    text = re.sub(r"[\s;\"'${}]+", "", line)
    literals = frozenset(re.findall(r"\d[\d.]*(?:[eE][+-]?\d+)?|\"[^\"]*\"|'[^']*'", line))
    names = frozenset(re.findall(r"[A-Za-z_]\w+", line))
    strength = WEAK if _ANY_ERROR.search(line) else PARTIAL
    return Check(text=text, strength=strength, line=number, literals=literals, names=names)
