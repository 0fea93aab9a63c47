"""What a path is to the guard, by name alone: code, a test, golden data."""

import re
from pathlib import PurePosixPath

from atlas_retry.guard.words import words

_TEST_FOLDER = re.compile(
    r"(^|/)(tests?|__tests__|specs?|testing|testdata|e2e|integration[-_]tests?|checks)/",
    re.IGNORECASE,
)
_TEST_NAME = re.compile(
    r"^(test_.*|.*_test\.\w+|.*_tests\.\w+|.*[.-](test|spec|cy)\.[cm]?[jt]sx?|.*_spec\.(rb|lua)"
    r"|.*(Test|Tests|TestCase|IT|Spec)\.(java|kt|scala|groovy|php|cs|swift)|Test[A-Z].*\.(java|kt)"
    r"|tests?\.(py|rs|rb|js|ts)|conftest\.py|.*\.bats|.*\.snap)$"
)
_COLLECTED = {
    ".py": re.compile(r"^(test_.*|.*_test|test\w*)\.py$"),
    ".go": re.compile(r"_test\.go$"),
    ".java": re.compile(r"^(Test.*|.*Tests?|.*TestCase|.*IT|.*Spec)\.java$"),
}
_GOLDEN_FOLDER = re.compile(
    r"(^|/)(__snapshots__|snapshots?|goldens?|testdata|fixtures|expected|cassettes|baselines?)/"
)
_GOLDEN_NAME = re.compile(r"(\.snap|\.golden|\.approved\.\w+|\.expected|\.ambr|\.stdout|\.stderr)$")
_PROSE = re.compile(
    r"(^|/)(README|CHANGELOG|LICENSE|Dockerfile|Makefile|package\.json|tsconfig\.json|pytest\.ini"
    r"|requirements[\w-]*\.txt|\.\w+ignore|py\.typed)[^/]*$|\.(md|rst|toml|cfg|ini)$"
)
"""What lies in folders of tests and is no data: read by people, or under rules of its own."""
_CODE = words(
    ".py .pyi .js .jsx .mjs .cjs .ts .tsx .mts .cts .go .rs .java .kt .scala .rb .php .c .h"
    " .cc .cpp .hpp .cs .swift .sh .bash .bats .vue .svelte .lua .pl .ex .exs .dart .m .zig"
)


def suffix(path: str) -> str:
    """The last suffix, in small letters, with its dot."""
    return PurePosixPath(path).suffix.lower()


def name(path: str) -> str:
    """The last part."""
    return PurePosixPath(path).name


def is_code(path: str) -> bool:
    """Whether a file is source of a programming language."""
    return suffix(path) in _CODE


def is_test(path: str) -> bool:
    """Whether a file takes part in tests: tests themselves, their helpers and their data."""
    return bool(_TEST_FOLDER.search(path) or _TEST_NAME.match(name(path)))


def is_source(path: str) -> bool:
    """Whether a file is source that tests try, none of the tests themselves."""
    return is_code(path) and not is_test(path)


def is_test_code(path: str) -> bool:
    """Whether a file is source that takes part in tests."""
    return is_test(path) and is_code(path)


def is_collected(path: str) -> bool:
    """Whether a runner's own defaults pick a file of this name up."""
    pattern = _COLLECTED.get(suffix(path))
    if pattern:
        return bool(pattern.search(name(path)))
    return is_test(path)


def is_golden(path: str) -> bool:
    """Whether a file holds expected output or data of tests."""
    if _GOLDEN_NAME.search(path) or "__snapshots__/" in path:
        return True
    if is_code(path) or _PROSE.search(path):
        return False
    return bool(_GOLDEN_FOLDER.search(path)) or is_test(path)
