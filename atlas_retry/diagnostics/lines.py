"""Rows of the tools of the web, and those that serve every format without a row of its own."""

from atlas_retry.diagnostics.table import LineFormat
from atlas_retry.diagnostics.values import THRESHOLD_RULE

# A name with an extension, or one of the files that have none; no spaces, so that no time of day
# or log prefix passes for a path.
_FILE = (
    r"(?P<path>(?:[A-Za-z]:)?[^\s:\"'(<]{0,300}(?:[\w+-]\.[A-Za-z]\w{0,11}|Makefile|Dockerfile))"
)
_SAID = (
    r"(?:(?P<level>(?:fatal )?error|warning|warn|note|info|hint)\b:? ?)?"
    r"(?:\[?(?P<rule>[A-Z]{1,6}\d{2,5})\]?(?:/\S+)?:? )?(?P<message>\S.*)$"
)

GENERAL = LineFormat(
    name="general",
    # https://www.gnu.org/prep/standards/html_node/Errors.html
    pattern=(
        rf"(?:[\w./-]{{1,40}}: )?{_FILE}:(?P<line>\d{{1,7}})(?::(?P<column>\d{{1,7}}))?"
        rf"(?:-\d+(?::\d+)?)?(?:: *| - | ){_SAID}"
    ),
)
GITHUB = LineFormat(
    name="github",
    # https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
    commands=("--output-format github", "--format github"),
    pattern=(
        r"::(?P<level>error|warning|notice) (?:title=(?P<rule>[^,:]+),)?file=(?P<path>[^,:]+)"
        r"(?:,line=(?P<line>\d+))?(?:,col=(?P<column>\d+))?"
        r"(?:,endLine=(?P<end_line>\d+))?(?:,endColumn=(?P<end_column>\d+))?[^:]*::(?P<message>.+)$"
    ),
    marks=("::error ", "::warning "),
)
DIFF = LineFormat(
    name="diff",
    # https://www.gnu.org/software/diffutils/manual/html_node/Unified-Format.html
    commands=("--diff", "gofmt -d", "gofumpt -d", "shfmt -d"),
    pattern=r"\+\+\+ (?:b/)?(?P<path>[^\t]+?)(?:\.orig)?(?:\t.*)?$",
    more=r"@@ -\d+(?:,\d+)? \+(?P<line>\d+)|(?!\+\+\+ |--- )[-+ @\\]",
    message="file would be reformatted",
    rule="unformatted",
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

_BELOW = r"""(?x)
    (?: ERROR:[ ] | \[ERROR\][ ] )?
    (?P<message>
        (?: Coverage[ ]failure:[ ]total[ ]of[ ].+[ ]is[ ]less[ ]than[ ]fail-under=  # coverage.py
          | FAIL[ ]Required[ ]test[ ]coverage[ ]of[ ].+[ ]not[ ]reached             # pytest-cov
          | Jest:[ ].*coverage[ ].*threshold
          | (?:Jest:[ ])?Coverage[ ]for[ ].+[ ]does[ ]not[ ]meet[ ]  # vitest, nyc, c8
          | Rule[ ]violated[ ]for[ ].+[ ]but[ ]expected[ ]minimum[ ]is[ ]           # JaCoCo
          | RESULT:[ ]FAILED[ ]\(minimum:[ ]                                        # interrogate
        ).*
    )"""
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
_PLACE = r" +(?P<line>\d+):(?P<column>\d+) +"

ESLINT = LineFormat(
    name="eslint",
    # https://eslint.org/docs/latest/use/formatters/#stylish
    heading=r"(?P<path>/?[^\s:][^:]*\.\w+)$",
    pattern=_PLACE + r"(?P<level>error|warning) +(?P<message>\S.*?)(?: {2,}(?P<rule>[@\w./-]+))?$",
    marks=(" problem (", " problems ("),
)
STYLELINT = LineFormat(
    name="stylelint",
    # https://stylelint.io/user-guide/options#formatter
    heading=r"(?P<path>/?[^\s:][^:]*\.\w+)$",
    pattern=_PLACE + r"(?P<level>[✖\u00d7⚠\u2139]) +(?P<message>\S.*?) {2,}(?P<rule>[@\w/-]+)$",
    marks=("  ✖  ", "  ⚠  ", "  \u00d7  "),
)
TSC = LineFormat(
    name="tsc",
    # https://www.typescriptlang.org/docs/handbook/compiler-options.html
    commands=("tsc", "vue-tsc", "svelte-check"),
    pattern=(
        r"(?:(?P<path>[^\s(:][^(:]*)[(:](?P<line>\d+)[,:](?P<column>\d+)\)?(?::| -) )?"
        r"(?P<level>error|warning) (?P<rule>TS\d+): (?P<message>.+)$"
    ),
    more=r" {2,}(?P<message>\S.*)$",
    marks=("error TS",),
)
PRETTIER = LineFormat(
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
)

ROWS = (GITHUB, DIFF, ESLINT, STYLELINT, TSC, PRETTIER)
FALLBACKS = (NODE, GENERAL)
