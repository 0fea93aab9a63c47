"""Known test runners: how each takes one test, and which of its options only select or print."""

import posixpath
import re
import shlex
from collections.abc import Callable, Mapping
from itertools import pairwise

from msgspec import Struct

from atlas_retry.diagnostics.failures import inside
from atlas_retry.patterns import regex, words

SEPARATOR = regex(r"\s*(?:&&|\|\||[;|\n])\s*")
"""Between the single commands of a line."""
_SYNTAX = regex(r"[\\^$.*+?()\[\]{}|]")
"""Special characters of JavaScript's regular expressions."""
_INTERPRETER = regex(
    r"(?P<python>\S*python[\d.]*) \S+\.py\b"
    r"|(?P<beside>\S*env[\w.-]*/bin/|(?:uv|poetry|pdm|pipenv) run (?!-))(?!(?:tox|nox|hatch)\b)"
)
"""A script of Python, or a program in an environment that has an interpreter."""

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
        known = _INTERPRETER.match(SEPARATOR.split(command.strip())[-1])
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
