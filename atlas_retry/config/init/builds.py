"""Lines of CI that configure, build and test with CMake or Meson, as the one gate that they are."""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from shlex import quote

from msgspec.structs import replace

from atlas_retry.config.ci.jobs import CiLine
from atlas_retry.config.init.commands import CMAKE, understand
from atlas_retry.config.project import ProjectFiles
from atlas_retry.diagnostics.tools import bare
from atlas_retry.patterns import regex

BUILDS = regex(r"(?:cmake(?! -E)|ctest|meson|ninja|g?make)(?!\S)")
CONFIGURES = regex(r"(?:cmake (?!--build|--install|-E)|meson (?!compile|test|install))")
TESTS = regex(
    r"ctest|meson test|(?:g?make|ninja)\b.*\b(?:test|check)|cmake --build .*(?:-t|--target) ?test"
)
"""Of CMake and Meson: what builds, what chooses its options first, and what runs the tests."""
COMPILERS = {"CC", "CXX", "FC"}
"""Variables that name a compiler: another one is another machine, not another check."""


def with_builds(project: ProjectFiles, lines: Sequence[CiLine]) -> Iterator[CiLine]:
    """The lines; what a job configures, builds and tests is one of them.

    Other jobs do so with other options in the same folder. Tests of a build that no line
    configures build by themselves.
    """
    steps = [line for line in lines if _is_of_build(project, line)]
    if any(CONFIGURES.match(bare(line.inner[-1])) for line in steps):
        yield from (replace(line, inner=()) if line in steps else line for line in lines)
        yield _joined(steps)
    else:
        yield from _with_default_build(lines, steps)


def _with_default_build(lines: Iterable[CiLine], steps: Sequence[CiLine]) -> Iterator[CiLine]:
    tests: list[CiLine] = []
    for line in steps:
        known = understand(line.line)
        tests += [line] if known and known.tool == "ctest" else []
    for line in lines:
        if line in tests:
            yield replace(line, line=CMAKE, inner=(CMAKE,), cwd=".", unknown=())
        elif tests and line in steps:
            yield replace(line, left_out="the tests build by themselves here")
        else:
            yield line


def _is_of_build(project: ProjectFiles, line: CiLine) -> bool:
    """Whether a line configures, builds or tests with CMake or Meson."""
    command = bare(line.inner[-1]) if line.inner else ""
    if line.left_out or not BUILDS.match(command):
        return False
    # make at the top runs targets of the project's own Makefile
    is_own = line.cwd == "." and command.startswith("make")
    return not is_own and (project.has("CMakeLists.txt") or project.has("meson.build"))


def _joined(steps: Sequence[CiLine]) -> CiLine:
    """One line that configures, builds and tests as these do, each in its folder."""
    lines = []
    for step in steps:
        text, folder = step.line, quote(step.cwd)
        if step.cwd != ".":
            text = f"(mkdir -p {folder} && cd {folder} && {text})"
        elif re.search(r"\|\||[;\n]", text):
            text = f"({text})"
        lines.append(text)
    commands = [step.inner[-1] for step in steps]
    env = dict(chain.from_iterable(step.env for step in steps))
    return replace(
        steps[-1],
        line=" && ".join(lines),
        inner=tuple(sorted(commands, key=lambda command: not TESTS.match(bare(command)))),
        cwd=".",
        env=tuple(sorted((k, v) for k, v in env.items() if k not in COMPILERS)),
        unknown=tuple(dict.fromkeys(chain.from_iterable(step.unknown for step in steps))),
    )
