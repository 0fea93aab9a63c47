"""Rows of the tools that check JavaScript, TypeScript, CSS and Markdown."""

from atlas_retry.diagnostics.table import LineFormat

_PLACE = r" +(?P<line>\d+):(?P<column>\d+) +"

ESLINT = LineFormat(
    name="eslint",
    # https://eslint.org/docs/latest/use/formatters/#stylish
    heading=r"(?P<path>/?[^\s:][^:]*\.\w+)$",
    pattern=_PLACE + r"(?P<level>error|warning) +(?P<message>\S.*?)(?: {2,}(?P<rule>[@\w./-]+))?$",
    summary=r"✖ \d+ problems? ",
    marks=(" problem (", " problems ("),
)
STYLELINT = LineFormat(
    name="stylelint",
    # https://stylelint.io/user-guide/options#formatter
    heading=r"(?P<path>/?[^\s:][^:]*\.\w+)$",
    pattern=_PLACE + r"(?P<level>[✖\u00d7⚠\u2139]) +(?P<message>\S.*?) {2,}(?P<rule>[@\w/-]+)$",
    summary=r"✖ \d+ problems? ",
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
    summary=r"Found \d+ errors? in ",
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
    summary=r"\[warn\] Code style issues|Error occurred when checking code style",
    marks=("Checking formatting...", "[warn] Code style issues"),
)

ROWS = (ESLINT, STYLELINT, TSC, PRETTIER)
