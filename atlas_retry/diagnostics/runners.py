"""Known test runners: how each takes one test, and which of its options only select or print."""

import posixpath
import re
import shlex
from collections.abc import Mapping
from itertools import pairwise

from msgspec import Struct

from atlas_retry.diagnostics.failures import inside
from atlas_retry.diagnostics.table import NEVER
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
_FIELD = regex(r"\{(\w+)\}")


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


class SelectingRunner(Struct, frozen=True, kw_only=True):
    """How to run one test with a test runner."""

    program: str
    """Pattern of its name in a gate's command."""
    default: str
    """Its command where a gate's is a script; `{python}` is the interpreter of that script."""
    arguments: tuple[str, ...] = ("{options}", "{file}")
    """They select a test, with the fields of `_fields`; one with an empty field is left out."""
    valued: frozenset[str]
    """Options whose value is the next word."""
    dropped: str = NEVER
    """Pattern of the options that only select tests or change what is printed."""
    by_script: bool = False
    """Whether a script of a package that ends with the runner takes its arguments."""
    hides_skipped: bool = False
    """Whether its output may say nothing of skipped tests."""

    def default_for(self, command: str) -> str:
        """Its command where the gate's is this one; empty if no interpreter is known."""
        if "{python}" not in self.default:
            return self.default
        known = _INTERPRETER.match(SEPARATOR.split(command.strip())[-1])
        python = known and (known["python"] or f"{known['beside']}python")
        return self.default.format(python=python) if python else ""

    def selecting(self, path: str, name: str, call: RunnerCall) -> str:
        """The arguments that select a test, where its gate starts the runner so."""
        fields = _fields(path, name, call)
        named = ((one, _FIELD.findall(one)) for one in self.arguments)
        return " ".join(
            one.format_map(fields) for one, names in named if all(map(fields.get, names))
        )


def _fields(path: str, name: str, call: RunnerCall) -> Mapping[str, str]:
    """What an argument may hold, quoted for a shell; empty where the test has no such thing."""
    options, operands = " ".join(call.options), " ".join(call.operands)
    title = _SYNTAX.sub(r"\\\g<0>", re.sub(r" [\u203a>] ", " ", name))
    is_own = path and inside(path)  # a library's file may define tests of the project
    file = shlex.quote(path) if is_own else ""
    folder = posixpath.dirname(path) if path.endswith(".go") else path
    steps = "/".join(f"^{re.escape(step)}$" for step in name.split("/"))
    is_found = "discover" in call.operands  # by its name, where it may not be imported
    quoted = shlex.quote(name)
    return {
        "options": options,
        "passed": " ".join(call.passed),
        "goals": operands or "test",
        "files": operands or file,  # a test may be defined in a file that runs none
        "discovery": operands * is_found,
        "discovered": f"-k {quoted}" if is_found else quoted,
        "once": "--run" * (not call.start.endswith(" run")),  # vitest watches in a terminal
        "file": file,
        "path": path and shlex.quote(path),
        "folder": f"./{folder}",
        "name": name and quoted,
        "word": shlex.quote(name.partition(" ")[0]),
        "title": name and shlex.quote(title),
        "steps": shlex.quote(steps),
        "node": shlex.quote(f"{path}::{name}" if path else name),
        "method": shlex.quote("#".join(name.rsplit(".", 1))),
    }


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

RUNNERS: Mapping[str, SelectingRunner] = {
    # https://docs.pytest.org/en/stable/reference/reference.html#command-line-flags, and the
    # options of pytest-xdist, pytest-cov, pytest-django, pytest-timeout
    "pytest": SelectingRunner(
        program="pytest",
        default="{python} -m pytest",
        arguments=("{options}", "{node}"),
        valued=words("""
            -c --config-file --rootdir --confcutdir -p -o --override-ini -W --pythonwarnings
            --import-mode --basetemp --ds --dc --cov-config --timeout --timeout-method
            --asyncio-mode --capture --log-level --log-cli-level --log-file -k -m -n --numprocesses
            --dist --tb --maxfail --durations --durations-min --junitxml --junit-xml --ignore
            --ignore-glob --deselect --cov-report --cov-fail-under --html --tx --color
            --show-capture --verbosity -r --reruns --reruns-delay
            """),
        dropped=(
            r"-[qvxl]+|-r.*|-k|-m|-n.*|--(?:quiet|verbose|verbosity|exitfirst|maxfail|numprocesses"
            r"|dist|tx|tb|durations.*|junit-?xml|ignore(?:-glob)?|deselect|cov.*|html|color|show-.*"
            r"|no-header|no-summary|lf|last-failed.*|ff|failed-first|nf|new-first|sw|stepwise.*"
            r"|reruns.*|looponfail|self-contained-html|log-file)"
        ),
    ),
    # https://docs.python.org/3/library/unittest.html#command-line-options
    # https://docs.djangoproject.com/en/5.2/ref/django-admin/#test
    "unittest": SelectingRunner(
        program=r"unittest|(?:manage\.py|django-admin|-m django) test",
        default="{python} -m unittest",
        arguments=("{discovery}", "{options}", "{discovered}"),
        valued=words("""
            -s --start-directory -p --pattern -t -k --settings --pythonpath --testrunner
            --verbosity --tag --exclude-tag --shuffle
            """),
        dropped=(
            r"-[vqfk]|--(?:verbose|quiet|failfast|locals|verbosity|parallel|tag|exclude-tag"
            r"|shuffle|timing)"
        ),
    ),
    # https://pkg.go.dev/cmd/go#hdr-Testing_flags
    "go-test": SelectingRunner(
        program="go test",
        default="go test",
        arguments=("{options}", "{folder}", "-v", "-run", "{steps}"),
        valued=words("""
            -run -bench -count -timeout -tags -p -parallel -cpu -coverprofile -covermode -coverpkg
            -exec -ldflags -gcflags -mod -modfile -overlay -shuffle -vet -o -outputdir -C -skip
            -fuzz -fuzztime -list -cpuprofile -memprofile -blockprofile -trace -benchtime -toolexec
            """),
        dropped=(
            r"--?(?:v|json|run|skip|bench.*|fuzz.*|list|cover.*|failfast|o|outputdir|\w+profile"
            r"|trace)"
        ),
        hides_skipped=True,
    ),
    # https://jestjs.io/docs/cli, https://vitest.dev/guide/cli
    "jest": SelectingRunner(
        program=r"jest(?:/bin/jest\.js)?",
        default="npx jest",
        arguments=("{options}", "{file}", "-t {title}"),
        valued=_JEST,
        dropped=_JEST_DROPPED,
        by_script=True,
    ),
    "vitest": SelectingRunner(
        program=r"vitest(?: run)?",
        default="npx vitest run",
        arguments=("{once}", "{options}", "{file}", "-t {title}"),
        valued=_JEST,
        dropped=_JEST_DROPPED,
        by_script=True,
    ),
    # https://mochajs.org/#command-line-usage
    "mocha": SelectingRunner(
        program=r"mocha(?:/bin/_?mocha(?:\.js)?)?|_mocha",
        default="npx mocha",
        arguments=("{options}", "{file}", "-g {title}"),
        valued=words("""
            -r --require --config --package -u --ui -t --timeout -R --reporter -O --reporter-option
            --reporter-options -g --grep -f --fgrep --file --extension --spec --loader --import -n
            --node-option -j --jobs --ignore --exclude -s --slow --retries
            """),
        dropped=(
            r"-[ROgfibpj]|--(?:reporter.*|grep|fgrep|invert|spec|bail|parallel|jobs|watch.*"
            r"|colou?rs?|no-colou?rs?|forbid-only|dry-run)"
        ),
        by_script=True,
    ),
    # https://github.com/avajs/ava/blob/main/docs/05-command-line.md
    "ava": SelectingRunner(
        program="ava",
        default="npx ava",
        arguments=("{options}", "{file}", "--match {title}"),
        valued=words("--config --node-arguments -c --concurrency -T --timeout"),
        by_script=True,
    ),
    # https://nodejs.org/api/cli.html; it takes options only before files
    "node-test": SelectingRunner(
        program=r"(?:node|tsx)(?= (?:.* )?--test(?: |$))",
        default="node --test",
        arguments=("{options}", "--test-name-pattern {title}", "{files}"),
        valued=words("""
            -r --require --import --loader --experimental-loader -C --conditions --test-reporter
            --test-reporter-destination --test-timeout --test-concurrency --test-name-pattern
            --test-skip-pattern --test-shard
            """),
    ),
    # https://doc.rust-lang.org/cargo/commands/cargo-test.html
    "cargo-test": SelectingRunner(
        program=r"cargo(?: \+\S+)? t(?:est)?",
        default="cargo test",
        arguments=("{options}", "{name}", "{passed}"),
        valued=words("""
            --manifest-path -p --package --exclude -F --features --profile --target --target-dir
            --config --test --bin --example --bench -j --jobs --color --message-format
            --lockfile-path -Z -C --test-threads --skip --format --logfile --shuffle-seed
            """),
    ),
    # https://maven.apache.org/ref/current/maven-embedder/cli.html
    "maven": SelectingRunner(
        program=r"mvn[wd]?",
        default="mvn test",
        arguments=("{options}", "{goals}", "-Dtest={method}"),
        valued=words("""
            -f --file -s --settings -gs --global-settings -t --toolchains -P --activate-profiles
            -pl --projects -rf --resume-from -T --threads -D --define -b --builder -l --log-file
            --color
            """),
    ),
    # https://rspec.info/documentation/
    "rspec": SelectingRunner(
        program="rspec",
        default="bundle exec rspec",
        arguments=("{options}", "{path}", "-e {name}"),
        valued=words("""
            -I -r --require -P --pattern -f --format -o --out -e --example -t --tag --seed --order
            -O --options --default-path --exclude-pattern --failure-exit-code
            """),
        dropped=(
            r"-[fotePcnp]|--(?:format|out|tag|example|pattern|exclude-pattern|seed|order"
            r"|fail-fast.*|profile.*|only-failures|next-failure|colou?r|no-colou?r"
            r"|failure-exit-code)"
        ),
    ),
    # https://docs.phpunit.de/en/12.0/textui.html
    "phpunit": SelectingRunner(
        program="phpunit",
        default="vendor/bin/phpunit",
        arguments=("{options}", "--filter {word}"),
        valued=words("""
            -c --configuration --bootstrap --include-path -d --cache-directory --testsuite --filter
            --group --exclude-group --log-junit --order-by --coverage-clover --coverage-html
            --coverage-text --coverage-cobertura
            """),
        dropped=(
            r"-v+|--(?:filter|testsuite|group|exclude-group|log-.*|coverage.*|verbose|testdox.*"
            r"|colors.*|stop-on-.*|order-by.*|no-progress|display-.*)"
        ),
    ),
}
"""Runners by tool of a diagnostic."""
