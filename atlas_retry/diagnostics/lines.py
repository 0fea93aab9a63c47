"""Tools that report problems as lines, one row each; other formats have their own modules."""

import re
from collections.abc import Iterator

from msgspec.structs import replace

from atlas_retry.diagnostics.places import ending, read_places
from atlas_retry.diagnostics.table import LineFormat
from atlas_retry.diagnostics.values import THRESHOLD_RULE, Located, Log, Parser
from atlas_retry.patterns import words


class Named(Parser, frozen=True, kw_only=True):
    """A tool whose output is read by its structure: its row knows nothing of its format."""

    tool: str | None = None
    """Name in the diagnostic, if a row of another name has the tool as well."""
    endings: tuple[str, ...]
    """Extensions of the files it reports."""
    compiles: bool = False
    """Whether it is a compiler: a warning that fails it is reported as an error."""
    more: str | None = None
    """Lines below a problem that continue its message."""
    coded: bool = False
    """Whether each problem has a rule."""

    def read(self, log: Log) -> Iterator[Located]:
        for problem in read_places(log):
            if self.fits(problem):
                yield self.named(problem, log)

    def fits(self, problem: Located) -> bool:
        is_coded = problem.diagnostic.rule_id is not None
        return ending(problem) in self.endings and (is_coded or not self.coded)

    def named(self, problem: Located, log: Log) -> Located:
        """The problem with the name of the tool, and the rest of its message."""
        d = replace(problem.diagnostic, tool=self.tool or self.name)
        if self.more:
            below = log.lines[problem.first + 1 : problem.last + 1]
            more = filter(None, map(re.compile(self.more).match, below))
            d = replace(d, message="\n".join((d.message, *(m["message"] for m in more))))
        return replace(problem, diagnostic=d)


_PY = r"(?P<path>[^\s:][^:]{0,400}\.(?:pyi?|ipynb)(?::cell \d+)?)"
_AT = r":(?P<line>\d+):(?P<column>\d+)"
_RUFF_CODE = r"(?P<rule>[A-Z]{1,10}\d{1,5}|invalid-syntax|io-error)"
_RUFF_MORE = rf" *--> {_PY}{_AT}$|\s*\d* (?:\||[-+](?: |$))|(?:help|info|note): "
_C = tuple(sorted(words("c h m mm cc cpp cxx c++ hh hpp hxx h++ cu inl ipp tcc l y")))
_JAVA = ("java", "kt", "groovy", "scala")
_WEB = ("ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "vue", "svelte", "astro")
_BELOW = r"""(?x)
    (?: ERROR:[ ] | \[ERROR\][ ] | -+[ ] )?
    (?P<message>
        (?: Coverage[ ]failure:[ ]total[ ]of[ ].+[ ]is[ ]less[ ]than[ ]fail-under=  # coverage.py
          | FAIL[ ]Required[ ]test[ ]coverage[ ]of[ ].+[ ]not[ ]reached             # pytest-cov
          | Jest:[ ].*coverage[ ].*threshold
          | (?:Jest:[ ])?Coverage[ ]for[ ].+[ ]does[ ]not[ ]meet[ ]  # vitest, nyc, c8
          | Rule[ ]violated[ ]for[ ].+[ ]but[ ]expected[ ]minimum[ ]is[ ]           # JaCoCo
          | RESULT:[ ]FAILED[ ]\(minimum:[ ]                                        # interrogate
        ).*
    )"""

_SYMBOL = r"(?:\[ERROR\])? {2,}(?P<message>(?:symbol|location|required|found|reason) *: .+)$"
_RUFF_MARKS = (" [*] ", " fixable with the `--fix`", " hidden fixes can be enabled")

ROWS = (
    LineFormat(
        name="ruff-format",
        # https://docs.astral.sh/ruff/formatter/
        commands=("ruff format",),
        pattern=r"(?P<rule>unformatted|invalid-syntax): (?P<message>\S.*)$",
        more=_RUFF_MORE,
        marks=("\nunformatted: ",),
    ),
    LineFormat(
        name="ruff-format-list",
        tool="ruff-format",
        # https://docs.astral.sh/ruff/formatter/
        commands=("ruff format",),
        pattern=r"Would reformat: (?P<path>\S.*)$",
        message="File would be reformatted",
        rule="unformatted",
        marks=("Would reformat: ",),
    ),
    LineFormat(
        name="ruff",
        commands=("ruff", "ruff check"),
        pattern=rf"{_RUFF_CODE}:? (?:\[\*\] )?(?P<message>\S.*)$",
        more=_RUFF_MORE,
        marks=("--> ",),
    ),
    LineFormat(
        name="black",
        # https://black.readthedocs.io/en/stable/usage_and_configuration/the_basics.html
        pattern=(
            r"(?:would reformat|error: cannot (?:parse|format)):? "
            rf"(?P<path>[^\s:][^:]{{0,400}})(?:{_AT})?(?:: (?P<message>.+))?$"
        ),
        more=r"(?P<message>ParseError: .+)| {4}.*\S",
        message="file would be reformatted",
        zero_based=True,
        marks=("would reformat ", "error: cannot parse: ", "error: cannot format "),
    ),
    LineFormat(
        name="isort",
        # https://pycqa.github.io/isort/
        pattern=rf"ERROR: {_PY} (?P<message>Imports are incorrectly .+)$",
        rule="unsorted-imports",
        marks=("Imports are incorrectly sorted",),
    ),
    LineFormat(
        name="pylint",
        # https://pylint.readthedocs.io/en/stable/user_guide/usage/output.html
        pattern=rf"{_PY}{_AT}: (?P<level>[CRWEFI])\d{{4}}: (?P<message>.+) \((?P<rule>[\w-]+)\)$",
        zero_based=True,
        marks=("************* Module ",),
    ),
    LineFormat(
        name="mypy",
        # https://mypy.readthedocs.io/en/stable/error_codes.html
        commands=("mypy", "dmypy", "-m mypy"),
        pattern=(
            rf"{_PY}(?::(?P<line>\d+)(?::(?P<column>\d+)(?::(?P<end_line>\d+):(?P<end_column>\d+))?)?)?"
            r": error: (?P<message>.+?)(?: +\[(?P<rule>[a-z0-9-]+)\])?\s*$"
        ),
        more=(
            r"[^\s:][^:]*\.pyi?:\d+(?::\d+){0,3}: note: (?P<message>.+)$"
            r"|(?P<rest>(?!Found )[^:]*) *\[(?P<rule>[a-z0-9-]+)\]$| {4,}\S"
        ),
        marks=(": error: ",),
    ),
    LineFormat(
        name="pyright",
        # https://microsoft.github.io/pyright/#/command-line
        commands=("pyright", "basedpyright"),
        pattern=rf" *{_PY}{_AT} - (?P<level>\w+): (?P<message>.+?)(?: \((?P<rule>report\w+)\))?$",
        more=r"\s{4,}(?P<message>\S.*?)(?: \((?P<rule>report\w+)\))?$",
        marks=(" - error: ",),
    ),
    LineFormat(
        name="bandit",
        # https://bandit.readthedocs.io/en/latest/formatters/text.html
        pattern=r">> Issue: \[(?P<rule>B\d+):\w+\] (?P<message>.+)$",
        more=(
            rf"   Severity: (?P<level>\w+)|   Location: (?P<path>[^:]+){_AT}$"
            r"|   (?:CWE|More Info): |\d+\t"
        ),
        zero_based=True,
        marks=(">> Issue: [B",),
    ),
    LineFormat(
        name="gofmt",
        # https://pkg.go.dev/cmd/gofmt
        commands=("gofmt -l", "gofmt -s -l", "gofmt -l -s", "gofumpt -l", "goimports -l"),
        pattern=r"(?P<path>[^\s:]+\.go)$",
        message="file would be reformatted",
        rule="unformatted",
    ),
    LineFormat(
        name="rustc",
        compiles=True,
        # https://doc.rust-lang.org/rustc/json.html
        commands=("cargo", "rustc"),
        pattern=r"(?P<level>error|warning)(?:\[(?P<rule>E\d+)\])?: (?P<message>.+)$",
        more=(
            r" *--> (?P<path>[^:]+\.(?:rs|toml)):(?P<line>\d+):(?P<column>\d+)$"
            r"| *= note: (?:requested on the command line with )?"
            r"`(?:-[DWFA] |#\[\w+\()(?P<rule>[\w:-]+)"
            r"| *\d* *(?:[|=+~-]|::: )|\.\.\.$|(?:help|note): "
        ),
        marks=("--> ",),
    ),
    LineFormat(
        name="rustfmt",
        # https://github.com/rust-lang/rustfmt#checking-style-on-a-ci-server
        commands=("cargo fmt", "rustfmt"),
        pattern=r"Diff in (?P<path>.+?)(?: at line |:)(?P<line>\d+):$",
        more=r"[-+ ]",
        message="file would be reformatted",
        rule="unformatted",
        marks=("Diff in ",),
    ),
    LineFormat(
        name="unity",
        # https://github.com/ThrowTheSwitch/Unity/blob/master/docs/UnityAssertionsReference.md
        pattern=(
            r"\s*(?:\d{1,6}: )?"  # of `ctest -V`
            r"(?P<path>[^\s:][^:]{0,400}\.\w{1,4}):(?P<line>\d{1,7}):(?P<test>\w{1,200}):FAIL"
            r"(?:: ?(?P<message>.+))?$"
        ),
        message="failed",
        marks=(":FAIL\n", ":FAIL: "),
    ),
    LineFormat(
        name="ld",
        # https://sourceware.org/binutils/docs/ld/
        commands=("ld",),
        pattern=(
            r"(?:\S*ld: )?(?P<path>[^\s:]+\.\w+):(?:\([.\w]+\+0x[0-9a-f]+\)|(?P<line>\d+)): "
            r"(?P<message>(?:undefined reference to|multiple definition of) .+)$"
        ),
        rule="link",
        marks=("undefined reference to", "multiple definition of"),
    ),
    LineFormat(
        name="shellcheck",
        # https://www.shellcheck.net/wiki/
        heading=r"In (?P<path>.+) line (?P<line>\d+):$",
        pattern=r"\s*\^[-^]* (?P<rule>SC\d+)(?: \((?P<level>\w+)\))?: (?P<message>.+)$",
        marks=("^-- SC", "^ SC"),
    ),
    LineFormat(
        name="biome",
        # https://biomejs.dev/reference/reporters/#default
        pattern=(
            r"(?P<path>\S+?)(?::(?P<line>\d+):(?P<column>\d+))? (?P<rule>[a-z]\w*(?:/\w+)*)"
            r"(?: .*)? \u2501{3,}$"
        ),
        more=r" {2}[\u00d7\u2716\u2139⚠!i] (?P<message>.+)$| *$",
        marks=(" \u2501\u2501\u2501",),
    ),
    LineFormat(
        name="sqlfluff",
        # https://docs.sqlfluff.com/en/stable/reference/cli.html
        heading=r"== \[(?P<path>.+)\] FAIL$",
        pattern=(r"L: *(?P<line>\d+) \| P: *(?P<column>\d+) \| +(?P<rule>\w+) \| (?P<message>.+)$"),
        more=r" +\| (?P<rest>.+)$",
        marks=("\nL: ",),
    ),
    LineFormat(
        name="prettier",
        # https://prettier.io/docs/cli#--check
        pattern=(
            r"\[(?:warn|error)\] (?P<path>[^\s:\[]+\.\w+)"
            r"(?:: (?P<rule>\w*Error): (?P<message>.+) \((?P<line>\d+):(?P<column>\d+)\))?$"
        ),
        more=r"\[error\] (?:>| {2})",
        message="file would be reformatted",
        rule="unformatted",
        marks=("Checking formatting...", "[warn] Code style issues"),
    ),
)

COVERAGE = LineFormat(
    name="coverage",
    commands=("coverage", "--cov-fail-under", "--coverage"),
    pattern=_BELOW,
    rule=THRESHOLD_RULE,
    marks=(
        "fail-under=",
        "Required test coverage of",
        " threshold",
        "Rule violated for ",
        "RESULT: FAILED (minimum",
    ),
)
NODE = LineFormat(
    name="node",
    # https://nodejs.org/api/errors.html
    pattern=(
        r"(?:Uncaught )?(?P<rule>[A-Z]\w{0,60}Error|Error)(?: \[\w+\])?: "
        r"(?P<message>(?:.* imported from (?=(?P<path>/\S+)$))?.+)$"
    ),
    placed=True,
    more=(
        r" {4}at (?:[^()]+ \()?(?:file://)?(?P<path>(?!node:|\S*node_modules/)[^\s:()]+):(?P<line>\d+):(?P<column>\d+)\)?$"
        r"| {4}at "
    ),
)
FALLBACKS = (NODE,)
LAST = (
    LineFormat(
        name="maven-goal",
        tool="maven",
        # https://maven.apache.org/ref/current/maven-core; DefaultExceptionHandler
        pattern=(
            r"\[ERROR\] Failed to execute goal (?!\S*surefire)(?:(?P<rule>\S+) \(\S+\) )?"
            r"on project \S+: ?(?P<message>.*?)(?: -> \[Help \d+\])?$"
        ),
        more=(
            r"\[ERROR\] (?!(?:To see|Re-run|For more|After correcting) |\[Help|->)"
            r"(?P<message>\S.*?)(?: -> \[Help \d+\])?$"
        ),
    ),
)
"""Read only where nothing else was: what a failed build says at its end."""

NAMED = (
    Named(
        name="ruff-concise",
        tool="ruff",
        commands=("ruff", "ruff check"),
        endings=("py", "pyi", "ipynb"),
        coded=True,
        marks=_RUFF_MARKS,
    ),
    Named(
        name="flake8",
        commands=("flake8", "pycodestyle", "pyflakes"),
        endings=("py", "pyi"),
        coded=True,
        marks=(".py:",),
    ),
    Named(name="golangci-lint", endings=("go",), marks=(" issues:\n* ",)),
    Named(
        name="go",
        commands=("go", "go build", "go vet", "staticcheck", "gofmt", "revive"),
        endings=("go",),
        marks=(".go:",),
    ),
    Named(
        name="clang",
        commands=("clang", "clang++", "clang-tidy"),
        endings=_C,
        marks=(" generated.\n",),
        compiles=True,
    ),
    Named(
        name="gcc",
        commands=("gcc", "g++", "cc", "c++", "make", "ninja", "cmake --build"),
        endings=_C,
        marks=(": error: ", ": fatal error: ", ": warning: "),
        compiles=True,
    ),
    Named(
        name="maven-compiler",
        commands=("mvn", "mvnw", "mvnd"),
        endings=_JAVA,
        marks=("COMPILATION ERROR",),
        compiles=True,
        more=_SYMBOL,
    ),
    Named(
        name="javac",
        commands=("javac", "ant", "gradle", "gradlew"),
        endings=_JAVA,
        marks=(".java:",),
        compiles=True,
        more=_SYMBOL,
    ),
    Named(
        name="msbuild", commands=("msbuild", "dotnet"), endings=("cs", "vb", "fs"), compiles=True
    ),
    Named(name="yamllint", endings=("yaml", "yml"), marks=(".yaml\n ", ".yml\n ")),
    Named(name="stylelint", endings=("css", "scss", "sass", "less"), marks=("  ✖  ", "  \u00d7  ")),
    Named(
        name="tsc",
        commands=("tsc", "vue-tsc", "svelte-check"),
        endings=_WEB,
        marks=("error TS",),
        more=r" {2,}(?P<message>[A-Z]\S* .*)$",
    ),
    Named(name="eslint", endings=_WEB, marks=(" problem (", " problems (")),
)
"""Tools that the structure of their output explains; the first that fits names a problem."""
