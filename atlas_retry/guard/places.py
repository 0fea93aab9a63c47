"""Kinds of files by path: test, source, setting, pipeline, lock file ... Reads no file."""

import posixpath
from functools import lru_cache

from atlas_retry.patterns import words
from atlas_retry.text.globs import globs

TESTS = globs(
    """
    test/ tests/ Test/ Tests/ __tests__/ spec/ specs/ testing/ testdata/ test-data/ test_data/
    testutil/ testutils/ test-utils/ test_utils/ *.Tests/ *.Test/ *Tests/ UnitTests/
    e2e/ integration-test/ integration-tests/ integration_test/ integration_tests/ /checks/
    acceptance/ *.feature t/
    __snapshots__/ __mocks__/ __fixtures__/ fixtures/ goldens/ golden/ cassettes/ snapshots/
    test_* /test.py test.[jt]s test.[cm]js test.rb tests.*
    *_test.* *_tests.* *.test.* *-test.* *.tests.* *.test-d.ts
    *.spec.* *-spec.* *_spec.* *.cy.*
    *Test.java *Tests.java *TestCase.java *IT.java *Spec.java Test[A-Z]*.java
    *Test.kt *Tests.kt *Spec.kt *Test.scala *Tests.scala *Spec.scala *Test.groovy *Spec.groovy
    *Test.php *Tests.php *TestCase.php *Test.cs *Tests.cs *Tests.swift *Test.swift
    !requirements*.txt !constraints*.txt
    !src/*[mM]ain/java/ !src/*[mM]ain/kotlin/ !src/*[mM]ain/scala/ !src/*[mM]ain/groovy/
    conftest.py *.bats *.snap *.golden *.ambr *.approved.* *.expected *.stdout *.stderr *.t
    """
)
"""Tests, their helpers and their data, by usual names."""

_CODE = words(
    ".py .pyi .pyx .js .jsx .mjs .cjs .ts .tsx .mts .cts .go .rs .java .kt .kts .scala .rb .rake"
    " .php .c .h .cc .cpp .cxx .hpp .hh .cs .swift .sh .bash .zsh .bats .vue .svelte .lua .pl .pm"
    " .ex .exs .dart .m .mm .zig .groovy .clj .hs .ml .erl .r .jl .sql .proto .graphql"
)
_FAMILIES = {
    **dict.fromkeys(words(".py .pyi .pyx"), "py"),
    **dict.fromkeys(words(".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte"), "js"),
    **dict.fromkeys(words(".c .h .cc .cpp .cxx .hpp .hh .m .mm"), "c"),
    **dict.fromkeys(words(".java .kt .kts .scala .groovy"), "jvm"),
    **dict.fromkeys(words(".rb .rake"), "rb"),
    ".go": "go", ".rs": "rs", ".cs": "cs", ".php": "php",
}  # fmt: skip
_MADE = globs("build/ dist/ out/ _build/ tmp/ var/ .cache/ coverage/ logs/ *.log bin/ obj/")
_PROSE = globs(
    """
    *.md *.rst *.adoc *.txt LICENSE* COPYING* AUTHORS* CHANGELOG* CHANGES* NEWS* README*
    !requirements*.txt !constraints*.txt !CMakeLists.txt
    """
)

INSTALLED = ("**/node_modules/**", "**/site-packages/**")
"""Folders of installed packages."""
CACHES = globs(
    """
    __pycache__/ .pytest_cache/ .mypy_cache/ .ruff_cache/ .hypothesis/ .coverage .coverage.*.*
    .eslintcache *.tsbuildinfo .nyc_output/ htmlcov/ /target/ .tox/ .nox/ .gradle/ .vite/
    node_modules/.cache/ node_modules/.vite/ .DS_Store
    """
)
"""Caches that tools write when they run; never attributed to anyone."""
RUN_CACHES = globs("__pycache__/ .pytest_cache/ .hypothesis/")
"""Caches that run instead of sources, or decide which tests run."""
CHECK_CACHES = globs(".ruff_cache/ .mypy_cache/ .eslintcache *.tsbuildinfo .cache/ .vite/")
"""Caches that a tool uses instead of checking again."""


def suffix(path: str) -> str:
    """The last suffix with its dot, in lower case."""
    return posixpath.splitext(path)[1].lower()


def name(path: str) -> str:
    """The last part."""
    return posixpath.basename(path)


def family(path: str) -> str:
    """Key for the language of a file in tables of patterns; empty for others."""
    return _FAMILIES.get(suffix(path), "")


def is_code(path: str) -> bool:
    """Whether a file is source code."""
    return suffix(path) in _CODE


@lru_cache(maxsize=4096)
def is_test(path: str) -> bool:
    """Whether a file is a test, a helper of tests or their data."""
    return TESTS.match(path)


def is_source(path: str) -> bool:
    """Whether a file is source code other than tests."""
    return is_code(path) and not is_test(path)


def is_build_output(path: str) -> bool:
    """Whether a file is in a folder of build output."""
    return _MADE.match(path)


def is_product(path: str) -> bool:
    """Whether a build or a tool can make the file again from the sources."""
    return _MADE.match(path) or CACHES.match(path)


def is_prose(path: str) -> bool:
    """Whether a file is written for people."""
    return _PROSE.match(path)
