"""Command lines that run one test or a selection, for known test runners. Runs nothing."""

import posixpath
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import chain, pairwise, takewhile

from msgspec import Struct
from msgspec.structs import replace

from atlas_retry.diagnostics.failures import inside
from atlas_retry.diagnostics.started import StartedLine, started_lines
from atlas_retry.model import Diagnostic, GateResult
from atlas_retry.patterns import regex, words

_SEPARATOR = regex(r"\s*(?:&&|\|\||[;|\n])\s*")
_ENTER = regex(r"cd (?P<folder>[\w@.+-]+(?:/[\w@.+-]+)*)/? && (?!.*\bcd )")
"""A command that changes the folder once."""
_SPECIAL = regex(r"[*$`'\"(){}<>\\]")
_SAME_STARTS = (
    (regex(r"(?<![^\s/])python[\d.]* -m pytest$"), "pytest"),
    (regex(r"(?<![^\s/])(?<!-m )pytest$"), "python -m pytest"),
    (regex(r"^(?:pnpm exec|yarn) "), "npx "),
)
_SYNTAX = regex(r"[\\^$.*+?()\[\]{}|]")
"""Special characters of JavaScript's regular expressions."""
_PARAMETER = regex(r"\[.*\]$", re.DOTALL)
_NO_START = regex(
    r"(?:\S*/)?(?:python[\d.]* -m |uv )?"
    r"(?:pip|npm install|which|make|just|tox|nox|poe|invoke|sync|add|tool)(?: |$)"
)
"""Commands that name a test runner as a package, a target or an environment."""
_INTERPRETER = regex(
    r"(?P<python>\S*python[\d.]*) \S+\.py\b"
    r"|(?P<beside>\S*env[\w.-]*/bin/|(?:uv|poetry|pdm|pipenv) run (?!-))(?!(?:tox|nox|hatch)\b)"
)
"""A script of Python, or a program in an environment that has an interpreter."""
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

# https://doc.rust-lang.org/cargo/commands/cargo-test.html
_CARGO = words("""
    --manifest-path -p --package --exclude -F --features --profile --target --target-dir --config
    --test --bin --example --bench -j --jobs --color --message-format --lockfile-path -Z -C
    --test-threads --skip --format --logfile --shuffle-seed
    """)
# https://maven.apache.org/ref/current/maven-embedder/cli.html
_MAVEN = words("""
    -f --file -s --settings -gs --global-settings -t --toolchains -P --activate-profiles -pl
    --projects -rf --resume-from -T --threads -D --define -b --builder -l --log-file --color
    """)
# https://github.com/avajs/ava/blob/main/docs/05-command-line.md
_AVA = words("--config --node-arguments -c --concurrency -T --timeout")
# https://nodejs.org/api/cli.html
_NODE = words("""
    -r --require --import --loader --experimental-loader -C --conditions --test-reporter
    --test-reporter-destination --test-timeout --test-concurrency --test-name-pattern
    --test-skip-pattern --test-shard
    """)


# https://docs.pytest.org/en/stable/reference/reference.html#command-line-flags, and the options of
# pytest-xdist, pytest-cov, pytest-django, pytest-timeout
_PYTEST = words("""
    -c --config-file --rootdir --confcutdir -p -o --override-ini -W --pythonwarnings --import-mode
    --basetemp --ds --dc --cov-config --timeout --timeout-method --asyncio-mode --capture
    --log-level --log-cli-level --log-file -k -m -n --numprocesses --dist --tb --maxfail --durations
    --durations-min --junitxml --junit-xml --ignore --ignore-glob --deselect --cov-report
    --cov-fail-under --html --tx --color --show-capture --verbosity -r --reruns --reruns-delay
    """)
_PYTEST_DROPPED = (
    r"-[qvxl]+|-r.*|-k|-m|-n.*|--(?:quiet|verbose|verbosity|exitfirst|maxfail|numprocesses|dist|tx"
    r"|tb|durations.*|junit-?xml|ignore(?:-glob)?|deselect|cov.*|html|color|show-.*|no-header"
    r"|no-summary|lf|last-failed.*|ff|failed-first|nf|new-first|sw|stepwise.*|reruns.*"
    r"|looponfail|self-contained-html|log-file)"
)
# https://pkg.go.dev/cmd/go#hdr-Testing_flags
_GO = words("""
    -run -bench -count -timeout -tags -p -parallel -cpu -coverprofile -covermode -coverpkg -exec
    -ldflags -gcflags -mod -modfile -overlay -shuffle -vet -o -outputdir -C -skip -fuzz -fuzztime
    -list -cpuprofile -memprofile -blockprofile -trace -benchtime -toolexec
    """)
_GO_DROPPED = (
    r"--?(?:v|json|run|skip|bench.*|fuzz.*|list|cover.*|failfast|o|outputdir|\w+profile|trace)"
)
# https://jestjs.io/docs/cli, https://vitest.dev/guide/cli, https://mochajs.org/#command-line-usage
_JEST = words("""
    -c --config --rootDir --env --testEnvironment --selectProjects --testTimeout -w --maxWorkers -t
    --testNamePattern --reporters --outputFile --testPathPattern --testPathPatterns --shard
    --changedSince -r --root --dir --project --environment --pool --mode --reporter
    --coverageReporters --coverageDirectory --coverage.provider
    """)
_JEST_DROPPED = (
    r"-[toib]|--(?:coverage.*|collectCoverage.*|ci|verbose|silent|watch.*|testNamePattern"
    r"|testPathPatterns?|onlyChanged|onlyFailures|changed.*|json|outputFile.*|reporters?.*|bail.*"
    r"|maxWorkers|shard|run|colors?|no-color|passWithNoTests)|-w"
)
_MOCHA = words("""
    -r --require --config --package -u --ui -t --timeout -R --reporter -O --reporter-option
    --reporter-options -g --grep -f --fgrep --file --extension --spec --loader --import -n
    --node-option -j --jobs --ignore --exclude -s --slow --retries
    """)
_MOCHA_DROPPED = (
    r"-[ROgfibpj]|--(?:reporter.*|grep|fgrep|invert|spec|bail|parallel|jobs|watch.*|colou?rs?"
    r"|no-colou?rs?|forbid-only|dry-run)"
)
# https://rspec.info/documentation/, https://docs.phpunit.de/en/12.0/textui.html
_RSPEC = words("""
    -I -r --require -P --pattern -f --format -o --out -e --example -t --tag --seed --order -O
    --options --default-path --exclude-pattern --failure-exit-code
    """)
_RSPEC_DROPPED = (
    r"-[fotePcnp]|--(?:format|out|tag|example|pattern|exclude-pattern|seed|order|fail-fast.*"
    r"|profile.*|only-failures|next-failure|colou?r|no-colou?r|failure-exit-code)"
)
_PHPUNIT = words("""
    -c --configuration --bootstrap --include-path -d --cache-directory --testsuite --filter --group
    --exclude-group --log-junit --order-by --coverage-clover --coverage-html --coverage-text
    --coverage-cobertura
    """)
_PHPUNIT_DROPPED = (
    r"-v+|--(?:filter|testsuite|group|exclude-group|log-.*|coverage.*|verbose|testdox.*|colors.*"
    r"|stop-on-.*|order-by.*|no-progress|display-.*)"
)
# https://docs.python.org/3/library/unittest.html#command-line-options
# https://docs.djangoproject.com/en/5.2/ref/django-admin/#test
_UNITTEST = words("""
    -s --start-directory -p --pattern -t -k --settings --pythonpath --testrunner --verbosity --tag
    --exclude-tag --shuffle
    """)
_UNITTEST_DROPPED = (
    r"-[vqfk]|--(?:verbose|quiet|failfast|locals|verbosity|parallel|tag|exclude-tag|shuffle|timing)"
)


class RunnerCall(Struct, frozen=True, kw_only=True):
    """How a command starts a test runner, with its words as they are written."""

    start: str
    """Up to the program's name."""
    options: tuple[str, ...] = ()
    """With their values."""
    operands: tuple[str, ...] = ()
    """Files, goals or filters."""
    passed: tuple[str, ...] = ()
    """`--` and the options after it."""
    is_elsewhere: bool = False
    """Whether something that the gate starts is what calls the runner, perhaps in a folder."""

    def value_of(self, option: str) -> tuple[str, ...]:
        """The value of an option, if it is given."""
        return tuple(value for name, value in pairwise(self.options) if name == option)


class AskedTest(Struct, frozen=True, kw_only=True):
    """One test, and how its gate starts the runner."""

    path: str
    name: str
    call: RunnerCall


class SelectingRunner(Struct, frozen=True):
    """How to run one test with a test runner."""

    program: str
    """Pattern of its name in a gate's command."""
    default: Callable[[str], str | None]
    """Returns its command for a gate's that is a script; None if that is unknown."""
    selecting: Callable[[AskedTest], str]
    """Returns the arguments that select a test."""
    valued: frozenset[str]
    """Options whose value is the next word."""
    dropped: str = r"(?!)"
    """Pattern of the options that only select tests or change what is printed."""
    by_script: bool = False
    """Whether a script of a package that ends with the runner takes its arguments."""
    hides_skipped: bool = False
    """Whether its output may say nothing of skipped tests."""


def _joined(*words: str) -> str:
    return " ".join(filter(None, words))


def _file(path: str) -> str:
    """The path as an argument; empty for a library's file, which defines tests of the project."""
    return shlex.quote(path) if path and inside(path) else ""


def _title(name: str) -> str:
    return shlex.quote(_SYNTAX.sub(r"\\\g<0>", re.sub(r" [\u203a>] ", " ", name)))


def _path_and_name(option: str) -> Callable[[AskedTest], str]:
    def selecting(asked: AskedTest) -> str:
        title = f"{option} {_title(asked.name)}" if asked.name else ""
        return _joined(*asked.call.options, _file(asked.path), title)

    return selecting


def _vitest(asked: AskedTest) -> str:
    once = "" if asked.call.start.endswith(" run") else "--run"  # it watches in a terminal
    return _joined(once, _path_and_name("-t")(asked))


def _node_id(asked: AskedTest) -> str:
    test = f"{asked.path}::{asked.name}" if asked.path else asked.name
    return _joined(*asked.call.options, shlex.quote(test))


def _name(asked: AskedTest) -> str:
    """The test's name; discovery finds it by that, where it may not be imported."""
    call, name = asked.call, shlex.quote(asked.name)
    if "discover" in call.operands:
        return _joined(*call.operands, *call.options, "-k", name)
    return _joined(*call.options, name)


def _cargo(asked: AskedTest) -> str:
    return _joined(*asked.call.options, shlex.quote(asked.name), *asked.call.passed)


def _node(asked: AskedTest) -> str:
    """Node takes options only before files; a test may be defined in a file that runs none."""
    call = asked.call
    files = call.operands or (_file(asked.path),)
    return _joined(*call.options, "--test-name-pattern", _title(asked.name), *files)


def _maven(asked: AskedTest) -> str:
    call = asked.call
    test = shlex.quote("#".join(asked.name.rsplit(".", 1)))
    return _joined(*call.options, *(call.operands or ("test",)), f"-Dtest={test}")


def _example(asked: AskedTest) -> str:
    file = shlex.quote(asked.path) if asked.path else ""
    return _joined(*asked.call.options, file, "-e", shlex.quote(asked.name))


def _filter(asked: AskedTest) -> str:
    name = shlex.quote(asked.name.partition(" ")[0])
    return _joined(*asked.call.options, "--filter", name)


def _go(asked: AskedTest) -> str:
    path = asked.path
    folder = posixpath.dirname(path) if path.endswith(".go") else path
    wanted = "/".join(f"^{re.escape(step)}$" for step in asked.name.split("/"))
    return _joined(*asked.call.options, f"./{folder}", "-v", "-run", shlex.quote(wanted))


def _command(line: str) -> Callable[[str], str]:
    return lambda _: line


def _python(module: str) -> Callable[[str], str | None]:
    """The module with the interpreter of the gate's last command, if that says which."""

    def default(command: str) -> str | None:
        known = _INTERPRETER.match(_SEPARATOR.split(command.strip())[-1])
        python = known and (known["python"] or f"{known['beside']}python")
        return f"{python} -m {module}" if python else None

    return default


RUNNERS: Mapping[str, SelectingRunner] = {
    "pytest": SelectingRunner("pytest", _python("pytest"), _node_id, _PYTEST, _PYTEST_DROPPED),
    "unittest": SelectingRunner(
        r"unittest|(?:manage\.py|django-admin|-m django) test",
        _python("unittest"),
        _name,
        _UNITTEST,
        _UNITTEST_DROPPED,
    ),
    "go-test": SelectingRunner(
        "go test", _command("go test"), _go, _GO, _GO_DROPPED, hides_skipped=True
    ),
    "jest": SelectingRunner(
        r"jest(?:/bin/jest\.js)?",
        _command("npx jest"),
        _path_and_name("-t"),
        _JEST,
        _JEST_DROPPED,
        by_script=True,
    ),
    "vitest": SelectingRunner(
        r"vitest(?: run)?",
        _command("npx vitest run"),
        _vitest,
        _JEST,
        _JEST_DROPPED,
        by_script=True,
    ),
    "mocha": SelectingRunner(
        r"mocha(?:/bin/_?mocha(?:\.js)?)?|_mocha",
        _command("npx mocha"),
        _path_and_name("-g"),
        _MOCHA,
        _MOCHA_DROPPED,
        by_script=True,
    ),
    "ava": SelectingRunner(
        "ava", _command("npx ava"), _path_and_name("--match"), _AVA, by_script=True
    ),
    "node-test": SelectingRunner(
        r"(?:node|tsx)(?= (?:.* )?--test(?: |$))", _command("node --test"), _node, _NODE
    ),
    "cargo-test": SelectingRunner(
        r"cargo(?: \+\S+)? t(?:est)?", _command("cargo test"), _cargo, _CARGO
    ),
    "maven": SelectingRunner(r"mvn[wd]?", _command("mvn test"), _maven, _MAVEN),
    "rspec": SelectingRunner(
        "rspec", _command("bundle exec rspec"), _example, _RSPEC, _RSPEC_DROPPED
    ),
    "phpunit": SelectingRunner(
        "phpunit", _command("vendor/bin/phpunit"), _filter, _PHPUNIT, _PHPUNIT_DROPPED
    ),
}
"""Runners by tool of a diagnostic."""


def reproducing(result: GateResult, test: Diagnostic) -> str | None:
    """The command that runs this failing test in the folder of its gate; None if unknown."""
    return next(reproducing_each(result, (test,)))


def reproducing_each(result: GateResult, tests: Iterable[Diagnostic]) -> Iterator[str | None]:
    """Like `reproducing`, for each of a gate's tests; looks through its output once."""
    call_of = cache(partial(_call, result))
    return (_reproducing(result, test, call_of) for test in tests)


def _reproducing(
    result: GateResult, test: Diagnostic, call_of: Callable[..., RunnerCall | None]
) -> str | None:
    runner = RUNNERS.get(test.tool)
    if runner is None or not test.test_id:
        return None
    path, name = _path_and_name_of(test.test_id, test.tool)
    folder, beside = folder_of(result.command), _folder_of(test, path, result.cwd)
    call = call_of(runner, is_inside=beside not in (None, folder))
    if call is None:
        return None
    if call.is_elsewhere and beside is not None:
        folder = beside
    elif _is_outside(path, folder):
        return None
    if test.tool == "go-test" and test.path:
        path = posixpath.relpath(
            test.path, posixpath.join(result.cwd, folder, *call.value_of("-C"))
        )
    enter = "" if folder == "." else f"cd {shlex.quote(folder)} && "
    return f"{enter}{call.start} {runner.selecting(AskedTest(path=path, name=name, call=call))}"


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


def _is_outside(path: str, folder: str) -> bool:
    """Whether a path leads out of the workspace: the runner was in a folder that is not known."""
    joined = posixpath.normpath(posixpath.join(folder, path))
    return path.startswith("../") and joined.startswith("../")


def _call(result: GateResult, runner: SelectingRunner, *, is_inside: bool) -> RunnerCall | None:
    """How the gate starts the runner; None if unknown, or if it does so in several ways.

    A script that ends with the runner takes its arguments, unless it is that of a package inside:
    its line may have options that the tests need, such as `mocha --require`.
    """
    command = result.command
    said = [*started_lines(result)]
    is_script = runner.by_script and _SCRIPT.match(_SEPARATOR.split(command)[-1])
    ends = (_SEPARATOR.split(one.line)[-1] for one in said)
    if is_script and not is_inside and any(any(_named(runner.program, end)) for end in ends):
        return RunnerCall(start=f"{_SEPARATOR.split(command)[-1]} --")
    default = runner.default(command)
    direct = [] if is_script else [*_named(runner.program, command)]
    lines = [*chain.from_iterable(_started(runner.program, one) for one in said)]
    named = direct or lines or [*_named(runner.program, default or "")]
    if any(_is_in_quotes(start) for start, _ in named):
        return None
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


def _is_in_quotes(start: str) -> bool:
    """Whether what follows is inside a quoted text, such as that of `bash -c`."""
    return any(start.count(quote) % 2 for quote in "'\"")


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
    for single in _SEPARATOR.split(command):
        matches = (m for m in named.finditer(single) if not _PACKAGE.search(single[: m.start()]))
        match = next(matches, None)
        if match and not _NO_START.match(single):
            yield single[: match.end()], single[match.end() :]


def runners_of(command: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Known programs in a command, and their options that do more than select what is checked."""
    for program, changing in CHANGING.items():
        start = next((start for start, _ in _named(re.escape(program), command)), None)
        if start and not _SPECIAL.search(start):
            options = tuple(option for option in changing if not _is_given(option, command))
            yield from ((way, options) for way in _ways_to_start(start))


def _is_given(option: str, command: str) -> bool:
    return bool(re.search(rf"(?<!\S){re.escape(option)}", command))


def started_runners(result: GateResult) -> tuple[str, ...]:
    """The known programs that a gate's script, recipe or environment started, without arguments."""
    starts: dict[str, None] = {}
    for said in started_lines(result):
        for program in (name for name in CHANGING if name in said.line):
            starts |= dict.fromkeys(start for start, _ in _started(re.escape(program), said))
    return tuple(starts)


def _ways_to_start(start: str) -> Iterator[str]:
    """The start, and the others of the same program in the same environment.

    `pytest` is `python -m pytest`, and `npx jest` is `pnpm exec jest`.
    """
    yield start
    for pattern, other in _SAME_STARTS:
        same = pattern.sub(other, start)
        if same != start:
            yield same
            return
