"""Rule on code that finds out whether it is being tested. Knows the marks of each runner."""

import re
from collections.abc import Iterator

from atlas_retry.guard import places
from atlas_retry.guard.case import Finding, Scene
from atlas_retry.guard.fresh import left_lines
from atlas_retry.guard.words import words

_RUNNER = r"(?:_?pytest|unittest|nose2?|doctest|hypothesis|_called_from_test)"
_GLOBAL = r"(?:describe|beforeEach|afterEach|beforeAll|afterAll|expect|vitest|jest|mocha|jasmine)"
_SCRIPTS = words(".js .jsx .mjs .cjs .ts .tsx .mts .cts .vue .svelte")
_JVM = words(".java .kt .scala .groovy")
_MARKS: tuple[tuple[frozenset[str], re.Pattern[str]], ...] = (
    (
        words(".py .pyi"),
        re.compile(
            rf"PYTEST_\w+|[\"'][^\"']*\b{_RUNNER}\b[^\"']*[\"'].*\bsys\.(modules|argv|path)\b"
            rf"|\bsys\.(modules|argv)\b.*[\"'][^\"']*{_RUNNER}\b|\bsys\._called_from_test\b"
            rf"|(hasattr|getattr)\(sys, [\"']_called_from_test"
            r"|(environ|getenv)\b.*[\"'](TOX_\w+|NOX_\w+|COVERAGE_RUN|COV_CORE_\w+|HYPOTHESIS_\w+)[\"']"
            r"|inspect\.(stack|currentframe)\(|sys\._getframe\("
        ),
    ),
    (
        _SCRIPTS,
        re.compile(
            r"process\.env\W{1,3}(JEST_\w+|VITEST\w*|MOCHA\w*|NODE_TEST_\w+|NODE_V8_COVERAGE|AVA_\w+)\b"
            r"|\{[^}]*\b(JEST_WORKER_ID|VITEST\w*|NODE_TEST_CONTEXT)\b[^}]*\}\s*=\s*(globalThis\.)?process\.env"
            r"|import\.meta\.env\.(VITEST|TEST)\b|NODE_ENV\W+test\b|MODE\W+[=!]==?\W+test\b"
            r"|import\.meta\.vitest|__(vitest|jest|mocha|coverage)_\w*|\$\$jest-matchers"
            rf"|typeof\s+(vi|it|{_GLOBAL})\b|typeof\s+(test|suite|before)\s*[!=]==?\s*[\"']undefined"
            rf"|\b(globalThis|global|window|self)\)?(\s+as\s+\w+\))?(\?\.|\.|\[[\"'])({_GLOBAL}|it)\b(?!\s*=[^=])"
            rf"|[\"']({_GLOBAL}|it|test)[\"']\s+in\s+(globalThis|global|window|self)\b"
            r"|process\.(argv|execArgv|title)\b.*\b(jest|vitest|mocha|ava|--test)\b"
            r"|\.stack\b.*\b(jest|vitest|mocha|spec|test)\b|require\.main\b.*\b(jest|mocha)\b"
        ),
    ),
    (
        words(".go"),
        re.compile(
            r"testing\.Testing\(\)|flag\.Lookup\([\"`]test\.|os\.Args.*[\"`][^\"`]*[.-]test\b"
            r"|runtime\.Callers?\(.*_test|[\"`]_test\.go[\"`]"
        ),
    ),
    (
        words(".rs"),
        re.compile(
            r"cfg!\([^)]*\btest\b|#\[cfg\(not\(test\)\)\]\s*(?!$|use|#\[(panic_handler|global_alloc))"
            r"|(var|var_os|option_env!)\(\"(NEXTEST\w*|RUST_TEST_\w+)\"|current_exe\(\).*deps"
        ),
    ),
    (
        _JVM,
        re.compile(
            r"getStackTrace\(\)|Class\.forName\([\"'](org\.junit|org\.testng|org\.scalatest|io\.kotest)"
            r"|getProperty\(\"(surefire|org\.gradle\.test|junit|maven\.test)[\w.]*\""
            r"|getProperty\(\"(java\.class\.path|sun\.java\.command)\"\).*(junit|surefire|test)"
            r"|StackWalker\.getInstance"
        ),
    ),
    (
        words(".rb"),
        re.compile(
            r"defined\?\(?\s*(::)?(RSpec|Minitest|Test::Unit|Cucumber)|const_defined\?\(:?\W?(RSpec|Minitest)"
            r"|(\$0|\$PROGRAM_NAME|caller)\b.*(rspec|minitest|_spec|_test)|Rails\.env\.test\?"
            r"|ENV.*(RAILS|RACK|APP)_ENV\W+(==|!=)\W*test\b|ENV.*TEST_ENV_NUMBER"
        ),
    ),
    (
        words(".php"),
        re.compile(
            r"defined\(\s*['\"](PHPUNIT|__PHPUNIT)\w*|class_exists\(\s*['\"]?\\*PHPUnit"
            r"|PHPUnit\\+Framework\\+\w+::class\W+false|runningUnitTests\(\)"
        ),
    ),
    (words(".cs"), re.compile(r"GetAssemblies\(\).*(xunit|nunit|mstest|testhost)|\"testhost")),
    (words(".sh .bash"), re.compile(r"\$\{?(BATS_\w+|SHUNIT_\w+)")),
)
"""The marks of runners, by the suffixes of the languages that they belong to."""
_ON_A_SERVER = re.compile(r"[\"']CI[\"']\s*[\]),]|process\.env\.CI\b")
_SETTINGS_FILE = re.compile(r"\.(config|setup|conf)\.[cm]?[jt]s$")
_IN_SOURCE = re.compile(
    r"^if \(import\.meta\.vitest\) \{$|^const \{[^}]*\} = import\.meta\.vitest;?$"
)
"""Tests beside what they test, as vitest has them; what stands in there is of the tests."""


def aware_of_tests(scene: Scene) -> Iterator[Finding]:
    """Code that finds out whether it is being tested, to behave then."""
    for delta in scene.files:
        if places.is_test(delta.path) or not places.is_code(delta.path):
            continue
        old = {line.strip() for line in delta.old_text.splitlines()}
        old |= left_lines(scene) if delta.is_added else set()
        for number, line in enumerate(delta.new_text.splitlines(), 1):
            bare = line.strip()
            if bare in old or bare.startswith(("#!", "# ", "//", "*")):
                continue
            if _IN_SOURCE.match(bare) and "} = import.meta.vitest" in delta.new_text:
                continue
            if _asks(delta.path, bare):
                yield Finding(
                    path=delta.path, line=number, detail=f"asks whether it is tested: `{bare[:80]}`"
                )


def _asks(path: str, line: str) -> bool:
    marks = (mark for suffixes, mark in _MARKS if places.suffix(path) in suffixes)
    on_a_server = not _SETTINGS_FILE.search(path) and _ON_A_SERVER.search(line)
    return bool(on_a_server) or any(mark.search(line) for mark in marks)
