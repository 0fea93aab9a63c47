"""Rows that belong to no single tool: what serves every format without a row of its own."""

from atlas_retry.diagnostics.table import LineFormat

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

ROWS = (GITHUB, DIFF)
FALLBACKS = (NODE, GENERAL)
