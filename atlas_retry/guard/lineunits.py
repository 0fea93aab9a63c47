"""Tests in languages without a grammar: a file is one unit, its lines the checks."""

import re

from atlas_retry.guard.units import PARTIAL, Check, Suite, Unit

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
        if _ASSERTING.search(bare):
            checks.append(_line_check(bare, number))
        if found := _SKIPPING.search(bare):
            markers.append(found[0])
    unit = Unit(path=path, name="(file)", line=1, checks=tuple(checks), markers=tuple(markers))
    return Suite(path=path, units=(unit,))


def _line_check(line: str, number: int) -> Check:
    text = re.sub(r"[\s;\"'${}]+", "", line)
    literals = frozenset(re.findall(r"\d[\d.]*|\"[^\"]*\"|'[^']*'", line))
    names = frozenset(re.findall(r"[A-Za-z_]\w+", line))
    return Check(text=text, strength=PARTIAL, line=number, literals=literals, names=names)
