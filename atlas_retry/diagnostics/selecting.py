"""Command lines that run one test or a selection, for known test runners. Runs nothing."""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from atlas_retry.model import Diagnostic, GateResult
from atlas_retry.patterns import regex

_SEPARATOR = regex(r"\s*(?:&&|\|\||[;|\n])\s*")
_ENTER = regex(r"cd (?P<folder>[\w@.+-]+(?:/[\w@.+-]+)*)/? && (?!.*\bcd )")
"""A command that changes the folder once."""
_SPECIAL = regex(r"[*$`'\"(){}<>\\]")
_PYTEST_BY_MODULE = regex(r"(?<![^\s/])python[\d.]* -m pytest$")
_PYTEST_BY_NAME = regex(r"(?<![^\s/])(?<!-m )pytest$")
_SYNTAX = regex(r"[\\^$.*+?()\[\]{}|]")
"""Special characters of JavaScript's regular expressions."""
_PARAMETER = regex(r"\[.*\]$", re.DOTALL)


_JAVASCRIPT = (
    *("--updateSnapshot", "--update", "--update-snapshots", "--outputFile", "--reporter-option"),
    *("--config", "--root", "--rootDir", "--prefix", "--cwd", "--dir", "--script-shell"),
    *("--globalSetup", "--require", "--file", "-u", "-r"),
)
CHANGING: Mapping[str, tuple[str, ...]] = {
    "pytest": (
        *("--snapshot-update", "--inline-snapshot", "--force-regen", "--regen-all", "--basetemp"),
        *("--override-ini", "--rootdir", "--junit", "--log-file", "--pastebin", "--cov-report"),
        *("--debug", "--config-file", "-p", "-c", "-o"),
    ),
    "unittest": (),
    "go test": (
        *("-exec", "-toolexec", "-update", "-overlay", "-modfile", "-mod", "-outputdir", "-vet"),
        *("-coverprofile", "-cpuprofile", "-memprofile", "-blockprofile", "-trace", "-o", "-c"),
    ),
    "cargo test": ("--config", "--target-dir", "--manifest-path", "-Z"),
    **dict.fromkeys(("npm test", "npm run test", "yarn test", "pnpm test"), _JAVASCRIPT),
    **dict.fromkeys(("jest", "vitest run", "mocha", "ava"), _JAVASCRIPT),
    "node --test": ("--test-update-snapshots", "--import", "--require", "--eval", "-e", "-r"),
    "mvn test": (),
}
"""Options of a program that write files, or load other code or settings."""


class SelectingRunner(Struct, frozen=True):
    """How to run one test with a test runner."""

    program: str
    """Its name in a gate's command."""
    default: str
    """Its command if the gate's command is a script."""
    selecting: Callable[[str, str], str]
    """Returns the arguments that select a test by path and name."""
    hides_skipped: bool = False
    """Whether its output may say nothing of skipped tests."""


def _path_and_name(option: str) -> Callable[[str, str], str]:
    def selecting(path: str, name: str) -> str:
        title = _SYNTAX.sub(r"\\\g<0>", re.sub(r" [\u203a>] ", " ", name))
        file = f"{shlex.quote(path)} " if path else ""
        return f"{file}{option}{shlex.quote(title)}"

    return selecting


def _node_id(path: str, name: str) -> str:
    return shlex.quote(f"{path}::{name}" if path else name)


def _name(_: str, name: str) -> str:
    return shlex.quote(name)


def _method(_: str, name: str) -> str:
    return f"-Dtest={shlex.quote('#'.join(name.rsplit('.', 1)))}"


def _example(path: str, name: str) -> str:
    return f"{shlex.quote(path)} -e {shlex.quote(name)}" if path else f"-e {shlex.quote(name)}"


def _filter(_: str, name: str) -> str:
    return f"--filter {shlex.quote(name.partition(' ')[0])}"


def _go(path: str, name: str) -> str:
    folder = posixpath.dirname(path) if path.endswith(".go") else path
    wanted = "/".join(f"^{re.escape(step)}$" for step in name.split("/"))
    return f"./{folder} -v -run {shlex.quote(wanted)}"


RUNNERS: Mapping[str, SelectingRunner] = {
    "pytest": SelectingRunner("pytest", "python -m pytest", _node_id),
    "unittest": SelectingRunner("unittest", "python -m unittest", _name),
    "go-test": SelectingRunner("go test", "go test", _go, hides_skipped=True),
    "jest": SelectingRunner("jest", "npx jest", _path_and_name("-t ")),
    "vitest": SelectingRunner("vitest run", "npx vitest run", _path_and_name("-t ")),
    "mocha": SelectingRunner("mocha", "npx mocha", _path_and_name("-g ")),
    "node-test": SelectingRunner(
        "node --test", "node --test", _path_and_name("--test-name-pattern ")
    ),
    "cargo-test": SelectingRunner("cargo test", "cargo test", _name),
    "maven": SelectingRunner("mvn", "mvn test", _method),
    "rspec": SelectingRunner("rspec", "bundle exec rspec", _example),
    "phpunit": SelectingRunner("phpunit", "vendor/bin/phpunit", _filter),
}
"""Runners by tool of a diagnostic."""


def reproducing(result: GateResult, test: Diagnostic) -> str | None:
    """The command that runs this failing test; None for an unknown runner."""
    runner = RUNNERS.get(test.tool)
    if runner is None or not test.test_id:
        return None
    whole = test.test_id if test.tool == "pytest" else _PARAMETER.sub("", test.test_id)
    has_path = "::" in whole and test.tool != "cargo-test"
    path, _, name = whole.partition("::") if has_path else ("", "", whole)
    folder = folder_of(result.command)
    if test.tool == "go-test" and test.path:
        path = posixpath.relpath(test.path, folder)
    enter = "" if folder == "." else f"cd {shlex.quote(folder)} && "
    start = _started(runner.program, result.command) or runner.default
    return f"{enter}{start} {runner.selecting(path, name)}"


def folder_of(command: str) -> str:
    """The folder that a command enters first; `.` if none."""
    entered = _ENTER.match(command)
    return posixpath.normpath(entered["folder"]) if entered else "."


def _started(program: str, command: str) -> str | None:
    """The part of a command up to the program's name, inclusive."""
    named = re.compile(rf"(?<![\w.-]){re.escape(program)}(?![\w./-])")
    for single in _SEPARATOR.split(command):
        match = named.search(single)
        if match and not single.startswith(("pip ", "npm install", "which ")):
            return single[: match.end()]
    return None


def runners_of(command: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Test runners in a command, and their options that do more than select tests."""
    for program, changing in CHANGING.items():
        start = _started(program, command)
        if start and not _SPECIAL.search(start):
            options = tuple(option for option in changing if option not in command)
            yield from ((way, options) for way in _ways_to_start(start))


def _ways_to_start(start: str) -> Iterator[str]:
    """The start, and the other one of `pytest` and `python -m pytest` in the same environment."""
    yield start
    by_module = _PYTEST_BY_MODULE.sub("pytest", start)
    other = by_module if by_module != start else _PYTEST_BY_NAME.sub("python -m pytest", start)
    if other != start:
        yield other
