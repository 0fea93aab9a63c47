"""Rule on native builds (CMake, Meson, Bazel): tests they register, warnings they ask for."""

import re
from collections import Counter
from collections.abc import Iterator

from atlas_retry.guard.case import Delta, Finding, Scene

_BUILD = re.compile(
    r"(^|/)(CMakeLists\.txt|meson\.build|BUILD(\.bazel)?|Makefile\.am|configure\.ac)$|\.cmake$"
)
_REGISTERS = re.compile(
    r"\b(add_test|enable_testing|\w+_discover_tests|\w+_add_tests|set_tests_properties|test"
    r"|\w+_test)\s*\(([^()]*)\)",
    re.IGNORECASE,
)
_WARNINGS = re.compile(
    r"(?<![\w-])(-W(?!no-|l,|p,|a,)[\w=+-]*|[/-]WX|/W[34]|/Wall|-pedantic(?:-errors)?|-fsanitize=\S+"
    r"|werror\s*=\s*true|warning_level\s*=\s*\d|COMPILE_WARNING_AS_ERROR\s+(?:ON|TRUE|1))(?![\w-])"
)
_QUIET = re.compile(
    r"(?<![\w-])(-Wno-[\w=+-]+|-w(?![\w-])|/wd\d+|/W0|--gtest_filter|DISABLED|WILL_FAIL"
    r"|SKIP_R\w+|PASS_REGULAR_EXPRESSION|should_fail|\|\|\s*true|-fpermissive"
    r"|-?D?NDEBUG(?!\w)|CMAKE_BUILD_TYPE\s+\"?(?:Release|RelWithDebInfo|MinSizeRel)"
    r"|b_ndebug\s*=\s*(?:true|if-release)|-Dassert\b)"
)


def loosened(scene: Scene) -> Iterator[Finding]:
    """Tests that are no longer registered, warnings no longer asked for, and what hushes them."""
    for delta in scene.files:
        if _BUILD.search(delta.path) and not delta.is_added:
            old, new = _spoken(delta.old_text), _spoken(delta.new_text)
            yield from _unregistered(delta, old, new)
            for flag in (_found(_WARNINGS, old) - _found(_WARNINGS, new)).elements():
                yield Finding(path=delta.path, line=1, detail=f"no longer asks for `{flag}`")
            for word in (_found(_QUIET, new) - _found(_QUIET, old)).elements():
                line = _line(delta, word)
                yield Finding(path=delta.path, line=line, detail=f"hushes a check: `{word}`")


def _spoken(text: str) -> str:
    """Without comments."""
    return re.sub(r"(?m)(^|\s)#.*$", "", text)


def _found(pattern: re.Pattern[str], text: str) -> Counter[str]:
    return Counter(" ".join(match[1].split()) for match in pattern.finditer(text))


def _unregistered(delta: Delta, old: str, new: str) -> Iterator[Finding]:
    now = [(m[1].lower(), Counter(m[2].split())) for m in _REGISTERS.finditer(new)]
    for found in _REGISTERS.finditer(old):
        name, wanted = found[1].lower(), Counter(found[2].split())
        held = next((call for call in now if call[0] == name and wanted <= call[1]), None)
        if held is None:
            detail = f"no longer registers `{' '.join(found[0].split())[:80]}`"
            yield Finding(path=delta.path, line=1, detail=detail)
        else:
            now.remove(held)


def _line(delta: Delta, word: str) -> int:
    lines = enumerate(delta.new_text.splitlines(), 1)
    return next((number for number, line in lines if word in line), 1)
