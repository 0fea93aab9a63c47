"""Command lines that run one test or a selection, as a gate starts its runner. Runs nothing."""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, pairwise, product, takewhile

from msgspec.structs import replace

from atlas_retry.diagnostics.runners import RUNNERS, SEPARATOR, RunnerCall, SelectingRunner
from atlas_retry.diagnostics.started import StartedLine, started_lines
from atlas_retry.model import Diagnostic, GateResult
from atlas_retry.patterns import regex

_ENTER = regex(r"cd (?P<folder>[\w@.+-]+(?:/[\w@.+-]+)*)/? && (?!.*\bcd )")
"""A command that changes the folder once."""
_SPECIAL = regex(r"[*$`'\"(){}<>\\]")
_SAME_STARTS = (
    (regex(r"(?<![^\s/])python[\d.]* -m pytest$"), "pytest"),
    (regex(r"(?<![^\s/])(?<!-m )pytest$"), "python -m pytest"),
    (regex(r"^(?:pnpm exec|yarn) "), "npx "),
)
_PARAMETER = regex(r"\[.*\]$", re.DOTALL)
_NO_START = regex(
    r"(?:\S*/)?(?:python[\d.]* -m |uv )?"
    r"(?:pip|npm install|which|make|just|tox|nox|poe|invoke|sync|add|tool)(?: |$)"
)
"""Commands that name a test runner as a package, a target or an environment."""
_SCRIPT = regex(r"(?:npm|pnpm|yarn)(?: run)? [\w:.-]+$")
"""A script of package.json, without arguments."""
_PACKAGE = regex(
    r"(?:^|\s)(?:--(?:with|with-editable|from|extra|group|only-group|package|spec)|-p)[ =]$"
)
"""Options whose value is the name of a package, which may be that of the runner."""
_NOT_PLAIN = regex(r"[$`<(){}\\]")
_IN_FRONT = (
    r"(?:(?:[A-Za-z_]\w*=\S*|exec|run|-[^\s=]+(?:[ =][\w.,:=/@-]+)??"
    r"|(?:\S*/)?(?:env|time|npx|pnpm|yarn|bunx?|node|cross-env|dotenv|nyc|c8|uv|poetry|pdm|pipenv|hatch|rye|python[\d.]*|coverage"
    r"|bundle|php|xvfb-run|tox)) )*"
)
"""Words that may stand in front of a test runner in a line that the output shows."""
_WORD = regex(r"(?:[^\s'\"\\]|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.)+")
_REDIRECTS = regex(r"\d*[<>&]")

_JAVASCRIPT = (
    *("--updateSnapshot", "--update", "--update-snapshots", "--outputFile", "--reporter-option"),
    *("--config", "--root", "--rootDir", "--prefix", "--cwd", "--dir", "--script-shell"),
    *("--globalSetup", "--require", "--file", "-u", "-r"),
)
_CARGO_CHANGING = ("--config", "--target-dir", "--manifest-path", "--fix", "-Z")
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
    "cargo test": _CARGO_CHANGING,
    **dict.fromkeys(("npm test", "npm run test", "yarn test", "pnpm test"), _JAVASCRIPT),
    **dict.fromkeys(("jest", "vitest run", "vitest", "mocha", "ava"), _JAVASCRIPT),
    "node --test": ("--test-update-snapshots", "--import", "--require", "--eval", "-e", "-r"),
    "mvn test": (),
    "pre-commit run": ("--config", "-c"),
    "prek run": ("--config", "-c"),
    "gofmt -l": ("-w", "-cpuprofile"),
    "go vet": ("-vettool", "-overlay", "-modfile", "-mod", "-exec", "-toolexec"),
    **dict.fromkeys(("cargo clippy", "cargo check"), _CARGO_CHANGING),
    "ruff check": ("--fix", "--unsafe-fixes", "--add-noqa", "--config", "--output-file", "-o"),
    "ruff format --check": ("--config",),
    "mypy": (
        *("--config-file", "--python-executable", "--install-types", "--custom-typeshed-dir"),
        *("--shadow-file", "-report", "--junit-xml", "--cache-dir"),
    ),
    "eslint": (
        *("--fix", "--config", "--rulesdir", "--plugin", "--parser", "--resolve-plugins"),
        *("--output-file", "--format", "--cache", "-c", "-o", "-f"),
    ),
    "tsc --noEmit": ("--outDir", "--outFile", "--declarationDir", "--tsBuildInfo", "--project"),
}
"""Options of a program that write files, or load other code or settings."""


_SUBSHELL = regex(r"^\s*\(([^()'\"]*)\)")
_SETS_UP = regex(r"(?:export|source|\.)\s")
"""A part of a command that changes the shell for the parts after it."""


def reproducing(result: GateResult, test: Diagnostic) -> str | None:
    """The command that runs this failing test in the folder of its gate; None if unknown."""
    return next(reproducing_each(result, (test,)))


def reproducing_each(result: GateResult, tests: Iterable[Diagnostic]) -> Iterator[str | None]:
    """Like `reproducing`, for each of a gate's tests; looks through its output once."""
    result = replace(result, command=_SUBSHELL.sub(r"\1", result.command))
    call_of = cache(partial(_call, result))
    return (_reproducing(result, test, call_of) for test in tests)


def _reproducing(
    result: GateResult, test: Diagnostic, call_of: Callable[..., RunnerCall | None]
) -> str | None:
    runner = RUNNERS.get(test.tool)
    if runner is None or not test.test_id:
        return None
    path, name = _path_and_name_of(test.test_id, test.tool)
    if name.startswith("__main__.") and test.path:  # the module is the script that was started
        name = posixpath.splitext(test.path)[0].replace("/", ".") + name.removeprefix("__main__")
    folder, beside = folder_of(result.command), _folder_of(test, path, result.cwd)
    call = call_of(runner, is_inside=beside not in (None, folder))
    if call is None:
        return None
    if call.is_elsewhere and beside is not None:
        folder = beside
    elif posixpath.normpath(posixpath.join(folder, path)).startswith("../"):
        return None  # the runner was in a folder that is not known
    if test.tool == "go-test" and test.path:
        path = posixpath.relpath(
            test.path, posixpath.join(result.cwd, folder, *call.value_of("-C"))
        )
    enter = "" if folder == "." else f"cd {shlex.quote(folder)} && "
    set_up = filter(_SETS_UP.match, SEPARATOR.split(result.command))
    enter += "".join(f"{line} && " for line in set_up)
    return f"{enter}{call.start} {runner.selecting(path, name, call)}"


def _path_and_name_of(test_id: str, tool: str) -> tuple[str, str]:
    """The two parts of an id; one of them is empty if it has only the other."""
    whole = test_id if tool == "pytest" else _PARAMETER.sub("", test_id)
    path, _, name = whole.partition("::") if tool != "cargo-test" else ("", "", "")
    if name:
        return posixpath.normpath(path), name
    return (posixpath.normpath(whole), "") if RUNNERS[tool].by_script else ("", whole)


def _folder_of(test: Diagnostic, path: str, cwd: str) -> str | None:
    """The folder in which a runner that names the test's file so was; None if unknown."""
    if not path or not test.path or not f"/{test.path}".endswith(f"/{path}"):
        return None
    folder = posixpath.relpath(test.path.removesuffix(path) or ".", cwd)
    return None if folder.startswith("..") else folder


def _call(result: GateResult, runner: SelectingRunner, *, is_inside: bool) -> RunnerCall | None:
    """How the gate starts the runner; None if unknown, or if it does so in several ways.

    A script that ends with the runner takes its arguments, unless it is that of a package inside:
    its line may have options that the tests need, such as `mocha --require`.
    """
    command = result.command
    said = [*started_lines(result)]
    is_script = runner.by_script and _SCRIPT.match(SEPARATOR.split(command)[-1])
    ends = (SEPARATOR.split(one.line)[-1] for one in said)
    if is_script and not is_inside and any(any(_named(runner.program, end)) for end in ends):
        return RunnerCall(start=f"{SEPARATOR.split(command)[-1]} --")
    default = runner.default_for(command)
    direct = [] if is_script else [*_named(runner.program, command)]
    lines = [*chain.from_iterable(_started(runner.program, one) for one in said)]
    named = direct or lines or [*_named(runner.program, default)]
    before = [start for start, _ in named]
    if any(start.count("'") % 2 or start.count('"') % 2 for start in before):
        return None  # inside a quoted text, such as that of `bash -c`
    calls = [*dict.fromkeys(_parsed(start, rest, runner) for start, rest in named)]
    are_alike = len({(call.options, call.passed) for call in calls}) == 1
    return replace(calls[0], is_elsewhere=not direct) if are_alike else None


def _started(program: str, said: StartedLine) -> Iterator[tuple[str, str]]:
    """What `_named` finds in a line of the output, where only known programs are in front.

    What a test prints may look like the line of a recipe, and be anything.
    """
    if _NOT_PLAIN.search(said.line):
        return
    known = re.compile(rf"{_IN_FRONT}(?:\S*/)?(?:{program})")
    for start, rest in _named(program, said.line):
        if known.fullmatch(start):
            yield f"{said.before}{start}", rest


def _parsed(start: str, rest: str, runner: SelectingRunner) -> RunnerCall:
    """The call with its options, operands and what follows `--`, without redirections."""
    words = [*takewhile(lambda word: not _REDIRECTS.match(word), _WORD.findall(rest))]
    own = [*takewhile(lambda word: word != "--", words)]
    options, operands = _sorted(own, runner)
    passed, _ = _sorted(words[len(own) :], runner)
    return RunnerCall(
        start=start, options=options, operands=operands, passed=passed if len(passed) > 1 else ()
    )


def _sorted(
    words: Sequence[str], runner: SelectingRunner
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options with their values, without those that only select or print, and the other words."""
    options: list[str] = []
    operands: list[str] = []
    kept = re.compile(rf"(?!(?:{runner.dropped})(?:=|$))")
    for before, word in pairwise(("", *words)):
        option = word if word.startswith("-") else before if before in runner.valued else ""
        if not option:
            operands.append(word)
        elif kept.match(option):
            options.append(word)
    return tuple(options), tuple(operands)


_AT = regex(r"(?<=\s)@[\w./:-]+(?=\s|$)")


def from_root(command: str, cwd: str) -> str:
    """The command of a gate that runs in `cwd`, as typed in the root of the workspace.

    A word such as `@babel/register` is quoted: an agent may take it for the mention of a file.
    """
    typed = _AT.sub(r"'\g<0>'", command)
    return f"cd {shlex.quote(cwd)} && {typed}" if typed and cwd != "." else typed


def folder_of(command: str) -> str:
    """The folder that a command enters first; `.` if none."""
    entered = _ENTER.match(command)
    return posixpath.normpath(entered["folder"]) if entered else "."


def _named(program: str, command: str) -> Iterator[tuple[str, str]]:
    """The parts of a command that name the program: up to its name, inclusive, and after it."""
    named = re.compile(rf"(?<![\w.-])(?:{program})(?![\w./-])")
    for single in SEPARATOR.split(command):
        matches = (m for m in named.finditer(single) if not _PACKAGE.search(single[: m.start()]))
        match = next(matches, None)
        if match and not _NO_START.match(single):
            yield single[: match.end()], single[match.end() :]


def runners_of(command: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Known programs in a command, and their options that do more than select what is checked.

    With another way to start each in the same environment: `pytest` is `python -m pytest`, and
    `npx jest` is `pnpm exec jest`.
    """
    words = f" {' '.join(command.split())}"
    for program, changing in CHANGING.items():
        start = next((start for start, _ in _named(re.escape(program), command)), None)
        if start is None or _SPECIAL.search(start):
            continue
        options = tuple(option for option in changing if f" {option}" not in words)
        same = (pattern.sub(other, start) for pattern, other in _SAME_STARTS)
        yield from product([*dict.fromkeys((start, *same))][:2], [options])


def started_runners(result: GateResult) -> tuple[str, ...]:
    """The known programs that a gate's script, recipe or environment started, without arguments."""
    starts: dict[str, None] = {}
    for said in started_lines(result):
        for program in (name for name in CHANGING if name in said.line):
            starts |= dict.fromkeys(start for start, _ in _started(re.escape(program), said))
    return tuple(starts)
